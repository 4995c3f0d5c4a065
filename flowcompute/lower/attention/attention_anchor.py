"""Attention in a region: where its operands lie, what a query sees, and the order that belongs to it.

Keys are walked in tiles of `KEYS`, in order. For each query there are the largest score so far, a
sum of weights for each of `LANES` classes of keys (the key's number modulo `LANES`), and a sum of
weighted values. With a tile the largest score grows from m to n; what was summed is multiplied
by exp(m - n), then weights exp(score - n) are added key by key. In the end the classes are added
in a tree by halves. A tile that a query does not see changes none of its bits.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from flowcompute.elements import Op
from flowcompute.elements.math import divide, equal, exp, subtract
from flowcompute.elements.nn import ATTENTION
from flowcompute.fuse import Reason, Region
from flowcompute.graph import Graph
from flowcompute.ir import Apply, Combine, ConstantValue, Half, Select, Splat, Var
from flowcompute.lower.anchor_point import Anchor, Operand, times
from flowcompute.lower.emit import Scope
from flowcompute.lower.form import LoweringTask
from flowcompute.spec import BOOL

KEYS = 64
LANES = 16


class Block(NamedTuple):
    """Queries that a work-group takes together, as texts: of which record and matrix, the first and the last."""

    record: str
    matrix: str
    first: str
    last: str


class AttentionAnchor(Anchor):
    """What both code shapes must know of a region with attention.

    Attributes:
        queries, keys: how many of them in an item.
        size: numbers in a query and in a key.
        columns: numbers in a value.
        mask: of the scores, if there is one.
        lowest: what the largest score begins with. The lowest finite number stands for -inf, whose
            difference with itself would be NaN: exp(-inf - lowest) is 0 and exp(lowest - lowest) is 1.
    """

    def __init__(self, graph: Graph, region: Region) -> None:
        assert region.anchor is not None
        node = graph.nodes[region.anchor]
        super().__init__(
            graph,
            region,
            stack=node.spec.shape[:-2],
            height=node.spec.shape[-2],
            column_axes=1,
            dtype=node.spec.dtype,
        )
        self.q, self.k, self.v, *rest = (self.operand(i, 1, 1) for i in node.inputs)
        self.mask = rest[0] if rest else None
        self.queries, self.size = self.q.spec.shape[-2:]
        self.keys, self.columns = self.v.spec.shape[-2:]
        self.causal: bool = node.attrs["causal"]
        self.window: int | None = node.attrs["window"]
        self.scale: float = node.attrs["scale"]
        self.lowest = ConstantValue(float(np.finfo(self.dtype).min))
        self.partial = self.keys % KEYS > 0

    def base(self, scope: Scope, operand: Operand, record: str, matrix: str) -> str:
        """Offset of the matrix of an operand that a matrix of the result is made of."""
        return scope.integer(" + ".join(self.matrix_base(operand, record, matrix)) or "0")

    def mask_offset(self, query: str, key: str) -> str:
        """Where the mask of a query and a key lies in its matrix."""
        row, column = self.mask_strides
        terms = [times(f"({index})", stride) for index, stride in ((query, row), (key, column)) if stride]
        return " + ".join(terms) or "0"

    @property
    def mask_strides(self) -> tuple[int, int]:
        """From one query of the mask to the next, and from one key to the next; 0 where they share a number."""
        assert self.mask is not None
        rows, columns = zip(self.mask.spec.shape[-2:], self.mask.lies.strides[-2:], strict=True)
        return tuple(0 if size == 1 else stride for size, stride in (rows, columns))  # type: ignore[return-value]

    def block_count(self, rows: int) -> int:
        """Blocks of so many queries in a record."""
        return self.units // self.queries * -(-self.queries // rows)

    def block(self, scope: Scope, rows: int) -> Block:
        """Block `b` of the `n` of a launch on a GPU."""
        many, blocks = self.units // self.queries, -(-self.queries // rows)
        if self.causal:
            # The longest blocks first, so that work-groups end together.
            heads = scope.integer(f"n / {blocks}")
            number, place = scope.integer(f"b % {heads}"), f"({blocks - 1} - b / {heads})"
        else:
            number, place = scope.integer(f"b / {blocks}"), f"b % {blocks}"
        record, matrix = scope.integer(f"{number} / {many}"), scope.integer(f"{number} % {many}")
        first = scope.integer(f"{place} * {rows}")
        return Block(record, matrix, first, scope.integer(f"min({first} + {rows}, (long){self.queries}) - 1"))

    # -- what a query sees ----------------------------------------------------------------------------

    def sees_from(self, query: str) -> str:
        """The first key that a query sees."""
        if self.window is None:
            return "0"
        return f"max(0L, {query} + {self.keys - self.queries + 1 - self.window})"

    def sees_to(self, query: str) -> str:
        """Behind the last key that a query sees."""
        if not self.causal:
            return str(self.keys)
        last = f"{query} + {self.keys - self.queries + 1}"
        return f"max(0L, {last})" if self.queries > self.keys else last

    # -- values ---------------------------------------------------------------------------------------

    def apply(self, scope: Scope, op: Op, *operands: Var) -> Var:
        """An element-wise operation on floats."""
        return scope.let(Apply(op, operands, self.dtype), self.dtype, operands[0].lanes)

    def larger(self, scope: Scope, a: Var, b: Var) -> Var:
        """The larger of two; NaN if either is."""
        return scope.let(Combine("max", (a,), (b,), 0), self.dtype, a.lanes)

    def added(self, scope: Scope, a: Var, b: Var) -> Var:
        """The sum of two."""
        return scope.let(Combine("sum", (a,), (b,), 0), self.dtype, a.lanes)

    def weight(self, scope: Scope, score: Var, highest: Var) -> Var:
        """exp(score - highest)."""
        return self.apply(scope, exp.op, self.apply(scope, subtract.op, score, highest))

    def tree(self, scope: Scope, op: str, var: Var) -> Var:
        """All lanes as one number."""
        while var.lanes > 1:
            low, high = (scope.let(Half(var, upper), self.dtype, var.lanes // 2) for upper in (False, True))
            var = scope.let(Combine(op, (low,), (high,), 0), self.dtype, low.lanes)
        return var

    def share(self, scope: Scope, values: Var, total: Var) -> Var:
        """Weighted values over the total weight; 0 where there is none."""
        zero = scope.let(ConstantValue(0.0), self.dtype, values.lanes)
        wide = scope.let(Splat(total), self.dtype, values.lanes)
        nothing = scope.let(Apply(equal.op, (wide, zero), self.dtype), BOOL, values.lanes, self.dtype.itemsize)
        return scope.let(Select(nothing, zero, self.apply(scope, divide.op, values, wide)), self.dtype, values.lanes)


def why_no_attention(task: LoweringTask) -> Reason | None:
    """Return why a region is none around attention."""
    if task.anchor is not None and task.anchor.op is ATTENTION:
        return None
    return task.refuse("its anchor is no attention")
