"""Weights of attention on GPUs, through local memory: the online softmax (Milakov and Gimelshein, 2018)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from flowcompute.elements.math import multiply
from flowcompute.ir import Across, ArrayItem, Assign, ConstantValue, Half, Picked, PutItem, Splat, Var, WorkGroupBarrier
from flowcompute.lower.attention.attention_anchor import LANES, AttentionAnchor
from flowcompute.lower.attention.attention_tiling import Shape
from flowcompute.lower.attention.tensor_softmax import LARGER
from flowcompute.lower.emit import Scope

WEIGHTS = "weights"
"""The local array of a tile's weights: those of a key for all queries, key by key."""
EXCHANGE = "exchange"
"""The local array of what work-items of a row tell each other."""


def read(scope: Scope, dtype: np.dtype, array: str, index: str, lanes: int) -> Var:
    """Neighbours in a local array."""
    return scope.let(ArrayItem(array, index, vector=lanes > 1), dtype, lanes)


def picked(scope: Scope, var: Var, lane: int, lanes: int) -> Var:
    """One lane of a value in so many."""
    return scope.let(Picked((var,), (lane,)) if var.lanes > 1 else Splat(var), var.dtype, lanes)


class TiledWeights:
    """A work-item's part of the weights: of each of its queries the largest score so far, and the sums of its classes.

    The largest of two scores is the one that is a number: NaN comes through all the same, for
    weights of its query become NaN.
    """

    def __init__(self, scope: Scope, one: AttentionAnchor, shape: Shape, x: str, y: str, *, shuffles: bool) -> None:
        """Declare them.

        Args:
            scope: where to.
            one: the attention.
            shape: of the work-group.
            x, y: the work-item's place in its row, and its row.
            shuffles: whether the work-items of a row can read each other's registers.
        """
        self.one, self.shape, self.x, self.shuffles = one, shape, x, shuffles
        self.row = scope.narrow(f"{y} * {shape.queries}")
        rows = range(shape.queries)
        self.highest = [scope.let(one.lowest, one.dtype, 1) for _ in rows]
        self.sums = [scope.let(ConstantValue(0.0), one.dtype, shape.classes) for _ in rows]

    def next(self, scope: Scope, scores: list[Var]) -> list[Var]:
        """Put the weights of a tile of keys into local memory.

        Args:
            scope: where to.
            scores: of each query, of every `across`-th key in order.

        Returns:
            What was summed so far for each query is to be multiplied by it.
        """
        one, classes = self.one, self.shape.classes
        weights, shrinks = [], []
        queries = zip(scores, self._largest(scope, scores), self.highest, self.sums, strict=True)
        for score, largest, before, total in queries:
            highest = one.apply(scope, LARGER, largest, before)
            shrink = one.weight(scope, before, highest)
            weight = one.weight(scope, score, scope.let(Splat(highest), one.dtype))
            summed = one.apply(scope, multiply.op, total, scope.let(Splat(shrink), one.dtype, classes))
            for lane in range(0, self.shape.keys, classes):
                some = scope.let(Picked((weight,), tuple(range(lane, lane + classes))), one.dtype, classes)
                summed = one.added(scope, summed, some)
            scope.add(Assign(total, Splat(summed)), Assign(before, Splat(highest)))
            weights.append(weight)
            shrinks.append(shrink)
        self._put(scope, weights)
        return shrinks

    def share(self, scope: Scope) -> None:
        """Show the sums of classes to the work-items of the row."""
        for i, total in enumerate(self.sums):
            for lane in range(self.shape.classes):
                place = f"({self.row} + {i}) * {LANES} + {self.x} + {lane * self.shape.across}"
                scope.add(PutItem(EXCHANGE, place, picked(scope, total, lane, 1)))
        scope.add(WorkGroupBarrier())

    def whole(self, scope: Scope, i: int) -> Var:
        """The sum of all weights of query `i`, once its classes have been shown."""
        return self.one.tree(scope, "sum", self._across(scope, i, LANES, partial(self.one.added, scope)))

    def _put(self, scope: Scope, weights: list[Var]) -> None:
        shape = self.shape
        together = min(4, shape.queries)
        for lane in range(shape.keys):
            place = f"({self.x} + {lane * shape.across}) * {shape.weight_pitch} + {self.row}"
            lanes = tuple(lane + at * shape.keys for at in range(together))
            for i in range(0, shape.queries, together):
                some = scope.let(Picked(tuple(weights[i : i + together]), lanes), self.one.dtype, together)
                scope.add(PutItem(WEIGHTS, f"{place} + {i}", some, vector=together > 1))

    def _largest(self, scope: Scope, scores: list[Var]) -> list[Var]:
        """The largest score of each query in this tile, for all work-items of a row."""
        one, across = self.one, self.shape.across
        larger = partial(one.apply, scope, LARGER)
        own = [self._halved(scope, score) for score in scores]
        if self.shuffles:
            # Of two neighbours each is in a row of its own.
            for bit in range(1, across.bit_length()):
                other = [scope.let(Across(score, 1 << bit), one.dtype, 1) for score in own]
                own = [larger(*pair) for pair in zip(own, other, strict=True)]
            return own
        for i, score in enumerate(own):
            scope.add(PutItem(EXCHANGE, f"({self.row} + {i}) * {across} + {self.x}", score))
        scope.add(WorkGroupBarrier())
        return [self._halved(scope, self._across(scope, i, across, larger)) for i in range(len(own))]

    def _halved(self, scope: Scope, var: Var) -> Var:
        """The largest lane."""
        one = self.one
        while var.lanes > 1:
            low, high = (scope.let(Half(var, upper), one.dtype, var.lanes // 2) for upper in (False, True))
            var = one.apply(scope, LARGER, low, high)
        return var

    def _across(self, scope: Scope, i: int, many: int, combine: Callable[[Var, Var], Var]) -> Var:
        """The `many` numbers that were exchanged of a query, combined down to four lanes by halves."""
        dtype, start = self.one.dtype, f"({self.row} + {i}) * {many}"
        parts = [read(scope, dtype, EXCHANGE, f"{start} + {lane}", 4) for lane in range(0, many, 4)]
        while len(parts) > 1:
            half = len(parts) // 2
            parts = [combine(left, right) for left, right in zip(parts[:half], parts[half:], strict=True)]
        return parts[0]
