"""Masks of scores on tensor cores, and values that are not finite at keys that a query does not see.

Tensor cores multiply whole tiles, so such a value reaches queries that do not see it with weight 0. The
product of 0 and infinity is NaN. The kernel therefore recomputes a result that is NaN although the weights
of its query are not. It sums over the visible keys only.

The recomputation is slow and rare, since it takes a value that is not finite. A test inside the loop over
tiles cost a fifth of its speed, by register pressure alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from flowcompute.elements.math import NATIVE_EXP2, multiply, subtract
from flowcompute.imports import dataclass
from flowcompute.ir import (
    LANE,
    LID,
    Assign,
    ConstantValue,
    For,
    Half,
    If,
    IndexLike,
    IsFinite,
    IsNan,
    Join,
    Load,
    MultiplyAdd,
    N,
    Name,
    Splat,
    Var,
    all_of,
    any_of,
    index_min,
)
from flowcompute.lower.attention.attention_anchor import KEYS, AttentionAnchor, QueryBlock
from flowcompute.lower.attention.tensor_softmax import HALVES, in_powers
from flowcompute.lower.emit import Scope
from flowcompute.spec import FLOAT32

KEY = Name("u")
"""Key whose score is recomputed."""


@dataclass(frozen=True)
class Masking:
    """Masks of the scores that a work-item has: for each 16 queries those of each 8 keys, as fragments.

    Attributes:
        one: the attention.
        block: queries of the work-group.
        own: the upper and lower query of the work-item, for each 16 queries.
        at_mask: offset of the mask's matrix.
        first_key: first key of the sub-group in a tile.
    """

    one: AttentionAnchor
    block: QueryBlock
    own: Sequence[Sequence[IndexLike]]
    at_mask: IndexLike
    first_key: IndexLike = 0

    def _key(self, tile: IndexLike, part: int) -> IndexLike:
        """Return the first of the work-item's keys in block `part` of 8 keys."""
        return tile + self.first_key + LID % 4 * 2 + part * 8

    def add(self, scope: Scope, scores: Sequence[Sequence[Var]], tile: IndexLike) -> None:
        """Convert scores to powers of two and add the mask, if there is one."""
        one = self.one
        if one.mask is None:
            return
        pairs = scope.inner(2)
        scale, to_power = (pairs.let(ConstantValue(in_powers(factor)), FLOAT32, 4) for factor in (one.scale, 1.0))
        for two, line in zip(self.own, scores, strict=True):
            for part, score in enumerate(line):
                added = []
                for query in two:
                    own = pairs.integer(index_min(query, self.block.last))
                    added.append(one.each_mask(pairs, self.at_mask, own, self._key(tile, part) + LANE))
                both = pairs.let(Join(*added), FLOAT32, 4)
                both = one.apply(pairs, multiply.op, both, to_power)
                pairs.add(Assign(score, MultiplyAdd(score, scale, both)))
        scope.add(*pairs.statements)

    def hide(self, scope: Scope, scores: Sequence[Sequence[Var]], tile: IndexLike) -> None:
        """Set the scores of unseen keys to -inf, in tiles that have such keys."""
        one = self.one
        if not one.hides:
            return
        inner = scope.inner(2)
        hidden = inner.let(ConstantValue(-math.inf), FLOAT32)
        for two, line in zip(self.own, scores, strict=True):
            # Distances from the work-item's first key to the first visible key and to the end of the visible keys.
            first = self._key(tile, 0)
            ends = [[inner.narrow(end - first) for end in (one.sees_from(query), one.sees_to(query))] for query in two]
            for part, score in enumerate(line):
                halves = []
                for lower, (before, until) in zip(HALVES, ends, strict=True):
                    half = inner.let(Half(score, lower), FLOAT32)
                    halves.append(one.visible(inner, half, before - part * 8, until - part * 8, hidden))
                inner.add(Assign(score, Join(*halves)))
        from_last, to_first = one.seen_by_all(scope, self.block)
        scope.add(If(any_of(tile < from_last, tile + KEYS > to_first), tuple(inner.statements)))


@dataclass(frozen=True)
class Unseen:
    """Recomputation of results that unseen values may have spoilt.

    Attributes:
        one: the attention.
        block: queries of the work-group.
    """

    one: AttentionAnchor
    block: QueryBlock

    def correct(
        self, scope: Scope, query: IndexLike, column: IndexLike, count: IndexLike | None, made: Var, whole: Var
    ) -> None:
        """Recompute results of a query from `column` on, if an unseen value may have spoilt them.

        Args:
            scope: where the statements go.
            query: the query.
            column: first column of the results.
            count: how many results there are; None for all lanes.
            made: the results.
            whole: sum of the query's weights.
        """
        one = self.one
        total = one.lanes_combined(scope, one.added, made)
        inner = scope.inner(1)
        highest, weights = inner.let(one.lowest, FLOAT32), inner.let(ConstantValue(0.0), FLOAT32)
        sums = inner.let(ConstantValue(0.0), FLOAT32, made.lanes)
        body = inner.inner()
        # n >> 62 is zero. The compiler does not know that, so it keeps no index alive across the loop over tiles.
        block = self.block._replace(record=inner.integer(self.block.record + (N >> 62)))
        sides = (one.q, one.k, one.mask, one.v)
        at_q, at_k, at_mask, at_v = (one.base(inner, side, block) for side in sides)
        score = self._score(body, query, at_q, at_k, at_mask)
        largest = one.larger_number(body, highest, score)
        shrink, weight = (
            one.apply(body, NATIVE_EXP2, one.apply(body, subtract.op, a, largest)) for a in (highest, score)
        )
        body.add(Assign(weights, MultiplyAdd(weights, shrink, weight)), Assign(highest, Splat(largest)))
        wide = body.inner(made.lanes)
        at = at_v + KEY * one.v.rows.stride + column * one.v.columns.stride
        value = one.factor(wide, Load(one.v.argument, at, one.v.columns.stride, count))
        before = one.apply(wide, multiply.op, sums, wide.let(Splat(shrink), FLOAT32))
        wide.add(Assign(sums, MultiplyAdd(wide.let(Splat(weight), FLOAT32), value, before)))
        body.add(*wide.statements)
        inner.add(For(KEY, one.sees_from(query), one.sees_to(query), 1, tuple(body.statements)))
        inner.add(Assign(made, Splat(one.share(inner, sums, weights))))
        scope.add(If(all_of(IsNan(total.name), IsFinite(whole.name)), tuple(inner.statements)))

    def _score(self, scope: Scope, query: IndexLike, at_q: IndexLike, at_k: IndexLike, at_mask: IndexLike) -> Var:
        """Compute the score of a query and key `u`, in powers of two."""
        one = self.one
        score = scope.let(ConstantValue(0.0), FLOAT32)
        body, c = scope.inner(), Name("c")
        q = at_q + query * one.q.rows.stride + c * one.q.columns.stride
        k = at_k + KEY * one.k.rows.stride + c * one.k.columns.stride
        left, right = (one.factor(body, Load(side.argument, at)) for side, at in ((one.q, q), (one.k, k)))
        body.add(Assign(score, MultiplyAdd(left, right, score)))
        scope.add(For(c, 0, one.size, 1, tuple(body.statements)))
        score = one.apply(scope, multiply.op, score, scope.let(ConstantValue(in_powers(one.scale)), FLOAT32))
        if one.mask is None:
            return score
        added = one.factor(scope, Load(one.mask.argument, at_mask + one.mask_offset(query, KEY)))
        return scope.let(MultiplyAdd(added, scope.let(ConstantValue(in_powers(1.0)), FLOAT32), score), FLOAT32)
