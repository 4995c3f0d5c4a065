"""Steps in the host's own memory that launch what the step before has launched, to the bits of steps that derive it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import numpy as np
import pytest

import flowcompute as fc
from flowcompute.engine.repeats import RunsInPlace
from flowcompute.engine.training.training_scan import TrainingScan
from flowcompute.errors import DeviceFullError, RunError
from flowcompute.gpu.memory.device_memory import HostMemory
from flowcompute.gpu.run.chains.launch_chain import LEAST_PREPARED, ChainMaker
from flowcompute.gpu.run.opencl_runner import OpenCLRunner
from flowcompute.gpu.run.prepared_launches import PreparedChain
from flowcompute.gpu.worker.launcher import LocalLauncher
from flowcompute.metrics import StepTold
from flowcompute.runtime.stages.group_size import GroupSize
from flowcompute.schedule.memory import memory_plan
from flowcompute.schedule.plan import NEXT_STEP
from tests.train.test_repeated_steps import PLACES, X, fitted, looked_up, same

HERE: dict[str, Any] = {"device": "cpu", "progress": False}


@contextmanager
def counted() -> Iterator[list[bool]]:
    """Note of each run that is asked for again whether it was done."""
    found: list[bool] = []
    original = RunsInPlace.repeat

    def repeat(self: RunsInPlace, arrays: Any, **options: Any) -> Any:
        made = original(self, arrays, **options)
        found.append(made is not None)
        return made

    with mock.patch.object(RunsInPlace, "repeat", repeat):
        yield found


def derived() -> Any:
    """Let each step be derived anew."""
    return mock.patch.object(RunsInPlace, "of", return_value=None)


def many_records() -> list[Any]:
    """Steps over several blocks of sums, with a product of a stream with itself."""
    x = np.random.default_rng(5).standard_normal((9000, 3), dtype=np.float32)
    w = fc.parameter(np.linspace(-1, 1, 3, dtype=np.float32), name="w")
    s = fc.source(x)
    loss = ((s * w).sum(axis=1) - 1) ** 2
    trained = fc.train.fit(
        (loss.mean() + (s.T @ s).sum() * 1e-6 + loss.max()), fc.train.sgd(0.01), batch=4500, epochs=3
    )
    return [trained["w"], trained.losses]


def strided_records() -> list[Any]:
    """Steps over records that do not lie side by side, which kernels are given as a copy."""
    x = np.random.default_rng(6).standard_normal((40, 8), dtype=np.float32)[:, ::2]
    w, v = fc.parameter(np.ones((4, 3), np.float32), name="w"), fc.parameter(np.ones((3, 2), np.float32), name="v")
    loss = (fc.tanh(fc.tanh(fc.source(x) @ w) @ v) ** 2).sum(axis=1).mean()
    trained = fc.train.fit(loss, fc.train.adam(0.1), batch=5, epochs=2)
    return [trained["w"], trained["v"], trained.losses]


JOBS: dict[str, Callable[[], list[Any]]] = {
    "plain": fitted,
    "shuffled": lambda: fitted(shuffle=3),
    "another rate each step": lambda: fitted(rate=fc.train.cosine(0.05, steps=15)),
    "scaled loss": lambda: fitted(loss_scale="dynamic"),
    "looked up": lambda: looked_up(PLACES),
    "steps of two sizes": lambda: fitted(batch=25, epochs=2),
    "many records": many_records,
    "strided records": strided_records,
    "losses that are read": lambda: [fitted()[-1].sum(), fitted()[-1]],
}


@contextmanager
def joined() -> Iterator[list[int]]:
    """Join the launches of the third run of a plan, each run alone; note how many each chain has that is launched."""
    lengths: list[int] = []
    original = PreparedChain.__call__

    def call(self: PreparedChain, taken: Any) -> None:
        original(self, taken)
        lengths.append(len(self._chain.launches))

    at_once = mock.patch.multiple("flowcompute.engine.repeats.runs_in_place", JOINED_AFTER=2, SHORT_S=1e9)
    alone = mock.patch.object(RunsInPlace, "_in_one", return_value=None)
    with at_once, alone, mock.patch.object(PreparedChain, "__call__", call):
        yield lengths


@pytest.mark.parametrize("name", JOBS)
def test_bits_are_those_of_steps_that_are_derived(name: str) -> None:
    with derived(), counted() as runs:
        wanted = fc.resolve(*JOBS[name](), **HERE)
    assert runs == []
    with counted() as runs:
        same(fc.resolve(*JOBS[name](), **HERE), wanted)
    assert any(runs)


def test_a_step_that_is_repeated_derives_no_launch() -> None:
    with counted() as runs, mock.patch.object(OpenCLRunner, "run", autospec=True, side_effect=OpenCLRunner.run) as run:
        fc.resolve(*fitted(epochs=1), **HERE)
        launches = run.call_count
        fc.resolve(*fitted(epochs=4), **HERE)
    # The first step of a training alone derives any.
    assert run.call_count == 2 * launches
    assert runs == [True] * 23


def test_without_room_a_step_is_derived_anew() -> None:
    with derived():
        wanted = fc.resolve(*fitted(), **HERE)
    failed: list[int] = []
    original = OpenCLRunner.begin_prepared

    def begin_prepared(self: OpenCLRunner) -> None:
        original(self)
        if not failed:
            failed.append(1)
            raise DeviceFullError("no room")

    with counted() as runs, mock.patch.object(OpenCLRunner, "begin_prepared", begin_prepared):
        same(fc.resolve(*fitted(), **HERE), wanted)
    assert failed
    assert runs == [False] + [True] * 13


def test_a_key_out_of_range_is_refused() -> None:
    places = PLACES.copy()
    places[57] = 7
    with counted() as runs, pytest.raises(RunError, match="step 10 of 10") as caught:
        fc.resolve(*looked_up(places), **HERE)
    assert caught.value.records == (57, 58)
    assert all(runs)


def test_what_a_function_keeps_is_not_written_over() -> None:
    kept: list[np.ndarray] = []

    def keep(values: np.ndarray) -> np.ndarray:
        kept.append(values)
        return values

    x, w = fc.source(np.linspace(1, 2, 40, dtype=np.float32)), fc.parameter(np.float32([1, -2]), name="w")
    known = fc.host(keep, fc.tanh(fc.stop_gradient(w)) * 2)
    loss = ((x * w.sum() - fc.stop_gradient(known).sum()) ** 2).mean()
    trained = fc.train.fit(loss, fc.train.sgd(0.05), batch=8)
    with counted() as runs:
        fc.resolve(trained["w"], **HERE)
    # A step may have fewer records than a batch has room for.
    assert runs == [True] * 4
    assert len({one.tobytes() for one in kept}) == 5


@contextmanager
def left() -> Iterator[list[list[int]]]:
    """Note by step which steps had been told when it began; all are handed over together from the second one on."""
    found: list[list[int]] = []
    original = TrainingScan._step

    def step(self: TrainingScan, **options: Any) -> Any:
        made = original(self, **options)
        found.append([one.step for one in self.told])
        return made

    def took(self: GroupSize, seconds: float, batches: int) -> None:
        del seconds, batches
        self.batches = self._most

    alone = mock.patch("flowcompute.engine.repeats.runs_in_place.JOINED_AFTER", 1 << 30)
    with alone, mock.patch.object(TrainingScan, "_step", step), mock.patch.object(GroupSize, "took", took):
        yield found


def many(epochs: int = 20, **options: Any) -> list[Any]:
    """Steps of one size, whose every part a kernel computes."""
    return fitted(clip_norm=None, epochs=epochs, **options)


def test_a_step_begins_before_the_last_one_has_ended() -> None:
    with derived():
        wanted = fc.resolve(*many(), **HERE)
    with left() as told, mock.patch.object(HostMemory, "leave", autospec=True, side_effect=HostMemory.leave) as leave:
        same(fc.resolve(*many(), **HERE), wanted)
    assert leave.call_count > 80
    # A step is told when the next one has begun, and in its order.
    assert any(one and one[-1] == step - 1 for step, one in enumerate(told, 1))
    assert all(one == sorted(one) for one in told)


def test_a_budget_without_room_for_two_steps_waits_for_each() -> None:
    with mock.patch.object(memory_plan, "room_for_steps", return_value=(0, [])):
        with derived():
            wanted = fc.resolve(*many(), **HERE)
        with mock.patch.object(HostMemory, "leave", autospec=True, side_effect=HostMemory.leave) as leave:
            same(fc.resolve(*many(), **HERE), wanted)
    leave.assert_not_called()


def test_records_of_two_steps_are_counted() -> None:
    def lines(depth: int) -> dict[str, int]:
        plan = many(shuffle=3)[0].plan(device="cpu", strategy=fc.Strategy(depth=depth))
        (inner,) = [one for plans in plan.inner.values() for one in plans]
        return dict(inner.memory.items)

    with mock.patch.object(memory_plan, "MOST_STEPS", 1):
        one, two = lines(1), lines(2)
    read = sum(size for what, size in one.items() if what.endswith("(read) x 1"))
    assert read >= 12 * X[0].nbytes
    assert sum(size for what, size in two.items() if what.endswith("(read) x 2")) == 2 * read
    assert one[NEXT_STEP] == two[NEXT_STEP] + read


def test_what_comes_before_a_step_that_fails_is_told() -> None:
    original, said = RunsInPlace._again, list[int]()

    def again(self: RunsInPlace, *of: Any, **options: Any) -> Any:
        said.append(1)
        if len(said) == 30:
            raise RunError("cannot go on")
        return original(self, *of, **options)

    seen: list[StepTold] = []
    settle = TrainingScan.settle

    def settled(self: TrainingScan) -> None:
        settle(self)
        seen.extend(self.told)

    failing = mock.patch.object(RunsInPlace, "_again", again), mock.patch.object(TrainingScan, "settle", settled)
    with left(), failing[0], failing[1], pytest.raises(RunError, match="step 31 of 100"):
        fc.resolve(*many(), **HERE)
    assert seen[-1].step == 30
    losses = fc.resolve(many()[-1], **HERE)
    assert seen[-1].numbers["loss"] == float(losses[29])


def test_nothing_goes_on_after_a_step_that_fails_when_the_next_one_has_begun() -> None:
    original, calls, told = HostMemory.leave, list[int](), list[int]()

    def leave(self: HostMemory) -> None:
        original(self)
        calls.append(1)
        # The step before is of the same epoch.
        if len(calls) == 32:
            raise DeviceFullError("cannot wait")

    def tell(self: TrainingScan, step: int, loss: np.ndarray) -> dict[str, float]:
        told.append(step)
        return {"loss": float(loss)}

    failing = mock.patch.object(HostMemory, "leave", leave), mock.patch.object(TrainingScan, "_tell", tell)
    with left() as begun, failing[0], failing[1], pytest.raises(RunError, match="left in progress: cannot wait"):
        fc.resolve(*many(), **HERE)
    assert told == [*range(1, len(begun))]


def test_small_matrices_that_are_handed_on_are_read_through_views() -> None:
    plan = many()[0].plan(device="cpu")
    (inner,) = [one for plans in plan.inner.values() for one in plans][:1]
    turned = [node.name for node in inner.graph.nodes if node.op is not None and node.op.name == "permute_dims"]
    assert turned
    assert not {step.name for one in inner.passes for step in one.before}.intersection(turned)


@pytest.mark.compiles
@pytest.mark.parametrize("name", JOBS)
def test_bits_of_chains_are_those_of_steps_that_are_derived(name: str) -> None:
    with derived():
        wanted = fc.resolve(*JOBS[name](), **HERE)
    with joined() as lengths:
        same(fc.resolve(*JOBS[name](), **HERE), wanted)
    # Few steps of one size follow each other in two of them.
    assert lengths or name in ("many records", "steps of two sizes")
    assert all(length >= LEAST_PREPARED for length in lengths)


@pytest.mark.compiles
def test_a_step_is_few_launches() -> None:
    with (
        joined() as lengths,
        mock.patch.object(LocalLauncher, "launch", autospec=True, side_effect=LocalLauncher.launch) as launch,
    ):
        fc.resolve(*fitted(epochs=4), **HERE)
        some = launch.call_count
        fc.resolve(*fitted(epochs=8), **HERE)
    launches = launch.call_count - 2 * some
    # The second training has twenty steps more, all of which are joined.
    assert launches == 20 * len({*lengths})
    assert sum({*lengths}) > 5 * len({*lengths})


@pytest.mark.compiles
def test_a_chain_of_a_step_without_room_is_derived_anew() -> None:
    with derived():
        wanted = fc.resolve(*fitted(), **HERE)
    launch, failed = LocalLauncher.launch, list[int]()

    def refused(own: LocalLauncher, *arguments: Any, **options: Any) -> Any:
        if len(lengths) == 5 and not failed:
            failed.append(1)
            raise DeviceFullError("no room")
        return launch(own, *arguments, **options)

    with joined() as lengths, mock.patch.object(LocalLauncher, "launch", refused):
        same(fc.resolve(*fitted(), **HERE), wanted)
    assert failed
    assert len(lengths) > 5


def test_long_runs_and_first_runs_are_not_joined() -> None:
    with joined() as lengths, mock.patch("flowcompute.engine.repeats.runs_in_place.SHORT_S", 0):
        fc.resolve(*fitted(), **HERE)
    with joined() as more, mock.patch("flowcompute.engine.repeats.runs_in_place.JOINED_AFTER", 1000):
        fc.resolve(*fitted(), **HERE)
    assert lengths == more == []


def test_devices_with_other_addresses_launch_one_by_one() -> None:
    launches, launcher = [mock.Mock()] * 9, mock.Mock()
    # Nothing is written where this one is asked for addresses.
    assert ChainMaker(mock.Mock(chains=True), mock.Mock()).joined_passing(launches, launcher) is launches
    launcher.launch.assert_called_once()
    assert ChainMaker(mock.Mock(chains=False), mock.Mock()).joined_passing(launches, launcher) is launches
