"""Argmin and argmax of a row or block, computed by one work-item of a CPU with vectors.

The first of the best numbers is the same in any order of combination, so the canonical tree need not be
followed. Each lane visits its numbers from first to last and replaces its best only by a better one. That
is one comparison where the canonical tree needs three. Several vectors are accumulated in an interleaved
loop, since each step depends on the one before.
"""

from __future__ import annotations

import numpy as np

from flowcompute.elements.math import add
from flowcompute.ir import (
    Apply,
    Below,
    Combine,
    ConstantValue,
    Convert,
    For,
    IndexLike,
    Integer,
    Select,
    Splat,
    Var,
    index_min,
)
from flowcompute.lower.emit import Scope
from flowcompute.lower.reduction import Parts, Reduction, assign, combined_all, selected
from flowcompute.spec import BOOL, INT32, INT64

INTERLEAVED = 4
"""Vector accumulators of an interleaved loop."""
NOWHERE = 1 << 30
"""Place of a lane without a number; places of numbers are lower and win among equal values."""


class FirstBest:
    """Reductions that are all argmin or argmax, from column `base` on; results are (value, index).

    Args:
        scope: where they are emitted.
        reductions: at least one.
        lanes: numbers in a vector.
        base: the first column, a name or number.
    """

    def __init__(self, scope: Scope, reductions: list[Reduction], lanes: int, base: IndexLike) -> None:
        self.scope = scope
        self.reductions = reductions
        self.lanes = lanes
        self.base = base

    def known(self, length: int) -> list[Parts]:
        """Reduce `length` columns, at least a whole vector."""
        width, scope = self.lanes, self.scope
        vectors = length // width
        beside = min(INTERLEAVED, vectors)
        held = [self._begin(number * width, None) for number in range(beside)]
        turn, step = scope.name("t"), beside * width
        body = scope.inner(width)
        for number, totals in enumerate(held):
            self._step(body, totals, turn + number * width, None)
        whole = vectors // beside * step
        if whole > step:
            scope.add(For(turn, step, whole, step, tuple(body.statements)))
        for number in range(vectors % beside):
            self._step(scope, held[number], whole + number * width, None)
        if length % width:
            self._step(scope, held[0], vectors * width, length % width)
        placed = [self._placed(totals) for totals in held]
        while len(placed) > 1:
            half = len(placed) // 2
            pairs = zip(placed[:half], placed[half : 2 * half], strict=True)
            placed = [combined_all(scope, self.reductions, *pair) for pair in pairs] + placed[2 * half :]
        return self._across(placed[0])

    def dynamic(self, length: IndexLike) -> list[Parts]:
        """Reduce a number of columns that is known at run time, at least one."""
        width, scope = self.lanes, self.scope
        totals = self._begin(0, index_min(width, length))
        turn = scope.name("t")
        body = scope.inner(width)
        self._step(body, totals, turn, index_min(width, length - turn))
        scope.add(For(turn, width, length, width, tuple(body.statements)))
        return self._across(self._placed(totals))

    def _place_dtype(self, reduction: Reduction) -> np.dtype:
        """Return the dtype of places.

        It is as wide as the numbers, so that one mask serves both. 32 bits suffice for a row.
        """
        return INT64 if reduction.dtypes[0].itemsize == 8 else INT32

    def _values(self, scope: Scope, place: IndexLike, count: IndexLike | None) -> list[Var]:
        column = scope.integer(self.base + place)
        return [reduction.operands(scope, column, count)[0] for reduction in self.reductions]

    def _begin(self, place: IndexLike, count: IndexLike | None) -> list[Parts]:
        """Declare totals that hold the first vector; the place of each lane is the vector's first column."""
        inner = self.scope.inner(self.lanes)
        totals: list[Parts] = []
        for reduction, value in zip(self.reductions, self._values(inner, place, count), strict=True):
            dtype, places = value.dtype, self._place_dtype(reduction)
            number, at = inner.let(Splat(value), dtype, None, dtype.itemsize), inner.let(Integer(place), places)
            if count is not None:
                mask = inner.let(Below(count), BOOL, None, dtype.itemsize)
                nothing = inner.let(ConstantValue(reduction.identity(0)), dtype, None, dtype.itemsize)
                number = inner.let(Select(mask, number, nothing), dtype, None, dtype.itemsize)
                at = inner.let(Select(mask, at, inner.let(ConstantValue(NOWHERE), places)), places)
            totals.append((number, at))
        self.scope.add(*inner.statements)
        return totals

    def _step(self, scope: Scope, totals: list[Parts], place: IndexLike, count: IndexLike | None) -> None:
        """Accumulate the vector at a place behind all that the totals have seen."""
        inner = scope.inner(self.lanes)
        for reduction, total, value in zip(self.reductions, totals, self._values(inner, place, count), strict=True):
            at = inner.let(Integer(place), total[1].dtype)
            after = tuple(
                inner.let(
                    Combine(reduction.op, total, (value, at), part, ordered=True), old.dtype, None, old.mask_bytes
                )
                for part, old in enumerate(total)
            )
            if count is not None:
                mask = inner.let(Below(count), BOOL, None, total[0].dtype.itemsize)
                after = selected(inner, mask, after, total)
            assign(inner, total, after)
        scope.add(*inner.statements)

    def _placed(self, totals: list[Parts]) -> list[Parts]:
        """Add the lane's number to the place of each lane, which gives its column."""
        placed: list[Parts] = []
        for value, at in totals:
            lane = self.scope.let(Integer(0, 1), at.dtype)
            placed.append((value, self.scope.let(Apply(add.op, (at, lane), at.dtype), at.dtype)))
        return placed

    def _across(self, totals: list[Parts]) -> list[Parts]:
        """Combine all lanes into the best value and its index."""
        scope = self.scope
        results: list[Parts] = []
        for reduction, total in zip(self.reductions, totals, strict=True):
            value, at = reduction.across(scope, total)
            if at.dtype != INT64:
                at = scope.let(Convert(at, at.dtype, INT64), INT64, 1)
            first = scope.let(Integer(reduction.position + self.base), INT64, 1)
            results.append((value, scope.let(Apply(add.op, (first, at), INT64), INT64, 1)))
        return results
