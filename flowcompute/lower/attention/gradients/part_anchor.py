"""Anchor of a part of attention's gradient: whose rows a work-group has, and which rows pass by."""

from __future__ import annotations

from flowcompute.fuse import Region
from flowcompute.graph import Graph
from flowcompute.ir import (
    LANE,
    PART_ROWS,
    Below,
    IndexLike,
    Load,
    Select,
    Var,
    index_max,
    index_min,
)
from flowcompute.lower.anchor_point import Operand
from flowcompute.lower.attention.attention_anchor import AttentionAnchor, QueryBlock
from flowcompute.lower.emit import Scope
from flowcompute.spec import BOOL


class PartAnchor(AttentionAnchor):
    """Facts about a part of attention's gradient.

    Rows are queries, or keys where the gradient is that of keys and values. The others pass by in tiles.

    Attributes:
        which: the part; see `attention_part`.
        passing: how many rows pass by.
        rows: operands of which a work-group has rows: what scores and what slopes are made of.
        tiles_of: operands that pass by, in the same order.
        terms: what is added to scores and to slopes of weights, a number for each query.
    """

    def __init__(self, graph: Graph, region: Region) -> None:
        super().__init__(graph, region)
        self.which: str = self.node.attrs["part"]
        self.mask = self.others.pop() if len(self.others) % 4 else None
        self.v = self.others[0] if self.others else self.k
        self.keys, self.columns = self.v.spec.shape[-2:]
        self.is_turned = self.which == "keys"
        self.passing = self.queries if self.is_turned else self.keys
        self.partial = self.passing % PART_ROWS > 0
        of_queries, of_keys = [self.q], [self.k]
        if self.which != "log":
            of_queries.append(self.others[1])
            of_keys.append(self.v)
        self.rows, self.tiles_of = (of_keys, of_queries) if self.is_turned else (of_queries, of_keys)
        self.terms: list[Operand] = self.others[2:]

    def sees_from(self, query: IndexLike) -> IndexLike:
        """Return the first row that a row sees."""
        if not self.is_turned:
            return super().sees_from(query)
        return index_max(0, query + (self.queries - self.keys)) if self.causal else 0

    def sees_to(self, query: IndexLike) -> IndexLike:
        """Return the end (exclusive) of the rows that a row sees."""
        if not self.is_turned:
            return super().sees_to(query)
        if self.window is None:
            return self.queries
        return index_max(0, index_min(self.queries, query + (self.queries - self.keys + self.window)))

    def visible(self, scope: Scope, scores: Var, start: IndexLike, stop: IndexLike, hidden: Var) -> Var:
        """Return the scores of a row; those before lane `start` and from lane `stop` on become `hidden`."""
        if not self.is_turned or not self.causal or self.window is not None:
            return super().visible(scope, scores, start, stop, hidden)
        # Only the first queries do not see a key.
        size = self.dtype.itemsize
        scores = super().visible(scope, scores, start, stop, hidden) if self.partial else scores
        too_early = scope.let(Below(start), BOOL, mask_bytes=size)
        return scope.let(Select(too_early, hidden, scores), self.dtype)

    @property
    def mask_strides(self) -> tuple[int, int]:
        """Strides of the mask from row to row, and from one that passes by to the next; 0 where it is broadcast."""
        of_query, of_key = super().mask_strides
        return (of_key, of_query) if self.is_turned else (of_query, of_key)

    def existing(self, key: IndexLike) -> IndexLike:
        """Return a row that passes by; the last one in place of those behind it."""
        return index_min(key, self.passing - 1) if self.partial else key

    def term(self, scope: Scope, number: int, block: QueryBlock, query: IndexLike) -> Var:
        """Load a term of each query from `query` on, as many as there are lanes; of the last one for those behind."""
        operand = self.terms[number]
        base, stride = self.base(scope, operand, block), operand.rows.stride
        if scope.lanes == 1:
            return self.factor(scope, Load(operand.argument, base + index_min(query, self.queries - 1) * stride))
        if self.partial:
            each = base + index_min(query + LANE, self.queries - 1) * stride
            return self.factor(scope, Load(operand.argument, base, each=each))
        return self.factor(scope, Load(operand.argument, base + query * stride, stride))
