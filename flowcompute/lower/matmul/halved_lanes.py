"""Sums of rows and decoded columns, by halves of their lanes: one half of all k first, then the other.

Lanes do not meet before their sums are added up, so this changes no bit. A half of a sum takes one register of AVX2,
and tiles of twice as many sums fit. Halves lie apart in the private arrays. So a half that is read has whole lines of
the nearest cache.
"""

from __future__ import annotations

from collections.abc import Callable

from flowcompute.ir import (
    ROLLED,
    ArrayItem,
    Assign,
    Below,
    Combine,
    For,
    Half,
    If,
    IndexLike,
    MultiplyAdd,
    Picked,
    PutItem,
    Select,
    Splat,
    Var,
)
from flowcompute.lower.emit import Scope
from flowcompute.lower.matmul.lane_sums import LANES, RUN
from flowcompute.lower.matmul.matmul_anchor import MatmulAnchor
from flowcompute.lower.matmul.panel_sums import K, sum_in_panels, zeros
from flowcompute.spec import BOOL, FLOAT32

HALF = LANES // 2
"""Lanes of a pass: a register of AVX2."""

LeftHalf = Callable[[Scope, int, int, IndexLike, int | None], Var]
"""Numbers of a row of A, from its number in a tile, the half of the lanes, the place in the half, and valid lanes."""


def put_halves(scope: Scope, array: str, begin: IndexLike, pitch: int, k: IndexLike, numbers: Var) -> None:
    """Keep a vector of a row or column: its lower and its upper lanes, `pitch // 2` numbers apart.

    Args:
        scope: where the statements go.
        array: the private array.
        begin: index of the first number of the row or column.
        pitch: numbers between two of them.
        k: of the vector's first number, a multiple of its lanes.
        numbers: `LANES` of them, or `HALF`.
    """
    if numbers.lanes == HALF:
        place = begin + k // HALF % 2 * (pitch // 2) + k // LANES * HALF
        scope.add(PutItem(array, place, numbers, vector=True))
        return
    for upper in (False, True):
        half = scope.let(Half(numbers, upper), FLOAT32, HALF)
        scope.add(PutItem(array, begin + upper * (pitch // 2) + k // 2, half, vector=True))


def halves(scope: Scope, array: str, begin: IndexLike, pitch: int, k: IndexLike) -> Var:
    """Return a vector that `put_halves` has kept."""
    places = (begin + upper * (pitch // 2) + k // 2 for upper in (0, 1))
    both = tuple(scope.let(ArrayItem(array, place, vector=True), FLOAT32, HALF) for place in places)
    return scope.let(Picked(both, tuple(range(LANES))), FLOAT32, LANES)


def add_product(scope: Scope, total: Var, a: Var, b: Var, count: int | None) -> None:
    """Add products to a sum, in its first `count` lanes if that is given."""
    made = scope.let(MultiplyAdd(a, b, total), FLOAT32)
    if count is not None:
        mask = scope.let(Below(count), BOOL, mask_bytes=FLOAT32.itemsize)
        made = scope.let(Select(mask, made, total), FLOAT32)
    scope.add(Assign(total, Splat(made)))


def halves_summed(one: MatmulAnchor, outer: Scope, rows: int, columns: int, left: LeftHalf, pitch: int) -> list[Var]:
    """Return the sums of a tile, row by row, of which the halves have been added: each has `HALF` lanes.

    Args:
        one: the product.
        outer: where the statements go.
        rows: of the tile.
        columns: of the tile, the first ones of the array `decoded`.
        left: numbers of the rows.
        pitch: numbers between two columns of the array.
    """
    found = [_half_summed(one, outer.beside(HALF), upper, (rows, columns), left, pitch) for upper in (0, 1)]
    scope = outer.beside(HALF)
    return [scope.let(Combine("sum", (low,), (high,), 0), FLOAT32) for low, high in zip(*found, strict=True)]


def _half_summed(
    one: MatmulAnchor, scope: Scope, upper: int, tile: tuple[int, int], left: LeftHalf, pitch: int
) -> list[Var]:
    """Return the sums of one half of the lanes, row by row."""
    rows, columns = tile
    begin, rest = upper * (pitch // 2), one.inner % LANES

    def products(inner: Scope, sums: list[list[Var]], k: IndexLike, count: int | None) -> None:
        numbers = [left(inner, row, upper, k, count) for row in range(rows)]
        for column in range(columns):
            b = inner.let(ArrayItem("decoded", column * pitch + begin + k, vector=True), FLOAT32)
            for a, line in zip(numbers, sums, strict=True):
                add_product(inner, line[column], a, b, count)

    def add(inner: Scope, sums: list[list[Var]], start: IndexLike, stop: IndexLike) -> None:
        step = inner.inner()
        products(step, sums, K, None)
        inner.add(For(K, start, stop, HALF, tuple(step.statements), unroll=ROLLED))

    totals = zeros(one, scope, rows, columns)
    sum_in_panels(one, scope, totals, add, (one.inner - rest) // 2, RUN * HALF)
    valid = min(rest - upper * HALF, HALF)
    if valid > 0:
        last = scope.inner()
        products(last, totals, (one.inner - rest) // 2, valid if valid < HALF else None)
        scope.add(If(True, tuple(last.statements)))
    return [total for line in totals for total in line]
