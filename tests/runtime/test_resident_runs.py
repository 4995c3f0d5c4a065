"""Runs in which nothing streams: they need no event loop, and stop, fail and go on as others do."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import trio

import flowcompute as fc
from flowcompute.engine import CHECK, check_stopped
from flowcompute.runtime.channels import OwnThread, WorkerThreads

ONES = np.ones(3)


def through(function: Callable[[np.ndarray], np.ndarray]) -> fc.Element:
    """A job that calls a function of the host on a resident value."""
    return fc.host(function, fc.constant(ONES), name="called")


def save(job: fc.Element, folder: Path) -> fc.Element:
    return job >> fc.save(folder / "y.npy")


@pytest.fixture(autouse=True)
def no_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """An event loop fails the test."""

    def refuse(*_: object) -> None:
        raise AssertionError("an event loop was begun")

    monkeypatch.setattr(trio, "run", refuse)


def test_whole_values_need_no_event_loop(tmp_path: Path) -> None:
    x = fc.constant(np.arange(6.0).reshape(2, 3))
    fc.run(x + 1 >> fc.save(tmp_path / "y.npy"), (x @ x.T).sum(), device="numpy", progress=False)
    np.testing.assert_array_equal(np.load(tmp_path / "y.npy"), np.arange(6.0).reshape(2, 3) + 1)


def test_a_run_leaves_no_question_behind_in_the_thread_of_its_user() -> None:
    before = CHECK.get()
    asked = OwnThread()

    async def main() -> str:
        asked.stop()
        return "ended"

    assert asked.drive(main) == "ended"
    assert CHECK.get() is before
    check_stopped()


def test_it_stops_behind_the_call_in_hand_and_leaves_nothing(tmp_path: Path) -> None:
    entered, go = threading.Event(), threading.Event()

    def wait(array: np.ndarray) -> np.ndarray:
        entered.set()
        assert go.wait(20)
        return array

    run = fc.start(save(through(wait), tmp_path), device="numpy", progress=False)
    assert entered.wait(20)
    run.stop()
    go.set()
    with pytest.raises(fc.RunError, match="the run was stopped"):
        run.wait(20)
    assert os.listdir(tmp_path) == []


def test_a_stop_from_inside_counts(tmp_path: Path) -> None:
    runs: list[fc.Run] = []
    known = threading.Event()

    def stop(array: np.ndarray) -> np.ndarray:
        assert known.wait(20)
        runs[0].stop()
        return array

    runs.append(fc.start(save(through(stop), tmp_path), device="numpy", progress=False))
    known.set()
    with pytest.raises(fc.RunError, match="the run was stopped"):
        runs[0].wait(20)
    assert os.listdir(tmp_path) == []


def test_a_stop_before_the_first_call_makes_none() -> None:
    workers, calls = OwnThread(), []

    async def main() -> None:
        await workers.call(calls.append, 1)

    workers.stop()
    assert workers.drive(main) is None
    assert calls == []


@pytest.mark.parametrize("kind", [OwnThread, lambda: WorkerThreads(1)], ids=["own", "threads"])
def test_what_is_shielded_goes_on_after_a_stop(kind: Callable[[], OwnThread | WorkerThreads], monkeypatch) -> None:
    monkeypatch.undo()
    workers, calls = kind(), []

    async def main() -> int:
        try:
            await workers.call(calls.append, "not called")
        finally:
            with workers.shielded():
                await workers.call(calls.append, "put away")
        return 1

    workers.stop()
    assert workers.drive(main) is None
    assert calls == ["put away"]


def test_a_failure_is_told_and_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(fc.RunError, match="ZeroDivisionError") as caught:
        fc.run(save(through(lambda array: array / (1 // 0)), tmp_path), device="numpy", progress=False)
    assert caught.value.element == "called"
    assert os.listdir(tmp_path) == []


def test_ctrl_c_stops_it_and_is_raised(tmp_path: Path) -> None:
    earlier = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        entered, go = threading.Event(), threading.Event()

        def interrupt(array: np.ndarray) -> np.ndarray:
            assert entered.wait(20)
            os.kill(os.getpid(), signal.SIGINT)
            assert go.wait(20)
            return array

        run = fc.start(save(through(interrupt), tmp_path), device="numpy", progress=False)
        stop = run.stop

        def stop_and_go() -> None:
            stop()
            go.set()

        run.stop = stop_and_go  # type: ignore[method-assign]
        wait_settled = run._wait_settled

        def waiting(timeout_s: float | None) -> bool:
            entered.set()
            return wait_settled(timeout_s)

        run._wait_settled = waiting  # type: ignore[method-assign]
        with pytest.raises(KeyboardInterrupt):
            run.wait()
    finally:
        signal.signal(signal.SIGINT, earlier)
    assert os.listdir(tmp_path) == []


def test_a_kept_job_goes_on(tmp_path: Path) -> None:
    failing = [True]

    def once(array: np.ndarray) -> np.ndarray:
        if failing:
            raise OSError("the disk is away")
        return array + 1

    options = {"device": "numpy", "progress": False, "checkpoint": tmp_path / "kept"}
    with pytest.raises(fc.RunError, match="the disk is away"):
        fc.run(save(through(once), tmp_path), **options)
    failing.clear()
    for _ in range(2):
        fc.run(save(through(once), tmp_path), **options)
        np.testing.assert_array_equal(np.load(tmp_path / "y.npy"), ONES * 2)


def test_metrics_tell_of_it() -> None:
    run = fc.run(fc.constant(ONES) * 2, device="cpu", progress=False)
    (region, sink) = run.metrics.values()
    assert region.launches == 1
    assert sink.items == 1
    assert run.seconds >= sink.busy_s >= 0
