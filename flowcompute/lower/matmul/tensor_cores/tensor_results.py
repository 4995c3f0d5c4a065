"""Stores of sums that sub-groups hold as fragments: neighbouring work-items store neighbouring numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from flowcompute.imports import dataclass
from flowcompute.ir import (
    LID,
    RING_GROUP,
    Across,
    ArrayItem,
    Combine,
    ConditionLike,
    For,
    Half,
    If,
    IndexLike,
    Integer,
    Name,
    Picked,
    PutItem,
    RingGroupBarrier,
    Select,
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
from flowcompute.spec import FLOAT32, INT32

LANES = 4
PITCH = 8
"""Padding between the rows of a result tile in numbers, so that a sub-group writes to different banks."""
TOGETHER = 4
"""Vectors of a row that a work-item loads what follows a product for, before it stores the first of them."""
STRIP = 64
"""Most columns that a group of a ring stores at a time."""
_VECTOR = Name("e")
"""Number of a vector of `LANES` numbers in the tile."""


@dataclass(frozen=True)
class Results:
    """Tile of the result that is stored through local memory.

    Attributes:
        rows, columns: size of the tile.
        group: work-items in the work-group.
        store: adds to a scope the statements that store `LANES` numbers, given their row and column in the
            tile.
        exists: condition under which these numbers exist.
        subgroups: number of partial sums, one block of rows below the other, that are added.
        workers: work-items that hold sums, the first ones; None where all do.
        array: local array that the sums go through, by default that of the operands.
        apart: whether each group of four sub-groups of a ring stores its own 64 rows and waits for no other one.
        store_row: adds to a scope the statements that store vectors of a row, given the row in the tile, and column and
            vector of each; None where `store` stores each. All columns of the tile then exist where the first does.
    """

    rows: int
    columns: int
    group: int
    store: Callable[[Scope, IndexLike, IndexLike, Var], None]
    exists: Callable[[IndexLike, IndexLike], ConditionLike]
    subgroups: int = 1
    workers: int | None = None
    array: str = TILES
    apart: bool = False
    store_row: Callable[[Scope, IndexLike, Sequence[tuple[IndexLike, Var]]], None] | None = None

    @property
    def width(self) -> int:
        """Columns that are stored at a time: where groups are apart, the operands keep their local memory."""
        return min(self.columns, STRIP) if self.apart else self.columns

    def bytes(self) -> int:
        """Return the bytes of local memory."""
        return self.rows * (self.width + PITCH) * FLOAT32.itemsize

    def add(
        self,
        scope: Scope,
        sums: Sequence[Sequence[Var]],
        top: IndexLike,
        left: IndexLike,
        finish: Callable[[int, bool, Var], Var],
    ) -> None:
        """Store the sums of all sub-groups.

        Afterwards the local memory is free again, or that of a group behind its next barrier.

        Args:
            scope: where the statements go.
            sums: sums of a sub-group, for each 16 rows those of each 8 columns.
            top, left: the sub-group's first row and column in the tile.
            finish: maps two sums of a row before they are stored, given the index of their 16 rows and
                their half.
        """
        pitch = self.width + PITCH

        def hold(strip: int, held: Scope) -> None:
            place = held.narrow((top + LID % SUBGROUP // 4) * pitch + left + LID % 4 * 2)
            for i, line in enumerate(sums):
                for j, total in enumerate(line[strip // 8 : (strip + self.width) // 8]):
                    for lower in (False, True):
                        pair = finish(i, lower, held.let(Half(total, lower), FLOAT32, 2))
                        further = (i * EDGE + 8 * lower) * pitch + j * 8
                        held.add(PutItem(self.array, place + further, pair, vector=True))

        for strip in range(0, self.columns, self.width):
            self._add_strip(scope, partial(hold, strip), strip)

    def add_from_registers(self, scope: Scope, sums: Sequence[Var], top: IndexLike, left: IndexLike = 0) -> None:
        """Store the sums of all sub-groups without local memory.

        Of two neighbouring work-items one takes all sums of 8 columns that both have, the other those of the next
        8. Each so has `LANES` neighbours, and the four of a row store 16 columns: whole sectors of memory, also in
        half formats.

        Args:
            scope: where the statements go; a whole sub-group takes them together.
            sums: sums of a sub-group's 16 rows for each 8 columns, of which there are an even number.
            top, left: the sub-group's first row and column in the tile.
        """
        odd = scope.let(Integer(LID % 2), INT32, 1)
        row = scope.narrow(top + LID % SUBGROUP // 4)
        column = scope.narrow(left + LID % 2 * 8 + LID % 4 // 2 * LANES)
        pairs = [*zip(sums[::2], sums[1::2], strict=True)]
        together = 1 if self.store_row is None else TOGETHER
        for begin in range(0, len(pairs), together):
            for lower in (False, True):
                vectors = [self._exchanged(scope, odd, *pair, lower) for pair in pairs[begin : begin + together]]
                inside, place = scope.inner(LANES), row + 8 * lower
                joined = [inside.let(Picked(pair, (0, 1, 2, 3)), pair[0].dtype, LANES) for pair in vectors]
                if self.store_row is None:
                    self.store(inside, place, column + 16 * begin, joined[0])
                else:
                    self.store_row(inside, place, [(column + 16 * at, made) for at, made in enumerate(joined, begin)])
                scope.add(If(self.exists(place, column + 16 * begin), tuple(inside.statements)))

    def _exchanged(self, scope: Scope, odd: Var, even: Var, next_sums: Var, lower: bool) -> tuple[Var, Var]:
        """Return both halves of the `LANES` neighbours that a work-item has after an exchange with the next one."""
        dtype = even.dtype
        own, next_own = (scope.let(Half(one, lower), dtype, 2) for one in (even, next_sums))
        given = scope.let(Select(odd, own, next_own), dtype, 2)
        taken = scope.let(Across(given, 1), dtype, 2)
        return scope.let(Select(odd, taken, own), dtype, 2), scope.let(Select(odd, next_own, taken), dtype, 2)

    def add_held(self, scope: Scope, hold: Callable[[Scope], None]) -> None:
        """Store what `hold` adds to a scope to put into the tile; afterwards the local memory is free again."""
        self._add_strip(scope, hold, 0)

    def _add_strip(self, scope: Scope, hold: Callable[[Scope], None], strip: int) -> None:
        """Store the columns of the tile from `strip` on, which `hold` puts into local memory."""
        columns, pitch = min(self.width, self.columns - strip), self.width + PITCH
        barrier = RingGroupBarrier() if self.apart else WorkGroupBarrier()
        scope.add(barrier)
        held = scope if self.workers is None else scope.inner()
        hold(held)
        if self.workers is not None:
            scope.add(If(LID < self.workers, tuple(held.statements)))
        scope.add(barrier)
        body = scope.inner(LANES)
        across = columns // LANES
        row = body.narrow(to_int(_VECTOR) // across)
        column = body.narrow(to_int(_VECTOR) % across * LANES)
        inside = body.inner(LANES)
        below = self.rows // self.subgroups
        made, *more = (
            inside.let(ArrayItem(self.array, (row + subgroup * below) * pitch + column, vector=True), FLOAT32, LANES)
            for subgroup in range(self.subgroups)
        )
        for other in more:
            made = inside.let(Combine("sum", (made,), (other,), 0), FLOAT32, LANES)
        self.store(inside, row, column + strip, made)
        body.add(If(self.exists(row, column + strip), tuple(inside.statements)))
        statements = tuple(body.statements)
        if self.apart:
            rows = 64 * across
            begin = RING_GROUP * rows + LID % 128
            scope.add(For(_VECTOR, begin, (RING_GROUP + 1) * rows, 128, statements, unroll=4))
        else:
            scope.add(For(_VECTOR, LID, below * across, self.group, statements, unroll=4), barrier)


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
    is_whole = one.columns % size[1] == 0

    def exists(row: IndexLike, column: IndexLike) -> ConditionLike:
        return all_of(place.row + row < place.until, is_whole or place.column + column < one.columns)

    def store(scope: Scope, row: IndexLike, column: IndexLike, made: Var) -> None:
        column = scope.integer(place.column + column)
        count = None if one.columns % LANES == 0 else scope.integer(index_min(LANES, one.columns - column))
        one.store(scope, one.row(scope, scope.integer(place.row + row)), column, count, made)

    def store_row(scope: Scope, row: IndexLike, vectors: Sequence[tuple[IndexLike, Var]]) -> None:
        own = one.row(scope, scope.integer(place.row + row))
        one.store_together(scope, own, [(scope.integer(place.column + column), made) for column, made in vectors])

    return Results(*size, group, store, exists, workers=workers, store_row=store_row if is_whole else None)
