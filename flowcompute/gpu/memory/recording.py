"""Commands of a run on a discrete device, in the order of its queue. They can be given again without being derived."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import field
from typing import Any, NamedTuple, Protocol

import numpy as np

from flowcompute.gpu.device import BOUND_AFTER, BoundKernel, cl, driver_functions
from flowcompute.imports import dataclass

Push = Callable[[Sequence[Any]], None]
"""Adds records, which lie in these buffers, to a fold."""


@dataclass(frozen=True)
class Again:
    """The values of the run whose commands are given.

    Attributes:
        queue: of the device.
        upload: begins to copy what a value is now to a buffer.
        download: copies a buffer to an array, and waits for that.
        scalar: gives a number that is another one in each run.
        pushes: what adds records to a fold whose launches depend on them, by its node.
        fetched: arrays that have come from the device, by value.
    """

    queue: cl.CommandQueue
    upload: Callable[[int, cl.Buffer], None]
    download: Callable[[cl.Buffer, np.ndarray], None]
    scalar: Callable[[int], Any]
    pushes: Mapping[int, Push]
    fetched: dict[int, np.ndarray] = field(default_factory=dict)


class Command(Protocol):
    """A command. Equal ones do the same."""

    @property
    def buffers(self) -> Sequence[cl.Buffer]:
        """The buffers that it reads and writes."""

    def give(self, again: Again) -> None:
        """Give the command."""


class RecordedLaunch(NamedTuple):
    """A launch, with the types of `build`. `values` has None where `scalars` names a number, each `(place, value)`."""

    kernel: cl.Kernel
    types: tuple[np.dtype | None, ...]
    values: tuple[Any, ...]
    scalars: tuple[tuple[int, int], ...]
    size: tuple[int]
    work_group: tuple[int]

    @property
    def buffers(self) -> Sequence[cl.Buffer]:
        """See `Command.buffers`. Scalars have no address."""
        return [one for one in self.values if hasattr(one, "int_ptr")]

    def give(self, again: Again) -> None:
        """Launch the kernel."""
        values = self.values
        if self.scalars:
            changed = [*values]
            for place, value in self.scalars:
                changed[place] = again.scalar(value)
            values = tuple(changed)
        self.kernel.set_args(*values)
        cl.enqueue_nd_range_kernel(again.queue, self.kernel, self.size, self.work_group)


class BoundLaunch(NamedTuple):
    """A recorded launch whose arguments stay set, but for the numbers that are others in each run."""

    kernel: BoundKernel
    recorded: RecordedLaunch

    @property
    def buffers(self) -> Sequence[cl.Buffer]:
        """See `Command.buffers`."""
        return self.recorded.buffers

    def give(self, again: Again) -> None:
        """Launch the kernel."""
        for place, value in self.recorded.scalars:
            self.kernel.put(place, again.scalar(value))
        self.kernel.launch()


class RecordedCopy(NamedTuple):
    """A copy between two buffers."""

    source: cl.Buffer
    target: cl.Buffer
    size_bytes: int
    at: int
    to: int

    @property
    def buffers(self) -> Sequence[cl.Buffer]:
        """See `Command.buffers`."""
        return self.source, self.target

    def give(self, again: Again) -> None:
        """Copy the bytes."""
        cl.enqueue_copy(
            again.queue, self.target, self.source, byte_count=self.size_bytes, src_offset=self.at, dst_offset=self.to
        )


class Clearing(NamedTuple):
    """Zeros in a range of bytes of a buffer."""

    buffer: cl.Buffer
    begin: int
    end: int

    @property
    def buffers(self) -> Sequence[cl.Buffer]:
        """See `Command.buffers`."""
        return (self.buffer,)

    def give(self, again: Again) -> None:
        """Put zeros there."""
        cl.enqueue_fill_buffer(again.queue, self.buffer, np.zeros(1, np.uint8), self.begin, self.end - self.begin)


class Upload(NamedTuple):
    """An upload of a value."""

    value: int
    buffer: cl.Buffer

    @property
    def buffers(self) -> Sequence[cl.Buffer]:
        """See `Command.buffers`."""
        return (self.buffer,)

    def give(self, again: Again) -> None:
        """Begin to upload the array that the value is now."""
        again.upload(self.value, self.buffer)


class Fetch(NamedTuple):
    """A download of a value into a new array."""

    value: int
    buffer: cl.Buffer
    shape: tuple[int, ...]
    dtype: np.dtype

    @property
    def buffers(self) -> Sequence[cl.Buffer]:
        """See `Command.buffers`."""
        return (self.buffer,)

    def give(self, again: Again) -> None:
        """Download the value."""
        array = again.fetched[self.value] = np.empty(self.shape, self.dtype)
        again.download(self.buffer, array)


class Pushed(NamedTuple):
    """Records for a fold whose launches depend on what is in them."""

    fold: int
    operands: tuple[cl.Buffer, ...]

    @property
    def buffers(self) -> Sequence[cl.Buffer]:
        """Those that are known: what the fold writes to is its own."""
        return self.operands

    def give(self, again: Again) -> None:
        """Let the fold add them."""
        again.pushes[self.fold](self.operands)


class Recording:
    """The commands of a run, as they are given.

    Attributes:
        commands: so far.
        scalars: of the launch that comes next, the numbers that are others in each run, as places and values.
    """

    def __init__(self) -> None:
        self.commands: list[Command] = []
        self.scalars: tuple[tuple[int, int], ...] = ()
        self._bound: list[Command] = []
        self._repeated = 0
        self._refused = False
        self._is_pushing = False

    @property
    def is_whole(self) -> bool:
        """True where all that was done can be done again."""
        return not self._refused

    def given_again(self, queue: cl.CommandQueue) -> Sequence[Command]:
        """Return what does the same as the commands. Launches that were repeated often enough keep their arguments.

        Raises:
            cl.Error: if the driver has no room.
        """
        self._repeated += 1
        if self._repeated == BOUND_AFTER and driver_functions() is not None:
            self._bound = [_bound(one, queue) if isinstance(one, RecordedLaunch) else one for one in self.commands]
        return self._bound or self.commands

    def fetching_late(self) -> Recording:
        """Return the same with downloads at the end, where nothing that comes after them touches their buffers.

        So the device has all launches before the host waits.
        """
        made, seen = Recording(), set[int]()
        made._refused = self._refused
        now: list[Command] = []
        late: list[Command] = []
        for command in reversed(self.commands):
            (late if isinstance(command, Fetch) and command.buffer.int_ptr not in seen else now).append(command)
            seen |= {one.int_ptr for one in command.buffers}
        made.commands = [*reversed(now), *reversed(late)]
        return made

    def refuse(self) -> None:
        """Note something that cannot be given again, unless it belongs to a `push`."""
        self._refused = self._refused or not self._is_pushing

    def _add(self, command: Command) -> None:
        if not self._is_pushing:
            self.commands.append(command)

    def launched(
        self, kernel: cl.Kernel, types: tuple[np.dtype | None, ...], values: Sequence[Any], size: int, work_group: int
    ) -> None:
        """Note a launch."""
        stay = [*values]
        for place, _ in self.scalars:
            stay[place] = None
        self._add(RecordedLaunch(kernel, types, tuple(stay), self.scalars, (size,), (work_group,)))

    def copied(self, source: cl.Buffer, target: cl.Buffer, size_bytes: int, at: int, to: int) -> None:
        """Note a copy between buffers."""
        self._add(RecordedCopy(source, target, size_bytes, at, to))

    def cleared(self, buffer: cl.Buffer, begin: int, end: int) -> None:
        """Note zeros that were put into a buffer."""
        self._add(Clearing(buffer, begin, end))

    def uploaded(self, key: Hashable, buffer: cl.Buffer) -> None:
        """Note an upload. What is no value by itself cannot be given again."""
        if isinstance(key, int):
            self._add(Upload(key, buffer))
        else:
            self.refuse()

    def fetched(self, key: Hashable, buffer: cl.Buffer, array: np.ndarray) -> None:
        """Note a download; as `uploaded`."""
        if isinstance(key, int):
            self._add(Fetch(key, buffer, array.shape, array.dtype))
        else:
            self.refuse()

    def push(self, fold: int, operands: Sequence[cl.Buffer], push: Push) -> None:
        """Add records to a fold, whose commands are not noted: they depend on what is in the records."""
        self._add(Pushed(fold, tuple(operands)))
        self._is_pushing = True
        try:
            push(operands)
        finally:
            self._is_pushing = False


def _bound(launch: RecordedLaunch, queue: cl.CommandQueue) -> BoundLaunch:
    (size,), (work_group,) = launch.size, launch.work_group
    return BoundLaunch(BoundKernel(queue, launch.kernel, launch.types, launch.values, size, work_group), launch)
