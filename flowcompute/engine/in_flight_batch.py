"""A batch on its way through several devices, of which others are at another place meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace

import numpy as np

from flowcompute.batch import Batch
from flowcompute.engine.backend import KernelTuner
from flowcompute.engine.device_part import PlacedExecutor
from flowcompute.engine.step_executor import Pushes, StepExecutor
from flowcompute.errors import DeviceFullError
from flowcompute.ir import Kernel
from flowcompute.schedule import Clock, ExecutionPlan, RegionStep
from flowcompute.schedule.memory import HostIntermediates, nowhere, reused_on_host
from flowcompute.schedule.placement import PipelineStage, made_ahead, pipeline_stages_of, placements_of


class Parts:
    """The executors of all seats. Each computes one batch at a time: whoever has one run something holds it.

    Attributes:
        moving: those across a bus.
    """

    def __init__(self, parts: Sequence[PlacedExecutor]) -> None:
        self._parts = tuple(parts)
        self._locks = tuple(threading.Lock() for _ in parts)
        self.moving = [part for part in parts if part.in_flight > 1]

    def __getitem__(self, placement: int) -> PlacedExecutor:
        return self._parts[placement]

    def __iter__(self) -> Iterator[PlacedExecutor]:
        return iter(self._parts)

    def __len__(self) -> int:
        return len(self._parts)

    @contextmanager
    def held(self, placements: Collection[int]) -> Iterator[None]:
        """Hold the parts of some seats, the lowest first. Only `process` holds several, so nobody waits in a circle."""
        with ExitStack() as stack:
            for placement in sorted(placements):
                stack.enter_context(self._locks[placement])
            yield

    def run(self, owner: StepExecutor, step: RegionStep, outputs: Mapping[int, np.ndarray], items: int) -> int:
        """Run a region of another executor where it is placed; gives the launches."""
        part = self._parts[step.placement]
        part.stand_in(owner)
        before = part.launches
        part.run_region(step, outputs, items)
        return part.launches - before

    def forget_streams(self, placements: Collection[int]) -> None:
        """What follows on these seats has other arrays."""
        for placement in placements:
            self._parts[placement].forget_streams()


class OneAtATime:
    """A tuner that several devices ask."""

    def __init__(self, tuner: KernelTuner) -> None:
        self._tuner = tuner
        self._lock = threading.Lock()

    def launched(self, step: RegionStep, launch: Callable[[Kernel], float]) -> Kernel | None:
        """See `KernelTuner.launched`."""
        with self._lock:
            return self._tuner.launched(step, launch)


class InFlightBatch(StepExecutor):
    """The steps of a batch of the root clock: some ahead, in any order of batches, the rest in record order.

    It touches no state: what folds are to be given is taken from it when the batch is done.

    Args:
        plan, pass_index, resident: as for its owner.
        parts: run the regions.
        owner: has folds, scans and what else lasts from batch to batch.
        common: memory for what is made in record order, and so of one batch at a time.

    Attributes:
        full: why there was no room to compute ahead, until somebody has said so.
    """

    def __init__(
        self,
        plan: ExecutionPlan,
        pass_index: int,
        resident: dict[int, np.ndarray],
        parts: Parts,
        owner: StepExecutor,
        common: HostIntermediates,
    ) -> None:
        super().__init__(plan, pass_index, resident)
        self.full: DeviceFullError | None = None
        self._parts = parts
        self._owner = owner
        self._common = common
        self._batch: Batch | None = None
        root, ahead = next(clock for clock in self.one_pass.clocks if clock.is_root), self.one_pass.ahead
        self._first = replace(root, steps=root.steps[:ahead])
        self._rest = root.steps[ahead:]
        self._pipeline_stages = pipeline_stages_of(self._first.steps)
        makers = made_ahead(self.one_pass)
        self._late = {i: parts[placement] for i, placement in makers.items() if i in parts[placement].late}
        self._mine = set(makers)
        for one in reused_on_host(plan.graph, self.one_pass, self._between.elsewhere):
            if not self._mine.isdisjoint(one.values):
                self._mine.update(one.values)

    def compute_ahead(self, batch: Batch) -> None:
        """Compute the legs before the last one, each as soon as its device is free.

        Where there is no room nothing has been done.
        """
        self.work_for(self._owner)
        # Only sizes are of use: late results are fetched when the destinations' memory is known.
        outputs = {i: nowhere(batch.items, self.nodes[i].spec) for i in self._late}
        self._offset = 0
        self._begin(self._first, batch.start, dict(batch.arrays), {})
        self._batch = batch
        try:
            for pipeline_stage in self._pipeline_stages:
                self._run_pipeline_stage(pipeline_stage, batch, outputs)
        except DeviceFullError as error:
            self.full = error
            self._abandon()

    def _run_pipeline_stage(
        self, pipeline_stage: PipelineStage, batch: Batch, outputs: Mapping[int, np.ndarray]
    ) -> None:
        if pipeline_stage.placement is None:
            self._go_through(pipeline_stage.steps, outputs, batch.start, batch.items)
            return
        part = self._parts[pipeline_stage.placement]
        with self._parts.held({pipeline_stage.placement}):
            part.stand_in(self)
            try:
                if not part.take_up(batch):
                    raise DeviceFullError(
                        "no room for what a batch reads", element=pipeline_stage.steps[0].name, got="none left"
                    )
                part.keep_blocks()
                self._go_through(pipeline_stage.steps, outputs, batch.start, batch.items)
            except DeviceFullError:
                part.make_room()
                raise
            finally:
                part.let_go()
                part.forget_streams()
        part.hand_over(batch)
        made = {
            i: self.values[i]
            for step in pipeline_stage.steps
            if isinstance(step, RegionStep)
            for i in step.region.outputs
        }
        for other in self._parts.moving:
            other.receive(batch, made)

    def go_on(self, items: int, outputs: Mapping[int, np.ndarray]) -> Mapping[int, np.ndarray] | None:
        """Compute the rest of a batch, in record order; gives its values.

        Args:
            items: records that there is room for; a smaller slice is no batch that was computed ahead.
            outputs: memory for what destinations take.

        Returns:
            None where the batch was not computed ahead, or there was no room after all.

        Raises:
            DeviceFullError: if there was no room for the rest; the batch counts as not computed ahead from then on.
        """
        batch = self._batch
        if batch is None or batch.items != items:
            self._abandon()
            return None
        placements = placements_of(self._rest)
        with self._parts.held(placements):
            try:
                for placement in placements:
                    self._parts[placement].stand_in(self)
                    if not self._parts[placement].take_up(batch):
                        self._abandon()
                        return None
                for value, array in outputs.items():
                    if value in self._late:
                        self._late[value].leave(batch, value, array)
                    elif value in self.values:
                        np.copyto(array, self.values[value])
                self._go_through(self._rest, outputs, batch.start, items)
            except DeviceFullError:
                self._abandon()
                raise
            finally:
                for placement in placements:
                    self._parts[placement].let_go()
                self._parts.forget_streams(placements)
        self._batch = None
        return self.values

    def compute_alone(
        self, clock: Clock, start: int, items: int, arrays: dict[int, np.ndarray], outputs: Mapping[int, np.ndarray]
    ) -> Mapping[int, np.ndarray]:
        """Compute all steps of a slice, while no device does anything else."""
        self.work_for(self._owner)
        placements = placements_of(clock.steps)
        with self._parts.held(placements):
            for placement in placements:
                # Of batches that were computed ahead folds have not been given what kernels made for them.
                self._parts[placement].keep_blocks()
            try:
                return self.run_steps(clock, start, items, arrays, outputs)
            finally:
                self._parts.forget_streams(placements)

    def taken_pushes(self) -> Pushes:
        """What folds are to be given of the slice that is done."""
        pushes, self._pushes = self._pushes, []
        return pushes

    def taken_launches(self) -> int:
        """Kernels launched since this was asked."""
        launches, self.launches = self.launches, 0
        return launches

    def run_region(self, step: RegionStep, outputs: Mapping[int, np.ndarray], items: int) -> None:
        """Have a region run where it is placed; whoever calls holds that part."""
        self.launches += self._parts.run(self, step, outputs, items)

    def _room(self, value: int, items: int) -> np.ndarray:
        between = self._between if value in self._mine else self._common
        return between.array(value, self._offset, items)

    def _abandon(self) -> None:
        """Nothing of the batch counts that was computed ahead."""
        batch, self._batch = self._batch, None
        if batch is not None:
            self._pushes.clear()
            for part in self._parts.moving:
                part.abandon(batch)
