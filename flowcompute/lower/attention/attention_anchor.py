"""Attention anchor of a region: layout of its operands, keys visible to a query, and order of summation.

A kernel processes the keys in tiles of `KEYS`, in order. Each query carries the state of the online
softmax. The state is the largest score so far, sums of weights and a sum of weighted values. There are
`LANES` sums of weights; key i belongs to sum i modulo `LANES`, its class.

When a tile raises the largest score from m to n, the kernel multiplies all sums by exp(m - n). Then it adds
weights exp(score - n) key by key. At the end it adds the classes in a tree by halves. A tile that a query
does not see changes no bit of its result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np

from flowcompute.elements import Op
from flowcompute.elements.math import FMAX, divide, equal, exp, log, multiply, subtract
from flowcompute.elements.nn import ATTENTION
from flowcompute.fuse import Reason, Region
from flowcompute.graph import Graph
from flowcompute.ir import (
    Across,
    Apply,
    Assign,
    Below,
    Combine,
    ConstantValue,
    Half,
    IndexLike,
    Load,
    MultiplyAdd,
    N,
    Name,
    Select,
    Splat,
    Var,
    index_max,
    index_min,
)
from flowcompute.lower.anchor_point import Anchor, Operand, Row
from flowcompute.lower.emit import Scope
from flowcompute.lower.form import LoweringTask
from flowcompute.spec import BOOL

KEYS = 64
LANES = 16
BLOCK_INDEX = Name("b")
"""Number of a block of queries, through all records and matrices."""
TILE = Name("t")
"""First key of a tile."""
Combination = Callable[[Scope, Var, Var], Var]
"""Combination of two values, lane by lane."""


class QueryBlock(NamedTuple):
    """Block of queries of one work-group: its record and matrix, its first and last query."""

    record: IndexLike
    matrix: IndexLike
    first: IndexLike
    last: IndexLike

    def row(self, own: IndexLike) -> Row:
        """Return the row of a query of the block."""
        return Row(own, self.record, self.matrix, own)


class AttentionAnchor(Anchor):
    """Facts about a region with attention that all kernel forms need.

    Attributes:
        queries, keys: how many of them an item has.
        size: numbers of a query and of a key.
        columns: numbers of a value.
        others: operands behind queries and keys.
        mask: operand that is added to the scores, if there is one.
        gate: numbers at the end of a query and of a key whose products multiply weights; see `weighed`.
        result: what is made of weights and values; see `weighed`.
        lowest: initial value of the largest score. It is the lowest finite number and replaces -inf, whose
            difference with itself would be NaN. exp(-inf - lowest) is 0, and exp(lowest - lowest) is 1.
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
        self.q, self.k, *self.others = (self.operand(i, 1, 1) for i in node.inputs)
        self.v = self.others[0] if self.others else self.k
        self.mask = self.others[1] if len(self.others) == 2 else None
        self.queries, self.size = self.q.spec.shape[-2:]
        self.keys, self.columns = self.v.spec.shape[-2:]
        self.causal: bool = node.attrs["causal"]
        self.window: int | None = node.attrs["window"]
        self.scale: float = node.attrs["scale"]
        self.gate = int(node.attrs.get("gate", 0))
        self.result: str = node.attrs.get("result", "mean")
        self.lowest = ConstantValue(float(np.finfo(self.dtype).min))
        self.partial = self.keys % KEYS > 0

    is_turned = False
    """Flag that keys take the place of queries, so that the first blocks see most."""

    @property
    def is_plain(self) -> bool:
        """Flag that this is attention itself, and no part of its gradient."""
        return self.result == "mean" and not self.gate

    def base(self, scope: Scope, operand: Operand | None, block: QueryBlock) -> IndexLike:
        """Declare the offset of the operand's matrix that belongs to a block of queries; 0 without an operand."""
        return 0 if operand is None else scope.integer(self.matrix_base(operand, block.record, block.matrix))

    def together(self, operand: Operand, lanes: int) -> int:
        """Return the numbers of a vector of a row, where all of them begin at multiples of it; else 0."""
        fits = operand.columns.stride == 1 and self.begins_at_multiples(operand, lanes, *operand.rows.strides)
        return lanes if fits else 0

    def mask_offset(self, query: IndexLike, key: IndexLike) -> IndexLike:
        """Return the offset of the mask of a query and a key within its matrix."""
        row, column = self.mask_strides
        return query * row + key * column

    def each_mask(self, scope: Scope, base: IndexLike, query: IndexLike, key: IndexLike) -> Var:
        """Load the mask of a query and of a `key` in each lane, from the matrix of the mask at `base`."""
        assert self.mask is not None
        each = base + self.mask_offset(query, self.existing(key))
        return self.factor(scope, Load(self.mask.argument, base, each=each))

    def existing(self, key: IndexLike) -> IndexLike:
        """Return a key; the last one in place of those behind it."""
        return index_min(key, self.keys - 1) if self.partial else key

    @property
    def mask_strides(self) -> tuple[int, int]:
        """Strides of the mask from query to query and from key to key; 0 where the mask is broadcast."""
        assert self.mask is not None
        rows, columns = zip(self.mask.spec.shape[-2:], self.mask.lies.strides[-2:], strict=True)
        return tuple(0 if size == 1 else stride for size, stride in (rows, columns))  # type: ignore[return-value]

    def block_count(self, rows: int) -> int:
        """Return the number of blocks of `rows` queries in a record."""
        return self.units // self.height * -(-self.height // rows)

    def block(self, scope: Scope, rows: int) -> QueryBlock:
        """Declare the indices of block `b` of the `n` blocks of a launch on a GPU."""
        many, blocks = self.units // self.height, -(-self.height // rows)
        if self.causal:
            # The longest blocks come first, so that all work-groups end at about the same time.
            heads = scope.integer(N // blocks)
            turn = BLOCK_INDEX // heads
            number, place = scope.integer(BLOCK_INDEX % heads), turn if self.is_turned else blocks - 1 - turn
        else:
            number, place = scope.integer(BLOCK_INDEX // blocks), BLOCK_INDEX % blocks
        record, matrix = scope.integer(number // many), scope.integer(number % many)
        first = scope.integer(place * rows)
        return QueryBlock(record, matrix, first, scope.integer(index_min(first + rows, self.height) - 1))

    # -- what a query sees ----------------------------------------------------------------------------

    def sees_from(self, query: IndexLike) -> IndexLike:
        """Return the first key that a query sees."""
        if self.window is None:
            return 0
        return index_max(0, query + (self.keys - self.queries + 1 - self.window))

    def sees_to(self, query: IndexLike) -> IndexLike:
        """Return the end (exclusive) of the keys that a query sees."""
        if not self.causal:
            return self.keys
        last = query + (self.keys - self.queries + 1)
        return index_max(0, last) if self.queries > self.keys else last

    def seen(self, scope: Scope, first: IndexLike, last: IndexLike) -> tuple[IndexLike, IndexLike]:
        """Declare the first key that query `first` sees, and the end (exclusive) of those that query `last` sees."""
        return scope.integer(self.sees_from(first)), scope.integer(self.sees_to(last))

    def tiles(self, scope: Scope, block: QueryBlock) -> tuple[IndexLike, IndexLike]:
        """Declare the begin of the first tile that a block of queries sees, and the end of the keys that it sees."""
        start, stop = self.seen(scope, block.first, block.last)
        return scope.integer(start // KEYS * KEYS), stop

    def seen_by_all(self, scope: Scope, block: QueryBlock) -> tuple[IndexLike, IndexLike]:
        """Declare the first key that all queries of a block see, and the end (exclusive) of those keys."""
        return self.seen(scope, block.last, block.first)

    @property
    def hides(self) -> bool:
        """Flag that some tiles have keys that some queries do not see, or that do not exist."""
        return self.causal or self.partial

    def visible(self, scope: Scope, scores: Var, start: IndexLike, stop: IndexLike, hidden: Var) -> Var:
        """Return the scores of a query; those before lane `start` and from lane `stop` on become `hidden`, -inf."""
        size = self.dtype.itemsize
        in_time = scope.let(Below(stop), BOOL, mask_bytes=size)
        scores = scope.let(Select(in_time, scores, hidden), self.dtype)
        if self.window is None:
            return scores
        too_early = scope.let(Below(start), BOOL, mask_bytes=size)
        return scope.let(Select(too_early, hidden, scores), self.dtype)

    # -- values ---------------------------------------------------------------------------------------

    def apply(self, scope: Scope, op: Op, *operands: Var) -> Var:
        """Apply an element-wise operation to floats."""
        return scope.let(Apply(op, operands, self.dtype), self.dtype, operands[0].lanes)

    def larger(self, scope: Scope, a: Var, b: Var) -> Var:
        """Return the larger of two; NaN if either is NaN."""
        return scope.let(Combine("max", (a,), (b,), 0), self.dtype, a.lanes)

    def larger_number(self, scope: Scope, a: Var, b: Var) -> Var:
        """Return the larger of two; where one is NaN, the other one."""
        return self.apply(scope, FMAX, a, b)

    def added(self, scope: Scope, a: Var, b: Var) -> Var:
        """Return the sum of two."""
        return scope.let(Combine("sum", (a,), (b,), 0), self.dtype, a.lanes)

    def weight(self, scope: Scope, score: Var, highest: Var) -> Var:
        """Compute exp(score - highest)."""
        return self.apply(scope, exp.op, self.apply(scope, subtract.op, score, highest))

    def sum_of_weights(self, scope: Scope, total: Var, shrink: Var, weights: Iterable[Var]) -> Var:
        """Multiply a sum of weights by `shrink`, the weight of the largest score before; add `weights` in order."""
        total = self.apply(scope, multiply.op, total, shrink)
        for weight in weights:
            total = self.added(scope, total, weight)
        return total

    def add_product(self, scope: Scope, total: Var, a: Var, b: Var) -> None:
        """Add the product of two values to `total`, rounded once."""
        scope.add(Assign(total, Splat(scope.let(MultiplyAdd(a, b, total), self.dtype, total.lanes))))

    def lanes_combined(self, scope: Scope, combine: Combination, var: Var) -> Var:
        """Combine all lanes into one number, in a tree by halves."""
        while var.lanes > 1:
            low, high = (scope.let(Half(var, upper), self.dtype, var.lanes // 2) for upper in (False, True))
            var = combine(scope, low, high)
        return var

    @staticmethod
    def combined(scope: Scope, combine: Combination, parts: Sequence[Var]) -> Var:
        """Combine vectors, of which there are a power of two, into one in a tree by halves."""
        while len(parts) > 1:
            half = len(parts) // 2
            parts = [combine(scope, low, high) for low, high in zip(parts[:half], parts[half:], strict=True)]
        return parts[0]

    def across(self, scope: Scope, combine: Combination, numbers: Sequence[Var], bits: Iterable[int]) -> list[Var]:
        """Combine each number with those of the work-items of a sub-group whose position differs in `bits` only."""
        for bit in bits:
            others = [scope.let(Across(number, bit), self.dtype, 1) for number in numbers]
            numbers = [combine(scope, own, other) for own, other in zip(numbers, others, strict=True)]
        return list(numbers)

    def made(self, scope: Scope, values: Var, total: Var, highest: Var) -> Var:
        """Return the result of weighted values, the total weight and the largest score."""
        if self.result == "mean":
            return self.share(scope, values, total)
        if self.result == "sum":
            return self.apply(scope, multiply.op, values, self._wide(scope, self.apply(scope, exp.op, highest), values))
        return self._wide(scope, self.added(scope, highest, self.apply(scope, log.op, total)), values)

    def _wide(self, scope: Scope, number: Var, like: Var) -> Var:
        return scope.let(Splat(number), self.dtype, like.lanes)

    def share(self, scope: Scope, values: Var, total: Var) -> Var:
        """Divide weighted values by the total weight; return 0 where the total is 0."""
        zero = scope.let(ConstantValue(0.0), self.dtype, values.lanes)
        wide = scope.let(Splat(total), self.dtype, values.lanes)
        nothing = scope.let(Apply(equal.op, (wide, zero), self.dtype), BOOL, values.lanes, self.dtype.itemsize)
        return scope.let(Select(nothing, zero, self.apply(scope, divide.op, values, wide)), self.dtype, values.lanes)


def why_no_attention(task: LoweringTask) -> Reason | None:
    """Return why a region is none around attention."""
    if task.anchor is not None and task.anchor.op is ATTENTION:
        return None
    return task.refuse("its anchor is no attention")
