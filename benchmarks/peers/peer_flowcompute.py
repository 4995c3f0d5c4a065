"""Peer: flowcompute through its public functions."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import flowcompute as fc
from benchmarks.measuring.chunks import tiny_batches
from benchmarks.measuring.workloads import Job

MEMORY = "1GiB"
"""More than a file of 256 MiB or 512 MiB, so that files stay in the system's cache, as those of all peers do.

It is a bound. What the jobs take is measured, and far less."""
SMALL_MEMORY = "64MiB"
"""Less than a file, so that its pages leave the system's cache."""


def prepare_durable(job: Job, device: str = "auto") -> Callable[[Job], object]:
    """As `prepare`, with files that are on the disk before they get their names (what `fc.save` does by itself)."""
    return prepare(job, device, durable=True)


def prepare_leave(job: Job, device: str = "auto") -> Callable[[Job], object]:
    """As `prepare`, in a budget smaller than the files, so that they leave the system's cache."""
    return prepare(job, device, memory=SMALL_MEMORY)


def prepare(job: Job, device: str = "auto", durable: bool = False, memory: str = MEMORY) -> Callable[[Job], object]:
    """Each repetition composes, plans and runs anew, as a user's program does. Like the others it leaves fsync out."""
    options: dict[str, object] = {"memory": memory, "device": device, "progress": False}

    def save(job: Job, element: fc.Compute) -> None:
        (element >> fc.save(job.output, durable=durable)).run(**options)

    def chain(job: Job) -> None:
        x = fc.open(job.inputs[0])
        save(job, fc.nn.sigmoid(1.5 * x - 0.25) * fc.tanh(x) + x * x)

    def dot(job: Job) -> float:
        first, second = map(fc.open, job.inputs)
        return float(fc.vecdot(first, second).resolve(**options))

    def softmax(job: Job) -> None:
        x = fc.open(job.inputs[0])
        e = fc.exp(x - x.max(axis=1, keepdims=True))
        save(job, e / e.sum(axis=1, keepdims=True))

    def project(job: Job) -> None:
        x = fc.open(job.inputs[0])
        unit = x * (1 / fc.sqrt((x * x).sum(axis=1, keepdims=True)))
        save(job, unit @ fc.constant(np.load(job.weight)))

    def moments(job: Job) -> tuple[np.ndarray, np.ndarray]:
        x = fc.open(job.inputs[0])
        mean, variance = fc.resolve(x.mean(axis=0), x.var(axis=0), **options)
        return mean, variance

    def tiny(job: Job) -> np.ndarray:
        data = tiny_batches(job)
        x = fc.iterate(iter(data), shape=(), dtype=np.float32)
        return (x * 2 + 1).resolve(**options | {"memory": data.nbytes + (64 << 20)})

    return {"W1": chain, "W2": dot, "W3": softmax, "W4": project, "W5": moments, "W6": tiny}[job.workload]
