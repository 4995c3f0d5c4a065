"""The emulator notices what it is there for: barriers, waits and copies that are missing."""

from __future__ import annotations

import numpy as np
import pytest

import flowcompute as fc
from flowcompute.ir.nodes import If
from flowcompute.schedule.passes import KERNELS
from flowcompute.schedule.planner import PLANS
from tests.gpu.shared_memory import SharedMemory
from tests.gpu.tensor_devices import emulated

NOTHING = If(False, ())
WORK_ITEMS = np.arange(64)


def product() -> np.ndarray:
    a = np.random.default_rng(0).standard_normal((20, 300)).astype("f2")
    return emulated(fc.source(a, name="x") @ fc.constant(np.ones((300, 16), "f2")), {"x": a})


def test_a_missing_barrier(monkeypatch: pytest.MonkeyPatch) -> None:
    assert np.isfinite(product()).all()
    monkeypatch.setattr("flowcompute.lower.matmul.tensor_cores.tensor_matmul.WorkGroupBarrier", lambda: NOTHING)
    PLANS.clear()
    KERNELS.clear()
    with pytest.raises(AssertionError, match="no barrier since another team wrote this"):
        product()


def test_a_missing_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("flowcompute.lower.matmul.tensor_cores.tensor_matmul.AwaitCopies", lambda _: NOTHING)
    assert np.isnan(product()).any()


def test_teams_may_read_together_and_write_alone() -> None:
    memory = SharedMemory(64)
    own = np.zeros_like(WORK_ITEMS)
    memory.read(own, 4, WORK_ITEMS)
    with pytest.raises(AssertionError, match="wrote or read this"):
        memory.wrote(own[:1], 4, WORK_ITEMS[:1])
    memory.meet()
    memory.wrote(own[:1], 4, WORK_ITEMS[:1])
    memory.read(own[:32], 4, WORK_ITEMS[:32])
    with pytest.raises(AssertionError, match="wrote this"):
        memory.read(own[:1], 2, WORK_ITEMS[32:33])


def test_teams_of_a_group_meet_without_the_others() -> None:
    memory = SharedMemory(1024)
    group = np.arange(128)
    memory.wrote(group * 4, 4, group)
    with pytest.raises(AssertionError, match="wrote this"):
        memory.read(group * 4, 4, group[::-1])
    memory.meet_in_groups(group)
    memory.read(group * 4, 4, group[::-1])
    with pytest.raises(AssertionError, match="wrote this"):
        memory.read(group * 4, 4, group + 128)
    with pytest.raises(AssertionError, match="wrote or read this"):
        memory.wrote(group * 4, 4, group)
    memory.meet_in_groups(group)
    memory.wrote(group * 4, 4, group)
