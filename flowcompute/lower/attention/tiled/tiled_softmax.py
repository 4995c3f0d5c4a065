"""Weights of attention on GPUs, exchanged through local memory: the online softmax (Milakov and Gimelshein, 2018)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from flowcompute.elements.math import multiply
from flowcompute.ir import (
    ArrayItem,
    Assign,
    ConstantValue,
    IndexLike,
    Picked,
    PutItem,
    Splat,
    Var,
    WorkGroupBarrier,
)
from flowcompute.lower.attention.attention_anchor import LANES, AttentionAnchor, Combination
from flowcompute.lower.attention.tiled.attention_tiling import Shape
from flowcompute.lower.emit import Scope

WEIGHTS = "weights"
"""Local array of a tile's weights, key by key, for each key those of all queries."""
EXCHANGE = "exchange"
"""Local array through which the work-items of a row exchange scores and sums."""


def read(scope: Scope, dtype: np.dtype, array: str, index: IndexLike, lanes: int) -> Var:
    """Read neighbouring numbers from a local array."""
    return scope.let(ArrayItem(array, index, vector=lanes > 1), dtype, lanes)


def picked(scope: Scope, var: Var, lane: int, lanes: int) -> Var:
    """Broadcast one lane of a value to `lanes` lanes."""
    return scope.let(Picked((var,), (lane,)) if var.lanes > 1 else Splat(var), var.dtype, lanes)


class TiledWeights:
    """A work-item's state of the weights: for each query the largest score so far, and the sums of its classes.

    The maximum of two scores ignores NaN. NaN reaches the result all the same, since weights of its query
    become NaN.
    """

    def __init__(
        self,
        scope: Scope,
        one: AttentionAnchor,
        shape: Shape,
        x: IndexLike,
        y: IndexLike,
        exchange: str,
        *,
        shuffles: bool,
    ) -> None:
        """Declare the state.

        Args:
            scope: where the statements go.
            one: the attention.
            shape: tiling of the work-group.
            x, y: the work-item's place in its row, and its row.
            exchange: local array through which the work-items of a row exchange scores and sums.
            shuffles: whether the work-items of a row can read each other's registers.
        """
        self.exchange = exchange
        self.one, self.shape, self.x, self.shuffles = one, shape, x, shuffles
        self.row = scope.narrow(y * shape.queries)
        rows = range(shape.queries)
        self.highest = [scope.let(one.lowest, one.dtype, 1) for _ in rows]
        self.sums = [scope.let(ConstantValue(0.0), one.dtype, shape.classes) for _ in rows]

    def next(self, scope: Scope, scores: list[Var], gates: list[Var]) -> list[Var]:
        """Store the weights of a tile of keys in local memory.

        Args:
            scope: where the statements go.
            scores: for each query the scores of every `across`-th key, in order.
            gates: for each query what weights are multiplied by once they are summed; or nothing.

        Returns:
            For each query the factor by which earlier sums are to be multiplied.
        """
        one, classes = self.one, self.shape.classes
        weights, shrinks = [], []
        queries = zip(scores, self._largest(scope, scores), self.highest, self.sums, strict=True)
        for score, largest, before, total in queries:
            highest = one.larger_number(scope, largest, before)
            shrink = one.weight(scope, before, highest)
            weight = one.weight(scope, score, scope.let(Splat(highest), one.dtype))
            wide = scope.let(Splat(shrink), one.dtype, classes)
            summed = one.sum_of_weights(scope, total, wide, self._by_class(scope, weight))
            scope.add(Assign(total, Splat(summed)), Assign(before, Splat(highest)))
            weights.append(weight)
            shrinks.append(shrink)
        if gates:
            weights = [one.apply(scope, multiply.op, *pair) for pair in zip(weights, gates, strict=True)]
        self._put(scope, weights, 0, self.shape.keys)
        return shrinks

    def leave(self, scope: Scope) -> None:
        """Store the state where the work-item will store its own weights, so that no registers hold it meanwhile."""
        self._put(scope, self.sums, 0, self.shape.classes)
        self._put(scope, self.highest, self.shape.classes, 1)

    def take(self, scope: Scope) -> None:
        """Load what `leave` has stored."""
        together = min(4, self.shape.queries)
        lanes = self.shape.classes + 1
        for i in range(0, self.shape.queries, together):
            parts = [read(scope, self.one.dtype, WEIGHTS, self._place(lane) + i, together) for lane in range(lanes)]
            for row in range(together):
                total = Picked(tuple(parts[:-1]), tuple(row + together * at for at in range(lanes - 1)))
                scope.add(Assign(self.sums[i + row], Splat(scope.let(total, self.one.dtype, lanes - 1))))
                scope.add(Assign(self.highest[i + row], Splat(picked(scope, parts[-1], row, 1))))

    def share(self, scope: Scope) -> None:
        """Publish the sums of classes to the work-items of the row."""
        for i, total in enumerate(self.sums):
            for lane in range(self.shape.classes):
                place = (self.row + i) * LANES + self.x + lane * self.shape.across
                scope.add(PutItem(self.exchange, place, picked(scope, total, lane, 1)))
        scope.add(WorkGroupBarrier())

    def whole(self, scope: Scope, i: int) -> Var:
        """Sum all weights of query `i`, once its classes have been published."""
        return self._exchanged(scope, i, LANES, self.one.added)

    def _by_class(self, scope: Scope, weight: Var) -> Iterator[Var]:
        """Yield the weights of the work-item's classes, one key of each class at a time."""
        classes = self.shape.classes
        for lane in range(0, self.shape.keys, classes):
            yield scope.let(Picked((weight,), tuple(range(lane, lane + classes))), self.one.dtype, classes)

    def _put(self, scope: Scope, values: list[Var], first: int, lanes: int) -> None:
        """Store `lanes` numbers of each query in the places of the work-item's keys from `first` on."""
        shape = self.shape
        together = min(4, shape.queries)
        for lane in range(lanes):
            picks = tuple(lane + at * lanes for at in range(together))
            for i in range(0, shape.queries, together):
                some = scope.let(Picked(tuple(values[i : i + together]), picks), self.one.dtype, together)
                scope.add(PutItem(WEIGHTS, self._place(first + lane) + i, some, vector=together > 1))

    def _place(self, lane: int) -> IndexLike:
        """Return the place of the weights of the work-item's first query and its key number `lane`."""
        return (self.x + lane * self.shape.across) * self.shape.weight_pitch + self.row

    def _largest(self, scope: Scope, scores: list[Var]) -> list[Var]:
        """Compute the largest score of each query in this tile, for all work-items of a row."""
        one, across = self.one, self.shape.across
        own = [one.lanes_combined(scope, one.larger_number, score) for score in scores]
        if self.shuffles:
            # Two neighbouring work-items belong to two rows, so the shuffle skips one bit.
            return one.across(scope, one.larger_number, own, (1 << bit for bit in range(1, across.bit_length())))
        for i, score in enumerate(own):
            scope.add(PutItem(self.exchange, (self.row + i) * across + self.x, score))
        scope.add(WorkGroupBarrier())
        return [self._exchanged(scope, i, across, one.larger_number) for i in range(len(own))]

    def _exchanged(self, scope: Scope, i: int, many: int, combine: Combination) -> Var:
        """Combine the `many` exchanged numbers of a query by halves."""
        one, start = self.one, (self.row + i) * many
        parts = [read(scope, one.dtype, self.exchange, start + lane, 4) for lane in range(0, many, 4)]
        return one.lanes_combined(scope, combine, one.combined(scope, combine, parts))
