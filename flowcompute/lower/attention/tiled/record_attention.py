"""Self-attention of one record along the stream, on GPUs with asynchronous copies: a work-group takes one query.

A token has one query a head, and waits for memory most of its time. So everything is on its way at once: the query, the
new key and value, and whole tiles of keys and values, which asynchronous copies bring to local memory. Two stages hold
tiles: while one is computed, the next one is on its way. Each work-item multiplies one key of a tile, and adds up one
column of values. The new key and value do not pass through the state, which they are added to beside.

Loops over keys are short texts. A launch of few keys begins with instructions that no cache holds.

The order of sums is that of `attention_anchor`, so results have the bits of other kernels.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from flowcompute.elements.math import multiply
from flowcompute.imports import dataclass
from flowcompute.ir import (
    GID,
    GSIZE,
    LID,
    Array,
    Assign,
    AwaitCopies,
    ConditionLike,
    ConstantValue,
    Copy,
    DeviceCapabilities,
    EndCopies,
    For,
    If,
    IndexLike,
    Kernel,
    Load,
    MultiplyAdd,
    Name,
    Picked,
    PutItem,
    Splat,
    Stmt,
    Store,
    Var,
    WorkGroupBarrier,
    choose,
    equal,
    index_max,
    index_min,
)
from flowcompute.lower.anchor_point import Row
from flowcompute.lower.attention.attention_anchor import BLOCK_INDEX, KEYS, LANES, TILE
from flowcompute.lower.attention.stream_anchor import STAGES, StreamAttentionAnchor, TextRun
from flowcompute.lower.attention.tiled.attention_tiling import VECTOR_BYTES, pitch_of
from flowcompute.lower.attention.tiled.tiled_softmax import EXCHANGE, WEIGHTS, picked, read
from flowcompute.lower.emit import Scope
from flowcompute.lower.matmul.tensor_cores import SUBGROUP

QUERY, TILE_KEYS, TILE_VALUES, SCORES = "query", "keys", "values", "scores"
"""Local arrays: the query, the keys and values of two tiles, and the scores of one. The new key follows the keys."""
TILES = 2
"""Tiles in local memory: one is computed while the next one is on its way."""
LINE, NUMBER, VALUE = Name("l"), Name("k"), Name("k")
"""The first key of a tile that is copied with others, a number of a key, and a value of a tile."""
FEWEST_ITEMS = 128
"""Fewest work-items of a work-group: as many as chains of launches have."""
COPIES, PRODUCTS, SUMS = 4, 8, 16
"""Copies, vectors of a key and values that a loop takes at a time."""


@dataclass(frozen=True)
class RecordShape:
    """Layout of a work-group.

    Attributes:
        group: its work-items: one for each key of a tile, number of a key, and column of a value at least.
        vector: numbers of one copy.
        pitch: numbers from one key to the next in local memory.
    """

    group: int
    vector: int
    pitch: int

    @classmethod
    def of(cls, one: StreamAttentionAnchor, capabilities: DeviceCapabilities) -> RecordShape | None:
        """Choose the layout; None where lines are no whole vectors, or two tiles do not fit into local memory."""
        itemsize = one.dtype.itemsize
        vector = VECTOR_BYTES // itemsize
        group = -(-max(FEWEST_ITEMS, one.size, one.columns) // SUBGROUP) * SUBGROUP
        copied = all(size and size % vector == 0 and group % (size // vector) == 0 for size in (one.size, one.columns))
        straight = all(operand.columns.single for operand in (one.q, one.new_k, one.new_v))
        pitch = pitch_of(one.size, vector)
        numbers = (TILES * KEYS + 1) * pitch + TILES * KEYS * one.columns + one.size + 2 * KEYS + LANES
        fits = numbers * itemsize <= capabilities.local_bytes
        return cls(group, vector, pitch) if copied and straight and fits else None


class RecordAttentionLowering:
    """Lowering of a region with self-attention along the stream for launches over one record."""

    def __init__(self, one: StreamAttentionAnchor, shape: RecordShape) -> None:
        self.one, self.shape, self.dtype = one, shape, one.dtype

    def lower(self, name: str) -> Kernel:
        """Return the kernel; its work counts records."""
        one, shape = self.one, self.shape
        scope = Scope(one.names, lanes=1)
        self.shared = scope.integer(BLOCK_INDEX // one.sharing)
        one.runs(scope, 0, 1, self._attend)
        keys, values = (TILES * KEYS + 1) * shape.pitch, TILES * KEYS * one.columns
        sizes = {QUERY: one.size, TILE_KEYS: keys, TILE_VALUES: values, SCORES: KEYS, WEIGHTS: KEYS, EXCHANGE: LANES}
        arrays = [Array(array, self.dtype, 1, size, local=True) for array, size in sizes.items()]
        return Kernel(
            name,
            one.region.name,
            one.arguments.ordered(),
            (*arrays, For(BLOCK_INDEX, GID, one.queries, GSIZE, tuple(scope.statements))),
            work="attend",
            work_group=shape.group,
            units=one.queries,
            stages=STAGES,
            at_once=1,
        )

    def _attend(self, scope: Scope, run: TextRun) -> None:
        """Compute a query of the record."""
        one, shape = self.one, self.shape
        one.enter(scope, run)
        # Keys before the record, and the first one that it sees.
        self.begin, stop = one.seen(scope, 0, 0)
        self.before = scope.integer(stop - 1)
        start = scope.integer(self.begin // KEYS * KEYS)
        query, new_key, new_value = self._own(scope)
        self._bring(scope, start)
        self._put(scope, QUERY, LID, query, one.size)
        self._put(scope, TILE_KEYS, TILES * KEYS * shape.pitch + LID, new_key, one.size)
        self._append(scope, new_key, new_value)
        self.highest = scope.let(one.lowest, self.dtype)
        self.sum, self.total = (scope.let(ConstantValue(0.0), self.dtype) for _ in range(2))
        tile = scope.inner()
        self._tile(tile, new_value)
        scope.add(For(TILE, start, stop, KEYS, tuple(tile.statements)))
        self._end(scope, run)

    # -- operands ---------------------------------------------------------------------------------------

    def _own(self, scope: Scope) -> tuple[Var, Var, Var]:
        """Load the work-item's number of the query, scaled, of the new key, and of the new value."""
        one = self.one
        made = []
        for operand, head in ((one.q, BLOCK_INDEX), (one.new_k, self.shared), (one.new_v, self.shared)):
            at = scope.narrow(index_min(LID, operand.spec.shape[-1] - 1))
            base = operand.lies.offset + one.run.first * operand.lies.record + head * operand.rows.stride
            made.append(one.factor(scope, Load(operand.argument, scope.integer(base + at * operand.columns.stride))))
        scale = scope.let(ConstantValue(one.scale), self.dtype)
        return one.apply(scope, multiply.op, made[0], scale), made[1], made[2]

    def _append(self, scope: Scope, *new: Var) -> None:
        """Add the new key and value to the state. Of the queries that share them the first one does."""
        one, storing = self.one, scope.inner()
        row = storing.integer(one.state_row(one.run.first))
        for kept, number in zip((one.k, one.v), new, strict=True):
            size = kept.spec.shape[1]
            store = Store(kept.argument, row * kept.lies.record + self.shared * size + LID, number)
            storing.add(*_guarded(size == self.shape.group or LID < size, [store]))
        scope.add(*_guarded(one.sharing == 1 or equal(BLOCK_INDEX % one.sharing, 0), storing.statements))

    def _put(self, scope: Scope, array: str, index: IndexLike, number: Var, size: int) -> None:
        scope.add(*_guarded(size == self.shape.group or LID < size, [PutItem(array, index, number)]))

    def _bring(self, scope: Scope, t: IndexLike) -> None:
        """Start the copies of those keys before the record that it sees in a tile, and then of their values."""
        one, shape = self.one, self.shape
        stage = t // KEYS % TILES * KEYS
        begin, stop = self._lines(scope, t)
        for array, kept, pitch in ((TILE_KEYS, one.k, shape.pitch), (TILE_VALUES, one.v, one.columns)):
            size = kept.spec.shape[1]
            per = size // shape.vector
            line, at = scope.narrow(LID // per), scope.narrow(LID % per * shape.vector)
            to = scope.integer((stage + line) * pitch + at)
            base = scope.integer((one.text + t + line) * kept.lies.record + self.shared * size + at)
            copy = Copy(array, to + LINE * pitch, kept.argument, base + LINE * kept.lies.record, shape.vector)
            body = (If(LINE + line < stop, (copy,)),)
            scope.add(For(LINE, begin, stop, shape.group // per, body, unroll=COPIES), EndCopies())

    def _lines(self, scope: Scope, t: IndexLike) -> tuple[IndexLike, IndexLike]:
        """Return the first line of a tile that the record sees, and the end of those before the record."""
        begin = 0 if self.one.window is None else scope.narrow(index_max(0, self.begin - t))
        return begin, scope.narrow(index_min(KEYS, self.before - t))

    # -- a tile -----------------------------------------------------------------------------------------

    def _tile(self, scope: Scope, new_value: Var) -> None:
        """Compute scores, weights and sums of a tile of keys."""
        shape = self.shape
        self.new, self.stage = scope.narrow(self.before - TILE), scope.narrow(TILE // KEYS % TILES * KEYS)
        scope.add(AwaitCopies(1), WorkGroupBarrier())
        # All have added up the values of the tile before, whose place the next ones take.
        self._bring(scope, TILE + KEYS)
        scores = scope.inner()
        scores.add(PutItem(SCORES, LID, self._score(scores)))
        scope.add(*_guarded(shape.group == KEYS or LID < KEYS, scores.statements), WorkGroupBarrier())
        shrink = self._weigh(scope)
        scope.add(AwaitCopies(2), WorkGroupBarrier())
        self._add(scope, shrink, new_value)

    def _score(self, scope: Scope) -> Var:
        """Multiply the query by the work-item's key, in order of their numbers; -inf for a key that is not seen."""
        one, shape = self.one, self.shape
        score = scope.let(ConstantValue(-0.0), self.dtype)
        line = choose(equal(LID, self.new), TILES * KEYS, self.stage + LID)
        at = scope.narrow(line * shape.pitch)
        inner = scope.inner()
        key = read(inner, self.dtype, TILE_KEYS, at + NUMBER, shape.vector)
        query = read(inner, self.dtype, QUERY, NUMBER, shape.vector)
        total = score
        for lane in range(shape.vector):
            ours, theirs = (picked(inner, each, lane, 1) for each in (query, key))
            total = inner.let(MultiplyAdd(ours, theirs, total), self.dtype)
        inner.add(Assign(score, Splat(total)))
        scope.add(For(NUMBER, 0, one.size, shape.vector, tuple(inner.statements), unroll=PRODUCTS))
        hidden = scope.let(ConstantValue(-math.inf), self.dtype)
        start, stop = (scope.integer(end - TILE - LID) for end in (self.begin, self.before + 1))
        return one.visible(scope, score, start, stop, hidden)

    def _weigh(self, scope: Scope) -> Var:
        """Compute the weights of a tile, and add them up by class; returns the factor of earlier sums."""
        one = self.one
        vectors = [read(scope, self.dtype, SCORES, key, self.shape.vector) for key in range(0, KEYS, self.shape.vector)]
        largest = one.lanes_combined(scope, one.larger_number, one.combined(scope, one.larger_number, vectors))
        highest = one.larger_number(scope, largest, self.highest)
        shrink = one.weight(scope, self.highest, highest)
        own = scope.narrow(LID % LANES)
        scores = [read(scope, self.dtype, SCORES, own + key, 1) for key in range(0, KEYS, LANES)]
        many = len(scores)
        # Exponentials of several numbers, as in other kernels: those of one number have other bits on some devices.
        together = scope.let(Picked(tuple(scores), tuple(range(many))), self.dtype, many)
        weight = one.weight(scope, together, scope.let(Splat(highest), self.dtype, many))
        weights = [picked(scope, weight, lane, 1) for lane in range(many)]
        puts = [PutItem(WEIGHTS, LID + lane * LANES, each) for lane, each in enumerate(weights)]
        summed = one.sum_of_weights(scope, self.sum, shrink, weights)
        scope.add(If(LID < LANES, tuple(puts)), Assign(self.sum, Splat(summed)), Assign(self.highest, Splat(highest)))
        return shrink

    def _add(self, scope: Scope, shrink: Var, new_value: Var) -> None:
        """Add the weighted values of the tile's keys that the record sees, in their order; the record's own is last."""
        one = self.one
        scope.add(Assign(self.total, Splat(one.apply(scope, multiply.op, self.total, shrink))))
        begin, stop = self._lines(scope, TILE)
        column = scope.narrow(self.stage * one.columns + index_min(LID, one.columns - 1))
        inner = scope.inner()
        value = read(inner, self.dtype, TILE_VALUES, column + VALUE * one.columns, 1)
        one.add_product(inner, self.total, read(inner, self.dtype, WEIGHTS, VALUE, 1), value)
        scope.add(For(VALUE, begin, stop, 1, tuple(inner.statements), unroll=SUMS))
        last = scope.inner()
        one.add_product(last, self.total, read(last, self.dtype, WEIGHTS, self.new, 1), new_value)
        scope.add(If(self.new < KEYS, tuple(last.statements)))

    def _end(self, scope: Scope, run: TextRun) -> None:
        """Divide by the sum of weights, apply the epilogue, and store."""
        one, vector = self.one, self.shape.vector
        self._put(scope, EXCHANGE, LID, self.sum, LANES)
        scope.add(WorkGroupBarrier())
        parts = [read(scope, self.dtype, EXCHANGE, lane, vector) for lane in range(0, LANES, vector)]
        total = one.lanes_combined(scope, one.added, one.combined(scope, one.added, parts))
        storing = scope.inner()
        made = one.made(storing, self.total, total, self.highest)
        row = Row(BLOCK_INDEX, storing.integer(run.first), 0, BLOCK_INDEX)
        one.store(storing, row, storing.integer(LID), None, made)
        scope.add(*_guarded(one.columns == self.shape.group or LID < one.columns, storing.statements))
        scope.add(WorkGroupBarrier())


def _guarded(condition: ConditionLike, statements: Sequence[Stmt]) -> Sequence[Stmt]:
    return statements if condition is True else [If(condition, tuple(statements))]
