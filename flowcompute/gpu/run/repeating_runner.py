"""A runner whose launches over few records are repeated where arrays stay, and waited for once."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from flowcompute.engine import BatchSlice
from flowcompute.gpu.run.chains import BoundLaunches, ChainMaker, LaunchChain, LaunchSequence
from flowcompute.gpu.run.prepared_launches import PassingArguments, PreparedChain, PreparedLaunch, PreparedRuns
from flowcompute.gpu.run.repeated_launches import RepeatedLaunch, RepeatedLaunches
from flowcompute.gpu.run.resident_arguments import ResidentArguments
from flowcompute.gpu.run.transferring_runner import TransferringRunner
from flowcompute.gpu.worker import Launcher
from flowcompute.ir import Argument, Kernel
from flowcompute.schedule import RegionStep

FEW_RECORDS = 32
"""Kernels of so few records are not waited for one by one. The seconds of a step that does not wait are those of the
one that does."""

FEW_IN_PLACE = 512
"""The same where kernels work in the host's memory: to prepare a launch and wait for it takes 0.3 ms, in which they
stand still."""


class RepeatingRunner(TransferringRunner):
    """A runner that knows its last launches. Whoever computes sets the attributes.

    Attributes:
        adopted: by name the kernels that are launched in place of those of the plan.
        _launcher: of the device, while it is open.
        _repeated: the last launches.
        _chains: makes one launch of many that are repeated.
        _is_alone: whether no other device and no other runner has a part in the pass.
        _can_defer: whether the device lets launches be waited for later.
        _residents: arguments of kernels that are resident.
        _passed: arguments of launches that are prepared which pass.
        _cyclic: names of the buffers of those that are read cyclically.
        _untold: launches whose seconds the log is told once they have ended.
    """

    adopted: dict[str, Kernel]
    _launcher: Launcher | None
    _repeated: RepeatedLaunches
    _chains: ChainMaker
    _is_alone: bool
    _can_defer: bool
    _residents: ResidentArguments
    _passed: PassingArguments
    _cyclic: set[Hashable]
    _untold: deque[tuple[str, Sequence[Callable[[], float]]]]

    @abstractmethod
    def _told(self, step: RegionStep) -> AbstractContextManager[None]:
        """Let errors name the step and its line."""

    @abstractmethod
    def _on_host(self, batch_slice: BatchSlice, anchor: int | None, place: int) -> np.ndarray:
        """Return the numbers of an operand of an anchor on the host."""

    @abstractmethod
    def _argument(
        self, argument: Argument, batch_slice: BatchSlice, outputs: Mapping[int, np.ndarray], stream: bool
    ) -> Any:
        """Return a value for an argument of a kernel: a buffer, or a number."""

    def _is_timed(self, step: RegionStep, *, deferred: bool = False) -> bool:
        return self.log is not None and self.log.is_timed(step.name, deferred=deferred)

    def _waits_to_time(self) -> bool:
        """Check whether a launch that is timed has to be waited for."""
        assert self._launcher is not None
        return not self._launcher.times_deferred or (self.log is not None and self.log.asks_ends)

    def _log_launch(self, step: RegionStep, seconds: Sequence[Callable[[], float]], *, deferred: bool) -> None:
        """Tell the log of a launch, and its seconds once they are known.

        Args:
            step: that was launched.
            seconds: what tells them of each stage, once it has ended; none where it is not timed.
            deferred: whether nobody has waited for it.
        """
        if self.log is None:
            return
        if deferred and seconds:
            self._untold.append((step.name, seconds))
        spent_s = sum(one() for one in seconds) if seconds and not deferred else None
        self.log.launched(step.name, time.perf_counter(), spent_s)

    def _is_deferred(self, step: RegionStep, items: int) -> bool:
        """Check whether nobody waits for the launch of a step, whose results are read by `wait` at the earliest."""
        region = step.region
        if not step.merged.issuperset(region.folds) or region.weight_tiles is not None or not self._can_defer:
            return False
        if not region.stream:
            # Whoever computes resident values waits once for all of them.
            few = True
        elif self.memory.in_place:
            few = items <= FEW_IN_PLACE or self.waits_once
        else:
            # What a discrete device fails at is told before the next batch begins. Nobody asks for the seconds of the
            # kernels of a step of a training.
            few = (items <= FEW_RECORDS or bool(self.state.changing)) and not self.waits_once
        return few and self._is_alone and self.tuner is None

    def known(
        self, step: RegionStep, batch_slice: BatchSlice, outputs: Mapping[int, np.ndarray]
    ) -> RepeatedLaunch | None:
        """See `RegionRunner.known`."""
        if step.kernel is None or not self._is_deferred(step, batch_slice.items):
            return None
        kernel = self.adopted.get(step.kernel.name, step.kernel).of_items(batch_slice.items)
        found = self._repeated.find(step, kernel, batch_slice, outputs)
        # In place an array that passes is an argument. Elsewhere its numbers are uploaded to a buffer that stays.
        return None if found is None or (found.passing and self.memory.in_place) else found

    def joined(  # type: ignore[override]
        self, known: Sequence[RepeatedLaunch], *, build: bool
    ) -> tuple[LaunchSequence, bool]:
        """See `RegionRunner.joined`."""
        assert self._launcher is not None
        with self._told(known[0].step):
            made = self._chains.joined(known, self._launcher, build=build)
        sequence = LaunchSequence(known if made is None else made)
        self._repeated.watch(sequence)
        return sequence, made is None

    def repeat(self, joined: LaunchSequence, batch_slice: BatchSlice) -> bool:
        """Launch steps as they were launched last, where nothing but the record index differs."""
        if not joined.are_last(self._repeated) or not (self.log is None or joined.are_counted(self.log)):
            return False
        assert self._launcher is not None
        with self._told(joined.launches[0].step):
            joined.bind(self._launcher)
        self._launch_again(joined.each, batch_slice, {})
        return True

    def _launch_again(
        self,
        known: Sequence[RepeatedLaunch | LaunchChain | BoundLaunches],
        batch_slice: BatchSlice,
        outputs: Mapping[int, np.ndarray],
    ) -> None:
        """Launch steps as they were launched last; `outputs` has what a launch makes in arrays that pass."""
        assert self._launcher is not None
        buffer = partial(self._passing, batch_slice, outputs)
        for one in known:
            try:
                one.again(self._launcher, batch_slice.start, partial(self._on_host, batch_slice), buffer)
            except Exception:
                with self._told(one.step):
                    raise
            batch_slice.launches += len(one.phases)

    def known_run(self, steps: Sequence[RegionStep], items: int) -> Mapping[str, RepeatedLaunch] | None:
        """See `RegionRunner.known_run`."""
        if not self._can_defer or not self._is_alone or self.tuner is not None or self.log is not None:
            return None
        found: dict[str, RepeatedLaunch] = {}
        for step in steps:
            assert step.kernel is not None, "asked for where all is launched"
            records = items if step.region.stream else 1
            last = self._repeated.last(step, self.adopted.get(step.kernel.name, step.kernel).of_items(records), records)
            if last is None:
                return None
            found[step.name] = last
        return found

    def still_knows(self, known: Collection[RepeatedLaunch]) -> bool:  # type: ignore[override]
        """See `RegionRunner.still_knows`."""
        return self.tuner is None and self.log is None and self._repeated.are_last(known)

    def prepare(  # type: ignore[override]
        self, known: Mapping[str, RepeatedLaunch], staying: Mapping[int, np.ndarray], own: Collection[int]
    ) -> Mapping[str, PreparedLaunch]:
        """See `RegionRunner.prepare`."""
        assert self._launcher is not None
        made: dict[str, PreparedLaunch] = {}
        self._cyclic = set()
        passing = self._passed = PassingArguments()
        for name, one in known.items():
            buffers, holes = [*one.buffers], dict[int, int]()
            each = enumerate(one.kernel.arguments)
            mine = [place for place, argument in each if argument.kind in ("input", "output") and argument.value in own]
            for place in sorted({*one.passing, *mine}):
                argument = one.kernel.arguments[place]
                array = staying.get(argument.value)
                if array is None or argument.kind == "scalar" or argument.period:
                    holes[place] = passing.slot(argument, self._maker(argument))
                    self._cyclic |= {("cyclic", argument.value)} if argument.period else set()
                else:
                    buffers[place] = self.memory.output(argument.value, array)
            prepared = replace(one, buffers=buffers, passing=tuple(holes))
            made[name] = PreparedLaunch(prepared, self._launcher, [*holes.values()], passing, self._told)
        return made

    def join_prepared(  # type: ignore[override]
        self, launches: Sequence[PreparedLaunch]
    ) -> Sequence[PreparedLaunch | PreparedChain]:
        """See `RegionRunner.join_prepared`."""
        assert self._launcher is not None
        with self._told(launches[0].known.step):
            joined = self._chains.joined_passing([one.known for one in launches], self._launcher)
        mine = {id(one.known): one for one in launches}
        return [
            PreparedChain(one, self._launcher, self._residents.scalar, self._told)
            if isinstance(one, LaunchChain)
            else mine[id(one)]
            for one in joined
        ]

    def together(
        self, launch: Callable[[BatchSlice], None], most: int, staying: Collection[int]
    ) -> PreparedRuns | None:
        """See `RegionRunner.together`."""
        return launch.together(most, staying) if isinstance(launch, PreparedChain) else None

    def begin_prepared(self) -> None:
        """See `RegionRunner.begin_prepared`."""
        self._passed.begin()
        self._residents.forget(self.state.changing)
        if self._cyclic:
            self.memory.forget(self._cyclic)

    def _maker(self, argument: Argument) -> Callable[[BatchSlice], Any]:
        """Return what makes a value for an argument that passes."""
        memory, value = self.memory, argument.value
        if argument.kind == "output":
            return lambda taken: memory.output(value, taken.array(value))
        if argument.kind == "input" and not argument.period:
            return lambda taken: memory.input(value, taken.array(value), fresh=True)
        return lambda taken: self._argument(argument, taken, {}, True)

    def _passing(self, batch_slice: BatchSlice, outputs: Mapping[int, np.ndarray], argument: Argument) -> Any:
        """Return a value for an argument whose array is another one each time."""
        value = argument.value
        if argument.kind == "output":
            return self.memory.output(value, outputs[value])
        if argument.kind == "input" and not argument.period:
            return self.memory.input(value, batch_slice.array(value), fresh=True)
        return self._argument(argument, batch_slice, outputs, True)

    def wait(self) -> None:
        """Wait for the launches that nobody has waited for."""
        # Those of a run that fails have no seconds.
        ended, self._untold = self._untold, deque()
        if self._memory is not None and self._launcher is not None:
            with self._launcher.told():
                self._memory.wait()
        for name, seconds in ended:
            if self.log is not None:
                self.log.timed(name, sum(one() for one in seconds))

    def leave_run(self) -> None:
        """See `RegionRunner.leave_run`."""
        assert self._launcher is not None
        with self._launcher.told():
            self.memory.leave()
