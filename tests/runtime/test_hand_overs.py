"""How often a small job is handed to a thread: each time takes 0.1 ms of the processor, more than the job."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import flowcompute as fc
from flowcompute.runtime.channels import WorkerThreads
from flowcompute.runtime.run import running_pass


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of what was called in a thread."""
    seen: list[str] = []
    call = WorkerThreads.call

    async def count(self, function, *args):
        seen.append(getattr(function, "__name__", ""))
        return await call(self, function, *args)

    monkeypatch.setattr(WorkerThreads, "call", count)
    return seen


def resident() -> fc.Element:
    return fc.constant(np.eye(3)) @ fc.constant(np.ones((3, 3)))


def in_memory() -> fc.Element:
    return fc.source(np.ones((10, 3))) * 2


@pytest.mark.parametrize(
    ("job", "most"),
    [(resident, 0), (in_memory, 5), (lambda: in_memory().sum(axis=0), 4)],
    ids=["resident", "map", "fold"],
)
def test_a_small_job_takes_few_hand_overs(calls: list[str], job: Callable[[], fc.Element], most: int) -> None:
    job().resolve(device="numpy")
    assert len(calls) <= most, calls


def test_large_results_are_copied_in_a_thread(calls: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running_pass, "_SMALL_BYTES", 8)
    np.testing.assert_array_equal(in_memory().sum(axis=0).resolve(device="numpy"), np.full(3, 20.0))
    assert "write" in calls


def test_files_are_written_in_a_thread(calls: list[str], tmp_path: Path) -> None:
    (in_memory().sum(axis=0) >> fc.save(tmp_path / "x.npy")).run(device="numpy", progress=False)
    assert "write" in calls
