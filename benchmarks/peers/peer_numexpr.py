"""Peer: numexpr, all cores, in a 4 MiB read loop. It has no matrix product and no reduction of one axis."""

from __future__ import annotations

import os
from collections.abc import Callable

import numexpr
import numpy as np

from benchmarks.measuring.chunks import aligned, map_file, read_chunks
from benchmarks.measuring.workloads import CHUNK_BYTES, Job

CONSTANTS = {"scale": np.float32(1.5), "shift": np.float32(-0.25), "one": np.float32(1)}


def prepare(job: Job) -> Callable[[Job], object] | None:
    """W1, W2 and W3."""
    numexpr.set_num_threads(len(os.sched_getaffinity(0)))
    result = aligned(CHUNK_BYTES // 4)

    def chain(x: np.ndarray) -> np.ndarray:
        text = "one / (one + exp(-(scale * x + shift))) * tanh(x) + x * x"
        return numexpr.evaluate(text, local_dict={"x": x, **CONSTANTS}, out=result[: x.size])

    def softmax(x: np.ndarray) -> np.ndarray:
        y = result[: x.size].reshape(x.shape)
        numexpr.evaluate("exp(x - top)", local_dict={"x": x, "top": x.max(axis=1, keepdims=True)}, out=y)
        return numexpr.evaluate("y / total", local_dict={"y": y, "total": y.sum(axis=1, keepdims=True)}, out=y)

    def dot(job: Job) -> float:
        parts = read_chunks(*job.inputs)
        return sum(float(numexpr.evaluate("sum(x * y)", local_dict={"x": x, "y": y})) for _, (x, y) in parts)

    formulas = {"W1": chain, "W3": softmax}
    if job.workload in formulas:
        return lambda job: map_file(job, formulas[job.workload])
    return dot if job.workload == "W2" else None
