"""One graph on several devices: each region is computed where the plan has placed it (see `placement.py`)."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from flowcompute.batch import Batch
from flowcompute.planner.backend import Backend, Executor, Traits, close_all
from flowcompute.planner.clockwork import Made
from flowcompute.planner.executor import StepExecutor
from flowcompute.planner.plan import Clock, Plan
from flowcompute.planner.scan_order import Carry
from flowcompute.planner.steps import RegionStep, Step


class SeatBackend(Backend):
    """A backend that can be one of the seats of a run."""

    @abstractmethod
    def part(self, plan: Plan, pass_index: int, resident: dict[int, np.ndarray], seat: int) -> StepExecutor:
        """An executor that runs the regions of a seat for another one, which has the streams and their state."""


class PlacedBackend(Backend):
    """Several devices that each compute a part of the graph.

    Args:
        seats: best first.
        pins: by name, as `on()` was given it, the seat that is meant.
    """

    def __init__(self, seats: Sequence[SeatBackend], pins: Mapping[str, int]) -> None:
        self._seats = tuple(seats)
        self.pins = dict(pins)
        self.main = next((i for i, seat in enumerate(seats) if not seat.traits.host_memory), 0)
        self.traits = _joined([seat.traits for seat in seats], self.main)

    @property
    def seats(self) -> Sequence[SeatBackend]:
        """Where regions are computed."""
        return self._seats

    def source_text(self, kernel: Any) -> str:
        """The text of a kernel, which says itself what it was lowered for."""
        return next(seat for seat in self._seats if seat.traits.code_shape != "numpy").source_text(kernel)

    def prepare(self, plan: Plan) -> None:
        """Compile the kernels of each seat there."""
        for seat in self._seats:
            seat.prepare(plan)

    def executor(self, plan: Plan, pass_index: int, resident: dict[int, np.ndarray]) -> Executor:
        """An executor for one pass, with a part for each seat."""
        parts = [seat.part(plan, pass_index, resident, number) for number, seat in enumerate(self._seats)]
        return PlacedExecutor(plan, pass_index, resident, parts)


def _joined(seats: Sequence[Traits], main: int) -> Traits:
    """What is said of all seats together: sizes are chosen for the one across a bus, if there is one."""
    names = " and ".join(traits.name for traits in seats)
    kinds = " and ".join(traits.kind for traits in seats)
    reasons = "; ".join(f"{traits.name}: {traits.reason}" for traits in seats)
    return replace(seats[main], name=names, kind=kinds, float64=seats[0].float64, reason=reasons)


class PlacedExecutor(StepExecutor):
    """Walks a pass's steps, and has each region run by the part for its seat.

    Streams, folds and scans are here; what one part has made and another reads goes through host memory.
    """

    def __init__(
        self, plan: Plan, pass_index: int, resident: dict[int, np.ndarray], parts: Sequence[StepExecutor]
    ) -> None:
        super().__init__(plan, pass_index, resident)
        self._parts = tuple(parts)
        self._moving = [part for part in parts if part.in_flight > 1]
        self.in_flight = max(part.in_flight for part in parts)
        self.lanes = max(part.lanes for part in parts)
        for part in parts:
            part.stand_in(self)

    def attach(self) -> None:
        """Get all devices ready."""
        for part in self._parts:
            part.stand_in(self)
            part.attach()

    def room(self, size_bytes: int) -> np.ndarray | None:
        """Memory that the first device across a bus reads by itself."""
        rooms = (part.room(size_bytes) for part in self._moving)
        return next((room for room in rooms if room is not None), None)

    def upload(self, batch: Batch) -> int:
        """Bring to each device what its kernels read of the sources."""
        return sum(part.upload(batch) for part in self._moving)

    def process(self, batch: Batch, outputs: Mapping[int, np.ndarray]) -> Made:
        """Compute a batch; each device may leave its own downloads."""
        for part in self._parts:
            part.take_up(batch)
        made = super().process(batch, outputs)
        for part in self._parts:
            part.let_go()
        return made

    def download(self, batch: Batch) -> int:
        """Fetch from each device what destinations take."""
        return sum(part.download(batch) for part in self._moving)

    def run_region(self, step: RegionStep, outputs: Mapping[int, np.ndarray], items: int) -> None:
        """Have a region run where it is placed."""
        part = self._parts[step.seat]
        part.stand_in(self)
        before = part.launches
        part.run_region(step, outputs, items)
        self.launches += part.launches - before

    def run_steps(
        self, clock: Clock, start: int, items: int, arrays: dict[int, np.ndarray], outputs: Mapping[int, np.ndarray]
    ) -> Mapping[int, np.ndarray]:
        """See `StepExecutor.run_steps`."""
        values = super().run_steps(clock, start, items, arrays, outputs)
        for part in self._parts:
            part.forget_streams()
        return values

    def make_carry(self, step: RegionStep) -> Carry | None:
        """A carry where its scan is computed."""
        return self._parts[step.seat].make_carry(step)

    def begin_scan(self, step: Step, scan: Carry) -> Callable[[], None]:
        """See `StepExecutor.begin_scan`."""
        if isinstance(step, RegionStep):
            return self._parts[step.seat].begin_scan(step, scan)
        return super().begin_scan(step, scan)

    def carried(self, value: int, scan: Carry) -> dict[str, Any]:
        """See `StepExecutor.carried`; asked where it is computed."""
        steps = (step for step in self.one_pass.steps if isinstance(step, RegionStep))
        seat = next((step.seat for step in steps if step.region.anchor == value), None)
        return super().carried(value, scan) if seat is None else self._parts[seat].carried(value, scan)

    def make_room(self) -> None:
        """Give back what all devices hold for streams."""
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

    def close(self) -> None:
        """Close all parts, also where one fails."""
        try:
            close_all(self._parts)
        finally:
            super().close()
