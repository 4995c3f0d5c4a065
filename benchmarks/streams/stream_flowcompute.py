"""Peer of the stream workloads: flowcompute through its public functions."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import flowcompute as fc
from benchmarks.measuring.chunks import loaded
from benchmarks.measuring.workloads import Job
from benchmarks.streams.stream_workloads import WINDOWS

MEMORY = "64MiB"


def prepare_read(job: Job) -> Callable[[Job], object]:
    """As `prepare`, reading the input instead of mapping it, so that none of its pages are the process's."""
    return prepare(job, fc.Strategy(input="read"))


def prepare(job: Job, strategy: fc.Strategy | None = None) -> Callable[[Job], object]:
    """Each repetition composes, plans and runs anew. Batches have 64 MiB; an answer kept in memory comes on top."""

    def standardise(job: Job) -> None:
        x = fc.open(job.inputs[0])
        z = (x - x.mean(axis=0)) / x.std(axis=0)
        (z >> fc.save(job.output, durable=False)).run(memory=MEMORY, progress=False, strategy=strategy)

    def smooth(job: Job) -> np.ndarray:
        x = fc.source(loaded(job.inputs[0]))
        return resolve(fc.window(x, size=WINDOWS[job.workload]).mean(axis=1), job)

    def uniform(job: Job) -> np.ndarray:
        return resolve(fc.random.uniform(job.moved_bytes // 4, seed=1), job)

    def normal(job: Job) -> np.ndarray:
        return resolve(fc.random.normal(job.moved_bytes // 4, seed=1), job)

    return {"S1": standardise, "S6": uniform, "S7": normal}.get(job.workload, smooth)


def resolve(element: fc.Element, job: Job) -> np.ndarray:
    """The answer as an array."""
    return element.resolve(memory=job.moved_bytes + (64 << 20), progress=False)
