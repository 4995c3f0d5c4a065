"""Peer: dask.array with its threaded scheduler, 16 MiB chunks of mapped files."""

from __future__ import annotations

import os
from collections.abc import Callable

import dask
import dask.array as da
import numpy as np

from benchmarks.measuring.workloads import CHUNK_BYTES, Job

BLOCK_BYTES = 4 * CHUNK_BYTES


def prepare(job: Job) -> Callable[[Job], object] | None:
    """Not W6: a graph a batch is not what dask is for."""
    dask.config.set(scheduler="threads", num_workers=len(os.sched_getaffinity(0)))
    weight = np.load(job.weight)

    def opened(path: str) -> da.Array:
        mapped = np.load(path, mmap_mode="r")
        rows = BLOCK_BYTES // (mapped.nbytes // len(mapped))
        return da.from_array(mapped, chunks=(rows, *mapped.shape[1:]))

    def softmax(x: da.Array) -> da.Array:
        e = da.exp(x - x.max(axis=1, keepdims=True))
        return e / e.sum(axis=1, keepdims=True)

    one, scale, shift = np.float32(1), np.float32(1.5), np.float32(-0.25)
    formulas: dict[str, Callable[[da.Array], da.Array]] = {
        "W1": lambda x: one / (one + da.exp(-(scale * x + shift))) * da.tanh(x) + x * x,
        "W3": softmax,
        "W4": lambda x: (x / da.sqrt((x * x).sum(axis=1, keepdims=True))) @ weight,
    }

    def map_job(job: Job) -> None:
        da.store(formulas[job.workload](opened(job.inputs[0])), np.load(job.output, mmap_mode="r+"), lock=False)

    def dot(job: Job) -> float:
        x, y = map(opened, job.inputs)
        return float((x * y).sum(dtype=np.float64).compute())

    def moments(job: Job) -> tuple[np.ndarray, np.ndarray]:
        x = opened(job.inputs[0])
        mean, variance = dask.compute(x.mean(axis=0), x.var(axis=0))
        return mean, variance

    return {"W1": map_job, "W3": map_job, "W4": map_job, "W2": dot, "W5": moments}.get(job.workload)
