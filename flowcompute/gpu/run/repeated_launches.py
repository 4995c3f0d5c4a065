"""Launches of a flow that differ from the last ones of their step in the record index, and in arrays that pass."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any, Protocol
from weakref import WeakSet

import numpy as np

from flowcompute.engine import BatchSlice
from flowcompute.engine.scans import Carry
from flowcompute.gpu.run.device_carries import DeviceCarry, ScanLaunch
from flowcompute.gpu.worker import Launcher
from flowcompute.imports import dataclass
from flowcompute.ir import Argument, Kernel
from flowcompute.ring import Recent
from flowcompute.schedule import RegionStep
from flowcompute.schedule.memory import MOST_KINDS

_VALUES = {"scalar", "input", "output"}
"""Kinds of arguments that are values of the graph."""

_BLOCKS = {"partial", "carry"}


@dataclass(frozen=True, slots=True)
class RepeatedLaunch:
    """A launch with all that stays while its arrays do.

    Attributes:
        step: what it computes.
        kernel: of the plan, or adopted.
        compiled: what is launched.
        carry: what the kernel changes beside its results, if anything.
        items: records.
        arrays: of the values that it reads and writes, as far as they stay.
        passing: places of arguments whose arrays, or whose numbers on the host, are others each time.
        buffers: its arguments before the numbers: buffers of the arrays, and scalars; None where arrays pass.
        made: those of its results, which later kernels are to find. Memory in place has none.
        total, chunk, groups, blocks: its division; the first record begins a block, if it has any.
        phases: of its kernel, a launch each.
    """

    step: RegionStep
    kernel: Kernel
    compiled: Any
    carry: DeviceCarry | None
    items: int
    arrays: tuple[tuple[int, np.ndarray], ...]
    passing: tuple[int, ...]
    buffers: Sequence[Any]
    made: Mapping[int, Any]
    total: int
    chunk: int
    groups: int
    blocks: int
    phases: range

    @property
    def launches(self) -> Sequence[RepeatedLaunch]:
        """Itself; see `LaunchChain`."""
        return (self,)

    def begin(self, launcher: Launcher, start: int, on_host: Callable[[int, int], np.ndarray]) -> int:
        """Begin what it carries on, over the records from `start` on; gives the launch's `chunk`. See `again`."""
        if self.carry is None:
            return self.chunk
        scanned = ScanLaunch(0, start, self.items, partial(on_host, self.carry.value))
        chunk = self.carry.begin(scanned) or self.chunk
        if not launcher.memory.in_place:
            # The host may have changed what is carried.
            for argument in self.kernel.arguments:
                if argument.kind == "state":
                    self.carry.buffer(argument)
        return chunk

    def again(
        self,
        launcher: Launcher,
        start: int,
        on_host: Callable[[int, int], np.ndarray],
        buffer: Callable[[Argument], Any],
    ) -> None:
        """Launch it over the records from `start` on, and leave the waiting to others.

        Args:
            launcher: of the device.
            start: the first record.
            on_host: gives the numbers of an operand on the host, by its scan and place.
            buffer: gives the buffer of an argument whose array passes.
        """
        kernel, buffers = self.kernel, self.buffers
        chunk = self.begin(launcher, start, on_host)
        if self.made:
            launcher.memory.made_again(self.made)
        if self.passing:
            buffers = list(buffers)
            for place in self.passing:
                buffers[place] = buffer(kernel.arguments[place])
        for stage in self.phases:
            values = [*buffers, self.total, chunk, self.blocks, start, stage]
            launcher.launch(self.compiled, values, self.groups, kernel.work_group, (), timed=False, deferred=True)
        if self.carry is not None:
            self.carry.advanced(start + self.items)


class HoldsLaunches(Protocol):
    """Holder of launches, and with them of buffers of the device."""

    def let_go(self) -> None:
        """Let go of them: they are not repeated any more."""


class RepeatedLaunches:
    """The last launch of each step over each number of records, as far as it may be repeated.

    Args:
        passing: values whose arrays, or whose numbers on the host, are others each time. They are not to be kept alive.
        scans: what scans carry now, by value.

    Attributes:
        changes: counts what may make other launches the last ones; whoever changes what scans carry counts it, too.
    """

    def __init__(self, passing: frozenset[int], scans: Mapping[int, Carry]) -> None:
        self._scans = scans
        self._passing = passing
        self._last = Recent[int, dict[str, RepeatedLaunch]](MOST_KINDS, dict)
        self._sequences = WeakSet[HoldsLaunches]()
        self.changes = 0

    def watch(self, sequence: HoldsLaunches) -> None:
        """Have somebody who holds launches let go of them once all are forgotten."""
        self._sequences.add(sequence)

    def passes(self, kernel: Kernel) -> bool:
        """Check whether a kernel reads or makes values that pass."""
        return any(one.kind in _VALUES and one.value in self._passing for one in kernel.arguments)

    def find(
        self, step: RegionStep, kernel: Kernel, batch_slice: BatchSlice, outputs: Mapping[int, np.ndarray]
    ) -> RepeatedLaunch | None:
        """Return the last launch of a step, if it had the same kernel, as many records and the arrays that stay."""
        last = self.last(step, kernel, batch_slice.items)
        if last is None:
            return None
        carry = last.carry
        if carry is not None and (self._scans.get(carry.value) is not carry or not carry.has_room(last.items)):
            return None
        for value, array in last.arrays:
            if (outputs[value] if value in outputs else batch_slice.array(value)) is not array:
                return None
        return last

    def last(self, step: RegionStep, kernel: Kernel, items: int) -> RepeatedLaunch | None:
        """Return the last launch of a step over as many records, if it had the same kernel."""
        last = self._last.take(items).get(step.name)
        return None if last is None or last.kernel is not kernel else last

    def kept(self, items: int) -> Mapping[str, RepeatedLaunch]:
        """Return the launches over as many records: the very mapping of the last time, unless they were forgotten."""
        return self._last.take(items)

    def are_last(self, launches: Collection[RepeatedLaunch]) -> bool:
        """Check whether each launch is the last one of its kind that was kept, and changes what is carried now."""
        scans, by_step, items = self._scans, dict[str, RepeatedLaunch](), -1
        for one in launches:
            if one.items != items:
                items, by_step = one.items, self._last.take(one.items)
            carry = one.carry
            if by_step.get(one.step.name) is not one or (carry and scans.get(carry.value) is not carry):
                return False
        return True

    def keep(
        self,
        step: RegionStep,
        kernel: Kernel,
        compiled: Any,
        carry: DeviceCarry | None,
        batch_slice: BatchSlice,
        outputs: Mapping[int, np.ndarray],
        buffers: Sequence[Any],
        division: tuple[int, int, int, int],
        *,
        in_place: bool,
    ) -> None:
        """Keep a launch whose arguments are arrays and numbers; no array that passes is kept alive."""
        read = [(place, one.value) for place, one in enumerate(kernel.arguments) if one.kind in _VALUES]
        passing = tuple(place for place, value in read if value in self._passing)
        kinds = _VALUES | ({"words", "room"} if carry is None else {"state"} if carry.stays else set())
        # Blocks of a fold have memory that stays. Only runs in place have others than those of a merge.
        known = all(one.kind in (kinds | _BLOCKS if in_place else kinds) for one in kernel.arguments)
        if not known or (kernel.block and not in_place):
            return
        staying = [value for _, value in read if value not in self._passing]
        arrays = tuple((i, outputs[i] if i in outputs else batch_slice.array(i)) for i in staying)
        kept = [None if place in passing else buffer for place, buffer in enumerate(buffers)]
        pairs = () if in_place else zip(kernel.arguments, kept, strict=True)
        made = {one.value: buffer for one, buffer in pairs if one.kind == "output" and buffer is not None}
        items = batch_slice.items
        launch = RepeatedLaunch(
            step, kernel, compiled, carry, items, arrays, passing, kept, made, *division, kernel.phases(items)
        )
        self._last.take(items)[step.name] = launch
        self.changes += 1

    def forget(self, values: Collection[int]) -> None:
        """Forget launches that hold an array or the number of one of these values."""
        self.changes += 1
        for by_step in self._last.values():
            for name, one in [*by_step.items()]:
                if any(i in values for i, _ in one.arrays):
                    del by_step[name]

    def clear(self) -> None:
        """Forget all launches, and let go of their arrays and buffers."""
        self._last.clear()
        for one in [*self._sequences]:
            one.let_go()
        self.changes += 1
