"""Attention on CPUs: a work-item takes a block of queries of one head and processes its keys tile by tile.

The kernel transposes the keys of a tile, so that a vector holds the same number of neighbouring keys. It
packs the values of the tile beside them. Then it computes scores, weights and sums of a few queries at a
time in registers. The epilogue runs before the result is stored.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from flowcompute.elements.math import multiply
from flowcompute.fuse import Reason
from flowcompute.ir import (
    GID,
    GSIZE,
    LANE,
    Array,
    ArrayItem,
    ConstantValue,
    For,
    If,
    IndexLike,
    Kernel,
    Load,
    N,
    Name,
    PutItem,
    Splat,
    Stmt,
    Var,
    all_of,
    index_min,
)
from flowcompute.ir.launches import by_shares
from flowcompute.lower.anchor_point import Row
from flowcompute.lower.attention.attention_anchor import (
    BLOCK_INDEX,
    KEYS,
    LANES,
    TILE,
    AttentionAnchor,
    QueryBlock,
    why_no_attention,
)
from flowcompute.lower.emit import Scope
from flowcompute.lower.form import Form, LoweringTask
from flowcompute.lower.kernel_knobs import FormKnobs, KernelStyle, Knob
from flowcompute.lower.matmul import strip_lanes

BLOCK = 128
"""Most queries that share one transposed tile of keys; the arrays of a block are on a thread's stack."""
TOGETHER = 4
"""Queries whose sums are in registers at once: with a strip of columns 8 AVX2 vectors, as in `lower_matmul`."""
KNOBS = FormKnobs(cpu=(Knob("tile_rows", (2, 4, 8), TOGETHER), Knob("block_rows", (16, 32, 64, BLOCK), BLOCK)))
QUERY, MEMBER = Name("r"), Name("i")
"""A query of the block (or the first one of a group), and a query of a group."""
NUMBER = Name("d")
"""A number of a query and a key."""
KEY, KEY_VECTOR, VALUE_VECTOR = Name("j"), Name("j"), Name("c")
"""A key of a tile, a vector of its keys, and a vector of columns of the values."""


class AttentionLowering:
    """Lowering of a region with attention for a CPU."""

    def __init__(self, one: AttentionAnchor, style: KernelStyle) -> None:
        self.one = one
        self.dtype = one.dtype
        self.lanes = strip_lanes(style.capabilities, one.dtype.itemsize)
        self.knobs = knobs = style.settled(KNOBS)
        self.together, self.block_rows = self._sizes(knobs.tile_rows or TOGETHER, knobs.block_rows or BLOCK)
        self.key_vectors, self.value_vectors = KEYS // self.lanes, -(-one.columns // self.lanes)
        self.pitch = -(-one.size // self.lanes) * self.lanes

    def _sizes(self, together: int, rows: int) -> tuple[int, int]:
        """Return how many queries are computed at once, and the queries of a block, of those that are wanted."""
        queries = self.one.queries
        together = min(together, queries)
        return together, min(rows, -(-queries // together) * together)

    def lower(self, name: str) -> Kernel:
        """Return the kernel; its work counts blocks of queries."""
        one = self.one
        scope = Scope(one.names, lanes=self.lanes)
        self._block(scope)
        return Kernel(
            name,
            one.region.name,
            one.arguments.ordered(),
            # Blocks of a causal head differ in length, so neighbouring blocks go to different work-items.
            (*self._arrays(), For(BLOCK_INDEX, GID, N, GSIZE, tuple(scope.statements))),
            work="matmul",
            units=one.block_count(self.block_rows),
            lanes=self.lanes,
            knobs=self.knobs,
        )

    def _arrays(self) -> list[Stmt]:
        sizes = {
            "scaled": (1, self.block_rows * self.pitch),
            "turned": (self.lanes, self.one.size * self.key_vectors),
            "packed": (self.lanes, KEYS * self.value_vectors),
            "totals": (self.lanes, self.block_rows * self.value_vectors),
            "sums": (self.lanes, self.block_rows * LANES // self.lanes),
            "highest": (1, self.block_rows),
            "weights": (1, self.together * KEYS),
            **({"gates": (1, self.together * KEYS)} if self.one.gate else {}),
            "shrink": (1, self.together),
        }
        return [Array(name, self.dtype, lanes, max(1, size)) for name, (lanes, size) in sizes.items()]

    # -- a block of queries -----------------------------------------------------------------------------

    def _block(self, scope: Scope) -> None:
        one = self.one
        blocks = -(-one.queries // self.block_rows)
        per = one.units // one.queries * blocks
        record = scope.integer(BLOCK_INDEX // per)
        matrix = scope.integer(BLOCK_INDEX % per // blocks)
        first = scope.integer(BLOCK_INDEX % blocks * self.block_rows)
        last = scope.integer(index_min(first + self.block_rows, one.queries) - 1)
        self.block = QueryBlock(record, matrix, first, last)
        self._attend(scope)

    def _bases(self, scope: Scope) -> list[IndexLike]:
        """Declare the offsets of the block's keys and values."""
        return [self.one.base(scope, operand, self.block) for operand in (self.one.k, self.one.v)]

    def _attend(self, scope: Scope) -> None:
        """Compute the queries of the block."""
        one = self.one
        scope.add(*self._begin(scope))
        start, stop = one.tiles(scope, self.block)
        at_k, at_v = self._bases(scope)
        self.at_mask = one.base(scope, one.mask, self.block)
        tile = scope.inner()
        left = tile.integer(index_min(KEYS, one.keys - TILE)) if one.partial else KEYS
        tile.add(*self._transpose(at_k), *self._pack(at_v, left))
        group = tile.inner()
        self._group(group, left)
        tile.add(self._rows(group))
        scope.add(For(TILE, start, stop, KEYS, tuple(tile.statements)))
        scope.add(*self._end())

    def _rows(self, scope: Scope) -> Stmt:
        """Loop over groups of queries; `r` is the first query of a group within the block."""
        return For(QUERY, 0, self.block.last - self.block.first + 1, self.together, tuple(scope.statements))

    def _begin(self, scope: Scope) -> list[Stmt]:
        """Store scaled queries and initial sums; repeat the last query up to the end of the block."""
        at_q = self.one.base(scope, self.one.q, self.block)
        stride = self.one.q.rows.stride

        def query(body: Scope) -> IndexLike:
            return body.integer(at_q + index_min(self.block.first + QUERY, self.block.last) * stride)

        return self._begin_queries(scope, query, self.block_rows)

    def _begin_queries(self, scope: Scope, place: Callable[[Scope], IndexLike], stop: IndexLike) -> list[Stmt]:
        """Store scaled queries and initial sums up to query `stop`; `place` declares the offset of query `r`."""
        one = self.one
        body = scope.inner()
        row = place(body)
        scale = body.let(ConstantValue(one.scale), self.dtype)
        together = one.together(one.q, self.lanes)
        for column in range(0, one.size, self.lanes):
            count = None if column + self.lanes <= one.size else one.size - column
            stride = one.q.columns.stride
            query = one.factor(body, Load(one.q.argument, row + column * stride, stride, count, together=together))
            scaled = one.apply(body, multiply.op, query, scale)
            body.add(PutItem("scaled", QUERY * self.pitch + column, scaled, vector=True))
        body.add(PutItem("highest", QUERY, body.let(one.lowest, self.dtype, 1)))
        zero = body.let(ConstantValue(0.0), self.dtype)
        for array, count_ in (("sums", LANES // self.lanes), ("totals", self.value_vectors)):
            body.add(For(VALUE_VECTOR, 0, count_, 1, (PutItem(array, QUERY * count_ + VALUE_VECTOR, zero),)))
        return [For(QUERY, 0, stop, 1, tuple(body.statements))]

    def _end(self) -> list[Stmt]:
        """Divide by the sum of weights, apply the epilogue, and store."""
        one, parts = self.one, LANES // self.lanes
        scope = Scope(one.names, lanes=self.lanes)
        sums = [scope.let(ArrayItem("sums", QUERY * parts + part), self.dtype) for part in range(parts)]
        total = one.lanes_combined(scope, one.added, one.combined(scope, one.added, sums))
        self.final = total if one.result == "mean" else scope.let(ArrayItem("highest", QUERY), self.dtype, 1)
        row = self._row(scope)
        whole = one.columns // self.lanes
        body = scope.inner()
        self._store(body, row, total, VALUE_VECTOR, VALUE_VECTOR * self.lanes, None)
        scope.add(For(VALUE_VECTOR, 0, whole, 1, tuple(body.statements)))
        if one.columns % self.lanes:
            self._store(scope, row, total, whole, whole * self.lanes, one.columns % self.lanes)
        return [For(QUERY, 0, self.block.last - self.block.first + 1, 1, tuple(scope.statements))]

    def _row(self, scope: Scope) -> Row:
        """Declare the row of the result that belongs to query `r` of the block."""
        return self.block.row(scope.integer(self.block.first + QUERY))

    def _store(
        self, scope: Scope, row: Row, total: Var, vector: IndexLike, column: IndexLike, count: IndexLike | None
    ) -> None:
        values = scope.let(ArrayItem("totals", QUERY * self.value_vectors + vector), self.dtype)
        made = self.one.made(scope, values, total, self.final)
        self.one.store(scope, row, column, count, made)

    # -- a tile of keys -----------------------------------------------------------------------------------

    def _transpose(self, at_k: IndexLike) -> list[Stmt]:
        """Transpose a tile of keys: number d of neighbouring keys becomes a vector; the last key is repeated."""
        one = self.one
        scope = Scope(one.names, lanes=self.lanes)
        key = one.existing(TILE + KEY_VECTOR * self.lanes + LANE)
        each = at_k + key * one.k.rows.stride + NUMBER * one.k.columns.stride
        vector = one.factor(scope, Load(one.k.argument, at_k, each=each))
        scope.add(PutItem("turned", KEY_VECTOR * one.size + NUMBER, vector))
        numbers = For(NUMBER, 0, one.size, 1, tuple(scope.statements))
        return [For(KEY_VECTOR, 0, self.key_vectors, 1, (numbers,))]

    def _pack(self, at_v: IndexLike, left: IndexLike) -> list[Stmt]:
        """Pack a tile of values, one column of vectors after the other."""
        one = self.one
        scope = Scope(one.names, lanes=self.lanes)
        stride = one.v.columns.stride
        row = scope.integer(at_v + (TILE + KEY) * one.v.rows.stride)
        for vector in range(self.value_vectors):
            column = vector * self.lanes
            count = None if column + self.lanes <= one.columns else one.columns - column
            values = one.factor(scope, Load(one.v.argument, row + column * stride, stride, count))
            scope.add(PutItem("packed", vector * KEYS + KEY, values))
        return [For(KEY, 0, left, 1, tuple(scope.statements))]

    # -- a few queries and a tile of keys -------------------------------------------------------------------

    def _group(self, scope: Scope, left: IndexLike) -> None:
        one = self.one
        first, last = self.block.first, self.block.last
        own = [scope.integer(index_min(first + QUERY + i, last)) for i in range(self.together)]
        self.seen = [one.seen(scope, row, row) for row in own]
        if not one.causal:
            scope.add(*self._scores(own), self._weights(), *self._values(left))
            return
        # A tile that none of these queries sees changes no bit. It is skipped for speed only.
        inner = scope.inner()
        inner.add(*self._scores(own), self._weights(), *self._values(left))
        (from_first, _), (_, to_last) = self.seen[0], self.seen[-1]
        scope.add(If(all_of(TILE < to_last, TILE + KEYS > from_first), tuple(inner.statements)))

    def _scores(self, own: list[IndexLike]) -> list[Stmt]:
        """Compute the scores of the tile's keys, -inf for keys that a query does not see."""
        one = self.one
        scope = Scope(one.names, lanes=self.lanes)
        scores = self._products(scope, 0, one.size - one.gate)
        if one.gate:
            for i, gate in enumerate(self._products(scope, one.size - one.gate, one.size)):
                scope.add(PutItem("gates", i * KEYS + KEY_VECTOR * self.lanes, gate, vector=True))
        first = scope.integer(TILE + KEY_VECTOR * self.lanes)
        for i, (row, score) in enumerate(zip(own, scores, strict=True)):
            score = self._masked(scope, score, row, first)
            if one.hides:
                from_key, to_key = self.seen[i]
                hidden = scope.let(ConstantValue(-math.inf), self.dtype)
                score = one.visible(scope, score, from_key - first, to_key - first, hidden)
            scope.add(PutItem("weights", i * KEYS + KEY_VECTOR * self.lanes, score, vector=True))
        return [For(KEY_VECTOR, 0, self.key_vectors, 1, tuple(scope.statements))]

    def _products(self, scope: Scope, begin: int, end: int) -> list[Var]:
        """Multiply numbers `begin` to `end` of each query with those of the keys of a vector."""
        one = self.one
        zero = ConstantValue(-0.0 if end > begin else 0.0)
        totals = [scope.let(zero, self.dtype) for _ in range(self.together)]
        inner = scope.inner()
        keys = inner.let(ArrayItem("turned", KEY_VECTOR * one.size + NUMBER), self.dtype)
        for i, total in enumerate(totals):
            single = inner.let(ArrayItem("scaled", (QUERY + i) * self.pitch + NUMBER), self.dtype, 1)
            query = inner.let(Splat(single), self.dtype)
            one.add_product(inner, total, query, keys)
        scope.add(For(NUMBER, begin, end, 1, tuple(inner.statements)))
        return totals

    def _masked(self, scope: Scope, score: Var, row: IndexLike, first: IndexLike) -> Var:
        one = self.one
        if one.mask is None:
            return score
        _, stride = one.mask_strides
        index = self.at_mask + one.mask_offset(row, first)
        count = scope.integer(one.keys - first) if one.partial and stride else None
        return one.added(scope, score, one.factor(scope, Load(one.mask.argument, index, stride, count)))

    def _weights(self) -> Stmt:
        """Replace scores by weights, query by query."""
        one, parts = self.one, LANES // self.lanes
        scope = Scope(one.names, lanes=self.lanes)
        places = [MEMBER * KEYS + j * self.lanes for j in range(self.key_vectors)]
        scores = [scope.let(ArrayItem("weights", place, vector=True), self.dtype) for place in places]
        largest = scores[0]
        for score in scores[1:]:
            largest = one.larger(scope, largest, score)
        before = scope.let(ArrayItem("highest", QUERY + MEMBER), self.dtype, 1)
        highest = one.larger(scope, one.lanes_combined(scope, one.larger, largest), before)
        shrink = one.weight(scope, before, highest)
        scope.add(PutItem("highest", QUERY + MEMBER, highest), PutItem("shrink", MEMBER, shrink))
        wide, wide_shrink = (scope.let(Splat(one_), self.dtype) for one_ in (highest, shrink))
        weights = [one.weight(scope, score, wide) for score in scores]
        for part in range(parts):
            slot = (QUERY + MEMBER) * parts + part
            total = scope.let(ArrayItem("sums", slot), self.dtype)
            total = one.sum_of_weights(scope, total, wide_shrink, weights[part::parts])
            scope.add(PutItem("sums", slot, total))
        for place, weight in zip(places, weights, strict=True):
            if one.gate:
                gate = scope.let(ArrayItem("gates", place, vector=True), self.dtype)
                weight = one.apply(scope, multiply.op, weight, gate)
            scope.add(PutItem("weights", place, weight, vector=True))
        return For(MEMBER, 0, self.together, 1, tuple(scope.statements))

    def _values(self, left: IndexLike) -> list[Stmt]:
        """Add the weighted values of the tile."""
        one = self.one
        scope = Scope(one.names, lanes=self.lanes)
        totals = []
        for i in range(self.together):
            before = scope.let(ArrayItem("totals", (QUERY + i) * self.value_vectors + VALUE_VECTOR), self.dtype)
            shrink = scope.let(Splat(scope.let(ArrayItem("shrink", i), self.dtype, 1)), self.dtype)
            totals.append(one.apply(scope, multiply.op, before, shrink))
        if one.causal:
            from_last, to_first = self.seen[-1][0], self.seen[0][1]
            whole = all_of(TILE >= from_last, TILE + KEYS <= to_first)
            some = (self._add(scope, totals, left, choose=True),)
            scope.add(If(whole, (self._add(scope, totals, KEYS, choose=False),), some))
        else:
            scope.add(self._add(scope, totals, left, choose=False))
        for i, total in enumerate(totals):
            scope.add(PutItem("totals", (QUERY + i) * self.value_vectors + VALUE_VECTOR, total))
        return [For(VALUE_VECTOR, 0, self.value_vectors, 1, tuple(scope.statements))]

    def _add(self, scope: Scope, totals: list[Var], count: IndexLike, *, choose: bool) -> Stmt:
        """Add weighted values key by key; with `choose`, only of keys that a query sees."""
        inner = scope.inner()
        values = inner.let(ArrayItem("packed", VALUE_VECTOR * KEYS + KEY), self.dtype)
        for i, total in enumerate(totals):
            step = inner.inner()
            weight = step.let(Splat(step.let(ArrayItem("weights", i * KEYS + KEY), self.dtype, 1)), self.dtype)
            self.one.add_product(step, total, weight, values)
            from_key, to_key = self.seen[i]
            seen = all_of(TILE + KEY >= from_key, TILE + KEY < to_key)
            inner.add(*((If(seen, tuple(step.statements)),) if choose else step.statements))
        return For(KEY, 0, count, 1, tuple(inner.statements))


def _why_not(task: LoweringTask) -> Reason | None:
    return task.refuse("a work-item of a GPU has no such caches") if task.is_gpu else why_no_attention(task)


def _lower(task: LoweringTask) -> Kernel:
    return AttentionLowering(AttentionAnchor(task.graph, task.region), task.style).lower(task.name)


CPU_ATTENTION = Form(
    name="cpu attention", accepts=_why_not, lower=_lower, geometry=by_shares, knobs=KNOBS, family="attention"
)
"""Attention on CPUs."""
