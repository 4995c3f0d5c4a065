"""The Run that people hold: from the main thread, other threads, event loops, forks."""

from __future__ import annotations

import asyncio
import os
import pathlib
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest
import trio

from flowcompute.errors import EventLoopWarning, PlanError, RunError
from flowcompute.metrics import Metrics, NodeMetrics
from flowcompute.runtime.run.interrupt import Interrupts
from tests.runtime.fakes import Boom, FakeAsyncSource, Job, Scene, full_job, full_values
from tests.support.starting import start

ROOT = pathlib.Path(__file__).absolute().parents[2]


def endless_job(scene: Scene) -> Job:
    """A job that only ends when it is stopped."""
    job = Job(scene)

    async def read(out):
        await trio.lowlevel.checkpoint()
        out[...] = 1
        return len(out)

    a = job.add("a", FakeAsyncSource(scene, read, name="a"))
    job.functions = {10: lambda x: x[a]}
    job.sink("y", 10)
    return job


def begun(**options):
    """An endless run after its first batch, and its scene."""
    scene, moving = Scene(), threading.Event()
    run = start(endless_job(scene).planned(), progress=False, on_batch=lambda _: moving.set(), **options)
    assert moving.wait(20)
    return run, scene


def test_metrics_have_a_row_for_each_stage():
    run = start(full_job(Scene()).planned(), progress=False, aliases={"inner": "step"}).wait(30)
    metrics = run.metrics
    assert list(metrics) == ["a", "b", "step", "twice_1", "twice_2", "placed", "total"]
    assert [row.kind for row in metrics.values()] == ["source"] * 2 + ["region"] + ["destination"] * 4
    assert metrics["inner"] is metrics["step"] or metrics["inner"] == metrics["step"]
    rows = "'a', 'b', 'step', 'twice_1', 'twice_2', 'placed', 'total'"
    with pytest.raises(KeyError, match=f"cannot find row 'unknown': there are {rows}"):
        metrics["unknown"]
    assert metrics.get("unknown") is None
    for name in ("a", "b"):
        assert (metrics[name].items, metrics[name].batches, metrics[name].bytes_out) == (10, 3, 240)
    assert (metrics["step"].items, metrics["step"].batches, metrics["step"].busy_s) == (10, 3, 0.75)
    assert (metrics["step"].bytes_in, metrics["step"].bytes_out) == (480, 480)
    for name in ("twice_1", "twice_2", "placed"):
        assert (metrics[name].items, metrics[name].batches, metrics[name].bytes_in) == (10, 3, 240)
    assert (metrics["total"].items, metrics["total"].bytes_in) == (1, 8)
    assert all(min(row.wait_in_s, row.busy_s, row.wait_out_s) >= 0 for row in metrics.values())
    assert run.bottleneck == "step"
    assert run.launches == 3
    assert (run.bytes_read, run.bytes_written) == (480, 728)
    assert run.seconds == run.seconds > 0
    assert run.progress.throughput > 0
    assert run.progress.remaining_s == 0.0


def test_an_alias_does_not_hide_a_stage():
    row = NodeMetrics("add", "region", 1, 1, 1, 1, 0.0, 0.0, 0.0)
    metrics = Metrics({"add": row}, {"add": "elsewhere", "x": "add"})
    assert metrics["add"] is metrics["x"] is row
    assert len(metrics) == 1
    assert "y" not in metrics


def test_value_and_values():
    job = full_job(Scene())
    run = start(job.planned(), progress=False).wait(30)
    for value, wanted in zip(run.values, full_values(), strict=True):
        np.testing.assert_array_equal(value, wanted)
    with pytest.raises(RunError, match="4 values") as caught:
        _ = run.value
    assert "run.values" in caught.value.hint
    job.sinks = job.sinks[:1]
    np.testing.assert_array_equal(start(job.planned(), progress=False).wait(30).value, full_values()[0])


def test_there_is_no_value_before_the_end():
    run, scene = begun()
    with run:
        assert repr(run).startswith("<Run running: ")
        assert not run.progress.done
        assert run.progress.fraction is None
        with pytest.raises(RunError, match="not ended"):
            _ = run.values
        with pytest.raises(TimeoutError):
            run.wait(0.001)
        assert not run.progress.done, "a wait that takes too long stops nothing"
        run.stop()
    with pytest.raises(RunError, match="stopped"):
        _ = run.value
    assert repr(run).startswith("<Run failed: ")
    scene.assert_put_away(committed=False)


def test_text_comes_from_who_started_it():
    run = start(full_job(Scene()).planned(), progress=False, draw=lambda run: f"drawn {run.progress.items}").wait(30)
    assert str(run) == "drawn 10"
    run = start(full_job(Scene()).planned(), progress=False).wait(30)
    assert str(run) == "<Run complete: 10 records>"


def test_stop_from_another_thread():
    run, scene = begun()
    thread = threading.Thread(target=run.stop)
    thread.start()
    with pytest.raises(RunError, match="the run was stopped"):
        run.wait(30)
    thread.join()
    run.stop()
    assert run.progress.done
    scene.assert_put_away(committed=False)


def test_stop_from_on_batch():
    scene = Scene()
    run = start(endless_job(scene).planned(), progress=False, on_batch=lambda run: run.stop())
    with pytest.raises(RunError, match="the run was stopped"):
        run.wait(30)
    scene.assert_put_away(committed=False)


def test_stop_before_it_has_begun_and_after_it_has_ended():
    scene = Scene()
    run = start(endless_job(scene).planned(), progress=False)
    run.stop()
    with pytest.raises(RunError, match="the run was stopped"):
        run.wait(30)
    scene.assert_put_away(committed=False)
    run = start(full_job(Scene()).planned(), progress=False).wait(30)
    run.stop()
    assert len(run.wait().values) == 4


@pytest.mark.parametrize("where", ["on_batch", "write y"])
def test_a_run_that_waits_for_itself_is_refused(where):
    scene, known, runs = Scene(), threading.Event(), []

    def wait(*_):
        assert known.wait(20)
        runs[0].wait()

    if where == "write y":
        scene.hooks[where] = wait
    runs.append(start(endless_job(scene).planned(), progress=False, on_batch=wait if where == "on_batch" else None))
    known.set()
    with pytest.raises(RunError, match="cannot let a run wait for itself"):
        runs[0].wait(30)
    scene.assert_put_away(committed=False)


def test_a_block_waits_for_its_run_and_stops_it_when_it_fails():
    scene = Scene()
    with start(full_job(scene).planned(), progress=False) as run:
        pass
    assert run.progress.done
    scene.assert_put_away(committed=True)

    run, scene = begun()
    with pytest.raises(Boom), run:
        raise Boom
    assert run.progress.done
    scene.assert_put_away(committed=False)

    scene = Scene(("process", 1))
    with pytest.raises(RunError, match="Boom"), start(full_job(scene).planned(), progress=False):
        pass

    # Told once is enough.
    scene = Scene(("process", 1))
    with start(full_job(scene).planned(), progress=False) as run, pytest.raises(RunError, match="Boom"):
        run.wait(30)


def test_a_failure_before_the_stop_is_not_hidden_by_it():
    scene = Scene(("process", 1))
    run = start(full_job(scene).planned(), progress=False)
    assert run._settled.wait(20)
    with pytest.raises(RunError, match="Boom"), run:
        run.stop()


@pytest.fixture
def ctrl_c():
    """Python's own answer to SIGINT, also where the tests run in a shell's background, which ignores it."""
    earlier = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, earlier)


@pytest.mark.usefixtures("ctrl_c")
def test_ctrl_c_stops_the_run_and_is_raised(monkeypatch):
    waiting, sent = threading.Event(), []

    class Told(Interrupts):
        def __enter__(self):
            super().__enter__()
            waiting.set()
            return self

    def interrupt_once(_):
        if not sent:
            assert waiting.wait(20)
            sent.append(os.kill(os.getpid(), signal.SIGINT))

    monkeypatch.setattr("flowcompute.runtime.run.run.Interrupts", Told)
    earlier = signal.getsignal(signal.SIGINT)
    scene = Scene()
    run = start(endless_job(scene).planned(), progress=False, on_batch=interrupt_once)
    with pytest.raises(KeyboardInterrupt):
        run.wait(30)
    assert run.progress.done
    scene.assert_put_away(committed=False)
    assert signal.getsignal(signal.SIGINT) is earlier
    with run:
        pass


@pytest.mark.usefixtures("ctrl_c")
def test_ctrl_c_outside_of_wait_is_the_callers():
    scene = Scene()
    with pytest.raises(KeyboardInterrupt), start(endless_job(scene).planned(), progress=False) as run:
        signal.raise_signal(signal.SIGINT)
    assert run.progress.done
    scene.assert_put_away(committed=False)


@pytest.mark.usefixtures("ctrl_c")
def test_the_second_ctrl_c_does_not_wait():
    asked = []
    earlier = signal.getsignal(signal.SIGINT)
    with Interrupts(lambda: asked.append(1)) as interrupts:
        assert not interrupts.received
        signal.raise_signal(signal.SIGINT)
        assert interrupts.received
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert asked == [1]
    assert signal.getsignal(signal.SIGINT) is earlier


@pytest.mark.parametrize("handler", [signal.SIG_IGN, signal.SIG_DFL])
def test_a_process_that_ignores_interrupts_goes_on_ignoring_them(handler):
    earlier = signal.signal(signal.SIGINT, handler)
    try:
        with Interrupts(lambda: None):
            assert signal.getsignal(signal.SIGINT) is handler
        assert signal.getsignal(signal.SIGINT) is handler
    finally:
        signal.signal(signal.SIGINT, earlier)


def test_waiting_in_another_thread_touches_no_signals():
    run, _ = begun()
    before = signal.getsignal(signal.SIGINT)
    seen = []

    def wait():
        try:
            run.wait(30)
        except RunError as error:
            seen.append(str(error))

    stopped = threading.Thread(target=wait)
    stopped.start()
    assert signal.getsignal(signal.SIGINT) is before
    run.stop()
    stopped.join(20)
    assert len(seen) == 1
    assert "stopped" in seen[0]


def test_two_runs_at_once():
    barrier = threading.Barrier(2, timeout=600)
    scenes = [Scene(), Scene()]
    for scene in scenes:
        scene.hooks["process"] = lambda _: barrier.wait()
    runs = [start(full_job(scene).planned(), progress=False) for scene in scenes]
    for run in runs:
        np.testing.assert_array_equal(run.wait(30).values[0], full_values()[0])
    for scene in scenes:
        scene.assert_put_away(committed=True)


def test_a_run_within_a_run():
    inner = []
    scene = Scene()
    scene.hooks["process"] = lambda _: inner.append(
        start(full_job(Scene()).planned(), progress=False).wait(30).values[3]
    )
    start(full_job(scene).planned(), progress=False).wait(30)
    assert inner == [full_values()[3]] * 3


def test_from_an_asyncio_loop():
    async def main():
        with pytest.warns(EventLoopWarning, match="blocks the event loop"):
            return start(full_job(Scene()).planned(), progress=False).wait(30).values[3]

    assert asyncio.run(main()) == full_values()[3]


async def test_in_a_trio_task_it_is_refused():
    job = full_job(Scene()).planned()
    with pytest.raises(RunError, match="trio task") as caught:
        start(job, progress=False)
    assert "await fc.arun" in caught.value.hint
    run = await trio.to_thread.run_sync(lambda: start(job, progress=False))
    with pytest.raises(RunError, match="trio task"):
        run.wait()
    await trio.to_thread.run_sync(run.wait)
    assert run.progress.done


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_after_a_fork_the_run_is_refused_in_the_child():
    run, scene = begun()
    child = os.fork()
    if child == 0:
        refused = 0
        for use in (run.wait, run.stop, lambda: run.values, lambda: run.progress, lambda: run.metrics):
            try:
                use()
            except RunError as error:
                refused += "spawn" in error.hint
        os._exit(refused)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 5
    run.stop()
    with pytest.raises(RunError):
        run.wait(30)
    scene.assert_put_away(committed=False)


def test_a_process_that_exits_puts_its_run_away():
    program = """
import threading
from tests.support.starting import start
from tests.runtime.fakes import Scene
from tests.runtime.test_run import endless_job

scene, moving = Scene(), threading.Event()
scene.hooks["abort"] = lambda _: print("aborted", flush=True)
run = start(endless_job(scene).planned(), progress=False, on_batch=lambda _: moving.set())
assert moving.wait(20)
raise SystemExit(3)
"""
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=600, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (3, "aborted\n", "")


@pytest.mark.parametrize(
    "option",
    [
        {"throttle": -1},
        {"throttle": float("nan")},
        {"throttle": "1"},
        {"throttle": True},
        {"stall_timeout_s": 0},
        {"stall_timeout_s": float("inf")},
        {"on_batch": 3},
        {"progress": "yes"},
    ],
)
def test_options_are_looked_at(option):
    scene = Scene()
    with pytest.raises(PlanError) as caught:
        start(full_job(scene).planned(), **option)
    assert next(iter(option)) == caught.value.element
    assert not scene.counts


def test_the_throttle_pauses_after_each_batch_and_can_be_stopped():
    run, scene = begun(throttle=1000.0)
    run.stop()
    with pytest.raises(RunError, match="stopped"):
        run.wait(30)
    assert scene.counts["process"] == 1
    scene.assert_put_away(committed=False)
