"""Runs of a pass that are done again as a device has recorded them, and what runs have to be like for that."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

import numpy as np

from flowcompute.elements import Kind
from flowcompute.engine.batch_slice import Arrays
from flowcompute.engine.pass_state import PassState
from flowcompute.engine.region_runner import Runners
from flowcompute.engine.step_runner import StepRunner
from flowcompute.schedule import NodeStep, RegionStep, Step, device_folds


class RepeatedRuns:
    """Repetition of a run by its device, with what is left to the host: views of records, and folds of results.

    Args:
        state: of the pass.
        runners: the only one.
        steps: of the pass.
        seen: views of records, in their order.
        added: folds on the host.
        staying: views of resident values and folds, which have to stay on the device.
    """

    def __init__(
        self,
        state: PassState,
        runners: Runners,
        steps: StepRunner,
        seen: Sequence[NodeStep],
        added: Sequence[NodeStep],
        staying: Sequence[int],
    ) -> None:
        self._state, self._runners, self._steps = state, runners, steps
        self._seen, self._added, self._staying = seen, added, staying

    @classmethod
    def of(cls, state: PassState, runners: Runners, steps: StepRunner, before: Sequence[Step]) -> RepeatedRuns | None:
        """Make it where a plan runs again and again, over one batch, and hosts only see records and add up.

        Args:
            state, runners, steps: as above.
            before: the steps of resident values that run again.
        """
        one = state.one_pass
        if not state.changing or one.folds_at_once or len(state.plan.passes) > 1 or not is_one_batch(state, runners):
            return None
        (clock,) = one.clocks
        there = {source.value for source in clock.sources}
        seen: list[NodeStep] = []
        added: list[NodeStep] = []
        for step in clock.steps:
            if isinstance(step, RegionStep):
                if not is_launched(state, step) or not step.merged.issuperset(step.region.folds):
                    return None
            elif step.node.kind is Kind.VIEW and there.issuperset(step.node.inputs):
                seen.append(step)
                there.add(step.node.id)
            elif step.node.kind is not Kind.FOLD:
                return None
            elif not step.there:
                added.append(step)
        # The host adds up when the device has done all of a run, so nothing of the run may read these sums.
        if {step.node.id for step in added} & {i for step in one.after for i in read_by(step)}:
            return None
        whole = (*before, *one.after)
        # What the host makes of a fold that comes from the device is nothing that the device can do again.
        staying = [step.node.id for step in (*whole, *device_folds(clock.steps)) if isinstance(step, NodeStep)]
        on_device = all(isinstance(step, NodeStep) or is_launched(state, step) for step in whole)
        return cls(state, runners, steps, seen, added, staying) if on_device else None

    def begin(self, given: Mapping[int, object]) -> None:
        """Have a run recorded that takes these values, where it can be repeated."""
        if self._can_repeat():
            self._runners[0].begin_recording(given)

    def end(self) -> None:
        """End what is recorded: all of the run has succeeded."""
        self._runners[0].end_recording()

    def _can_repeat(self) -> bool:
        return not self._state.is_sliced and all(map(self._runners.stays, self._staying))

    def repeat(self, given: Mapping[int, object], arrays: Callable[[], Arrays]) -> dict[int, np.ndarray] | None:
        """Repeat a run; see `Executor.repeat`."""
        state, runner = self._state, self._runners[0]
        recording = runner.known_recording(given)
        if recording is None or not self._can_repeat():
            return None
        (clock,) = state.one_pass.clocks
        taken = self._steps.begin(clock, 0, clock.length or 0, arrays(), {})
        self._steps.see(self._seen, taken)
        fetched = runner.repeat_run(recording, taken)
        if fetched is None:
            return None
        for value, array in fetched.items():
            (taken.values if state.nodes[value].spec.is_stream else state.resident)[value] = array
        for step in self._added:
            self._steps.fold_at_once(step.node, taken)
        return {sink.value: state.resident[sink.value] for sink in state.one_pass.sinks}


def is_one_batch(state: PassState, runners: Runners) -> bool:
    """Check whether a pass has one clock, whose records are one batch, and one runner on one device for all of it."""
    one = state.one_pass
    if len(one.clocks) != 1 or len(runners) > 1 or state.attempts or one.streamed or one.parts:
        return False
    (clock,) = one.clocks
    is_whole = not clock.entries and clock.length is not None and 0 < clock.length <= clock.batch_items
    return is_whole and not any(sink.spec.is_stream for sink in one.sinks)


def read_by(step: Step) -> Collection[int]:
    """Return the values that a step reads."""
    if isinstance(step, NodeStep):
        return step.node.inputs
    return () if step.kernel is None else [argument.value for argument in step.kernel.arguments]


def is_launched(state: PassState, step: RegionStep) -> bool:
    """Check whether a region is a kernel that carries nothing on."""
    anchor = step.region.anchor
    is_scan = anchor is not None and state.nodes[anchor].kind is Kind.SCAN
    return step.kernel is not None and step.region.weight_tiles is None and not is_scan
