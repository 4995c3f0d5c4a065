"""Weights from scores on tensor cores: the online softmax (Milakov and Gimelshein, 2018), in powers of two."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from flowcompute.elements.math import NATIVE_EXP2, multiply
from flowcompute.imports import dataclass
from flowcompute.ir import (
    LID,
    ArrayItem,
    Assign,
    ConditionLike,
    ConstantValue,
    Half,
    IndexLike,
    Join,
    MultiplyAdd,
    NormalPower,
    PutItem,
    RingGroupBarrier,
    Splat,
    Var,
    all_of,
    index_min,
    to_int,
    to_long,
)
from flowcompute.lower.attention.attention_anchor import AttentionAnchor, Combination, QueryBlock
from flowcompute.lower.emit import Scope
from flowcompute.lower.matmul import EDGE, LANES, SUBGROUP, TILES, Results
from flowcompute.spec import FLOAT16, FLOAT32

WHOLE = "whole"
"""Local array of the sums of each query's weights."""

HALVES = (False, True)
"""Upper and lower query of a fragment, eight rows apart, whose sums a work-item has."""


class Weights:
    """Weights of 16 queries: the largest score so far, and the sums of weights by class of keys.

    Scores with a mask are in powers of two already. Others are converted when weights are computed.
    """

    def __init__(self, scope: Scope, one: AttentionAnchor) -> None:
        self.one = one
        self.highest = [scope.let(one.lowest, FLOAT32, 1) for _ in HALVES]
        self.total = scope.let(ConstantValue(0.0), FLOAT32, 4)
        self.shrink = self.total
        # As halves such weights are 0, and they are lost beside that of the largest score. Factors of sums are not
        # among them: a sum times 2^-127 has a sign.
        self.normal = one.q.argument.dtype == FLOAT16
        self.powers: list[Var] = []
        self.scale = None if one.mask is not None else scope.let(ConstantValue(in_powers(one.scale)), FLOAT32, 4)

    def next(
        self, scope: Scope, scores: Sequence[Var], highest: Sequence[Var] | None = None, *, normal: bool = False
    ) -> list[Var]:
        """Compute the weights of a tile of keys, and set `shrink`, the factor for earlier sums.

        Weights are two to `powers`, which are set, too.

        Args:
            scope: where the statements go.
            scores: scores of the tile.
            highest: the largest scores up to this tile, where they are known.
            normal: whether weights below 2^-126 are 0, also where halves have such numbers.
        """
        one = self.one
        highest = highest or self.largest(scope, scores, self.highest)
        units = [self._minus_powers(scope, score) for score in highest]
        shrinks = [self._power(scope, before, unit) for before, unit in zip(self.highest, units, strict=True)]
        shrink, unit = _joined(scope, shrinks), _joined(scope, units)
        self.powers, weights = [], []
        for score in scores:
            self.powers.append(self._above(scope, score, unit))
            weights.append(self.weight(scope, self.powers[-1], normal=normal or self.normal))
        total = one.sum_of_weights(scope, self.total, shrink, weights)
        scope.add(Assign(self.total, Splat(total)))
        scope.add(*(Assign(before, Splat(now)) for before, now in zip(self.highest, highest, strict=True)))
        self.shrink = shrink
        return weights

    def weight(self, scope: Scope, power: Var, *, normal: bool = False) -> Var:
        """Compute two to a power; `normal` makes 0 of small ones."""
        return scope.let(NormalPower(power), FLOAT32) if normal else self.one.apply(scope, NATIVE_EXP2, power)

    def largest(self, scope: Scope, scores: Sequence[Var], before: Sequence[Var]) -> list[Var]:
        """Compute the largest scores so far of the upper and the lower query: of a tile, and of those before it."""
        return [self._highest(scope, scores, one, lower) for one, lower in zip(before, HALVES, strict=True)]

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
        return self.weight(scope, self._above(scope, score, unit))

    def _above(self, scope: Scope, score: Var, unit: Var) -> Var:
        """Compute scores, in powers of two, plus `unit`, the negated largest score."""
        if self.scale is None:
            return self.one.added(scope, score, unit)
        scale = scope.let(Splat(self.scale), FLOAT32, score.lanes)
        return scope.let(MultiplyAdd(score, scale, unit), FLOAT32, score.lanes)


def in_powers(scale: float) -> float:
    """Return the factor of scores that makes weights powers of two."""
    return scale * math.log2(math.e)


def _joined(scope: Scope, halves: Sequence[Var]) -> Var:
    """Join a number of the upper and one of the lower query in the layout of their sums."""
    pairs = [scope.let(Splat(half), FLOAT32, 2) for half in halves]
    return scope.let(Join(*pairs), FLOAT32, 4)


@dataclass(frozen=True)
class Quotients:
    """Results of a work-group: weighted values over the sum of weights.

    Attributes:
        one: the attention.
        block: queries of the work-group.
        rows: queries of all sub-groups.
        group: work-items.
        top: first query of the sub-group.
        correct: recomputes results that values at unseen keys may have spoilt; None where there are no such keys.
        subgroups: sub-groups that share queries, one block of rows below the other.
        apart: local array that results go through where groups of a ring do not wait for each other; else None.
    """

    one: AttentionAnchor
    block: QueryBlock
    rows: int
    group: int
    top: IndexLike
    correct: Callable[[Scope, IndexLike, IndexLike, IndexLike | None, Var, Var], None] | None
    subgroups: int = 1
    apart: str | None = None

    def store(
        self,
        scope: Scope,
        weights: Sequence[Weights],
        totals: Sequence[Sequence[Var]],
        shares: Sequence[Var] | None = None,
    ) -> None:
        """Divide by the sum of weights, apply the epilogue, and store.

        Args:
            scope: where the statements go.
            weights, totals: weights and sums of weighted values, for each 16 queries of the sub-group.
            shares: factors of both for the upper and the lower query, where sub-groups share queries.
        """
        one = self.one
        place = scope.narrow(self.top + to_int(LID) % SUBGROUP // 4)
        if self.apart is not None:
            # Others of the group may still read those of the block before.
            scope.add(RingGroupBarrier())
        for edge, of_edge in enumerate(weights):
            for lower in HALVES:
                whole = of_edge.whole(scope, lower)
                if shares is not None:
                    whole = one.apply(scope, multiply.op, whole, shares[lower])
                scope.add(PutItem(WHOLE, place + (edge * EDGE + 8 * lower), whole))

        def finish(edge: int, lower: bool, pair: Var) -> Var:
            del edge
            if shares is None:
                return pair
            return one.apply(scope, multiply.op, pair, scope.let(Splat(shares[lower]), FLOAT32, 2))

        columns = -(-one.columns // 8) * 8
        results = Results(
            self.rows,
            columns,
            self.group,
            self._store,
            self._exists,
            self.subgroups,
            array=self.apart or TILES,
            apart=self.apart is not None,
        )
        results.add(scope, totals, self.top, 0, finish)

    def _exists(self, row: IndexLike, column: IndexLike) -> ConditionLike:
        return all_of(self.block.first + row <= self.block.last, column < self.one.columns)

    def _store(self, scope: Scope, row: IndexLike, column: IndexLike, made: Var) -> None:
        one = self.one
        own, column = scope.integer(to_long(self.block.first + row)), scope.integer(to_long(column))
        count = None if one.columns % LANES == 0 else scope.integer(index_min(LANES, one.columns - column))
        whole, *more = (
            scope.let(ArrayItem(WHOLE, row + subgroup * EDGE), FLOAT32, 1) for subgroup in range(self.subgroups)
        )
        for other in more:
            whole = one.added(scope, whole, other)
        made = one.share(scope, made, whole)
        if self.correct is not None:
            self.correct(scope, own, column, count, made, whole)
        one.store(scope, self.block.row(own), column, count, made)
