"""Launches of a run in the host's own memory that is done again and again, with all arguments but those that pass."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from flowcompute.engine import BatchSlice
from flowcompute.gpu.memory import Memory
from flowcompute.gpu.run.chains import ChainOfRuns, LaunchChain
from flowcompute.gpu.run.repeated_launches import RepeatedLaunch
from flowcompute.gpu.worker import Launcher
from flowcompute.ir import Argument
from flowcompute.schedule import RegionStep


class PassingArguments:
    """Arguments of launches that are others in each run. Each is made once a run, when a launch first asks for it.

    Attributes:
        makers: what makes each.
        made: those of the run in hand; None for one that nobody has asked for.
    """

    def __init__(self) -> None:
        self._slots: dict[tuple[str, int, int], int] = {}
        self.makers: list[Callable[[BatchSlice], Any]] = []
        self.made: list[Any] = []

    def slot(self, argument: Argument, maker: Callable[[BatchSlice], Any]) -> int:
        """Return the place of an argument, which equal ones share."""
        place = self._slots.setdefault((argument.kind, argument.value, argument.period), len(self.makers))
        if place == len(self.makers):
            self.makers.append(maker)
        return place

    def begin(self) -> None:
        """Forget all that was made."""
        self.made = [None] * len(self.makers)


class PreparedLaunch:
    """A launch from record 0 on. Calling it with the slice in hand launches, and leaves the waiting to others.

    Args:
        known: the launch that it repeats, which carries nothing on, with all buffers that stay.
        launcher: of the device.
        slots: for each argument that passes the place among `passing`.
        passing: those of all launches.
        told: lets errors name a step.

    Attributes:
        known: as above.
    """

    __slots__ = ("_compiled", "_groups", "_holes", "_launcher", "_passing", "_phases", "_step", "_told", "_values",
                 "_work_group", "known")  # fmt: skip

    def __init__(
        self,
        known: RepeatedLaunch,
        launcher: Launcher,
        slots: Sequence[int],
        passing: PassingArguments,
        told: Callable[[RegionStep], AbstractContextManager[None]],
    ) -> None:
        self.known = known
        self._launcher, self._compiled, self._step = launcher, known.compiled, known.step
        self._values = [*known.buffers, known.total, known.chunk, known.blocks, 0, 0]
        self._holes, self._passing, self._told = [*zip(known.passing, slots, strict=True)], passing, told
        self._groups, self._work_group, self._phases = known.groups, known.kernel.work_group, known.phases

    def __call__(self, batch_slice: BatchSlice) -> None:
        """Launch over a slice that begins at record 0."""
        try:
            values, passing = [*self._values], self._passing
            for place, slot in self._holes:
                value = passing.made[slot]
                if value is None:
                    value = passing.made[slot] = passing.makers[slot](batch_slice)
                values[place] = value
            for stage in self._phases:
                values[-1] = stage
                self._launcher.launch(
                    self._compiled, values, self._groups, self._work_group, (), timed=False, deferred=True
                )
        except Exception:
            with self._told(self._step):
                raise


class PreparedChain:
    """Launches as one, which finds arrays that pass by their addresses. Calling it does as `PreparedLaunch`.

    Args:
        chain: of launches that carry nothing on.
        launcher: of the device.
        scalar: gives numbers that pass.
        told: lets errors name a step.
    """

    def __init__(
        self,
        chain: LaunchChain,
        launcher: Launcher,
        scalar: Callable[[int], Any],
        told: Callable[[RegionStep], AbstractContextManager[None]],
    ) -> None:
        self._chain, self._launcher, self._scalar, self._told = chain, launcher, scalar, told

    def __call__(self, batch_slice: BatchSlice) -> None:
        """Launch over a slice that begins at record 0."""

        def on_host(anchor: int, place: int) -> np.ndarray:
            raise AssertionError(f"asked for operand {place} of scan {anchor}, where nothing is carried on")

        found = _Found(batch_slice, self._launcher.memory, self._scalar)
        try:
            self._chain.again(self._launcher, 0, on_host, found)
        except Exception:
            with self._told(self._chain.step):
                raise
        # No buffer does.
        self._launcher.memory.defer(found.held)

    def together(self, most: int, staying: Collection[int]) -> PreparedRuns:
        """Return what launches up to `most` runs as one; see `RegionRunner.together`."""
        try:
            runs = self._chain.of_runs(self._launcher, most, staying)
        except Exception:
            with self._told(self._chain.step):
                raise
        return PreparedRuns(self._chain, runs, self._launcher, self._scalar, self._told)


class PreparedRuns:
    """Several runs of a prepared chain, which are noted one after the other and launched as one.

    Args:
        chain: that is done again.
        runs: of it.
        launcher, scalar, told: as of `PreparedChain`.
    """

    def __init__(
        self,
        chain: LaunchChain,
        runs: ChainOfRuns,
        launcher: Launcher,
        scalar: Callable[[int], Any],
        told: Callable[[RegionStep], AbstractContextManager[None]],
    ) -> None:
        self._chain, self._runs, self._launcher, self._scalar, self._told = chain, runs, launcher, scalar, told
        self._held = list[np.ndarray]()

    def note(self, run: int, batch_slice: BatchSlice, *, again: bool) -> None:
        """Note the arguments of a run over a slice that begins at record 0; its arrays are held until the launch ends.

        Args:
            run: its place among those that are launched together.
            batch_slice: the slice.
            again: whether values that stay have the arrays that they had when this run was noted last.
        """
        found = _Found(batch_slice, self._launcher.memory, self._scalar)
        try:
            self._runs.note(run, found, again=again)
        except Exception:
            with self._told(self._chain.step):
                raise
        self._held += found.held

    def launch(self, runs: int) -> None:
        """Launch the first runs, and leave the waiting to others."""
        held, self._held = self._held, []
        try:
            self._runs.launch(runs)
        except Exception:
            with self._told(self._chain.step):
                raise
        self._launcher.memory.defer((self._chain, self._runs, held))


class _Found:
    """Addresses of arrays that pass and numbers that pass, of one run.

    Args:
        batch_slice: that has the arrays.
        memory: of the device.
        scalar: gives numbers.

    Attributes:
        held: the arrays whose addresses were given.
    """

    def __init__(self, batch_slice: BatchSlice, memory: Memory, scalar: Callable[[int], Any]) -> None:
        self._values, self._resident = batch_slice.values, batch_slice.resident
        self._memory, self._scalar = memory, scalar
        self.held = list[np.ndarray]()
        self._known: dict[int, int] = {}

    def __call__(self, argument: Argument) -> Any:
        value = argument.value
        if argument.kind == "scalar":
            return self._scalar(value)
        if value not in self._known:
            # As `BatchSlice.array`, which is a call more for each argument of a step.
            array = self._values[value] if value in self._values else self._resident[value]
            flags = array.flags
            if not (flags.c_contiguous and flags.aligned):
                # Kernels may still be computing it.
                self._memory.wait()
                array = np.array(array, order="C")
            self.held.append(array)
            self._known[value] = array.__array_interface__["data"][0]
        return self._known[value]
