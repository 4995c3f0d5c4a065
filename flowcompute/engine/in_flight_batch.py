"""A batch on its way through one or several devices, of which other batches are at another place meanwhile."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from flowcompute.batch import Batch
from flowcompute.engine.batch_slice import Arrays, BatchSlice
from flowcompute.engine.pass_state import PassState
from flowcompute.engine.region_runner import Runners
from flowcompute.engine.step_runner import StepRunner
from flowcompute.errors import DeviceFullError
from flowcompute.schedule import Clock, RegionStep, Step
from flowcompute.schedule.memory import HostIntermediates, assign_host_buffers, placeholder_array
from flowcompute.schedule.placement import PipelineStage, placements_of


class InFlightBatch:
    """The steps of a batch of the root clock: some ahead, in any order of batches, the rest in record order.

    It touches no state: what folds are to be given is in its slice.

    Args:
        state: of the pass.
        runners: of all placements.
        pipeline_stages: of the steps that are computed ahead, the first ones of the clock.
        sharing: how many batches are on their way, and share the memory for chosen matrices.
        common: memory for what is made in record order, and so of one batch at a time; None where nothing is.

    Attributes:
        full: why there was no room to compute ahead, until somebody has said so.
        steps: runs its steps.
        lost_launches: kernels launched for what does not count, until somebody has counted them.
    """

    def __init__(
        self,
        state: PassState,
        runners: Runners,
        pipeline_stages: Sequence[PipelineStage],
        sharing: int,
        common: HostIntermediates | None = None,
    ) -> None:
        self.full: DeviceFullError | None = None
        self.steps = StepRunner(state, runners, self._room, sharing)
        self.lost_launches = 0
        self._state = state
        self._runners = runners
        self._common = common
        self._own = state.intermediates()
        self._batch: Batch | None = None
        self._taken: BatchSlice | None = None
        root = next(clock for clock in state.one_pass.clocks if clock.is_root)
        ahead = [step for pipeline_stage in pipeline_stages for step in pipeline_stage.steps]
        self._first = replace(root, steps=tuple(ahead))
        self._rest = root.steps[len(ahead) :]
        self._pipeline_stages = tuple(pipeline_stages)
        regions = [step for step in ahead if isinstance(step, RegionStep)]
        makers = {i: runners[step.placement] for step in regions for i in step.region.outputs}
        self._late = {i: runner for i, runner in makers.items() if i in runner.late}
        self._mine = set(makers)
        for each in assign_host_buffers(state.plan.graph, state.one_pass, self._own.not_on_host):
            if not self._mine.isdisjoint(each.values):
                self._mine.update(each.values)

    def compute_ahead(self, batch: Batch) -> None:
        """Compute the stages before the last one, each as soon as its device is free.

        Where there is no room nothing has been done.
        """
        # Only sizes are of use: late results are fetched when the destinations' memory is known.
        outputs = {i: placeholder_array(self._state.nodes[i].spec, batch.items) for i in self._late}
        self._taken = self.steps.begin(self._first, batch.start, batch.items, dict(batch.arrays), {})
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
        taken = self._taken
        assert taken is not None
        if pipeline_stage.placement is None:
            self.steps.go_through(pipeline_stage.steps, taken, outputs)
            return
        runner = self._runners[pipeline_stage.placement]
        with self._runners.held({pipeline_stage.placement}):
            try:
                if not runner.take_up(batch, drop=False):
                    raise _no_room(pipeline_stage.steps)
                runner.keep_blocks()
                self.steps.go_through(pipeline_stage.steps, taken, outputs)
            except DeviceFullError:
                runner.make_room(in_hand=True)
                raise
            finally:
                runner.let_go()
                runner.forget_streams()
        runner.hand_over(batch)
        regions = [step.region for step in pipeline_stage.steps if isinstance(step, RegionStep)]
        made = {i: taken.values[i] for region in regions for i in region.outputs}
        for other in self._runners.moving:
            other.receive(batch, made)

    def go_on(self, items: int, outputs: Mapping[int, np.ndarray]) -> BatchSlice | None:
        """Compute the rest of a batch, in record order.

        Args:
            items: records that there is room for; a smaller slice is no batch that was computed ahead.
            outputs: memory for what destinations take.

        Returns:
            None where the batch was not computed ahead, or there was no room after all.

        Raises:
            DeviceFullError: if there was no room for the rest; the batch counts as not computed ahead from then on.
        """
        batch, taken = self._batch, self._taken
        if batch is None or taken is None or batch.items != items:
            self._abandon()
            return None
        placements = placements_of(self._rest)
        with self._runners.held(placements):
            try:
                for placement in placements:
                    if not self._runners[placement].take_up(batch, drop=self._state.is_sliced):
                        if not self._state.is_sliced:
                            # Told when the next batch has its turn here.
                            self.full = _no_room(self._rest)
                        self._abandon()
                        return None
                for value, array in outputs.items():
                    if value in self._late:
                        self._late[value].leave(batch, value, array)
                    elif value in taken.values:
                        np.copyto(array, taken.values[value])
                self.steps.go_through(self._rest, taken, outputs)
            except DeviceFullError:
                self._abandon()
                raise
            finally:
                for placement in placements:
                    self._runners[placement].let_go()
                self._runners.forget_streams(placements)
        self._batch = self._taken = None
        return taken

    def compute_alone(
        self,
        clock: Clock,
        start: int,
        items: int,
        arrays: Arrays,
        outputs: Mapping[int, np.ndarray],
        offset: int,
    ) -> BatchSlice:
        """Compute all steps of a slice, while no device does anything else."""
        placements = placements_of(clock.steps)
        with self._runners.held(placements):
            for placement in placements:
                # Of batches that were computed ahead folds have not been given what kernels made for them.
                self._runners[placement].keep_blocks()
            taken = self.steps.begin(clock, start, items, arrays, outputs, offset)
            try:
                self.steps.go_through(clock.steps, taken, outputs)
            except DeviceFullError:
                self.lost_launches += taken.launches
                raise
            finally:
                self._runners.forget_streams(placements)
        return taken

    def forget(self) -> None:
        """Drop its memory: the batch is over, or nobody wants it."""
        self._batch = self._taken = None
        self._own.forget()

    def close(self) -> None:
        """Release all memory, and what was read for it. Calling it twice does nothing."""
        self.forget()
        self.steps.close()

    def _room(self, value: int, offset: int, items: int) -> np.ndarray:
        between = self._own if self._common is None or value in self._mine else self._common
        return between.array(value, offset, items)

    def _abandon(self) -> None:
        """Drop what was computed ahead of the batch."""
        batch, self._batch, taken, self._taken = self._batch, None, self._taken, None
        if batch is not None:
            self.lost_launches += 0 if taken is None else taken.launches
            for one in self._runners.moving:
                one.abandon(batch)


def _no_room(steps: Sequence[Step]) -> DeviceFullError:
    """Make the error of a batch for whose uploads there was no room."""
    return DeviceFullError("cannot upload what a batch reads: there is no room", element=steps[0].name, got="none left")
