"""Launches of a step that are one launch, phase after phase."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Hashable, Iterator, Sequence
from typing import Any

import numpy as np

from flowcompute.errors import DeviceFullError
from flowcompute.gpu.kernel_arguments import argument_types
from flowcompute.gpu.memory import Memory
from flowcompute.gpu.run.built_kernels import BuiltKernels
from flowcompute.gpu.run.chains.carries_together import CarriesTogether
from flowcompute.gpu.run.chains.chain_of_runs import ChainOfRuns, bits_of
from flowcompute.gpu.run.chains.chain_program import (
    ADDRESSES_NAME,
    ASKED,
    COLUMNS,
    COUNTERS,
    NAME,
    ChainProgram,
    addresses_text,
    addresses_types,
    chain_types,
)
from flowcompute.gpu.run.chains.group_chain import GROUP, GROUPS_PER_UNIT
from flowcompute.gpu.run.repeated_launches import RepeatedLaunch
from flowcompute.gpu.worker import Launcher
from flowcompute.ir import Argument, DeviceCapabilities
from flowcompute.schedule import RegionStep
from flowcompute.thread_pool import own_cores

LEAST = 16
"""Launches that a chain has at least. Its program is one more that is compiled, or loaded."""

SHARED = 2
"""Launches that a function of a chain has at least, on average: what repeats little is not worth a program."""

LEAST_PREPARED = 3
"""The least of a run of a plan that is known to be done often; each has a function of its own, mostly."""

_LONG = np.dtype(np.int64)

_CHUNK = 3
"""Column of a phase that a carry sets."""


class LaunchChain:
    """Launches that follow each other, as one launch. They do the same, on the same numbers.

    Args:
        launches: in their order.
        program: that has all their kernels.
        compiled: the kernel of the program.
        asking: the kernel that asks for addresses.
        workers: work-groups.

    A chain of the same steps and records takes the place of the one before, also in memory.

    Attributes:
        launches: as above.
        step: the step of what is in hand, which errors name.
        phases: one for each launch of a kernel.
        arrays: that they read and write.
    """

    def __init__(
        self,
        launches: Sequence[RepeatedLaunch],
        program: ChainProgram,
        compiled: Any,
        asking: Any,
        workers: int,
    ) -> None:
        self.launches = launches
        self.step: RegionStep = launches[0].step
        self.phases = range(sum(len(one.phases) for one in launches))
        self.arrays = [pair for one in launches for pair in one.arrays]
        self._program, self._compiled, self._asking, self._workers = program, compiled, asking, workers
        self._rows = np.zeros((len(self.phases), COLUMNS), np.int64)
        self._numbers: list[Any] = []
        self._tables: list[tuple[np.ndarray, Any]] = []
        self._passing: list[tuple[Argument, np.dtype | None]] = []
        self._places = np.zeros(0, np.int64)
        self._turn = 0
        self._carries: list[CarriesTogether] = []
        self._made: dict[int, Any] = {}

    def again(
        self,
        launcher: Launcher,
        start: int,
        on_host: Callable[[int, int], np.ndarray],
        buffer: Callable[[Argument], Any],
    ) -> None:
        """Launch all over the records from `start` on; see `RepeatedLaunch.again`.

        Of an argument that passes `buffer` gives the address, or the number. The launch before the last has ended then.
        """
        if not self._numbers:
            self.prepare(launcher)
        if self._passing:
            # They lie in memory in place, where a table is the array itself. The last launch may still read its own.
            table, self._numbers[1] = self._tables[self._turn % len(self._tables)]
            table[self._places] = [bits_of(buffer(one), dtype) for one, dtype in self._passing]
        begun = list[tuple[int, Sequence[slice]]]()
        if not all(one.is_known for one in self._carries):
            self._carries = CarriesTogether.of([pair for one in self._carries for pair in one.each])
        for one in self._carries:
            begun += one.begin(self, launcher, start, on_host)
        self.step = self.launches[0].step
        if self._made:
            launcher.memory.made_again(self._made)
        shift, group = self._shifted(launcher.memory, begun), self._program.group
        values = [*self._numbers, len(self._rows), start, shift, self._turn % (1 << 32)]
        launcher.launch(self._compiled, values, self._workers, group, (), timed=False, deferred=True)
        # The buffers that the table names are held by the launches.
        launcher.memory.defer((self, self._numbers))
        self._turn += 1
        for one in self._carries:
            one.advanced(start)

    def of_runs(self, launcher: Launcher, most: int, staying: Collection[int]) -> ChainOfRuns:
        """Return what launches up to `most` runs as one, which carry nothing on but by arrays; see `ChainOfRuns`."""
        assert not self._carries, "what is carried on is begun before each launch"
        if not self._numbers:
            self.prepare(launcher)
        holes: dict[tuple[str, int], tuple[Argument, np.dtype | None, list[int]]] = {}
        for (argument, dtype), place in zip(self._passing, self._places, strict=True):
            kind = "scalar" if dtype is not None else "array"
            holes.setdefault((kind, argument.value), (argument, dtype, []))[2].append(int(place))
        table, passing = self._tables[0][0], [*holes.values()]
        return ChainOfRuns(launcher, self._compiled, self._workers, self._rows, table, passing, staying, most)

    def _shifted(self, memory: Memory, begun: Sequence[tuple[int, Sequence[slice]]]) -> int:
        """Return what is added to `chunk` in all phases of carries, of numbers and the phases that they were given for.

        Rows of caches advance alike. Where one has made room, phases are noted anew.
        """
        shifts = {chunk - int(self._rows[places[0].start, _CHUNK]) for chunk, places in begun}
        if len(shifts) < 2:
            return shifts.pop() if shifts else 0
        # Of a launch that is still in progress the numbers must stay.
        self._rows = self._rows.copy()
        for chunk, places in begun:
            for rows in places:
                self._rows[rows, _CHUNK] = chunk
        self._numbers = [self._kept(memory, "phases", self._rows), *self._numbers[1:]]
        return 0

    def _kept(self, memory: Memory, part: str, array: np.ndarray) -> Any:
        """Return a buffer that has the numbers of an array, in place of those before."""
        key = self._key(part)
        memory.forget({key})
        return memory.state(key, array)

    def _key(self, part: str) -> Hashable:
        """Return the name of a buffer: that of chains of the same steps and as many records."""
        return NAME, self.launches[0].step.name, self.launches[0].items, part

    def prepare(self, launcher: Launcher) -> None:
        """Note what the phases are given.

        Raises:
            DeviceFullError: where the device has no room now; whoever launches the chain prepares it again.
        """
        memory, carries = launcher.memory, list[tuple[RepeatedLaunch, slice]]()
        values, types, row = list[Any](), list[np.dtype | None](), 0
        holes: dict[int, tuple[RepeatedLaunch, int]] = {}
        for one in self.launches:
            number, place = self._program.number_of(one.kernel), len(values)
            holes |= {place + at: (one, at) for at in one.passing}
            assert number is not None, "the chain was made of kernels that have a place"
            values += [*one.buffers, one.total, one.blocks]
            types += [*argument_types(one.kernel)[: len(one.buffers)], _LONG, _LONG]
            for stage in one.phases:
                self._rows[row] = number, place, one.groups, one.chunk, stage, one.carry is not None
                row += 1
            if one.carry is not None:
                carries.append((one, slice(row - len(one.phases), row)))
        # What is asked for at once fills whole turns.
        table = np.zeros(len(values) + ASKED, np.uint64)
        addresses = np.zeros(len(values) + ASKED, np.uint64)
        passing = [(place, one.kernel.arguments[at]) for place, (one, at) in holes.items()]
        self._passing = [(argument, types[place]) for place, argument in passing]
        self._places = np.array([*holes], np.int64)
        pointers = [place for place, dtype in enumerate(types) if dtype is None and place not in holes]
        counters = np.zeros(len(self.phases) * COUNTERS, np.uint32)
        known = memory.output(self._key("addresses"), addresses)
        for first in range(0, len(pointers), ASKED):
            asked = [values[place] for place in pointers[first : first + ASKED]]
            asked += [asked[0]] * (ASKED - len(asked))
            launcher.launch(self._asking, [*asked, known, first], 1, 1, (known,), timed=False)
        memory.fetch(self._key("addresses"), addresses)
        table[pointers] = addresses[: len(pointers)]
        for place, (value, dtype) in enumerate(zip(values, types, strict=True)):
            if dtype is not None and place not in holes:
                table[place] = bits_of(value, dtype)
        self._carries = CarriesTogether.of(carries)
        self._made = {value: buffer for one in self.launches for value, buffer in one.made.items()}
        tables = [table, table.copy()] if passing else [table]
        self._tables = [(one, self._kept(memory, f"values {i}", one)) for i, one in enumerate(tables)]
        phases, counts = self._kept(memory, "phases", self._rows), self._kept(memory, "counters", counters)
        self._turn, self._numbers = 0, [phases, self._tables[0][1], counts]


class ChainMaker:
    """Chains of a runner's launches, where its device gains by them.

    Args:
        capabilities: of the device.
        kernels: that are built.
    """

    def __init__(self, capabilities: DeviceCapabilities, kernels: BuiltKernels) -> None:
        self._capabilities, self._kernels = capabilities, kernels
        self._tells_addresses: bool | None = None
        self._has_programs = False

    def joined(
        self, launches: Sequence[RepeatedLaunch], launcher: Launcher, *, build: bool
    ) -> Sequence[RepeatedLaunch | LaunchChain] | None:
        """Return what does the same as launches that follow each other.

        Args:
            launches: in their order.
            launcher: of the device.
            build: whether programs of chains are built and compiled; None is given where one is missing otherwise.

        Raises:
            KernelError: if one does not compile.
        """
        if not self._capabilities.chains or len(launches) < LEAST:
            return launches
        # To find the runs renders their kernels once more, and most slices are not repeated.
        if not build and not self._has_programs:
            return None
        made: list[RepeatedLaunch | LaunchChain] = []
        for program, run in self._runs(launches):
            if len(run) >= max(LEAST, SHARED * len(program.key)):
                if not build and not self._kernels.has_text(NAME, program.key):
                    return None
                chain = self._chain(program, run, launcher)
                with contextlib.suppress(DeviceFullError):
                    chain.prepare(launcher)
                made.append(chain)
            else:
                made += run
        return made

    def joined_passing(
        self, launches: Sequence[RepeatedLaunch], launcher: Launcher
    ) -> Sequence[RepeatedLaunch | LaunchChain]:
        """Return what does the same as launches that follow each other, of a run that is done very often.

        Arrays of theirs may pass. The chain is told where these lie by their addresses in this process.

        Raises:
            KernelError: as `joined`.
        """
        if not self._capabilities.chains or not self._are_addresses_known(launcher):
            return launches
        made: list[RepeatedLaunch | LaunchChain] = []
        for program, run in self._runs(launches, passing=True):
            made += [self._chain(program, run, launcher)] if len(run) >= LEAST_PREPARED else run
        return made

    def _chain(self, program: ChainProgram, run: Sequence[RepeatedLaunch], launcher: Launcher) -> LaunchChain:
        self._has_programs = True
        units = self._capabilities.units
        # A thread that waits takes the core that another needs.
        workers = min(units, len(own_cores())) if program.group == 1 else units * GROUPS_PER_UNIT
        compiled = self._kernels.of_text(program.text, NAME, chain_types(), launcher, program.key)
        asking = self._asking(launcher)
        # Where there is no room now, whoever launches the chain is told.
        with contextlib.suppress(DeviceFullError):
            _compile(compiled, program.group, launcher)
        return LaunchChain(run, program, compiled, asking, workers)

    def _asking(self, launcher: Launcher) -> Any:
        return self._kernels.of_text(addresses_text, ADDRESSES_NAME, addresses_types(), launcher)

    def _are_addresses_known(self, launcher: Launcher) -> bool:
        """Check whether kernels know an array by the address that it has in this process."""
        if self._tells_addresses is None:
            told = np.zeros(ASKED, np.uint64)
            buffer, asking = launcher.memory.output(NAME, told), self._asking(launcher)
            try:
                launcher.launch(asking, [*[buffer] * ASKED, buffer, 0], 1, 1, (buffer,), timed=False)
            except DeviceFullError:
                # Steps go on as they were; later ones ask again.
                return False
            self._tells_addresses = bool((told == told.ctypes.data).all())
        return self._tells_addresses

    def _is_short(self, launch: RepeatedLaunch) -> bool:
        """Check whether the host is what a launch waits for: on a GPU its work-groups are no more than compute units.

        More of them take longer than the host does. Tickets deal them out unevenly, which then shows.
        """
        return self._capabilities.code_shape == "cpu" or launch.groups <= self._capabilities.units

    def _runs(
        self, launches: Sequence[RepeatedLaunch], *, passing: bool = False
    ) -> Iterator[tuple[ChainProgram, list[RepeatedLaunch]]]:
        """Cut launches into runs whose kernels have a place in one program."""
        own = self._capabilities
        group, room = (1, 0) if own.code_shape == "cpu" else (GROUP, own.local_bytes)
        program, run = ChainProgram(group, room), list[RepeatedLaunch]()
        for one in launches:
            is_taken = _is_taken(one, group, passing=passing) and self._is_short(one)
            if not is_taken or program.number_of(one.kernel) is None:
                yield program, run
                program, run = ChainProgram(group, room), []
                if not is_taken or program.number_of(one.kernel) is None:
                    yield program, [one]
                    continue
            run.append(one)
        yield program, run


def _compile(compiled: Any, group: int, launcher: Launcher) -> None:
    """Launch the kernel of a chain over no phases: PoCL compiles a kernel when it is first launched."""
    nothing = launcher.memory.output(NAME, np.zeros(1, np.uint64))
    launcher.launch(compiled, [nothing, nothing, nothing, 0, 0, 0, 0], 1, group, (), timed=False)


def _is_taken(launch: RepeatedLaunch, group: int, *, passing: bool) -> bool:
    """Check whether a launch may be a phase: as many work-items, no tickets of a scan, and no arrays that pass.

    Args:
        launch: which one.
        group: work-items of a work-group of the chain.
        passing: whether arrays may pass that are read once.
    """
    kernel = launch.kernel
    # Counters of those that have arrived, which GPUs have, are zero again behind each launch.
    if kernel.work_group != group or any(i.kind == "words" and (group == 1 or i.value >= 0) for i in kernel.arguments):
        return False
    if any(one.kind == "room" for one in kernel.arguments):
        return False
    return not launch.passing or (passing and not any(kernel.arguments[at].period for at in launch.passing))
