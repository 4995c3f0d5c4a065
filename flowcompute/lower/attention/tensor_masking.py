"""Values that are not finite, at keys that a query does not see.

Tensor cores multiply whole tiles, so such a value reaches queries that do not see it with weight 0. The
product of 0 and infinity is NaN. The kernel therefore recomputes a result that is NaN although the weights
of its query are not. It sums over the visible keys only.

The recomputation is slow and rare, since it takes a value that is not finite. A test inside the loop over
tiles cost a fifth of its speed, by register pressure alone.
"""

from __future__ import annotations

from dataclasses import dataclass

from flowcompute.elements.math import multiply, subtract
from flowcompute.ir import (
    Assign,
    ConstantValue,
    For,
    If,
    IndexLike,
    IsFinite,
    IsNan,
    Load,
    MultiplyAdd,
    N,
    Name,
    Splat,
    Var,
    all_of,
)
from flowcompute.lower.attention.attention_anchor import AttentionAnchor, QueryBlock
from flowcompute.lower.attention.tensor_softmax import POWER, in_powers
from flowcompute.lower.emit import Scope
from flowcompute.spec import FLOAT32

KEY = Name("u")
"""Key whose score is recomputed."""


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
        shrink, weight = (one.apply(body, POWER, one.apply(body, subtract.op, a, largest)) for a in (highest, score))
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
