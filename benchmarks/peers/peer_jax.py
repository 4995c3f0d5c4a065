"""Peer: jax.jit on the CPU, in a 4 MiB read loop."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.measuring.chunks import column_moments, map_file, read_chunks, tiny_batches
from benchmarks.measuring.workloads import COLUMNS, Job

jax.config.update("jax_platforms", "cpu")


def prepare(job: Job) -> Callable[[Job], object]:
    """Each formula is one jitted function of a chunk."""
    weight = jnp.asarray(np.load(job.weight))

    def softmax(x: jax.Array) -> jax.Array:
        e = jnp.exp(x - x.max(axis=1, keepdims=True))
        return e / e.sum(axis=1, keepdims=True)

    formulas: dict[str, Callable[[jax.Array], jax.Array]] = {
        "W1": lambda x: jax.nn.sigmoid(1.5 * x - 0.25) * jnp.tanh(x) + x * x,
        "W3": softmax,
        "W4": lambda x: (x / jnp.sqrt((x * x).sum(axis=1, keepdims=True))) @ weight,
    }
    dot = jax.jit(jnp.vdot)
    sums = jax.jit(lambda x: (x.sum(0), (x * x).sum(0)))
    affine = jax.jit(lambda x: x * 2 + 1)

    def dot_job(job: Job) -> float:
        return sum(float(dot(x, y)) for _, (x, y) in read_chunks(*job.inputs))

    def moments(job: Job) -> tuple[np.ndarray, np.ndarray]:
        parts = (map(np.asarray, sums(x)) for _, (x,) in read_chunks(*job.inputs))
        return column_moments(job.moved_bytes // (COLUMNS * 4), ((a, b) for a, b in parts), COLUMNS)

    def tiny(job: Job) -> np.ndarray:
        data = tiny_batches(job)
        result = np.empty_like(data)
        for k, x in enumerate(data):
            result[k] = affine(x)
        return result

    if job.workload in formulas:
        compiled = jax.jit(formulas[job.workload])
        return lambda job: map_file(job, lambda x: np.asarray(compiled(x)))
    return {"W2": dot_job, "W5": moments, "W6": tiny}[job.workload]
