"""Runs of a pass that are done again: as a device has recorded them, or by the launches of the run before."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from itertools import groupby

import numpy as np

from flowcompute.elements import Kind
from flowcompute.elements.training import ALL_RECORDS
from flowcompute.engine.accumulators import one_blas_thread
from flowcompute.engine.batch_slice import Arrays, BatchSlice
from flowcompute.engine.pass_state import PassState
from flowcompute.engine.region_runner import KnownLaunch, Runners
from flowcompute.engine.step_runner import StepRunner
from flowcompute.errors import DeviceFullError, FlowError
from flowcompute.graph import Node
from flowcompute.imports import dataclass
from flowcompute.ir import is_dense
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
        if not state.changing or len(state.plan.passes) > 1 or not _is_one_batch(state, runners):
            return None
        (clock,) = one.clocks
        there = {source.value for source in clock.sources}
        seen: list[NodeStep] = []
        added: list[NodeStep] = []
        for step in clock.steps:
            if isinstance(step, RegionStep):
                if not _is_launched(state, step) or not step.merged.issuperset(step.region.folds):
                    return None
            elif step.node.kind is Kind.VIEW and there.issuperset(step.node.inputs):
                seen.append(step)
                there.add(step.node.id)
            elif step.node.kind is not Kind.FOLD:
                return None
            elif not step.there:
                added.append(step)
        # The host adds up when the device has done all of a run, so nothing of the run may read these sums.
        if {step.node.id for step in added} & {i for step in one.after for i in _read_by(step)}:
            return None
        whole = (*before, *one.after)
        # What the host makes of a fold that comes from the device is nothing that the device can do again.
        staying = [step.node.id for step in (*whole, *device_folds(clock.steps)) if isinstance(step, NodeStep)]
        on_device = all(isinstance(step, NodeStep) or _is_launched(state, step) for step in whole)
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


JOINED_AFTER = 64
"""Runs after which launches are joined. The program of a chain is compiled for as long as a thousand small runs take,
once a machine."""

SHORT_S = 0.5e-3
"""Launches are joined where those of a run take no longer on average, all else of it included. What a launch costs
beside its kernel is a twentieth of that."""

Command = Callable[[BatchSlice], None]
"""Does a part of a run over records."""


@dataclass(frozen=True)
class PreparedRun:
    """Commands of a run, in order.

    Attributes:
        known: the launches that it was prepared of.
        launches: the commands that launch these.
        before: what computes resident values that change.
        along: what computes with records.
        after: what computes with folds.
        late: folds of records that nothing of the run reads.
        made: arrays of values along the stream, which stay.
    """

    known: Collection[KnownLaunch]
    launches: Collection[Command]
    before: Sequence[Command]
    along: Sequence[Command]
    after: Sequence[Command]
    late: Sequence[Command]
    made: Arrays

    @property
    def parts(self) -> Sequence[tuple[Sequence[Command], bool]]:
        """The commands in order, each with whether they compute with records."""
        return (self.before, False), (self.along, True), (self.after, False), (self.late, True)


@dataclass(frozen=True)
class NewArrays:
    """A command that makes arrays for resident values that pass.

    Attributes:
        values: which ones.
        room: gives the array of one.
        resident: takes them.
    """

    values: Collection[int]
    room: Callable[[int], np.ndarray]
    resident: dict[int, np.ndarray]

    def __call__(self, taken: BatchSlice) -> None:
        """Put them among the resident values."""
        del taken
        self.resident.update((i, self.room(i)) for i in self.values)


class RunsInPlace:
    """Repetition of a run on the host's own memory. All is launched as in the run before, over other records.

    Once all launches of a run are known, its commands are prepared. Values that only kernels, views and folds read get
    arrays that stay, so nothing is looked up for them. The others pass: records, given values, results, and what host
    functions read, who may keep it.

    Args:
        state: of the pass.
        runners: the only one.
        steps: of the pass.
        before: the steps of resident values that run again.
    """

    def __init__(self, state: PassState, runners: Runners, steps: StepRunner, before: Sequence[Step]) -> None:
        self._state, self._runners, self._steps, self._before = state, runners, steps, before
        self._one = one = state.one_pass
        (self._clock,) = one.clocks
        self._items = self._clock.length or 0
        every = (*before, *self._clock.steps, *one.after)
        self._regions = [step for step in every if isinstance(step, RegionStep)]
        self._passing = {sink.value for sink in one.sinks}
        for step in every:
            if isinstance(step, NodeStep) and step.node.kind not in (Kind.VIEW, Kind.FOLD):
                self._passing.update(step.node.inputs)
        self._prepared: PreparedRun | None = None
        self._late = set[int]()
        self._runs, self._runs_s = 0, 0.0

    @classmethod
    def of(cls, state: PassState, runners: Runners, steps: StepRunner, before: Sequence[Step]) -> RunsInPlace | None:
        """Make it where a plan runs again and again over one batch, in place, and nothing is carried on.

        Args:
            state, runners, steps, before: as above.
        """
        one = state.one_pass
        if not state.changing or not state.plan.backend.capabilities.host_memory or not _is_one_batch(state, runners):
            return None
        for step in (*before, *one.clocks[0].steps, *one.after):
            if isinstance(step, RegionStep):
                if not _is_launched(state, step):
                    return None
            elif step.node.kind in (Kind.SCAN, Kind.ALONG):
                return None
        return cls(state, runners, steps, before)

    def repeat(self, arrays: Callable[[], Arrays]) -> dict[int, np.ndarray] | None:
        """Repeat a run; see `Executor.repeat`."""
        runner, prepared = self._runners[0], self._prepared
        if self._state.is_sliced:
            return None
        if prepared is None or not runner.still_knows(prepared.known):
            known = runner.known_run(self._regions, self._items)
            if known is None:
                return None
            prepared = self._prepared = self._prepare(known)
            self._runs, self._runs_s = 0, 0.0
        if self._runs == JOINED_AFTER and self._runs_s < SHORT_S * self._runs * len(prepared.launches):
            prepared = self._prepared = self._joined(prepared)
        began = time.perf_counter()
        try:
            made = self._again(prepared, arrays())
            self._runs, self._runs_s = self._runs + 1, self._runs_s + time.perf_counter() - began
            return made
        except DeviceFullError:
            # It is done anew, in parts that there is room for.
            return None

    def _again(self, prepared: PreparedRun, arrays: Arrays) -> dict[int, np.ndarray]:
        resident, items = self._state.resident, self._items
        arrays.update(prepared.made)
        taken = BatchSlice(self._clock, 0, items, 0, arrays, resident)
        self._runners[0].begin_prepared()
        try:
            for commands, of_records in prepared.parts:
                try:
                    for command in commands:
                        command(taken)
                except FlowError as error:
                    error.records = error.records or ((0, items) if of_records else None)
                    raise
        finally:
            self._runners.wait()
        return {sink.value: resident[sink.value] for sink in self._one.sinks}

    # -- preparing --------------------------------------------------------------------------------

    def _prepare(self, known: Mapping[str, KnownLaunch]) -> PreparedRun:
        state, steps, runner = self._state, self._steps, self._runners[0]
        made = [i for one in self._regions for i in one.region.outputs]
        values = {i: steps.place(i, 0, self._items) for i in made if state.nodes[i].spec.is_stream}
        pairs = [(step.name, fold) for step in self._regions for fold in step.region.folds]
        ended = [(name, fold) for name, fold in pairs if runner.ends_block(known[name], fold)]
        made += [fold for _, fold in ended]
        whole = {i: steps.whole(i) for i in state.changing.intersection(made) - self._passing}
        first, seen = self._seen_first(values, whole)
        state.resident.update(whole)
        launches = dict(runner.prepare(known, {**whole, **values}))
        ends = {fold: runner.end_block(known[name], fold, whole.get(fold)) for name, fold in ended}
        self._late.clear()
        before = [*first, *self._resident(self._before, launches)]
        along: list[Command] = []
        folds: list[Node] = []
        for step in self._clock.steps:
            if isinstance(step, RegionStep):
                along += self._launch(step, launches)
            elif step.node.id in seen:
                continue
            elif step.node.kind is Kind.FOLD:
                folds.append(step.node)
            else:
                # It reads what kernels may still be computing, or writes where they may still be reading.
                along += self._waiting() if steps.has_memory(step.node) else ()
                along.append(partial(steps.run_alone, step))
        for fold, end in ends.items():
            along += [*self._new_arrays([fold]), end]
        others = [self._blocks(known[name], fold) for name, fold in pairs if fold not in ends]
        read = {i for step in self._one.after for i in _read_by(step)}
        early = [node for node in folds if node.id in read]
        late = [node for node in folds if node.id not in read]
        along += [*self._waiting(), *others] if others else ()
        along += [*self._waiting(), partial(self._fold, early)] if early else ()
        self._late.update(ends)
        after = [*self._resident(self._one.after, launches)]
        last: list[Command] = [*self._waiting(), partial(self._fold, late)] if late else []
        return PreparedRun(known.values(), [*launches.values(), *ends.values()], before, along, after, last, values)

    def _seen_first(self, values: Arrays, whole: Arrays) -> tuple[list[Command], set[int]]:
        """Find what is only seen of arrays that are there before a run: strided views, and all records as one array.

        Args:
            values: arrays of values along the stream that stay.
            whole: arrays of whole values that stay; more are added.

        Returns:
            What makes those that pass, and all of them.
        """
        graph, commands, seen = self._state.plan.graph, list[Command](), set[int]()
        there = {*values, *(source.value for source in self._clock.sources)}
        for step in self._clock.steps:
            if isinstance(step, RegionStep) or not there.issuperset(step.node.inputs):
                continue
            node = step.node
            if node.kind is Kind.VIEW and not self._steps.has_memory(node):
                commands.append(partial(self._steps.run_alone, step))
                there.add(node.id)
            elif node.op is ALL_RECORDS and is_dense(graph, node.inputs[0]):
                array = values.get(node.inputs[0])
                if array is None:
                    commands.append(partial(self._steps.fold_at_once, node))
                else:
                    whole[node.id] = array
            else:
                continue
            seen.add(node.id)
        return commands, seen

    def _joined(self, prepared: PreparedRun) -> PreparedRun:
        """Return a run that has fewer launches, where its device can do several as one."""
        first = len(prepared.before)
        while first and self._is_launching(prepared, prepared.before[first - 1]):
            first -= 1
        along = self._in_fewer(prepared, [*prepared.before[first:], *prepared.along, *prepared.after])
        return replace(prepared, before=prepared.before[:first], along=along, after=())

    def _in_fewer(self, prepared: PreparedRun, commands: Sequence[Command]) -> list[Command]:
        """Join launches that follow each other. Their arrays are made before."""
        made = list[Command]()
        for is_launching, some in groupby(commands, partial(self._is_launching, prepared)):
            each = [*some]
            made += [one for one in each if not is_launching or isinstance(one, NewArrays)]
            waiting = [one for one in each if is_launching and not isinstance(one, NewArrays)]
            made += self._runners[0].join_prepared(waiting) if waiting else ()
        return made

    @staticmethod
    def _is_launching(prepared: PreparedRun, command: Command) -> bool:
        return isinstance(command, NewArrays) or any(command is one for one in prepared.launches)

    def _resident(self, steps: Sequence[Step], launches: Mapping[str, Command]) -> Iterator[Command]:
        """Return what computes whole values."""
        for step in steps:
            if isinstance(step, RegionStep):
                yield from self._launch(step, launches)
                continue
            if not self._late.isdisjoint(step.node.inputs):
                yield from self._waiting()
            yield partial(self._steps.run_whole, step)

    def _launch(self, step: RegionStep, launches: Mapping[str, Command]) -> Iterator[Command]:
        """Return what launches a region, with new arrays for what passes."""
        self._late.update(step.region.outputs, step.region.folds)
        yield from self._new_arrays(step.region.outputs)
        yield launches[step.name]

    def _new_arrays(self, made: Collection[int]) -> list[Command]:
        """Return what makes arrays for those of some whole values that pass."""
        passing = self._state.changing.intersection(made, self._passing)
        return [NewArrays(passing, self._steps.whole, self._state.resident)] if passing else []

    def _waiting(self) -> list[Command]:
        """Return what waits for launches, where some are in progress."""
        if not self._late:
            return []
        self._late.clear()
        return [lambda _: self._runners.wait()]

    def _fold(self, folds: Sequence[Node], taken: BatchSlice) -> None:
        """Make the values of folds on the host."""
        products = sum(node.op is not None and node.op.name == "matmul" for node in folds)
        with one_blas_thread() if products > 1 else nullcontext():
            for node in folds:
                self._steps.fold_at_once(node, taken)

    def _blocks(self, known: KnownLaunch, fold: int) -> Command:
        """Return what makes the value of a fold of the blocks of a launch."""
        state, runner = self._state, self._runners[0]
        block = runner.only_block(known, fold)
        if block is not None:
            return lambda taken: state.fold_block(fold, block, taken.items)

        def command(taken: BatchSlice) -> None:
            state.begin_fold(fold)
            runner.push_blocks(known, fold, taken)
            self._steps.settle(taken)
            taken.pushes.clear()
            state.end_fold(fold)

        return command


def _is_one_batch(state: PassState, runners: Runners) -> bool:
    """Check whether a pass has one clock, whose records are one batch, and one runner on one device for all of it."""
    one = state.one_pass
    if len(one.clocks) != 1 or len(runners) > 1 or state.attempts or one.streamed or one.parts:
        return False
    (clock,) = one.clocks
    is_whole = not clock.entries and clock.length is not None and 0 < clock.length <= clock.batch_items
    return is_whole and not any(sink.spec.is_stream for sink in one.sinks)


def _read_by(step: Step) -> Collection[int]:
    """Return the values that a step reads."""
    if isinstance(step, NodeStep):
        return step.node.inputs
    return () if step.kernel is None else [argument.value for argument in step.kernel.arguments]


def _is_launched(state: PassState, step: RegionStep) -> bool:
    """Check whether a region is a kernel that carries nothing on."""
    anchor = step.region.anchor
    is_scan = anchor is not None and state.nodes[anchor].kind is Kind.SCAN
    return step.kernel is not None and step.region.weight_tiles is None and not is_scan
