"""Whatever fails, wherever: one error that says where, and nothing left open."""

from __future__ import annotations

import pytest
import trio

from flowcompute.errors import DestinationError, FlowError, RunError, Site
from flowcompute.runtime.channels.failure import attributed, first_failure
from flowcompute.runtime.channels.run_record import RunRecord
from flowcompute.runtime.run.driver import Driver
from flowcompute.runtime.run.running_pass import PassSettings
from tests.runtime.fakes import Boom, Scene, full_job
from tests.support.starting import start

# How often each thing is done in a job of ten records in batches of four.
DONE = {
    "open source": 2,
    "open sink": 4,
    "open executor": 1,
    "read a": 3,
    "read b": 3,
    "process": 3,
    "write twice_1": 3,
    "write twice_2": 3,
    "write placed": 3,
    "finish": 1,
    "write total": 1,
    "check": 2,
    "close source": 2,
    "close executor": 1,
    "commit": 4,
}
OF = {
    "read a": "a",
    "read b": "b",
    "write twice_1": "twice_1",
    "write twice_2": "twice_2",
    "write placed": "placed",
    "write total": "total",
    "process": "step",
    "finish": "step",
    "open executor": "step",
    "close executor": "step",
    "upload": "step",
    "download": "step",
}
OVERLAPPED = {**DONE, "upload": 3, "download": 3}


def faults(done):
    return [(operation, k) for operation, times in done.items() for k in range(times)]


@pytest.mark.parametrize(("overlapped", "done"), [(False, DONE), (True, OVERLAPPED)])
def test_the_tables_above_are_complete(overlapped, done):
    scene = Scene()
    run = start(full_job(scene, depth=3, overlapped=overlapped).planned(), progress=False).wait(30)
    assert dict(scene.counts) == done
    assert run.progress.done


@pytest.mark.parametrize(
    ("depth", "overlapped", "fault"),
    [
        *((depth, False, fault) for depth in (1, 3) for fault in faults(DONE)),
        *((depth, True, fault) for depth in (2, 3) for fault in faults(OVERLAPPED)),
    ],
)
def test_a_failure_anywhere_leaves_nothing_behind(depth, overlapped, fault):
    scene = Scene(fault)
    run = start(full_job(scene, depth=depth, overlapped=overlapped).planned(), progress=False)
    with pytest.raises(RunError) as caught:
        run.wait(30)
    error = caught.value
    assert isinstance(error.__cause__, Boom)
    assert f"Boom: {fault[0]} {fault[1]}" in str(error)
    if fault[0] in OF:
        assert error.element == OF[fault[0]]
    if fault[0] in ("upload", "process", "download") or (
        fault[0].startswith(("read", "write")) and fault[0] != "write total"
    ):
        assert error.records == (4 * fault[1], min(4 * fault[1] + 4, 10))
    if fault[0].startswith(("read", "write")):
        assert error.site is not None
        assert error.site.file.endswith("fakes.py")
    scene.assert_put_away(committed=False)
    assert run._record.tracker.lent == run._record.tracker.held_bytes == 0
    done = fault[1] if fault[0] == "commit" else 0
    assert [writer.ends for writer in scene.writers].count(["commit"]) == done
    assert any("complete before that: twice_1" in note for note in getattr(error, "__notes__", [])) == bool(done)
    # Asked again it says the same, without growing.
    frames = len(caught.traceback)
    for _ in range(3):
        with pytest.raises(RunError) as again:
            run.wait()
        assert again.value is error
        assert len(again.traceback) <= frames


def test_what_fails_while_putting_away_is_a_note():
    scene = Scene(("process", 1))
    scene.hooks["abort"] = scene.hooks["close executor"] = lambda number: [][number]
    with pytest.raises(RunError, match="Boom") as caught:
        start(full_job(scene).planned(), progress=False).wait(30)
    notes = caught.value.__notes__
    assert len(notes) == 5
    assert all("IndexError" in note for note in notes)
    assert [
        name for name in ("twice_1", "twice_2", "placed", "total", "step") if not any(name in n for n in notes)
    ] == []
    scene.assert_put_away(committed=False)


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit])
def test_what_is_no_exception_passes_through(kind):
    def leave(_):
        raise kind

    scene = Scene()
    scene.hooks["process"] = leave
    with pytest.raises(kind):
        start(full_job(scene).planned(), progress=False).wait(30)
    scene.assert_put_away(committed=False)


def test_a_backend_that_breaks_is_told_to_whoever_waits(monkeypatch):
    scene = Scene()
    job = full_job(scene).planned()
    monkeypatch.setattr(job.backend, "executor", lambda plan, index, resident: resident[index])
    with pytest.raises(RunError, match="the runtime failed: KeyError: 0") as caught:
        start(job, progress=False).wait(30)
    assert isinstance(caught.value.__cause__, KeyError)
    scene.assert_put_away(committed=False)


def test_a_failing_on_batch_is_named():
    def bad(run):
        if run.progress.items >= 8:
            raise ValueError("no more")

    scene = Scene()
    with pytest.raises(RunError, match="ValueError: no more") as caught:
        start(full_job(scene).planned(), progress=False, on_batch=bad).wait(30)
    assert caught.value.element == "on_batch"
    assert caught.value.records == (4, 8)
    scene.assert_put_away(committed=False)


def test_an_error_of_the_family_is_completed_not_wrapped():
    site = Site("job.py", 3)
    for given, element, where, records in (
        (DestinationError("full"), "y", site, (0, 4)),
        (DestinationError("full", element="y", records=(1, 2)), "y", site, (1, 2)),
        (DestinationError("full", element="other"), "other", None, (0, 4)),
    ):
        with pytest.raises(DestinationError) as caught, attributed("y", site, (0, 4)):
            raise given
        assert caught.value is given
        assert (given.element, given.site, given.records) == (element, where, records)


def test_memory_that_is_not_there_has_a_hint():
    with pytest.raises(RunError) as caught, attributed("y"):
        raise MemoryError
    assert "memory=" in caught.value.hint


def test_the_first_of_several_failures_wins_and_the_others_are_notes():
    first, second, third = RunError("one"), ValueError("two"), RunError("three")
    assert first_failure(BaseExceptionGroup("", [ExceptionGroup("", [first, second]), third])) is first
    assert [note.split(": ", 1)[1] for note in first.__notes__] == ["ValueError: two", "RunError: three"]
    interrupt = KeyboardInterrupt()
    assert first_failure(BaseExceptionGroup("", [third, interrupt])) is interrupt


class CancelAt(trio.abc.Instrument):
    """Cancels a scope just before the k-th time that any task goes on."""

    def __init__(self, k: int, scope: trio.CancelScope) -> None:
        self.left = k
        self.scope = scope

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        self.left -= 1
        if self.left == 0:
            self.scope.cancel()


@pytest.mark.parametrize(
    ("depth", "overlapped", "fault"),
    [
        (1, False, None),
        (2, False, None),
        (2, False, ("process", 1)),
        (1, False, ("commit", 2)),
        (2, True, None),
        (3, True, ("download", 1)),
        (12, True, None),
    ],
)
def test_cancelled_at_every_await_nothing_is_left(depth, overlapped, fault):
    outcomes = set()
    for k in range(1, 3000):
        scene, record = Scene(fault), RunRecord(10, 0)
        instrument = CancelAt(k, trio.CancelScope())

        async def main(scene=scene, record=record, scope=instrument.scope):
            with scope:
                await Driver(
                    full_job(scene, depth=depth, overlapped=overlapped).planned(), record, PassSettings()
                ).run()
                return "complete"
            return "stopped"

        try:
            outcome = trio.run(main, instruments=[instrument])
        except FlowError as error:
            outcome = "failed" if isinstance(error.__cause__, Boom) else repr(error)
        outcomes.add(outcome)
        scene.assert_put_away(committed=outcome == "complete")
        assert record.tracker.lent == record.tracker.held_bytes == 0
        if outcome == "stopped":
            assert all(writer.ends == ["abort"] for writer in scene.writers)
        if instrument.left > 0:
            break
    assert instrument.left > 0, "not every await was reached"
    assert k > 50
    assert outcomes == {"stopped", "complete" if fault is None else "failed"}
