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


class PreparedLaunch:
    """A launch from record 0 on. Calling it with the slice in hand launches, and leaves the waiting to others.

    Args:
        known: the launch that it repeats, which carries nothing on.
        launcher: of the device.
        buffers: arguments before the numbers.
        holes: places among these whose arguments pass.
        argument: gives a value for such an argument.
        told: lets errors name a step.
    """

    __slots__ = ("_argument", "_compiled", "_groups", "_holes", "_launcher", "_phases", "_step", "_told", "_values",
                 "_work_group")  # fmt: skip

    def __init__(
        self,
        known: RepeatedLaunch,
        launcher: Launcher,
        buffers: Sequence[Any],
        holes: Sequence[tuple[int, Argument]],
        argument: Callable[[BatchSlice, Argument], Any],
        told: Callable[[RegionStep], AbstractContextManager[None]],
    ) -> None:
        self._launcher, self._compiled, self._step = launcher, known.compiled, known.step
        self._values = [*buffers, known.total, known.chunk, known.blocks, 0, 0]
        self._holes, self._argument, self._told = holes, argument, told
        self._groups, self._work_group, self._phases = known.groups, known.kernel.work_group, known.phases

    def __call__(self, batch_slice: BatchSlice) -> None:
        """Launch over a slice that begins at record 0."""
        try:
            values = [*self._values]
            for place, argument in self._holes:
                values[place] = self._argument(batch_slice, argument)
            for stage in self._phases:
                values[-1] = stage
                self._launcher.launch(
                    self._compiled, values, self._groups, self._work_group, (), timed=False, deferred=True
                )
        except Exception:
            with self._told(self._step):
                raise
