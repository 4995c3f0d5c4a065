"""Stores of sums that sub-groups hold as fragments: neighbouring work-items store neighbouring numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from flowcompute.ir import (
    LID,
    ArrayItem,
    Combine,
    ConditionLike,
    For,
    Half,
    If,
    IndexLike,
    Name,
    PutItem,
    Var,
    WorkGroupBarrier,
    to_int,
)
from flowcompute.lower.emit import Scope
from flowcompute.lower.matmul.tensor_cores.tensor_tile import EDGE, SUBGROUP, TILES
from flowcompute.spec import FLOAT32

LANES = 4
PITCH = 8
"""Padding between the rows of a result tile in numbers, so that a sub-group writes to different banks."""
_VECTOR = Name("e")
"""Number of a vector of `LANES` numbers in the tile."""


@dataclass(frozen=True)
class Results:
    """Tile of the result that is stored through the local memory of the operands.

    Attributes:
        rows, columns: size of the tile.
        group: work-items in the work-group.
        store: adds to a scope the statements that store `LANES` numbers, given their row and column in the
            tile.
        exists: condition under which these numbers exist.
        subgroups: number of partial sums, one block of rows below the other, that are added.
        workers: work-items that hold sums, the first ones; None where all do.
    """

    rows: int
    columns: int
    group: int
    store: Callable[[Scope, IndexLike, IndexLike, Var], None]
    exists: Callable[[IndexLike, IndexLike], ConditionLike]
    subgroups: int = 1
    workers: int | None = None

    def bytes(self) -> int:
        """Return the bytes of local memory."""
        return self.rows * (self.columns + PITCH) * FLOAT32.itemsize

    def add(
        self,
        scope: Scope,
        sums: Sequence[Sequence[Var]],
        top: IndexLike,
        left: IndexLike,
        finish: Callable[[int, bool, Var], Var],
    ) -> None:
        """Store the sums of all sub-groups; afterwards the local memory is free again.

        Args:
            scope: where the statements go.
            sums: sums of a sub-group, for each 16 rows those of each 8 columns.
            top, left: the sub-group's first row and column in the tile.
            finish: maps two sums of a row before they are stored, given the index of their 16 rows and
                their half.
        """
        pitch = self.columns + PITCH
        scope.add(WorkGroupBarrier())
        held = scope if self.workers is None else scope.inner()
        place = held.narrow((top + LID % SUBGROUP // 4) * pitch + left + LID % 4 * 2)
        for i, line in enumerate(sums):
            for j, total in enumerate(line):
                for lower in (False, True):
                    pair = finish(i, lower, held.let(Half(total, lower), FLOAT32, 2))
                    further = (i * EDGE + 8 * lower) * pitch + j * 8
                    held.add(PutItem(TILES, place + further, pair, vector=True))
        if self.workers is not None:
            scope.add(If(LID < self.workers, tuple(held.statements)))
        scope.add(WorkGroupBarrier())
        body = scope.inner(LANES)
        across = self.columns // LANES
        row = body.narrow(to_int(_VECTOR) // across)
        column = body.narrow(to_int(_VECTOR) % across * LANES)
        inside = body.inner(LANES)
        below = self.rows // self.subgroups
        made, *more = (
            inside.let(ArrayItem(TILES, (row + subgroup * below) * pitch + column, vector=True), FLOAT32, LANES)
            for subgroup in range(self.subgroups)
        )
        for other in more:
            made = inside.let(Combine("sum", (made,), (other,), 0), FLOAT32, LANES)
        self.store(inside, row, column, made)
        body.add(If(self.exists(row, column), tuple(inside.statements)))
        many = below * across
        scope.add(For(_VECTOR, LID, many, self.group, tuple(body.statements), unroll=4), WorkGroupBarrier())
