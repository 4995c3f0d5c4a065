"""What becomes of the sums that teams hold as fragments: stored by neighbouring work-items as neighbours."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from flowcompute.ir import ArrayItem, Combine, For, Half, If, PutItem, Var, WorkGroupBarrier
from flowcompute.lower.emit import Scope
from flowcompute.lower.matmul.tensor_tile import EDGE, SUBGROUP, TILES
from flowcompute.spec import FLOAT32

LANES = 4
PITCH = 8
"""Sums between the lines of a tile of the result, so that work-items of a team write to different banks."""


@dataclass(frozen=True)
class Results:
    """A tile of the result on its way through local memory, where operands were before.

    Attributes:
        rows, columns: of the tile.
        group: work-items in the work-group.
        store: adds to a scope what stores `LANES` numbers, from a row and a column of the tile on.
        exists: the condition under which these exist.
        subgroups: so many lines of teams, one below the other, are added up.
    """

    rows: int
    columns: int
    group: int
    store: Callable[[Scope, str, str, Var], None]
    exists: Callable[[str, str], str]
    subgroups: int = 1

    def bytes(self) -> int:
        """Of local memory."""
        return self.rows * (self.columns + PITCH) * FLOAT32.itemsize

    def add(
        self, scope: Scope, sums: Sequence[Sequence[Var]], top: str, left: str, finish: Callable[[int, bool, Var], Var]
    ) -> None:
        """Store the sums of all teams; local memory is free again behind it.

        Args:
            scope: where to.
            sums: of a team, for each 16 rows those of each 8 columns.
            top, left: the team's first row and column in the tile.
            finish: what becomes of two sums of a row, in the upper or lower half of so many 16 rows, before that.
        """
        pitch = self.columns + PITCH
        scope.add(WorkGroupBarrier())
        place = scope.narrow(f"({top} + lid % {SUBGROUP} / 4) * {pitch} + {left} + lid % 4 * 2")
        for i, line in enumerate(sums):
            for j, total in enumerate(line):
                for lower in (False, True):
                    pair = finish(i, lower, scope.let(Half(total, lower), FLOAT32, 2))
                    further = (i * EDGE + 8 * lower) * pitch + j * 8
                    scope.add(PutItem(TILES, f"{place} + {further}", pair, vector=True))
        scope.add(WorkGroupBarrier())
        body = scope.inner(LANES)
        across = self.columns // LANES
        row = body.narrow(f"(int)e / {across}")
        column = body.narrow(f"(int)e % {across} * {LANES}")
        inside = body.inner(LANES)
        below = self.rows // self.subgroups
        made, *more = (
            inside.let(
                ArrayItem(TILES, f"({row} + {subgroup * below}) * {pitch} + {column}", vector=True), FLOAT32, LANES
            )
            for subgroup in range(self.subgroups)
        )
        for other in more:
            made = inside.let(Combine("sum", (made,), (other,), 0), FLOAT32, LANES)
        self.store(inside, row, column, made)
        body.add(If(self.exists(row, column), tuple(inside.statements)))
        many = str(below * across)
        scope.add(For("e", "lid", many, str(self.group), tuple(body.statements), unroll=4), WorkGroupBarrier())
