"""Sums of rows and decoded columns, by halves of their lanes: one half of all rows first, then the other.

Lanes do not meet before their sums are added up, so this changes no bit. A half of a sum takes one register of AVX2,
and tiles of twice as many sums fit. The lower halves of all rows lie side by side in the private arrays, then the upper
ones. So each pass reads one run of memory, which processors prefetch, and half of the columns stay in the nearest
cache meanwhile.
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

LeftHalf = Callable[[Scope, int, IndexLike, int | None], Var]
"""Numbers of a half of a row of A, from its number in a tile, the place in the half, and valid lanes."""


def put_halves(scope: Scope, array: str, begin: IndexLike, apart: int, k: IndexLike, numbers: Var) -> None:
    """Keep a vector of a row or column: its lower and its upper lanes, `apart` numbers from each other.

    Args:
        scope: where the statements go.
        array: the private array.
        begin: index of the first number of the lower half of the row or column.
        apart: numbers from there to its upper half.
        k: of the vector's first number, a multiple of its lanes.
        numbers: `LANES` of them, or `HALF`.
    """
    if numbers.lanes == HALF:
        place = begin + k // HALF % 2 * apart + k // LANES * HALF
        scope.add(PutItem(array, place, numbers, vector=True))
        return
    for upper in (False, True):
        half = scope.let(Half(numbers, upper), FLOAT32, HALF)
        scope.add(PutItem(array, begin + upper * apart + k // 2, half, vector=True))


def halves(scope: Scope, array: str, begin: IndexLike, apart: int, k: IndexLike) -> Var:
    """Return a vector that `put_halves` has kept."""
    places = (begin + upper * apart + k // 2 for upper in (0, 1))
    both = tuple(scope.let(ArrayItem(array, place, vector=True), FLOAT32, HALF) for place in places)
    return scope.let(Picked(both, tuple(range(LANES))), FLOAT32, LANES)


def add_product(scope: Scope, total: Var, a: Var, b: Var, count: int | None) -> None:
    """Add products to a sum, in its first `count` lanes if that is given."""
    made = scope.let(MultiplyAdd(a, b, total), FLOAT32)
    if count is not None:
        mask = scope.let(Below(count), BOOL, mask_bytes=FLOAT32.itemsize)
        made = scope.let(Select(mask, made, total), FLOAT32)
    scope.add(Assign(total, Splat(made)))


def halves_summed(
    one: MatmulAnchor, scope: Scope, upper: int, tile: tuple[int, int], left: LeftHalf, kept: IndexLike
) -> list[Var]:
    """Keep the lower halves of sums in the array `lower`, or return them with the upper ones, row by row.

    Args:
        one: the product.
        scope: where the statements go, of `HALF` lanes.
        upper: 1 for the upper half, 0 for the lower one, which returns nothing.
        tile: its rows and its columns, which are all of the array `decoded`.
        left: numbers of that half of the rows.
        kept: index of the tile's first sum in the array.
    """
    totals = []
    for number, own in enumerate(_half_summed(one, scope, upper, tile, left)):
        at = kept + number * HALF
        if upper:
            lower = scope.let(ArrayItem("lower", at, vector=True), FLOAT32)
            totals.append(scope.let(Combine("sum", (lower,), (own,), 0), FLOAT32))
        else:
            scope.add(PutItem("lower", at, own, vector=True))
    return totals


def _half_summed(one: MatmulAnchor, scope: Scope, upper: int, tile: tuple[int, int], left: LeftHalf) -> list[Var]:
    """Return the sums of one half of the lanes, row by row."""
    rows, columns = tile
    pitch, rest = -(-one.inner // LANES) * HALF, one.inner % LANES

    def products(inner: Scope, sums: list[list[Var]], k: IndexLike, count: int | None) -> None:
        numbers = [left(inner, row, k, count) for row in range(rows)]
        for column in range(columns):
            place = (upper * columns + column) * pitch + k
            b = inner.let(ArrayItem("decoded", place, vector=True), FLOAT32)
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
