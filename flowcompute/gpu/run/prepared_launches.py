"""Launches of a run in the host's own memory that is done again and again, with all arguments but those that pass."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

from flowcompute.engine import BatchSlice
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
        known: the launch that it repeats, which carries nothing on.
        launcher: of the device.
        buffers: arguments before the numbers.
        holes: places among these whose arguments pass, each with the place among `passing`.
        passing: those of all launches.
        told: lets errors name a step.
    """

    __slots__ = ("_compiled", "_groups", "_holes", "_launcher", "_passing", "_phases", "_step", "_told", "_values",
                 "_work_group")  # fmt: skip

    def __init__(
        self,
        known: RepeatedLaunch,
        launcher: Launcher,
        buffers: Sequence[Any],
        holes: Sequence[tuple[int, int]],
        passing: PassingArguments,
        told: Callable[[RegionStep], AbstractContextManager[None]],
    ) -> None:
        self._launcher, self._compiled, self._step = launcher, known.compiled, known.step
        self._values = [*buffers, known.total, known.chunk, known.blocks, 0, 0]
        self._holes, self._passing, self._told = holes, passing, told
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
