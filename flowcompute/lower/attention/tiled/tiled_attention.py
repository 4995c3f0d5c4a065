"""Attention on GPUs: a work-group takes a block of queries of one head, with tiles of its keys in local memory.

Work-items form rows. Each work-item has a few queries and computes the scores of every 16th or every 8th
key. It also keeps the sums of some result columns in registers. The work-items of a row exchange weights
through local memory. While one slab of operands is multiplied, the next is loaded from global memory. The
epilogue runs before the result is stored.

Among four neighbouring work-items, pairs share queries and pairs share keys, as in CUTLASS (2017). On an
H200 that makes the kernel 3 percent faster.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

from flowcompute.elements.math import multiply
from flowcompute.fuse import Reason
from flowcompute.ir import (
    GID,
    GSIZE,
    LANE,
    LID,
    Array,
    Assign,
    ConditionLike,
    ConstantValue,
    For,
    If,
    IndexLike,
    Kernel,
    MultiplyAdd,
    N,
    Name,
    Picked,
    Splat,
    Stmt,
    Var,
    WorkGroupBarrier,
    all_of,
    index_max,
    index_min,
    to_long,
)
from flowcompute.ir.launches import by_tiles
from flowcompute.lower.anchor_point import Operand, Row
from flowcompute.lower.attention.attention_anchor import (
    BLOCK_INDEX,
    KEYS,
    LANES,
    TILE,
    AttentionAnchor,
    why_no_attention,
)
from flowcompute.lower.attention.tiled.attention_slab import TILES, Origin, Slab, Space
from flowcompute.lower.attention.tiled.attention_tiling import KNOBS, Shape, choose_shape
from flowcompute.lower.attention.tiled.tiled_softmax import EXCHANGE, WEIGHTS, TiledWeights, picked, read
from flowcompute.lower.emit import Scope
from flowcompute.lower.form import Form, LoweringTask
from flowcompute.lower.kernel_knobs import KernelStyle
from flowcompute.spec import FLOAT32
from flowcompute.strategy import KernelKnobs

SLAB, NUMBER, VALUE = Name("s"), Name("k"), Name("k")
"""A slab of a tile, a number of a key in a slab of keys, and a value in a slab of values."""


class TiledAttentionLowering:
    """Lowering of a region with attention for a GPU."""

    exchange = EXCHANGE

    def __init__(self, one: AttentionAnchor, style: KernelStyle, shape: Shape | None = None) -> None:
        self.one = one
        self.dtype = one.dtype
        self.shape = shape or choose_shape(one, style)
        self.wide, self.parts = self.shape.wide, self.shape.parts
        self.shuffles = style.capabilities.shuffles and one.dtype == FLOAT32
        self.aligned = not style.capabilities.host_memory
        self.ragged = one.queries % self.shape.rows > 0

    def lower(self, name: str) -> Kernel:
        """Return the kernel; its work counts blocks of queries."""
        one, shape = self.one, self.shape
        scope = Scope(one.names, lanes=shape.keys)
        self._block(scope)
        arrays = self._arrays()
        return Kernel(
            name,
            one.region.name,
            one.arguments.ordered(),
            (*arrays, *self._blocks(scope.statements)),
            work="matmul",
            work_group=shape.group,
            units=one.block_count(shape.rows),
            lanes=shape.keys,
            knobs=KernelKnobs(work_group=shape.group, block_rows=shape.rows),
        )

    def _blocks(self, body: list[Stmt]) -> list[Stmt]:
        """Return a loop over the blocks of the work-group."""
        return [For(BLOCK_INDEX, GID, N, GSIZE, tuple(body))]

    def _arrays(self) -> list[Stmt]:
        shape = self.shape
        sizes = {TILES: shape.tiles, WEIGHTS: KEYS * shape.weight_pitch, EXCHANGE: shape.rows * LANES}
        return [Array(array, self.dtype, 1, size, local=True) for array, size in sizes.items()]

    # -- a block of queries -----------------------------------------------------------------------------

    def _block(self, scope: Scope) -> None:
        self.block = self.one.block(scope, self.shape.rows)
        self._places(scope)
        self._attend(scope)

    def _bases(self, scope: Scope) -> list[IndexLike]:
        """Declare the offsets of the block's queries, keys and values."""
        return [self.one.base(scope, side, self.block) for side in (self.one.q, self.one.k, self.one.v)]

    def _attend(self, scope: Scope) -> None:
        """Compute the queries of the block."""
        one, shape, block = self.one, self.shape, self.block
        rows = range(shape.queries)
        mine = scope.integer(to_long(block.first + self.y))
        self.own = [scope.integer(index_min(mine + row * shape.down, block.last)) for row in rows]
        self.seen = [one.seen(scope, own, own) for own in self.own]
        self.at_q, self.at_k, self.at_v = self._bases(scope)
        self.at_mask = one.base(scope, one.mask, block)
        self.weights = TiledWeights(scope, one, shape, self.x, self.y, self.exchange, shuffles=self.shuffles)
        self.totals = [[scope.let(ConstantValue(0.0), self.dtype, self.wide) for _ in range(self.parts)] for _ in rows]
        start, self.to_key = self._keys(scope)
        self._slabs(scope)
        if one.size:
            scope.add(*self._begin(scope, start))
        tile = scope.inner()
        self._tile(tile)
        scope.add(For(TILE, start, self.to_key, KEYS, tuple(tile.statements)))
        self._end(scope, mine)

    def _keys(self, scope: Scope) -> tuple[IndexLike, IndexLike]:
        """Declare the begin of the first tile of keys, and the end of the keys."""
        return self.one.tiles(scope, self.block)

    def _places(self, scope: Scope) -> None:
        """Declare the work-item's row and its place there.

        Neighbours are in two rows, so that pairs of them share keys.
        """
        across = self.shape.across
        self.x = scope.narrow(LID // 2 % across)
        self.y = scope.narrow(LID // (2 * across) * 2 + LID % 2)

    def _slabs(self, scope: Scope) -> None:
        one, shape = self.one, self.shape
        queries = shape.rows * shape.query_pitch
        begin = queries if shape.resident else 0
        resident = Space(0, shape.rows, shape.size, shape.query_pitch, 0)
        beside = Space(begin + KEYS * shape.pitch, shape.rows, shape.depth, shape.query_pitch, shape.slot)
        keys = Space(begin, KEYS, shape.depth, shape.pitch, shape.slot)
        values = Space(begin, shape.value_depth, shape.spread, shape.spread, shape.slot)
        scale = scope.let(ConstantValue(one.scale), self.dtype, 1)

        def slab(operand: Operand, space: Space, factor: Var | None = None) -> Slab:
            return Slab(one, operand, space, shape.group, shape.vector, factor, aligned=self.aligned)

        self.q_space = resident if shape.resident else beside
        self.value_slab = slab(one.v, values)
        self.key_slabs: list[Slab] = []
        if one.size:
            query_slab = slab(one.q, self.q_space, scale)
            self.key_slabs = [slab(one.k, keys)]
            if shape.resident:
                scope.add(query_slab.bring_all(scope, self._origin_of(one.q)))
            else:
                self.key_slabs.append(query_slab)
        for one_slab in (self.value_slab, *self.key_slabs):
            one_slab.declare(scope)
        turns = max(self.value_slab.turns, sum(one_slab.turns for one_slab in self.key_slabs))
        # Values and keys use the same registers in turn.
        self.brought = [scope.let(ConstantValue(0.0), self.dtype, shape.vector) for _ in range(turns)]
        registers = iter(self.brought)
        self.key_registers = [list(itertools.islice(registers, one_slab.turns)) for one_slab in self.key_slabs]

    def _begin(self, scope: Scope, start: IndexLike) -> list[Stmt]:
        inner = scope.inner()
        inner.add(*self._bring_keys(inner, start, 0), *self._put_keys(self._slot(0, start)))
        inside = [If(start < self.to_key, tuple(inner.statements))]
        return [*inside, WorkGroupBarrier()]

    def _tile(self, scope: Scope) -> None:
        """Compute scores, weights and sums of a tile of keys."""
        one, shape = self.one, self.shape
        scores, gates = self._scores(scope)
        if not one.size:
            scope.add(*self._bring_values(scope, 0), *self._put_values(self._slot(0, TILE)))
        shrinks = self.weights.next(scope, scores, gates)
        scope.add(WorkGroupBarrier())
        for line, shrink in zip(self.totals, shrinks, strict=True):
            for total in line:
                wide = scope.let(Splat(shrink), self.dtype, self.wide)
                scope.add(Assign(total, Splat(one.apply(scope, multiply.op, total, wide))))
        body, steps, after = scope.inner(), shape.value_steps, TILE + KEYS
        more, more_keys = SLAB + 1 < steps, one.size > 0 and after < self.to_key
        self._next(
            body,
            more,
            lambda inner: self._bring_values(inner, SLAB + 1),
            more_keys,
            lambda inner: self._bring_keys(inner, after, 0),
        )
        self._add(body)
        body.add(*self._read_slab())
        self._next(
            body,
            more,
            lambda _: self._put_values(self._slot(SLAB + (shape.steps + 1), TILE)),
            more_keys,
            lambda _: self._put_keys(self._slot(0, after)),
        )
        body.add(WorkGroupBarrier())
        scope.add(For(SLAB, 0, steps, 1, tuple(body.statements)))

    @staticmethod
    def _next(
        scope: Scope,
        more: ConditionLike,
        then: Callable[[Scope], list[Stmt]],
        other: ConditionLike,
        otherwise: Callable[[Scope], list[Stmt]],
    ) -> None:
        """Emit the statements of `then` where `more` holds, else those of `otherwise` where `other` holds."""
        first, second = scope.inner(), scope.inner()
        first.add(*then(first))
        last: tuple[Stmt, ...] = ()
        if other is not False:
            second.add(*otherwise(second))
            last = tuple(second.statements) if other is True else (If(other, tuple(second.statements)),)
        scope.add(If(more, tuple(first.statements), last))

    # -- operands into local memory -----------------------------------------------------------------------

    def _read_slab(self) -> list[Stmt]:
        """Wait until all work-items have read a slab, where the next one takes its place."""
        return [WorkGroupBarrier()] if self.shape.slabs == 1 else []

    def _slot(self, s: IndexLike, t: IndexLike) -> IndexLike:
        """Return which of the buffers holds slab `s` of a tile.

        Of two, a tile with an odd number of slabs may begin in either.
        """
        if self.shape.slabs == 1:
            return 0
        steps = self.shape.steps + self.shape.value_steps
        return (s + t // KEYS) % 2 if steps % 2 else s % 2

    def _origin_of(self, operand: Operand, t: IndexLike = 0) -> Origin:
        one = self.one
        if operand is one.q:
            return Origin(self.at_q, self.block.first, self.block.last if self.ragged else None)
        base = self.at_k if operand is one.k else self.at_v
        return Origin(base, t, one.keys - 1 if one.partial else None)

    def _bring_keys(self, scope: Scope, t: IndexLike, s: IndexLike) -> list[Stmt]:
        """Load slab `s` of the keys of tile `t`, and of the queries that go with it."""
        made = []
        for slab, brought in zip(self.key_slabs, self.key_registers, strict=True):
            made += slab.bring(scope, brought, self._origin_of(slab.operand, t), s)
        return made

    def _put_keys(self, slot: IndexLike) -> list[Stmt]:
        made = []
        for slab, brought in zip(self.key_slabs, self.key_registers, strict=True):
            made += slab.put(brought, slot)
        return made

    def _bring_values(self, scope: Scope, s: IndexLike) -> list[Stmt]:
        return self.value_slab.bring(scope, self.brought, self._origin_of(self.one.v, TILE), s)

    def _put_values(self, slot: IndexLike) -> list[Stmt]:
        return self.value_slab.put(self.brought, slot)

    # -- scores and weights ---------------------------------------------------------------------------------

    def _scores(self, scope: Scope) -> tuple[list[Var], list[Var]]:
        """Compute for each of the work-item's queries scores and gates of its keys; scores of unseen keys are -inf."""
        one, shape = self.one, self.shape
        across = shape.across
        end = (one.size - one.gate) // shape.depth if one.gate else shape.steps
        scores = self._products(scope, 0, end)
        gates = self._products(scope, end, shape.steps) if one.gate else []
        key = scope.integer(TILE + self.x)
        made = []
        for score, own, (from_key, to_key) in zip(scores, self.own, self.seen, strict=True):
            if one.mask is not None:
                score = one.added(scope, score, one.each_mask(scope, self.at_mask, own, key + LANE * across))
            if one.hides:
                hidden = scope.let(ConstantValue(-math.inf), self.dtype)
                start, stop = ((end - key + (across - 1)) // across for end in (from_key, to_key))
                score = one.visible(scope, score, start, stop, hidden)
            made.append(score)
        return made, gates

    def _products(self, scope: Scope, begin: int, end: int) -> list[Var]:
        """Multiply slabs of queries and keys, and bring the next ones."""
        one, shape = self.one, self.shape
        totals = [scope.let(ConstantValue(-0.0 if end > begin else 0.0), self.dtype) for _ in self.own]
        if not one.size:
            return totals
        body, more = scope.inner(), SLAB + 1 < shape.steps
        self._next(
            body,
            more,
            lambda inner: self._bring_keys(inner, TILE, SLAB + 1),
            True,
            lambda inner: self._bring_values(inner, 0),
        )
        self._multiply(body, totals)
        body.add(*self._read_slab())
        self._next(
            body,
            more,
            lambda _: self._put_keys(self._slot(SLAB + 1, TILE)),
            True,
            lambda _: self._put_values(self._slot(SLAB + 1, TILE)),
        )
        body.add(WorkGroupBarrier())
        scope.add(For(SLAB, begin, end, 1, tuple(body.statements)))
        return totals

    def _multiply(self, scope: Scope, scores: list[Var]) -> None:
        """Add the products of a slab, in order of the numbers of a key."""
        shape, vector = self.shape, self.shape.vector
        slot = scope.narrow(self._slot(SLAB, TILE) * shape.slot)
        at_k = scope.narrow(self.key_slabs[0].space.begin + slot + self.x * shape.pitch)
        q = self.q_space
        start = SLAB * shape.depth if shape.resident else q.begin + slot
        at_q = scope.narrow(start + self.y * q.pitch)
        inner = scope.inner()
        keys = [
            read(inner, self.dtype, TILES, at_k + key * shape.across * shape.pitch + NUMBER, vector)
            for key in range(shape.keys)
        ]
        columns = [
            inner.let(Picked(tuple(keys), tuple(key * vector + number for key in range(shape.keys))), self.dtype)
            for number in range(vector)
        ]
        for row, score in enumerate(scores):
            query = read(inner, self.dtype, TILES, at_q + row * shape.down * q.pitch + NUMBER, vector)
            total = score
            for number, column in enumerate(columns):
                factor = picked(inner, query, number, shape.keys)
                total = inner.let(MultiplyAdd(factor, column, total), self.dtype)
            inner.add(Assign(score, Splat(total)))
        unroll = shape.unrolled[0]
        scope.add(For(NUMBER, 0, shape.depth, vector, tuple(inner.statements), unroll=unroll))

    # -- values ---------------------------------------------------------------------------------------------

    def _add(self, scope: Scope) -> None:
        """Add the weighted values of a slab; in tiles that are seen in part, only those of visible keys."""
        one = self.one
        whole = self._add_keys(scope)
        if not one.hides:
            scope.add(whole)
            return
        # The condition is uniform in the work-group.
        from_last, to_first = one.seen_by_all(scope, self.block)
        some = scope.inner()
        for row in range(len(self.own)):
            self._add_seen(some, row)
        scope.add(If(all_of(TILE >= from_last, TILE + KEYS <= to_first), (whole,), tuple(some.statements)))

    def _add_keys(self, scope: Scope) -> Stmt:
        inner = scope.inner()
        values = self._values(inner)
        together = min(4, self.shape.queries)
        weights = [
            read(inner, self.dtype, WEIGHTS, self._weight_of(row), together)
            for row in range(0, self.shape.queries, together)
        ]
        for row, line in enumerate(self.totals):
            weight = picked(inner, weights[row // together], row % together, self.wide)
            self._multiply_add(inner, weight, values, line)
        return For(VALUE, 0, self.shape.value_depth, 1, tuple(inner.statements), unroll=self.shape.unrolled[1])

    def _add_seen(self, scope: Scope, row: int) -> None:
        """Add the weighted values of the keys that one query sees."""
        depth = self.shape.value_depth
        inner = scope.inner()
        weight = read(inner, self.dtype, WEIGHTS, self._weight_of(row), 1)
        wide = inner.let(Splat(weight), self.dtype, self.wide)
        self._multiply_add(inner, wide, self._values(inner), self.totals[row])
        ends = (scope.integer(end - TILE - SLAB * depth) for end in self.seen[row])
        from_key, to_key = ends
        stop = scope.integer(index_min(depth, to_key))
        scope.add(For(VALUE, index_max(0, from_key), stop, 1, tuple(inner.statements)))

    def _weight_of(self, row: int) -> IndexLike:
        shape = self.shape
        return (SLAB * shape.value_depth + VALUE) * shape.weight_pitch + self.y * shape.queries + row

    def _values(self, scope: Scope) -> list[Var]:
        """Read the work-item's columns of value `k` of slab `s`."""
        shape, space = self.shape, self.value_slab.space
        slot = self._slot(SLAB + shape.steps, TILE)
        at = space.begin + slot * space.length + VALUE * space.pitch + self.x * self.wide
        parts = range(0, shape.spread, shape.across * self.wide)
        return [read(scope, self.dtype, TILES, at + part, self.wide) for part in parts]

    def _multiply_add(self, scope: Scope, weight: Var, values: list[Var], totals: list[Var]) -> None:
        for total, value in zip(totals, values, strict=True):
            self.one.add_product(scope, total, weight, value)

    def _row(self, scope: Scope, own: IndexLike) -> Row:
        """Return the row of the result that belongs to a query."""
        del scope
        return self.block.row(own)

    def _exists(self, query: IndexLike) -> ConditionLike:
        """Return whether there is such a query."""
        return query < self.one.queries

    # -- results --------------------------------------------------------------------------------------------

    def _end(self, scope: Scope, mine: IndexLike) -> None:
        """Divide by the sum of weights, apply the epilogue, and store."""
        one, shape = self.one, self.shape
        self.weights.share(scope)
        for i, line in enumerate(self.totals):
            total = self.weights.whole(scope, i)
            storing = scope.inner(self.wide)
            own = storing.integer(mine + i * shape.down)
            for part, values in enumerate(line):
                column = storing.integer(to_long(self.x * self.wide + part * shape.across * self.wide))
                inside = storing.inner()
                count = None if one.columns % self.wide == 0 else index_min(self.wide, one.columns - column)
                count = None if count is None else inside.integer(count)
                made = one.made(inside, values, total, self.weights.highest[i])
                one.store(inside, self._row(storing, own), column, count, made)
                storing.add(If(column < one.columns, tuple(inside.statements)))
            scope.add(If(self._exists(mine + i * shape.down), tuple(storing.statements)))
        scope.add(WorkGroupBarrier())


def _why_not(task: LoweringTask) -> Reason | None:
    return why_no_attention(task) if task.is_gpu else task.refuse("work-items of a CPU share no local memory")


def _lower(task: LoweringTask) -> Kernel:
    return TiledAttentionLowering(AttentionAnchor(task.graph, task.region), task.style).lower(task.name)


TILED_ATTENTION = Form(
    name="tiled attention", accepts=_why_not, lower=_lower, geometry=by_tiles, knobs=KNOBS, family="attention"
)
"""Attention on GPUs."""
