"""Steps in the host's own memory that are launched together, to the bits of steps that are launched one by one."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
import trio

import flowcompute as fc
from flowcompute.batch import Batch
from flowcompute.elements.training import Given
from flowcompute.engine.pass_executor import PassExecutor
from flowcompute.engine.repeats.runs_together import RunsTogether
from flowcompute.engine.training.carried_values import CarriedValues
from flowcompute.engine.training.drawn_records import DrawnRecords
from flowcompute.engine.training.training_scan import TrainingScan
from flowcompute.errors import DeviceFullError, RunError, SourceError
from flowcompute.gpu.memory.device_memory import HostMemory
from flowcompute.gpu.run.chains.chain_of_runs import ChainOfRuns
from flowcompute.gpu.run.chains.chain_program import NAME
from flowcompute.gpu.run.repeating_runner import RepeatingRunner
from flowcompute.gpu.worker.launcher import LocalLauncher
from flowcompute.runtime.stages.group_size import GroupSize
from flowcompute.schedule.memory import memory_plan
from flowcompute.schedule.plan import NEXT_STEP, STEPS_IN_ONE_LAUNCH
from flowcompute.sources.array_source import MemoryReader
from tests.train.test_repeated_steps import X, fitted, same
from tests.train.test_steps_in_place import HERE, derived, strided_records

pytestmark = pytest.mark.compiles


def many(**options: Any) -> list[Any]:
    """Steps that are a chain each, 30 an epoch by default."""
    return fitted(**{"clip_norm": None, "batch": 2, "epochs": 3, **options})


@contextmanager
def together() -> Iterator[list[int]]:
    """Join the launches of the third run of a plan, and hand all steps over; note how many go in each launch."""
    lengths: list[int] = []
    launch = ChainOfRuns.launch

    def launched(self: ChainOfRuns, runs: int) -> None:
        launch(self, runs)
        lengths.append(runs)

    def took(self: GroupSize, seconds: float, batches: int) -> None:
        del seconds, batches
        self.batches = self._most

    at_once = mock.patch.multiple("flowcompute.engine.repeats.runs_in_place", JOINED_AFTER=2, SHORT_S=1e9)
    handed = mock.patch.object(GroupSize, "took", took)
    with at_once, handed, mock.patch.object(ChainOfRuns, "launch", launched):
        yield lengths


def of_one_number() -> list[Any]:
    """Steps whose losses are a number a record, which a kernel adds up."""
    x, y = (np.random.default_rng(7).standard_normal((90, size), dtype=np.float32) for size in (5, 1))
    w, v = fc.parameter(np.ones((5, 4), np.float32), name="w"), fc.parameter(np.ones((4, 1), np.float32), name="v")
    loss = ((fc.tanh(fc.source(x) @ w) @ v - fc.source(y)) ** 2).mean()
    trained = fc.train.fit(loss, fc.train.sgd(0.05), batch=3, epochs=2)
    return [trained["w"], trained["v"], trained.losses]


JOBS: dict[str, Callable[[], list[Any]]] = {
    "plain": many,
    "no losses": lambda: many()[:-1],
    "shuffled": lambda: many(shuffle=3),
    "another rate each step": lambda: many(rate=fc.train.cosine(0.05, steps=90)),
    "steps of two sizes": lambda: many(batch=7),
    "strided records": strided_records,
    "a loss that kernels end": of_one_number,
}


@pytest.mark.parametrize("name", JOBS)
def test_bits_are_those_of_steps_that_are_derived(name: str) -> None:
    with derived():
        wanted = fc.resolve(*JOBS[name](), **HERE)
    with together() as lengths:
        same(fc.resolve(*JOBS[name](), **HERE), wanted)
    assert max(lengths) > 2
    # No launch goes on in the next epoch.
    assert max(lengths) <= (16 if name != "steps of two sizes" else 8)


def test_any_number_of_steps_has_one_program() -> None:
    names: list[str] = []
    build = LocalLauncher.build

    def built(self: LocalLauncher, text: str, name: str, types: Any) -> Any:
        names.append(name)
        return build(self, text, name, types)

    with together() as lengths, mock.patch.object(LocalLauncher, "build", built):
        fc.resolve(*many(), **HERE)
    assert len({*lengths}) > 2
    assert names.count(NAME) == 1


@pytest.mark.parametrize("most", [1, 2, 5])
def test_a_budget_with_room_for_fewer_steps_changes_no_bit(most: int) -> None:
    wanted = fc.resolve(*many(), **HERE)
    with mock.patch.object(memory_plan, "MOST_STEPS", most), together() as lengths:
        same(fc.resolve(*many(), **HERE), wanted)
    assert max(lengths, default=1) == most


def test_what_steps_in_one_launch_hold_is_counted() -> None:
    def lines(most_bytes: int) -> dict[str, int]:
        with mock.patch.object(memory_plan, "STEPS_BYTES", most_bytes):
            plan = many(batch=12)[0].plan(device="cpu", strategy=fc.Strategy(depth=1))
        (inner,) = [one for plans in plan.inner.values() for one in plans]
        assert sum(size for _, size in inner.memory.items) == inner.memory.host_bytes
        return {**dict(inner.memory.items), "steps": inner.memory.steps_together}

    whole = lines(1 << 30)
    assert whole["steps"] == memory_plan.MOST_STEPS
    assert whole[STEPS_IN_ONE_LAUNCH] >= 15 * 12 * X[0].nbytes
    fewer = lines(whole[STEPS_IN_ONE_LAUNCH] // 2)
    assert 1 < fewer["steps"] < whole["steps"]
    assert fewer[STEPS_IN_ONE_LAUNCH] <= whole[STEPS_IN_ONE_LAUNCH] // 2
    one = lines(100)
    assert one["steps"] == 1
    assert STEPS_IN_ONE_LAUNCH not in one
    assert NEXT_STEP in one


def test_values_after_a_launch_are_never_written_to_again() -> None:
    kept: list[tuple[np.ndarray, bytes]] = []
    end = RunsTogether.end

    def ended(self: RunsTogether) -> None:
        end(self)
        kept.extend((array, array.tobytes()) for array in self._new.values())

    with together() as lengths, mock.patch.object(RunsTogether, "end", ended):
        fc.resolve(*many(), **HERE)
    assert len(lengths) > 5
    assert all(array.tobytes() == before for array, before in kept)


@contextmanager
def told() -> Iterator[list[int]]:
    """Note the steps that are told."""
    found: list[int] = []

    def tell(self: TrainingScan, step: int, loss: np.ndarray) -> dict[str, float]:
        found.append(step)
        return {"loss": float(loss)}

    with mock.patch.object(TrainingScan, "_tell", tell):
        yield found


@contextmanager
def failing_records(step: int, error: BaseException) -> Iterator[None]:
    """Let the records of a step not be read."""
    turn_to, read, steps = DrawnRecords.turn_to, DrawnRecords.read, list[int]()

    def turned(self: DrawnRecords, number: int) -> None:
        steps.append(number)
        turn_to(self, number)

    def refused(self: DrawnRecords, *of: int) -> np.ndarray:
        if steps[-1] == step:
            raise error
        return read(self, *of)

    with mock.patch.multiple(DrawnRecords, turn_to=turned, read=refused):
        yield


def test_steps_before_one_whose_source_fails_are_told() -> None:
    failing = failing_records(52, SourceError("cannot read"))
    with together() as lengths, told() as steps, failing, pytest.raises(SourceError, match="in step 53 of 90"):
        fc.resolve(*many(), **HERE)
    assert steps == [*range(1, 53)]
    assert sum(lengths) >= 40
    assert 1 < lengths[-1] < 16


@contextmanager
def refused(at: int, *, waiting: bool, again: bool) -> Iterator[list[int]]:
    """Let a launch of several steps find no room, or the wait for it, once or from then on."""
    calls: list[int] = []
    launch, finish, is_out = ChainOfRuns.launch, HostMemory.finish, list[int]()

    def launched(self: ChainOfRuns, runs: int) -> None:
        calls.append(runs)
        if len(calls) == at or (again and len(calls) > at):
            is_out.append(runs)
            if not waiting:
                raise DeviceFullError("no room")
        launch(self, runs)

    def finished(self: HostMemory, outputs: Any) -> None:
        finish(self, outputs)
        if is_out and waiting:
            is_out.clear()
            raise DeviceFullError("no room")

    with mock.patch.object(ChainOfRuns, "launch", launched), mock.patch.object(HostMemory, "finish", finished):
        yield calls


@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize("waiting", [False, True])
def test_without_room_for_a_launch_its_steps_are_taken_one_by_one(waiting: bool, again: bool) -> None:
    with derived(), told() as wanted_steps:
        wanted = fc.resolve(*many(), **HERE)
    with together(), told() as steps, refused(1, waiting=waiting, again=again) as calls:
        same(fc.resolve(*many(), **HERE), wanted)
    assert steps == wanted_steps
    assert len(calls) > 3
    # Launches are refused where they are full, and where an epoch ends.
    assert {*calls} >= {14, 16}


@pytest.mark.parametrize("at", [1, 2, 3])
@pytest.mark.parametrize("waiting", [False, True])
def test_a_launch_that_fails_passes_nothing_of_its_steps_on(waiting: bool, at: int) -> None:
    launch, failed, before = ChainOfRuns.launch, list[int](), list[int]()

    def launched(self: ChainOfRuns, runs: int) -> None:
        failed.append(runs)
        if len(failed) == at:
            before.extend(steps)
            if not waiting:
                raise RunError("cannot go on")
        launch(self, runs)

    finish = HostMemory.finish

    def finished(self: HostMemory, outputs: Any) -> None:
        finish(self, outputs)
        if len(failed) == at and waiting:
            failed.append(0)
            raise RunError("cannot go on")

    with (
        together(),
        told() as steps,
        mock.patch.object(ChainOfRuns, "launch", launched),
        mock.patch.object(HostMemory, "finish", finished),
        pytest.raises(RunError, match=r"cannot go on.*in step"),
    ):
        fc.resolve(*many(), **HERE)
    assert before
    assert steps == before == [*range(1, len(before) + 1)]


@pytest.mark.parametrize("moment", ["before a launch", "in a launch", "after a launch"])
def test_a_run_that_is_stopped_ends_with_nothing_in_progress(moment: str) -> None:
    launch, end, calls = ChainOfRuns.launch, RunsTogether.end, list[int]()
    stopping, stopped, memories = threading.Event(), threading.Event(), list[HostMemory]()

    def stop_at(now: str) -> None:
        if len(calls) == 3 and moment == now:
            stopping.set()
            stopped.wait()

    def launched(self: ChainOfRuns, count: int) -> None:
        calls.append(count)
        memories.append(self._launcher.memory)
        stop_at("before a launch")
        launch(self, count)
        stop_at("in a launch")

    def ended(self: RunsTogether) -> None:
        end(self)
        stop_at("after a launch")

    patched = mock.patch.object(ChainOfRuns, "launch", launched), mock.patch.object(RunsTogether, "end", ended)
    with together(), patched[0], patched[1], fc.start(*many(epochs=40), **HERE) as run:
        stopping.wait()
        run.stop()
        stopped.set()
        with pytest.raises(RunError, match="stopped"):
            run.wait()
    assert 3 <= len(calls) < 6
    assert not any(memory._deferred or memory._left for memory in memories)


@contextmanager
def hooked(moment: str, do: Callable[[], object]) -> Iterator[tuple[list[int], list[HostMemory]]]:
    """Do something once, at a moment of the third launch; gives how many steps went in each, and where."""
    note, launch, wait = ChainOfRuns.note, ChainOfRuns.launch, HostMemory.wait
    calls, memories, done = list[int](), list[HostMemory](), list[str]()

    def at(now: str) -> None:
        if now == moment and not done:
            done.append(now)
            do()

    def noted(self: ChainOfRuns, run: int, find: Any, *, again: bool) -> None:
        note(self, run, find, again=again)
        if len(calls) == 2 and run == 1:
            at("among the steps of a launch")

    def launched(self: ChainOfRuns, runs: int) -> None:
        calls.append(runs)
        memories.append(self._launcher.memory)
        launch(self, runs)
        if len(calls) == 3:
            at("in a launch")

    def waited(self: HostMemory) -> None:
        if len(calls) == 3:
            at("before the wait")
        wait(self)

    patched = (
        mock.patch.multiple(ChainOfRuns, note=noted, launch=launched),
        mock.patch.object(HostMemory, "wait", waited),
    )
    with patched[0], patched[1]:
        yield calls, memories
    assert done


MOMENTS = ["among the steps of a launch", "in a launch", "before the wait"]


@pytest.mark.parametrize("moment", MOMENTS)
def test_an_interrupt_ends_with_nothing_in_progress(moment: str) -> None:
    wanted = fc.resolve(*many(), **HERE)
    hook = hooked(moment, partial(signal.raise_signal, signal.SIGINT))
    with together(), hook as (calls, memories), pytest.raises(KeyboardInterrupt):
        fc.resolve(*many(epochs=400), **HERE)
    assert 2 <= len(calls) < 400
    assert not any(memory._deferred or memory._left for memory in memories)
    with together():
        same(fc.resolve(*many(), **HERE), wanted)


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_cancelled_scope_ends_with_nothing_in_progress(moment: str) -> None:
    async def main() -> tuple[list[int], list[HostMemory]]:
        token, scope = trio.lowlevel.current_trio_token(), trio.CancelScope()
        with hooked(moment, partial(token.run_sync_soon, scope.cancel)) as noted, scope:
            await fc.aresolve(*many(epochs=400), **HERE)
        assert scope.cancelled_caught
        return noted

    with together():
        calls, memories = trio.run(main)
    assert 2 <= len(calls) < 400
    assert not any(memory._deferred or memory._left for memory in memories)


def test_a_training_that_was_stopped_goes_on_to_the_same_bits(tmp_path: Path) -> None:
    with together() as lengths:
        wanted = fc.resolve(*many(), **HERE)
    assert lengths
    kept = tmp_path / "kept"
    with pytest.raises(RunError, match="frozen"):
        fc.run(
            *many(), checkpoint=kept, on_batch=lambda run: run.freeze() if run.progress.items == 41 else None, **HERE
        )
    with together():
        same(list(fc.run(*many(), checkpoint=kept, **HERE).values), wanted)


def test_steps_behind_the_first_of_a_launch_look_up_what_differs_alone() -> None:
    given, launched = list[str](), list[int]()
    of_step = CarriedValues.given

    def noted(self: CarriedValues, one: Given, number: int) -> np.ndarray:
        given.append(one.key)
        return of_step(self, one, number)

    with together() as lengths, mock.patch.object(CarriedValues, "given", noted):
        launched = lengths
        fc.resolve(*many(rate=fc.train.cosine(0.05, steps=90)), **HERE)
    parameters = sum(key.startswith("value.") for key in given) / len({*given} - {"step"})
    assert given.count("step") == 90
    # The first step of each launch, those that are launched alone, and the second one of the first launch.
    assert parameters <= len(launched) + (90 - sum(launched)) + 1


def test_steps_of_a_hand_over_are_one_batch() -> None:
    batches: list[int] = []
    process = PassExecutor.process

    def processed(self: PassExecutor, batch: Batch, outputs: Any) -> Any:
        if not batch.arrays:
            batches.append(batch.items)
        return process(self, batch, outputs)

    with together(), mock.patch.object(PassExecutor, "process", processed):
        fc.resolve(*many(), **HERE)
    assert sum(batches) == 90
    assert batches[:3] == [1, 16, 16]
    assert len(batches) == 7


def test_records_of_several_steps_are_seen_at_once() -> None:
    seen: list[int] = []
    view = MemoryReader.view

    def viewed(self: MemoryReader, items: int) -> np.ndarray | None:
        seen.append(items)
        return view(self, items)

    with mock.patch.object(MemoryReader, "view", viewed):
        fc.resolve(*many(epochs=2), **HERE)
    # Two sources with 30 steps of two records an epoch.
    assert seen == [32, 32, 28, 28] * 2


def test_steps_that_are_launched_before_the_next_one_keep_what_they_were_given() -> None:
    """Launches are forgotten when the next step has been given its own number and values."""
    forgotten: list[int] = []
    knows = RepeatingRunner.still_knows

    def forgets(self: RepeatingRunner, known: Any) -> bool:
        if chains and not forgotten:
            forgotten.append(chains[0])
            return False
        return knows(self, known)

    note, chains = ChainOfRuns.note, list[int]()

    def noted(self: ChainOfRuns, run: int, find: Any, *, again: bool) -> None:
        chains.append(run)
        note(self, run, find, again=again)

    def job() -> list[Any]:
        return many(rate=fc.train.cosine(0.5, steps=90))

    with derived():
        wanted = fc.resolve(*job(), **HERE)
    patched = mock.patch.object(ChainOfRuns, "note", noted), mock.patch.object(RepeatingRunner, "still_knows", forgets)
    with together() as lengths, patched[0], patched[1]:
        same(fc.resolve(*job(), **HERE), wanted)
    assert forgotten
    assert lengths[0] == 1
