"""Peer of the stream workloads: jax.random with its default generator."""

from __future__ import annotations

from collections.abc import Callable

import jax
import numpy as np

from benchmarks.measuring.workloads import Job


def prepare(job: Job) -> Callable[[Job], object]:
    """Compiled once for each length."""
    key = jax.random.key(1)
    draw = jax.random.uniform if job.workload == "S6" else jax.random.normal
    return lambda job: np.asarray(draw(key, (job.moved_bytes // 4,)).block_until_ready())
