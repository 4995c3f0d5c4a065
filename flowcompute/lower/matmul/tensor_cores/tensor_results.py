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
    all_of,
    index_min,
    to_int,
)
from flowcompute.lower.emit import Scope
from flowcompute.lower.matmul.matmul_anchor import MatmulAnchor
from flowcompute.lower.matmul.tensor_cores.tensor_tile import EDGE, SUBGROUP, TILES
from flowcompute.lower.matmul.tiled_matmul import TilePosition
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

        def hold(held: Scope) -> None:
            place = held.narrow((top + LID % SUBGROUP // 4) * pitch + left + LID % 4 * 2)
            for i, line in enumerate(sums):
                for j, total in enumerate(line):
                    for lower in (False, True):
                        pair = finish(i, lower, held.let(Half(total, lower), FLOAT32, 2))
                        further = (i * EDGE + 8 * lower) * pitch + j * 8
                        held.add(PutItem(TILES, place + further, pair, vector=True))

        self.add_held(scope, hold)

    def add_held(self, scope: Scope, hold: Callable[[Scope], None]) -> None:
        """Store what `hold` adds to a scope to put into the tile; afterwards the local memory is free again."""
        pitch = self.columns + PITCH
        scope.add(WorkGroupBarrier())
        held = scope if self.workers is None else scope.inner()
        hold(held)
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


def results_of(
    one: MatmulAnchor, place: TilePosition, size: tuple[int, int], group: int, workers: int | None = None
) -> Results:
    """Return the tile of a product's result that lies at a place.

    Args:
        one: the product.
        place: position of the tile.
        size: rows and columns of the tile.
        group: work-items in the work-group.
        workers: work-items that hold sums, the first ones; None where all do.
    """

    def exists(row: IndexLike, column: IndexLike) -> ConditionLike:
        return all_of(place.row + row < place.until, place.column + column < one.columns)

    def store(scope: Scope, row: IndexLike, column: IndexLike, made: Var) -> None:
        column = scope.integer(place.column + column)
        count = None if one.columns % LANES == 0 else scope.integer(index_min(LANES, one.columns - column))
        one.store(scope, one.row(scope, scope.integer(place.row + row)), column, count, made)

    return Results(*size, group, store, exists, workers=workers)
