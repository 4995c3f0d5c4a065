"""A run of a pass as commands that are called one after the other."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

import numpy as np

from flowcompute.engine.batch_slice import Arrays, BatchSlice
from flowcompute.engine.region_runner import KnownLaunch
from flowcompute.graph import Node
from flowcompute.imports import dataclass

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
        ended: the folds of `late`, where the host reads nothing else that this run or the one before makes. Then the
            next run may begin before this one has ended. None elsewhere.
    """

    known: Collection[KnownLaunch]
    launches: Collection[Command]
    before: Sequence[Command]
    along: Sequence[Command]
    after: Sequence[Command]
    late: Sequence[Command]
    made: Arrays
    ended: Sequence[Node] | None

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
