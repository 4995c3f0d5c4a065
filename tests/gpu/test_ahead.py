"""One graph on several devices: they compute different batches at a time, in order, within what is planned."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import flowcompute as fc
from flowcompute.elements.element import Element
from flowcompute.engine.backend import PlannedJob
from flowcompute.engine.in_flight_batch import InFlightBatch
from flowcompute.engine.step_runner import StepRunner
from flowcompute.errors import DeviceError, DeviceFullError
from flowcompute.gpu.device.device import Device
from flowcompute.gpu.memory.batch_slots import Slots
from flowcompute.gpu.memory.device_memory import DeviceMemory
from flowcompute.gpu.run.opencl_runner import OpenCLRunner
from flowcompute.reference import NumpyBackend
from flowcompute.schedule.placement.pipeline_stages import early_inputs
from flowcompute.schedule.placement.shared_passes import alignment
from flowcompute.schedule.planner import PLANS
from flowcompute.schedule.steps import RegionStep
from tests.gpu.faulty_driver import LOST, driver_error
from tests.gpu.shapes import two_gpus
from tests.gpu.test_reuse import SMALL, Watched, programs
from tests.properties.cases import cases
from tests.support.starting import start

DATA = np.random.default_rng(6).standard_normal((9_000, 5), dtype=np.float32)
LONG_S = 20


def planned(*roots: Element, **options: Any) -> fc.Plan:
    with mock.patch("flowcompute.jobs.job_planner.choose_backend", return_value=two_gpus()):
        return fc.plan(
            *roots, memory="256MiB", **{"strategy": fc.Strategy(joined_batches=1, batch_bytes=1 << 14), **options}
        )


def run_placed(*roots: Element, **options: Any) -> fc.Run:
    with mock.patch("flowcompute.jobs.job_planner.choose_backend", return_value=two_gpus()):
        return fc.run(
            *roots, progress=False, **{"strategy": fc.Strategy(joined_batches=1, batch_bytes=1 << 14), **options}
        )


def chain(x: Element) -> list[Element]:
    """Three parts, of which the first device computes two; results of each, folds, another clock."""
    a = (x * 2).on("gpu")
    b = (a + 1).on("gpu:1")
    c = (b * a).on("gpu")
    return [c, a, b.sum(axis=1), a.max(axis=0).on("gpu"), (c.mean()).on("gpu:1"), c[c[:, 0] > 0]]


def stays(x: Element) -> list[Element]:
    """What a device makes in its first part and reads in its second, and nobody else does."""
    eye = np.eye(x.shape[-1], dtype=np.float32)
    p = (x @ eye).on("gpu")
    q = ((p @ eye).on("gpu") + 1).on("gpu:1")
    return [((p @ (2 * eye)) * q).on("gpu")]


def expected(roots: Sequence[Element]) -> list[bytes]:
    with mock.patch("flowcompute.jobs.job_planner.choose_backend", return_value=NumpyBackend()):
        return bits(fc.run(*roots, progress=False))


def bits(run: fc.Run) -> list[bytes]:
    return [np.asarray(value).tobytes() for value in run.values]


def test_a_batch_is_computed_and_on_its_way_before_the_one_before_it_goes_on() -> None:
    """The second device goes on when the next batch is on its way, which the first begins beside it."""
    second, order = two_gpus().placements[1], []
    begun, came, working = threading.Event(), threading.Event(), threading.Event()
    real, receive = OpenCLRunner.run, Slots.receive

    def received(self: Slots, seq: int, made: Any) -> None:
        receive(self, seq, made)
        if seq == 1 and self._transfer_plan.received:
            came.set()

    def run(self: OpenCLRunner, step: RegionStep, batch_slice: Any, outputs: Any) -> None:
        if self.device is second.device:  # type: ignore[attr-defined]
            order.append(batch_slice.start)
            if len(order) == 1:
                working.set()
                assert came.wait(LONG_S), "the next batch was not on its way"
        elif begun.is_set():
            assert working.wait(LONG_S), "the second device stood still"
        real(self, step, batch_slice, outputs)
        if batch_slice.start == 0:
            # Batches come to the first device in any order; until it has had this one the second has nothing to do.
            begun.set()

    x = fc.source(DATA[:1024])
    strategy = fc.Strategy(joined_batches=1, batch_bytes=1 << 12, depth=3)
    with mock.patch.object(OpenCLRunner, "run", run), mock.patch.object(Slots, "receive", received):
        done = run_placed(((x * 2).on("gpu") + 1).on("gpu:1"), strategy=strategy)
    assert done.value.tobytes() == (DATA[:1024] * 2 + 1).tobytes()
    assert len(order) > 4
    assert order == sorted(order)


def test_what_is_taken_is_what_was_planned() -> None:
    ahead: list[int] = []

    @cases(30)
    @given(programs(clocks=False), st.lists(st.integers(0, 1), min_size=2, max_size=9))
    @example(chain(fc.source(np.ones((400, 8), np.float32)))[:2], [0, 0, 1])
    def check(roots: list[Element], placements: list[int]) -> None:
        def place(graph: Any, backend: object) -> Any:
            return tuple(placements[node.id // 2 % len(placements)] for node in graph.nodes), ()

        PLANS.clear()
        with mock.patch("flowcompute.schedule.planner.place_nodes", place):
            plan = planned(*roots, strategy=SMALL)
        devices = Watched(plan)
        with devices.watch():
            start(PlannedJob(plan, two_gpus()), progress=False).wait()
        assert sum(devices.peaks) == plan.memory.device_bytes
        assert not devices.given_back
        held = ("(between kernels)", "(computed)")
        assert sum(devices.between) == sum(n for what, n in plan.memory.items if any(kind in what for kind in held))
        ahead.append(plan.passes[0].ahead)

    check()
    assert sum(map(bool, ahead)) > len(ahead) / 8


def test_what_a_device_needs_again_stays_there() -> None:
    roots = stays(fc.source(DATA))
    run = run_placed(*roots)
    assert [len(kept) for _, kept in (early_inputs(run.plan.passes[0], placement) for placement in (0, 1))] == [1, 0]
    assert bits(run) == expected(roots)


@pytest.mark.parametrize(("size", "depth"), [(1 << 17, None), (1 << 13, 4), (1 << 13, 1)])
def test_no_bit_depends_on_it(size: int, depth: int | None) -> None:
    """With batches of whole blocks of folds, and with smaller ones, which are not computed ahead."""
    roots = chain(fc.source(DATA))
    run = run_placed(*roots, strategy=fc.Strategy(joined_batches=1, batch_bytes=size, depth=depth))
    one = run.plan.passes[0]
    assert one.ahead
    assert (one.batch_items % alignment(one, one.ahead) == 0) == (size == 1 << 17)
    assert bits(run) == expected(roots)


@pytest.mark.parametrize("operation", ["upload", "arrive", "run"])
@pytest.mark.parametrize("often", [False, True])
def test_where_there_is_no_room_a_batch_is_computed_anew(operation: str, often: bool) -> None:
    owner = OpenCLRunner if operation == "run" else DeviceMemory
    real, calls = getattr(owner, operation), itertools.count(1)

    def fail(*arguments: Any) -> Any:
        number = next(calls)
        if number == 7 or (often and number % 5 == 0):
            raise DeviceFullError("no room", element="add", got="as told")
        return real(*arguments)

    x = fc.source(DATA)
    roots = [(((x * 2).on("gpu") + 1).on("gpu:1") * x).on("gpu")]
    with mock.patch.object(owner, operation, fail), pytest.warns(fc.DeviceWarning, match="no room on"):
        run = run_placed(*roots)
    assert bits(run) == expected(roots)
    assert run.notes
    assert not gpus_lend()


def test_a_batch_whose_last_part_finds_no_room_is_told() -> None:
    """Lose the uploads of a batch when its turn has come: it is computed alone, and said."""
    go_on, arrive, turn, failed = InFlightBatch.go_on, DeviceMemory.arrive, threading.local(), threading.Event()

    def marked(self: InFlightBatch, *given: Any) -> Any:
        turn.has_come = True
        try:
            return go_on(self, *given)
        finally:
            turn.has_come = False

    def fail(*given: Any) -> Any:
        if getattr(turn, "has_come", False) and not failed.is_set():
            failed.set()
            raise DeviceFullError("no room", element="add", got="as told")
        return arrive(*given)

    x = fc.source(DATA)
    roots = [(((x * 2).on("gpu") + 1).on("gpu:1") * x).on("gpu")]
    with (
        mock.patch.object(InFlightBatch, "go_on", marked),
        mock.patch.object(DeviceMemory, "arrive", fail),
        pytest.warns(fc.DeviceWarning, match="no room on"),
    ):
        run = run_placed(*roots)
    assert failed.is_set()
    assert bits(run) == expected(roots)
    assert run.notes


def test_what_is_computed_alone_leaves_what_folds_are_to_be_given_of_later_batches() -> None:
    """The first batch finds no room ahead, the second one does, before the first is computed anew."""
    ahead, real, alone = threading.Event(), InFlightBatch._run_pipeline_stage, InFlightBatch.compute_alone

    def run_leg(self: InFlightBatch, pipeline_stage: Any, batch: Any, outputs: Any) -> None:
        if not batch.seq:
            raise DeviceFullError("no room", element="multiply", got="as told")
        real(self, pipeline_stage, batch, outputs)
        ahead.set()

    def compute_alone(self: InFlightBatch, *arguments: Any) -> Any:
        assert ahead.wait(LONG_S), "no batch was computed ahead"
        return alone(self, *arguments)

    doubled = (fc.source(DATA) * 2).on("gpu")
    folds = [doubled.max(axis=0), doubled.sum(), doubled.sum(axis=0)]
    roots = [(doubled + 1).on("gpu:1"), *(fold.on("gpu") for fold in folds)]
    strategy = fc.Strategy(joined_batches=1, batch_bytes=1 << 17, depth=3)
    undisturbed = bits(run_placed(*roots, strategy=strategy))
    with (
        mock.patch.object(InFlightBatch, "_run_pipeline_stage", run_leg),
        mock.patch.object(InFlightBatch, "compute_alone", compute_alone),
        pytest.warns(fc.DeviceWarning, match="no room on"),
    ):
        assert bits(run_placed(*roots, strategy=strategy)) == undisturbed


def gpus_lend() -> int:
    return sum(placement.device.pinned.lent_bytes for placement in two_gpus().placements)  # type: ignore[attr-defined]


@pytest.mark.parametrize("where", [0, 1])
def test_a_lost_device_is_named_with_the_records(where: int) -> None:
    real, lost = OpenCLRunner._compute, two_gpus().placements[where]

    def compute(self: OpenCLRunner, step: Any, batch_slice: Any, outputs: Any) -> None:
        if self.device is lost.device and batch_slice.start == 3 * batch_slice.items:  # type: ignore[attr-defined]
            with self._told(step):
                raise driver_error(LOST, "a launch")
        real(self, step, batch_slice, outputs)

    root = ((fc.source(DATA) * 2).on("gpu") + 1).on("gpu:1")
    with (
        mock.patch.object(OpenCLRunner, "_compute", compute),
        mock.patch.object(Device, "give_up"),
        pytest.raises(DeviceError, match="with checkpoint= goes on from the last checkpoint") as caught,
    ):
        run_placed(root)
    items = planned(root).batch_items
    assert (caught.value.element, caught.value.records) == (("multiply", "add")[where], (3 * items, 4 * items))
    assert not [thread.name for thread in threading.enumerate() if thread.name.startswith("flowcompute")]
    assert not gpus_lend()


def test_a_frozen_job_goes_on_where_nothing_was_counted_twice(tmp_path: Path) -> None:
    """What was computed ahead of the barrier arrives before it."""
    seen: list[int] = []
    begun: list[int] = []
    real = InFlightBatch.compute_ahead

    def compute_ahead(self: InFlightBatch, batch: Any) -> None:
        begun.append(batch.start)
        real(self, batch)

    def freeze(run: fc.Run) -> None:
        seen.append(1)
        if len(seen) == 3:
            run.freeze()

    roots = chain(fc.source(np.tile(DATA, (8, 1))))
    options: dict[str, Any] = {
        "checkpoint": tmp_path / "kept",
        "strategy": fc.Strategy(joined_batches=1, batch_bytes=1 << 17, depth=4),
    }
    with mock.patch.object(InFlightBatch, "compute_ahead", compute_ahead):
        with pytest.raises(fc.RunError, match="was frozen into"):
            run_placed(*roots, on_batch=freeze, **options)
        before = set(begun)
        begun.clear()
        assert bits(run_placed(*roots, **options)) == expected(roots)
    assert before, "some were computed ahead"
    assert before.isdisjoint(begun), "and none of them again"


def test_the_plan_says_where_devices_take_turns() -> None:
    x = fc.source(DATA)
    scanned = fc.cumulative_sum((x * 2).on("gpu"), axis=0).on("gpu")
    plan = planned((scanned + 1).on("gpu:1"))
    assert not plan.passes[0].ahead
    assert "pass 1: one batch at a time on all devices: cumulative_sum carries a value from batch to batch" in str(plan)
    assert "one batch at a time" not in str(planned(*chain(x)))


def test_there_are_batches_for_all_that_goes_on_at_a_time() -> None:
    two = ((fc.source(DATA) * 2).on("gpu") + 1).on("gpu:1")
    assert planned(two, strategy=fc.Strategy()).depth == 6
    assert planned((two * 2).on("gpu"), strategy=fc.Strategy()).depth == 9
    assert planned((two * 2).on("gpu:1"), strategy=fc.Strategy(depth=2)).depth == 2


def test_all_that_runs_steps_is_closed() -> None:
    """Else matrices that records have chosen stay in the system's cache."""
    made: list[StepRunner] = []
    closed: list[StepRunner] = []
    init, close = StepRunner.__init__, StepRunner.close

    def noted(self: StepRunner, *arguments: Any) -> None:
        made.append(self)
        init(self, *arguments)

    def ended(self: StepRunner) -> None:
        closed.append(self)
        close(self)

    with mock.patch.object(StepRunner, "__init__", noted), mock.patch.object(StepRunner, "close", ended):
        run_placed(*chain(fc.source(DATA)))
    assert len(made) > 2
    assert all(any(one is other for other in closed) for one in made)
