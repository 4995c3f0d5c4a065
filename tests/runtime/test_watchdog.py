"""A run that does not move says who holds it up."""

from __future__ import annotations

import threading

import pytest
import trio
import trio.testing

from flowcompute.errors import RunError
from flowcompute.observe import StageState
from flowcompute.runtime.channels.run_record import RunRecord
from flowcompute.runtime.events.stage_reporter import StageReporter
from flowcompute.runtime.events.watchdog import watch
from flowcompute.runtime.run import running_pass
from flowcompute.runtime.run.driver import Driver
from flowcompute.runtime.run.running_pass import PassSettings
from tests.runtime.fakes import FakeAsyncSource, Job, Scene, full_job
from tests.support.starting import start


def silent_job(scene: Scene) -> Job:
    """A job whose source gives one batch and then nothing."""
    job = Job(scene)
    given = []

    async def read(out):
        if given:
            await trio.sleep_forever()
        given.append(1)
        out[...] = 1
        return len(out)

    a = job.add("a", FakeAsyncSource(scene, read, name="a"))
    job.functions = {10: lambda x: x[a]}
    job.sink("y", 10)
    return job


async def test_a_silent_source_is_named(autojump_clock):
    scene = Scene()
    autojump_clock.autojump_threshold = 0.5
    with pytest.raises(RunError, match="the run stalled: nothing has moved for 120 s") as caught:
        await Driver(silent_job(scene).planned(), RunRecord(None, 0), PassSettings()).run()
    error = caught.value
    assert error.element == "a"
    assert error.records == (4, 8)
    assert "a: waiting for input from what it iterates over, records 4 to 8 for 120 s" in error.got
    assert "compute: waiting for input from a" in error.got
    assert "y: waiting for input from compute" in error.got
    assert "stall_timeout_s" in error.hint
    scene.assert_put_away(committed=False)


async def test_without_a_timeout_nobody_watches(autojump_clock):
    scene = Scene()
    with trio.move_on_after(1e6) as scope:
        await Driver(silent_job(scene).planned(), RunRecord(None, 0), PassSettings(stall_timeout_s=None)).run()
    assert scope.cancelled_caught
    scene.assert_put_away(committed=False)


async def test_a_long_pause_is_no_stall(autojump_clock):
    scene = Scene()
    # The clock jumps while a thread is at work, too. On a busy machine one takes longer than it seems to have to.
    autojump_clock.autojump_threshold = 0.5
    settings = PassSettings(stall_timeout_s=400, throttle_s=1000)
    await Driver(full_job(scene).planned(), RunRecord(10, 0), settings).run()
    assert trio.current_time() >= 3000
    scene.assert_put_away(committed=True)


@pytest.mark.parametrize(
    ("operation", "element", "words"),
    [
        ("read a", "a", "busy reading records 4 to 8 in a worker thread"),
        ("process", "step", "busy computing records 4 to 8 in a worker thread"),
        ("write twice_2", "twice_2", "busy writing records 4 to 8 in a worker thread"),
    ],
)
async def test_a_busy_stage_is_named_before_its_thread_returns(operation, element, words, mock_clock):
    scene, record = Scene(), RunRecord(10, 0)
    returned, reached = threading.Event(), threading.Event()

    def hold(number):
        if number == 1:
            reached.set()
            assert returned.wait(20)

    scene.hooks[operation] = hold
    told = []

    def on_stuck_thread(error):
        assert not returned.is_set()
        told.append(error)
        returned.set()

    async def time_passes():
        await trio.to_thread.run_sync(reached.wait, abandon_on_cancel=True)
        # Once all tasks wait and only the held stage is at work, nothing else can move any more.
        busy = []
        while busy != [element]:
            await trio.testing.wait_all_tasks_blocked()
            busy = [stage.label for stage in record.passes[0].stages if stage.state is StageState.BUSY]
        mock_clock.jump(500)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(time_passes)
        settings = PassSettings(stall_timeout_s=60, on_stuck_thread=on_stuck_thread)
        with pytest.raises(RunError, match="stalled") as caught:
            await Driver(full_job(scene).planned(), record, settings).run()
    assert told == [caught.value]
    scene.assert_put_away(committed=False)


def test_whoever_waits_is_told_although_the_thread_is_stuck(monkeypatch):
    scene, held, returned = Scene(), threading.Event(), threading.Event()
    scene.hooks["process"] = lambda _: (held.set(), returned.wait(600))

    async def watch_once_held(*args):
        await trio.to_thread.run_sync(held.wait, abandon_on_cancel=True)
        await watch(*args)

    monkeypatch.setattr(running_pass, "watch", watch_once_held)
    run = start(full_job(scene).planned(), progress=False, stall_timeout_s=0.5)
    with pytest.raises(RunError, match="step: the run stalled") as caught:
        run.wait(600)
    assert "busy computing records 0 to 4 in a worker thread" in str(caught.value)
    assert "when the thread returns" in caught.value.hint
    assert not run.progress.done
    returned.set()
    run._thread.join(600)
    assert run.progress.done
    scene.assert_put_away(committed=False)
    with pytest.raises(RunError, match="step: the run stalled"):
        _ = run.values


async def test_time_counts_only_while_somebody_waits(autojump_clock):
    stages = [StageReporter("a"), StageReporter("compute", "add")]
    for stage in stages:
        stage.enter(StageState.BUSY, "working")
    told = []
    with trio.move_on_after(1000) as scope:
        await watch(stages, 10, told.append)
    assert scope.cancelled_caught
    # What waits from now on waits from now on, however long the others have been at work.
    stages[0].enter(StageState.CREDIT, "compute")
    began = trio.current_time()
    with pytest.raises(RunError, match="add: the run stalled") as caught:
        await watch(stages, 10, told.append)
    assert trio.current_time() - began == pytest.approx(10)
    assert told == [caught.value]


async def test_every_movement_begins_a_new_wait(autojump_clock):
    stages = [StageReporter("a"), StageReporter("compute")]

    async def move():
        for _ in range(100):
            stages[0].enter(StageState.BUSY, "reading")
            stages[1].enter(StageState.INPUT, "a")
            await trio.sleep(9)
        nursery.cancel_scope.cancel()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(move)
        nursery.start_soon(watch, stages, 10, pytest.fail)
    assert trio.current_time() >= 900


async def test_a_part_that_is_done_begins_a_new_wait(autojump_clock):
    stages = [StageReporter("compute", "add"), StageReporter("y")]
    stages[0].enter(StageState.BUSY, "computing")
    stages[1].enter(StageState.INPUT, "compute")

    async def work():
        for _ in range(100):
            await trio.sleep(9)
            stages[0].part_done()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(work)
        with pytest.raises(RunError, match="add: the run stalled"):
            await watch(stages, 10, lambda _: None)
    assert 900 <= trio.current_time() <= 925
