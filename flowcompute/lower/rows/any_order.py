"""Reductions whose order is free, computed by one work-item of a CPU with vectors.

Some operations give the same bits in any order of combination, so the canonical tree need not be followed. A row or
block is then read in the order of memory, which hardware prefetchers foresee; the tree's jumps would cause stalls.
Several vectors are accumulated in an interleaved loop, since each step depends on the one before.

The first of the best numbers is the same in any order, too. For argmin and argmax each lane visits its numbers from
first to last and replaces its best only by a better one. That is one comparison where the canonical tree needs three.
"""

from __future__ import annotations

import numpy as np

from flowcompute.elements.math import add
from flowcompute.ir import (
    Apply,
    Below,
    Combine,
    Convert,
    For,
    IndexLike,
    Integer,
    Splat,
    Var,
)
from flowcompute.lower.emit import Scope
from flowcompute.lower.reduction import Parts, Reduction, assign, combined_all, selected
from flowcompute.spec import BOOL, INT32, INT64

INTERLEAVED = 4
"""Vector accumulators of an interleaved loop."""


class AnyOrder:
    """Reductions that are all free in their order, from column `base` on.

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

    def reduced(self, length: int) -> list[Parts]:
        """Reduce `length` columns, at least a whole vector."""
        width, scope = self.lanes, self.scope
        beside = min(INTERLEAVED, length // width)
        step = beside * width
        held = [self._begin(number * width) for number in range(beside)]
        turn, body, whole = scope.name("t"), scope.inner(width), length // step * step
        for number, totals in enumerate(held):
            self._step(body, totals, turn + number * width, None)
        if whole > step:
            scope.add(For(turn, step, whole, step, tuple(body.statements)))
        for totals, first in zip(held, range(whole, length, width), strict=False):
            there = length - first
            self._step(scope, totals, first, None if there >= width else there)
        held = [self._placed(totals) for totals in held]
        while len(held) > 1:
            half = len(held) // 2
            pairs = zip(held[:half], held[half : 2 * half], strict=True)
            held = [combined_all(scope, self.reductions, *pair) for pair in pairs] + held[2 * half :]
        return self._across(held[0])

    def _place_dtype(self, reduction: Reduction) -> np.dtype:
        """Return the dtype of places.

        It is as wide as the numbers, so that one mask serves both. 32 bits suffice for a row.
        """
        return INT64 if reduction.dtypes[0].itemsize == 8 else INT32

    def _values(self, scope: Scope, place: IndexLike, count: IndexLike | None) -> list[Parts]:
        """Return the operands of a step, and the place of the vector for argmin and argmax."""
        column = scope.integer(self.base + place)
        values = [reduction.operands(scope, column, count) for reduction in self.reductions]
        return [
            (*value, scope.let(Integer(place), self._place_dtype(one))) if one.finds else value
            for one, value in zip(self.reductions, values, strict=True)
        ]

    def _begin(self, place: IndexLike) -> list[Parts]:
        """Declare totals that hold the vector at a place."""
        inner = self.scope.inner(self.lanes)
        totals: list[Parts] = []
        for one, values in zip(self.reductions, self._values(inner, place, None), strict=True):
            if one.op == "vecdot":
                totals.append(one.combined(inner, one.start(inner, self.lanes), values, fused=True))
            else:
                totals.append(tuple(inner.let(Splat(value), value.dtype, None, value.mask_bytes) for value in values))
        self.scope.add(*inner.statements)
        return totals

    def _step(self, scope: Scope, totals: list[Parts], place: IndexLike, count: IndexLike | None) -> None:
        """Accumulate the vector at a place behind all that the totals have seen."""
        inner = scope.inner(self.lanes)
        for one, total, values in zip(self.reductions, totals, self._values(inner, place, count), strict=True):
            after = self._better(inner, one, total, values) if one.finds else one.combined(inner, total, values, True)
            if count is not None:
                mask = inner.let(Below(count), BOOL, None, total[0].dtype.itemsize)
                after = selected(inner, mask, after, total)
            assign(inner, total, after)
        scope.add(*inner.statements)

    def _better(self, scope: Scope, one: Reduction, total: Parts, values: Parts) -> Parts:
        return tuple(
            scope.let(Combine(one.op, total, values, part, ordered=True), old.dtype, None, old.mask_bytes)
            for part, old in enumerate(total)
        )

    def _placed(self, totals: list[Parts]) -> list[Parts]:
        """Add the lane's number to the place of each lane, which gives its column."""
        return [
            (total[0], self._sum(total[1], self.scope.let(Integer(0, 1), total[1].dtype))) if one.finds else total
            for one, total in zip(self.reductions, totals, strict=True)
        ]

    def _across(self, totals: list[Parts]) -> list[Parts]:
        """Combine all lanes, for argmin and argmax into the best value and its index."""
        scope, results = self.scope, []
        for one, total in zip(self.reductions, totals, strict=True):
            parts = one.across(scope, total)
            if one.finds:
                value, at = parts
                if at.dtype != INT64:
                    at = scope.let(Convert(at, at.dtype, INT64), INT64, 1)
                parts = value, self._sum(scope.let(Integer(one.position + self.base), INT64, 1), at)
            results.append(parts)
        return results

    def _sum(self, left: Var, right: Var) -> Var:
        return self.scope.let(Apply(add.op, (left, right), left.dtype), left.dtype, left.lanes)
