"""Weights from scores on tensor cores: the online softmax (Milakov and Gimelshein, 2018), in powers of two."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from flowcompute.elements import Kind, Op, by_ufunc
from flowcompute.elements.math import multiply
from flowcompute.ir import Assign, ConstantValue, Half, Join, MultiplyAdd, Splat, Var
from flowcompute.lower.attention.attention_anchor import AttentionAnchor, Combination
from flowcompute.lower.emit import Scope
from flowcompute.spec import FLOAT32

HALVES = (False, True)
"""Upper and lower query of a fragment, eight rows apart, whose sums a work-item has."""

POWER = Op("native_exp2", 1, Kind.ELEMENTWISE, np.exp2, by_ufunc(np.exp2))


class Weights:
    """Weights of 16 queries: the largest score so far, and the sums of weights by class of keys.

    Scores with a mask are in powers of two already. Others are converted when weights are computed.
    """

    def __init__(self, scope: Scope, one: AttentionAnchor) -> None:
        self.one = one
        self.highest = [scope.let(one.lowest, FLOAT32, 1) for _ in HALVES]
        self.total = scope.let(ConstantValue(0.0), FLOAT32, 4)
        self.shrink = self.total
        self.scale = None if one.mask is not None else scope.let(ConstantValue(in_powers(one.scale)), FLOAT32, 4)

    def next(self, scope: Scope, scores: Sequence[Var]) -> list[Var]:
        """Compute the weights of a tile of keys, and set `shrink`, the factor for earlier sums."""
        one = self.one
        highest = [
            self._highest(scope, scores, before, lower) for before, lower in zip(self.highest, HALVES, strict=True)
        ]
        units = [self._minus_powers(scope, score) for score in highest]
        shrinks = [self._power(scope, before, unit) for before, unit in zip(self.highest, units, strict=True)]
        shrink, unit = _joined(scope, shrinks), _joined(scope, units)
        weights = [self._power(scope, score, unit) for score in scores]
        total = one.apply(scope, multiply.op, self.total, shrink)
        for weight in weights:
            total = one.added(scope, total, weight)
        scope.add(Assign(self.total, Splat(total)))
        scope.add(*(Assign(before, Splat(now)) for before, now in zip(self.highest, highest, strict=True)))
        self.shrink = shrink
        return weights

    def share_of(self, scope: Scope, lower: bool, highest: Var) -> Var:
        """Return the factor of a query's sums where another sub-group found a larger score."""
        return self._power(scope, self.highest[lower], self._minus_powers(scope, highest))

    def whole(self, scope: Scope, lower: bool) -> Var:
        """Add the classes of a query's weights."""
        one = self.one
        pair = scope.let(Half(self.total, lower), FLOAT32, 2)
        return self._of_query(scope, one.added, pair)

    def _highest(self, scope: Scope, scores: Sequence[Var], before: Var, lower: bool) -> Var:
        """Compute a query's largest score so far, the same in the four work-items that have the query."""
        one = self.one
        pair = scope.let(Half(scores[0], lower), FLOAT32, 2)
        for score in scores[1:]:
            pair = one.larger_number(scope, pair, scope.let(Half(score, lower), FLOAT32, 2))
        return one.larger_number(scope, self._of_query(scope, one.larger_number, pair), before)

    def _of_query(self, scope: Scope, combine: Combination, pair: Var) -> Var:
        """Combine pairs of the four work-items that have a query."""
        (whole,) = self.one.across(scope, combine, [self.one.lanes_combined(scope, combine, pair)], (1, 2))
        return whole

    def _minus_powers(self, scope: Scope, score: Var) -> Var:
        """Return minus a score in powers of two.

        The result is finite where the score is, so that infinities are never subtracted.
        """
        one = self.one
        if self.scale is not None:
            scale, lowest = scope.let(Splat(self.scale), FLOAT32, 1), scope.let(one.lowest, FLOAT32, 1)
            score = one.larger_number(scope, one.apply(scope, multiply.op, score, scale), lowest)
        return one.apply(scope, multiply.op, score, scope.let(ConstantValue(-1.0), FLOAT32, 1))

    def _power(self, scope: Scope, score: Var, unit: Var) -> Var:
        """Compute two to the power of scores plus `unit`, the negated largest score."""
        if self.scale is None:
            above = self.one.added(scope, score, unit)
        else:
            scale = scope.let(Splat(self.scale), FLOAT32, score.lanes)
            above = scope.let(MultiplyAdd(score, scale, unit), FLOAT32, score.lanes)
        return self.one.apply(scope, POWER, above)


def in_powers(scale: float) -> float:
    """Return the factor of scores that makes weights powers of two."""
    return scale * math.log2(math.e)


def _joined(scope: Scope, halves: Sequence[Var]) -> Var:
    """Join a number of the upper and one of the lower query in the layout of their sums."""
    pairs = [scope.let(Splat(half), FLOAT32, 2) for half in halves]
    return scope.let(Join(*pairs), FLOAT32, 4)
