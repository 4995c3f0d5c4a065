"""One graph on several devices: each region is computed where the plan has placed it (see `placement.py`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from flowcompute.batch import Batch
from flowcompute.engine.backend import Backend, Executor, close_all
from flowcompute.engine.device_part import PlacedBackend, PlacedExecutor
from flowcompute.engine.in_flight_batch import InFlightBatch, OneAtATime, Parts
from flowcompute.engine.scans import Carry
from flowcompute.engine.step_executor import StepExecutor
from flowcompute.engine.stream_scheduler import Made
from flowcompute.schedule import BackendDescription, Clock, ExecutionPlan, RegionStep, Step
from flowcompute.schedule.placement import alignment, placements_of


class SplitBackend(Backend):
    """Several devices that each compute a part of the graph.

    Args:
        placements: best first.
        pins: by name, as `on()` was given it, the seat that is meant.
    """

    def __init__(self, placements: Sequence[PlacedBackend], pins: Mapping[str, int]) -> None:
        self._placements = tuple(placements)
        self.description = _joined([placement.description for placement in placements], pins)

    @property
    def placements(self) -> Sequence[PlacedBackend]:
        """Where regions are computed."""
        return self._placements

    def prepare(self, plan: ExecutionPlan, placement: int = 0) -> None:
        """Compile the kernels of each placement there."""
        for number, each in enumerate(self._placements, placement):
            each.prepare(plan, number)

    def executor(self, plan: ExecutionPlan, pass_index: int, resident: dict[int, np.ndarray]) -> Executor:
        """An executor for one pass, with a part for each seat."""
        parts = [
            placement.part(plan, pass_index, resident, number) for number, placement in enumerate(self._placements)
        ]
        return SplitExecutor(plan, pass_index, resident, parts)


def _joined(parts: Sequence[BackendDescription], pins: Mapping[str, int]) -> BackendDescription:
    """Describe all placements together: sizes are chosen for the one across a bus, if there is one."""
    each = [part.capabilities for part in parts]
    main = next((i for i, capabilities in enumerate(each) if not capabilities.host_memory), 0)
    capabilities = replace(
        each[main],
        name=" and ".join(one.name for one in each),
        kind=" and ".join(one.kind for one in each),
        float64=each[0].float64,
        reason="; ".join(f"{one.name}: {one.reason}" for one in each),
    )
    # A kernel says itself what it was lowered for.
    text = next(part.source_text for part in parts if part.capabilities.code_shape != "numpy")
    numbered = tuple(replace(part, number=number) for number, part in enumerate(parts))
    return BackendDescription(capabilities, text, main, dict(pins), numbered)


class SplitExecutor(StepExecutor):
    """Walks a pass's steps, and has each region run by the part for its seat.

    Streams, folds and scans are here; what one part has made and another reads goes through host memory. Where the
    plan has it so, `upload` computes the first legs of a batch, and `process` goes on with them in record order.
    """

    def __init__(
        self, plan: ExecutionPlan, pass_index: int, resident: dict[int, np.ndarray], parts: Sequence[PlacedExecutor]
    ) -> None:
        super().__init__(plan, pass_index, resident)
        self._parts = Parts(parts)
        self.in_flight = max(part.in_flight for part in parts)
        self.lanes = max(part.lanes for part in parts)
        self._in_flight_batches: list[InFlightBatch] = []
        self._in_flight: InFlightBatch | None = None
        if self.one_pass.ahead and self.in_flight > 1:
            self.lanes = self.in_flight
            given = plan, pass_index, resident, self._parts, self, self._between
            self._in_flight_batches = [InFlightBatch(*given) for _ in range(self.in_flight)]
        self._alignment = alignment(self.one_pass, self.one_pass.ahead)
        for part in parts:
            part.stand_in(self)

    def attach(self) -> None:
        """Get all devices ready."""
        if self.tuner is not None and self._in_flight_batches:
            self.tuner = OneAtATime(self.tuner)
        for part in self._parts:
            part.stand_in(self)
            part.attach()

    def room(self, size_bytes: int) -> np.ndarray | None:
        """Memory that the first device across a bus reads by itself."""
        rooms = (part.room(size_bytes) for part in self._parts.moving)
        return next((room for room in rooms if room is not None), None)

    def upload(self, batch: Batch) -> int:
        """Bring to each device what its kernels read of the sources, and compute ahead.

        Not where a batch begins or ends inside a block of a fold that would be computed ahead.
        """
        size = sum(part.upload(batch) for part in self._parts.moving)
        if self._in_flight_batches and not self.is_sliced and not self._cuts_blocks(batch):
            self._in_flight_of(batch).compute_ahead(batch)
        return size

    def _cuts_blocks(self, batch: Batch) -> bool:
        return any(at % self._alignment and at != self.one_pass.length for at in (batch.start, batch.stop))

    def _in_flight_of(self, batch: Batch) -> InFlightBatch:
        return self._in_flight_batches[batch.seq % self.in_flight]

    def process(self, batch: Batch, outputs: Mapping[int, np.ndarray]) -> Made:
        """Compute a batch, or go on with it; each device may leave its own downloads."""
        if not self._in_flight_batches:
            for part in self._parts:
                part.take_up(batch)
            made = super().process(batch, outputs)
            for part in self._parts:
                part.let_go()
            return made
        self._in_flight = in_flight = self._in_flight_of(batch)
        if self._cuts_blocks(batch) and not self.is_sliced:
            in_flight.compute_ahead(batch)
        if in_flight.full is not None:
            # Keys of clocks are not negative.
            where = self.plan.device_of(in_flight.full.element)
            self.note(
                -1, f"no room on {where} for batches ahead: one that finds none is computed alone", in_flight.full
            )
            in_flight.full = None
        return super().process(batch, outputs)

    def _run_batch(
        self, clock: Clock, start: int, items: int, arrays: dict[int, np.ndarray], outputs: Mapping[int, np.ndarray]
    ) -> Mapping[int, np.ndarray]:
        in_flight = self._in_flight
        if in_flight is None or not clock.is_root:
            with self._parts.held(placements_of(clock.steps)):
                return super()._run_batch(clock, start, items, arrays, outputs)
        values = in_flight.go_on(items, outputs)
        if values is None:
            values = in_flight.compute_alone(clock, start, items, arrays, outputs)
        self.launches += in_flight.taken_launches()
        self.settle(clock, start, items, in_flight.taken_pushes())
        return values

    def download(self, batch: Batch) -> int:
        """Fetch from each device what destinations take."""
        return sum(part.download(batch) for part in self._parts.moving)

    def run_region(self, step: RegionStep, outputs: Mapping[int, np.ndarray], items: int) -> None:
        """Have a region run where it is placed."""
        self.launches += self._parts.run(self, step, outputs, items)

    def run_steps(
        self, clock: Clock, start: int, items: int, arrays: dict[int, np.ndarray], outputs: Mapping[int, np.ndarray]
    ) -> Mapping[int, np.ndarray]:
        """See `StepExecutor.run_steps`."""
        values = super().run_steps(clock, start, items, arrays, outputs)
        self._parts.forget_streams(placements_of(clock.steps))
        return values

    def make_carry(self, step: RegionStep) -> Carry | None:
        """A carry where its scan is computed."""
        return self._parts[step.placement].make_carry(step)

    def begin_scan(self, step: Step, scan: Carry) -> Callable[[], None]:
        """See `StepExecutor.begin_scan`."""
        if not isinstance(step, RegionStep):
            return super().begin_scan(step, scan)
        with self._parts.held({step.placement}):
            undo = self._parts[step.placement].begin_scan(step, scan)

        def take_back() -> None:
            with self._parts.held({step.placement}):
                undo()

        return take_back

    def carried(self, value: int, scan: Carry) -> dict[str, Any]:
        """See `StepExecutor.carried`; asked where it is computed."""
        steps = (step for step in self.one_pass.steps if isinstance(step, RegionStep))
        placement = next((step.placement for step in steps if step.region.anchor == value), None)
        return super().carried(value, scan) if placement is None else self._parts[placement].carried(value, scan)

    def make_room(self) -> None:
        """Give back what all devices hold for streams."""
        with self._parts.held(range(len(self._parts))):
            for part in self._parts:
                part.stand_in(self)
                part.make_room()

    def forget_results(self) -> None:
        """See `StepExecutor.forget_results`."""
        for part in self._parts:
            part.forget_results()

    def resume_folds(self) -> None:
        """See `StepExecutor.resume_folds`."""
        for part in self._parts:
            part.stand_in(self)
            part.resume_folds()

    def step_seconds(self) -> dict[str, tuple[int, float]]:
        """Batches and seconds by step, of all batches in flight."""
        found = super().step_seconds()
        for in_flight in self._in_flight_batches:
            for name, (_, seconds) in in_flight.step_seconds().items():
                batches, spent = found[name]
                found[name] = batches, spent + seconds
        return found

    def close(self) -> None:
        """Close all parts, also where one fails."""
        try:
            close_all((*self._parts, *self._in_flight_batches))
        finally:
            super().close()
