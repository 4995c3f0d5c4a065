"""Results in memory whose length nobody knows beforehand have room beside the buffers of every pass."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import flowcompute as fc

BATCHES = [np.arange(1000, dtype=np.float32), np.ones(1000, np.float32)]
JOBS: list[Callable[[Any], Any]] = [
    lambda z: z - 1,
    lambda z: z - z.mean(),
    lambda z: (z - z.mean()) / z.std() - (z - z.mean()).max(),
    lambda z: fc.concat([z[z > z.mean()], z * 2]),
]


def numbers() -> Any:
    return fc.iterate(BATCHES, shape=(), dtype="float32")


@pytest.mark.parametrize("device", ["numpy", "cpu"])
@pytest.mark.parametrize("job", JOBS)
def test_a_small_result_fits_a_small_budget(job: Callable[[Any], Any], device: str) -> None:
    element = job(numbers())
    plan = element.plan(device=device, memory="2MiB")
    assert plan.memory.budget_bytes - plan.memory.host_bytes > plan.memory.budget_bytes // 3
    want = job(fc.source(np.concatenate(BATCHES))).resolve(device=device, progress=False)
    np.testing.assert_array_equal(element.resolve(device=device, memory="2MiB", progress=False), want)


def test_a_job_without_such_a_result_uses_all_of_the_budget() -> None:
    plan = fc.plan((numbers() - numbers().mean()) >> fc.discard(), device="numpy", memory="2MiB")
    assert plan.memory.host_bytes > 0.9 * plan.memory.budget_bytes
