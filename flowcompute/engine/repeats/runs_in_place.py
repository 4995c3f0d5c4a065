"""Runs of a pass in the host's own memory that are done again by the launches of the run before."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from itertools import groupby

import numpy as np

from flowcompute.batch import aligned_array
from flowcompute.elements import Kind
from flowcompute.elements.training import ALL_RECORDS, Given
from flowcompute.engine.accumulators import one_blas_thread
from flowcompute.engine.backend import NoRoomTogetherError
from flowcompute.engine.batch_slice import Arrays, BatchSlice
from flowcompute.engine.pass_state import PassState
from flowcompute.engine.region_runner import KnownLaunch, Runners
from flowcompute.engine.repeats.prepared_run import Command, NewArrays, PreparedRun
from flowcompute.engine.repeats.repeated_runs import is_launched, is_one_batch, read_by
from flowcompute.engine.repeats.runs_together import RunsTogether
from flowcompute.engine.step_runner import StepRunner
from flowcompute.errors import DeviceFullError, FlowError, RunError
from flowcompute.graph import Node
from flowcompute.ir import Kernel, is_dense
from flowcompute.schedule import NodeStep, RegionStep, Step

JOINED_AFTER = 64
"""Runs after which launches are joined. The program of a chain is compiled for as long as a thousand small runs take,
once a machine."""

SHORT_S = 0.5e-3
"""Launches are joined where those of a run take no longer on average, all else of it included. What a launch costs
beside its kernel is a twentieth of that."""

OWN_BYTES = 1 << 16
"""Bytes that late folds of a run read at most that is left in progress: they are there twice."""


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
        self._together: RunsTogether | None = None
        self._late = set[int]()
        self._left: tuple[Sequence[Node], BatchSlice, Arrays] | None = None
        self._failure: FlowError | None = None
        self._runs, self._runs_s = 0, 0.0

    @classmethod
    def of(cls, state: PassState, runners: Runners, steps: StepRunner, before: Sequence[Step]) -> RunsInPlace | None:
        """Make it where a plan runs again and again over one batch, in place, and nothing is carried on.

        Args:
            state, runners, steps, before: as above.
        """
        one = state.one_pass
        if (
            not state.changing
            or one.folds_at_once
            or not state.plan.backend.capabilities.host_memory
            or not is_one_batch(state, runners)
        ):
            return None
        for step in (*before, *one.clocks[0].steps, *one.after):
            if isinstance(step, RegionStep):
                if not is_launched(state, step):
                    return None
            elif step.node.kind in (Kind.SCAN, Kind.ALONG):
                return None
        return cls(state, runners, steps, before)

    def repeat(self, arrays: Callable[[], Arrays], *, leave: bool) -> Mapping[int, np.ndarray] | None:
        """Repeat a run; see `Executor.repeat`."""
        made = self._repeated(arrays, leave=leave)
        if made is None:
            # It is derived, by a host that reads what the run before has made.
            self.wait()
        return made

    @property
    def in_progress(self) -> int:
        """Runs that were left in progress, or were not launched so far."""
        return len(self._together or ()) + (self._left is not None)

    @property
    def can_follow(self) -> bool:
        """True where another run goes in the launch of the last ones; see `Executor.follow`."""
        return self._together is not None and self._together.can_follow

    def follow(self, arrays: Arrays) -> Mapping[int, np.ndarray]:
        """Repeat a run in the launch of the last one; see `Executor.follow`."""
        assert self._together is not None
        assert self._prepared is not None
        arrays.update(self._prepared.made)
        return self._together.follow(BatchSlice(self._clock, 0, self._items, 0, arrays, self._state.resident))

    def wait(self) -> None:
        """Wait for runs that were left in progress.

        Raises:
            NoRoomTogetherError: where there was no room for several, which are forgotten.
            FlowError: if one has failed; each time again where the next one has read what it should have made.
        """
        if self._together is not None:
            self._together.end()
        self._end_left(self._runners.wait)

    def _end_left(self, wait: Callable[[], None]) -> None:
        """Wait, and make the folds of a run that was left, which has ended then."""
        if self._failure is not None:
            raise self._failure
        try:
            wait()
        except FlowError as error:
            if self._left is None:
                raise
            self._failure = error
            if isinstance(error, DeviceFullError):
                # Whoever catches that does the next run anew, over results that are not there.
                message = f"cannot go on after a run that was left in progress: {error.message}"
                self._failure = RunError(
                    message, element=error.element, site=error.site, got=error.got, hint=error.hint
                )
            raise self._failure  # noqa: B904 - it may be the same one
        if self._left is not None:
            folds, taken, made = self._left
            self._fold(folds, taken)
            for node in folds:
                made[node.id][...] = self._state.resident[node.id]
            self._left = None

    def _repeated(self, arrays: Callable[[], Arrays], *, leave: bool) -> Mapping[int, np.ndarray] | None:
        runner, prepared = self._runners[0], self._prepared
        if self._state.is_sliced:
            return None
        if prepared is None or not runner.still_knows(prepared.known):
            known = runner.known_run(self._regions, self._items)
            if known is None:
                return None
            self.wait()
            prepared, self._together = self._prepare(known), None
            self._prepared = prepared
            self._runs, self._runs_s = 0, 0.0
        if self._runs == JOINED_AFTER and self._runs_s < SHORT_S * self._runs * len(prepared.launches):
            self.wait()
            prepared = self._prepared = self._joined(prepared)
            self._together = self._in_one(prepared)
        began = time.perf_counter()
        try:
            made = self._again(prepared, arrays(), leave=leave and prepared.ended is not None)
            self._runs, self._runs_s = self._runs + 1, self._runs_s + time.perf_counter() - began
            return made
        except NoRoomTogetherError:
            # Runs before it are lost.
            raise
        except DeviceFullError:
            # It is done anew, in parts that there is room for.
            return None

    def _again(self, prepared: PreparedRun, arrays: Arrays, *, leave: bool) -> Mapping[int, np.ndarray]:
        resident, items = self._state.resident, self._items
        if not leave:
            # The host reads what the run before has made.
            self.wait()
        arrays.update(prepared.made)
        taken = BatchSlice(self._clock, 0, items, 0, arrays, resident)
        if leave and self._together is not None:
            return self._together.add(taken)
        self._runners[0].begin_prepared()
        try:
            for commands, of_records in prepared.parts[:3] if leave else prepared.parts:
                try:
                    for command in commands:
                        command(taken)
                except FlowError as error:
                    error.records = error.records or ((0, items) if of_records else None)
                    raise
        except BaseException:
            self.wait()
            raise
        if not leave:
            self._runners.wait()
            return {sink.value: resident[sink.value] for sink in self._one.sinks}
        self._end_left(self._runners[0].leave_run)
        folds = prepared.ended or ()
        made = {node.id: np.empty(node.spec.shape, node.spec.dtype) for node in folds}
        self._left = folds, taken, made
        return {
            sink.value: made[sink.value] if sink.value in made else resident[sink.value] for sink in self._one.sinks
        }

    # -- preparing --------------------------------------------------------------------------------

    def _prepare(self, known: Mapping[str, KnownLaunch]) -> PreparedRun:
        state, steps, runner = self._state, self._steps, self._runners[0]
        made = [i for one in self._regions for i in one.region.outputs]
        read = {i for step in self._one.after for i in read_by(step)}
        folds = [step.node for step in self._clock.steps if isinstance(step, NodeStep) and step.node.kind is Kind.FOLD]
        late = [node for node in folds if node.id not in read]
        # Each run has its own of these, which are read when the next one may be in progress.
        own = {i for node in late for i in node.inputs}.intersection(made) if self._can_be_left(late) else set[int]()
        values = {i: steps.place(i, 0, self._items) for i in made if state.nodes[i].spec.is_stream and i not in own}
        pairs = [(step.name, fold) for step in self._regions for fold in step.region.folds]
        ended = [(name, fold) for name, fold in pairs if runner.ends_block(known[name], fold)]
        made += [fold for _, fold in ended]
        whole = {i: steps.whole(i) for i in state.changing.intersection(made) - self._passing}
        first, seen = self._seen_first(values, whole)
        first = [partial(self._make_own, sorted(own)), *first] if own else first
        state.resident.update(whole)
        launches = dict(runner.prepare(known, {**whole, **values}, own))
        ends = {fold: runner.end_block(known[name], fold, whole.get(fold)) for name, fold in ended}
        self._late.clear()
        before = [*first, *self._resident(self._before, launches)]
        along: list[Command] = []
        early = list[Node]()
        for step in self._clock.steps:
            if isinstance(step, RegionStep):
                along += self._launch(step, launches)
            elif step.node.id in seen:
                continue
            elif step.node.kind is Kind.FOLD:
                early += [step.node] if step.node.id in read else []
            else:
                # It reads what kernels may still be computing, or writes where they may still be reading.
                along += self._waiting() if steps.has_memory(step.node) else ()
                along.append(partial(steps.run_alone, step))
        for fold, end in ends.items():
            along += [*self._new_arrays([fold]), end]
        others = [self._blocks(known[name], fold) for name, fold in pairs if fold not in ends]
        along += [*self._waiting(), *others] if others else ()
        along += [*self._waiting(), partial(self._fold, early)] if early else ()
        self._late.update(ends)
        after = [*self._resident(self._one.after, launches)]
        last: list[Command] = [*self._waiting(), partial(self._fold, late)] if late else []
        mine = [*launches.values(), *ends.values()]
        each = [*before[len(first) :], *along, *after]
        alone = late if self._can_be_left(late) and all(self._is_launching(mine, one) for one in each) else None
        return PreparedRun(known.values(), mine, before, along, after, last, values, alone)

    def _can_be_left(self, late: Sequence[Node]) -> bool:
        """Check whether late folds fail at nothing and read few numbers, and launches no numbers of the last run."""
        graph, made = self._state.plan.graph, {i for one in self._regions for i in one.region.outputs}
        read = {i for node in late for i in node.inputs}
        size_bytes = sum(graph.nodes[i].spec.item_bytes * self._items for i in read)
        has_room = self._state.plan.memory.has_next_step and size_bytes <= OWN_BYTES
        are_sound = all(node.id in self._state.plan.folds for node in late)
        return has_room and are_sound and read <= made and not self._reads_carried()

    def _make_own(self, values: Sequence[int], taken: BatchSlice) -> None:
        """Make arrays of records that are those of one run, as far as they are not there."""
        for i in values:
            if i not in taken.values:
                spec = self._state.nodes[i].spec
                taken.values[i] = aligned_array((taken.items, *spec.shape), spec.dtype)

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
                    commands.append(partial(self._see_all, node.id, node.inputs[0]))
                else:
                    whole[node.id] = array
            else:
                continue
            seen.add(node.id)
        return commands, seen

    def _see_all(self, value: int, records: int, taken: BatchSlice) -> None:
        """Put all records among the resident values as one array: the very one, where it lies in order."""
        self._state.resident[value] = np.ascontiguousarray(taken.values[records])

    def _joined(self, prepared: PreparedRun) -> PreparedRun:
        """Return a run that has fewer launches, where its device can do several as one."""
        first = len(prepared.before)
        while first and self._is_launching(prepared.launches, prepared.before[first - 1]):
            first -= 1
        along = self._in_fewer(prepared, [*prepared.before[first:], *prepared.along, *prepared.after])
        return replace(prepared, before=prepared.before[:first], along=along, after=())

    def _in_one(self, prepared: PreparedRun) -> RunsTogether | None:
        """Return what does several runs as one launch, where a run that may be left in progress is one itself."""
        most = self._state.plan.memory.steps_together
        launches = [one for one in prepared.along if not isinstance(one, NewArrays)]
        made = [i for one in prepared.along if isinstance(one, NewArrays) for i in one.values]
        if prepared.ended is None or most < 2 or len(launches) != 1:
            return None
        runner, carried, resident = self._runners[0], self._carried, self._state.resident
        taken = {id(resident[given]) for given in carried}
        own = [i for i in made if id(resident[i]) not in taken]
        if sum(resident[i].nbytes for i in own) > OWN_BYTES:
            return None
        made, folded = [i for i in made if i not in own], {i for node in prepared.ended for i in node.inputs}
        launch = runner.together(launches[0], most, {*made, *carried, *folded})
        if launch is None:
            return None
        room, fold, see = self._steps.whole, self._steps.fold_each, prepared.before
        return RunsTogether(self._state, runner, launch, most, made, own, carried, prepared.ended, see, room, fold)

    def _in_fewer(self, prepared: PreparedRun, commands: Sequence[Command]) -> list[Command]:
        """Join launches that follow each other. Their arrays are made before."""
        made = list[Command]()
        for is_launching, some in groupby(commands, partial(self._is_launching, prepared.launches)):
            each = [*some]
            made += [one for one in each if not is_launching or isinstance(one, NewArrays)]
            waiting = [one for one in each if is_launching and not isinstance(one, NewArrays)]
            made += self._runners[0].join_prepared(waiting) if waiting else ()
        return made

    @staticmethod
    def _is_launching(launches: Collection[Command], command: Command) -> bool:
        return isinstance(command, NewArrays) or any(command is one for one in launches)

    @property
    def _carried(self) -> list[int]:
        """Given values that are what the run before has made of them."""
        nodes = ((node.id, node.element) for node in self._state.nodes)
        return [i for i, element in nodes if isinstance(element, Given) and element.is_carried]

    def _reads_carried(self) -> bool:
        """Check whether arguments of launches are made of numbers that the run before has made."""
        elements = {node.id: node.element for node in self._state.nodes}
        read = {i for step in self._regions if step.kernel for i in _numbers_read(step.kernel)}
        each = (elements[i] for i in self._state.changing & read)
        return not all(isinstance(one, Given) and not one.is_carried for one in each)

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


def _numbers_read(kernel: Kernel) -> Iterator[int]:
    """Return the values whose numbers the host reads to launch a kernel."""
    return (one.value for one in kernel.arguments if one.kind == "scalar" or one.period)
