"""Launches of a slice that are repeated one after the other, and what was found out about them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby

from flowcompute.gpu.device import BOUND_AFTER
from flowcompute.gpu.run.chains.bound_launches import BoundLaunches
from flowcompute.gpu.run.chains.launch_chain import LaunchChain
from flowcompute.gpu.run.repeated_launches import RepeatedLaunch, RepeatedLaunches
from flowcompute.gpu.worker import Launcher
from flowcompute.schedule import LaunchLog, RepeatedCount


class LaunchSequence:
    """Launches that follow each other, over as many records.

    A token of a language model has some 150 of them. Whether they may be repeated is asked of all of them at once.

    Args:
        each: what is launched.

    Attributes:
        each: as above.
        launches: those that `each` has.
    """

    def __init__(self, each: Sequence[RepeatedLaunch | LaunchChain]) -> None:
        self.each: Sequence[RepeatedLaunch | LaunchChain | BoundLaunches] = each
        self.launches = [one for some in each for one in some.launches]
        self._growing = [one.carry for one in self.launches if one.carry is not None and one.carry.grows]
        self._kept: Mapping[str, RepeatedLaunch] | None = None
        self._changes = 0
        self._count: RepeatedCount | None = None
        self._repeated = 0

    def __len__(self) -> int:
        """Return how many launches they are, each chain one."""
        return len(self.each)

    def are_last(self, repeated: RepeatedLaunches) -> bool:
        """Check whether each is the last launch of its kind, and changes what is carried now, where there is room."""
        if not self.launches:
            return False
        kept = repeated.kept(self.launches[0].items)
        if kept is not self._kept or self._changes != repeated.changes:
            self._kept = kept if repeated.are_last(self.launches) else None
            self._changes = repeated.changes
        return self._kept is not None and all(one.has_room(self.launches[0].items) for one in self._growing)

    def let_go(self) -> None:
        """See `HoldsLaunches.let_go`."""
        self.each, self.launches, self._growing, self._kept = (), [], [], None

    def are_counted(self, log: LaunchLog) -> bool:
        """Tell the log of an executor that all are launched again; False where one is to be timed first."""
        if self._count is None:
            self._count = log.repeated([one.step.name for one in self.launches])
        return log.launched_again(self._count)

    def bind(self, launcher: Launcher) -> None:
        """Bind the arguments of launches that were repeated often enough, where that spares the host something.

        Raises:
            cl.Error: if the driver has no room.
        """
        self._repeated += 1
        if self._repeated == BOUND_AFTER and launcher.can_bind:
            bound = list[RepeatedLaunch | LaunchChain | BoundLaunches]()
            for chain, some in groupby(self.each, lambda one: one if isinstance(one, LaunchChain) else None):
                bound.append(chain or BoundLaunches([one for each in some for one in each.launches], launcher))
            self.each = bound
