"""Exact float32 attention on GPUs with asynchronous copies: large blocks, whose keys and values pass a ring of stages.

A work-item has 8 x 8 scores, and 8 x 16 sums of 128 columns, in registers: each number that it reads serves for 8 or
16 products. Queries and keys lie number by number in local memory. Copies of one number turn the keys, and put those
of a work-item side by side. Reads are one step ahead of the products. The state of the weights is in local memory while
scores need the registers.

Where all blocks see all keys, work-groups share the tiles of keys evenly. Some then hand a block over, with the state
of its weights and its sums.

Tiles of keys and the order of all sums are those of other forms, so results have the same bits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import chain
from typing import NamedTuple

from flowcompute.elements.math import multiply
from flowcompute.fuse import Reason
from flowcompute.ir import (
    ANY_ROWS,
    LID,
    ROLLED,
    Argument,
    Array,
    Assign,
    AwaitCopies,
    ConditionLike,
    ConstantValue,
    Copy,
    EarlyRead,
    EndCopies,
    For,
    HandOver,
    If,
    IndexLike,
    Kernel,
    Load,
    MultiplyAdd,
    N,
    Name,
    Picked,
    PutItem,
    SetInteger,
    Splat,
    Stmt,
    TakeOver,
    Var,
    WorkGroupBarrier,
    all_of,
    choose,
    equal,
    index_min,
    to_long,
)
from flowcompute.ir.launches import GROUPS_OF_UNIT, by_handed_tiles
from flowcompute.lower.attention.attention_anchor import (
    BLOCK_INDEX,
    KEYS,
    LANES,
    TILE,
    AttentionAnchor,
    why_no_attention,
)
from flowcompute.lower.attention.tiled.attention_slab import TILES
from flowcompute.lower.attention.tiled.attention_tiling import Shape
from flowcompute.lower.attention.tiled.tiled_attention import TiledAttentionLowering
from flowcompute.lower.attention.tiled.tiled_softmax import WEIGHTS
from flowcompute.lower.emit import Scope
from flowcompute.lower.form import Form, LoweringTask
from flowcompute.lower.handed_tasks import PLACE, SharedTasks, TaskPart
from flowcompute.lower.kernel_knobs import KernelStyle
from flowcompute.lower.matmul import copied_together
from flowcompute.spec import FLOAT32, UINT64
from flowcompute.strategy import KernelKnobs

QUERIES, ACROSS, VECTOR = 8, 8, 4
"""Queries of a work-item, work-items in a row, and numbers of one read."""
ROWS = 128
"""Queries of a work-group, which has as many work-items."""
DEPTH = 16
"""Numbers of each key in a stage."""
VALUES = 1024
"""Numbers in a stage of values."""
STAGES = 2
"""Stages of the ring. With more, local memory has no room for two work-groups on a compute unit, and the last part of a
tile would need numbers that no stage reads ahead.
"""
PAD = 4
"""Numbers behind those of all keys, so that copies of neighbouring numbers of a key meet different banks."""
PITCH = KEYS + PAD
"""Numbers from one number of all keys to the next."""
STAGE = max(DEPTH * PITCH, VALUES)
"""Numbers of a stage in local memory."""
COLUMNS = (32, 64, 128)
"""Columns of values."""
HANDED_COLUMNS = 128
"""Columns of values of which a compute unit runs two work-groups at once, as their registers allow."""
LEAST_TILES = 16
"""Fewest tiles of keys of blocks that are handed over: their state takes the time of some."""
STEP, HERE = Name("s", narrow=True), Name("here", narrow=True)
"""Number of a stage in its tile, and offset of the stage that is multiplied."""
NUMBER = Name("k", narrow=True)
"""Number of a value in its stage."""
COPIES_AT = 0
"""Number of a stage whose products the copies of the stage behind it stand beside."""
BACK = (3, 2, 1, 0)
"""Order of the lanes of scores and sums of odd rows."""
Fragments = tuple[list[Var], list[Var]]


class _Stages(NamedTuple):
    """Stages of keys or of values of a tile.

    Attributes:
        steps: how many a tile has.
        depth: numbers of a key, or values, in each.
        read: reads the factors of a step: of the stage at an offset, number `s` of its tile, and number k in it.
        copy: fills the stage at an offset with the next numbers, or with zeros unless they exist.
    """

    steps: int
    depth: int
    read: Callable[[Scope, IndexLike, IndexLike, IndexLike], Fragments]
    copy: Callable[[Scope, IndexLike, ConditionLike], None]


class CopiedAttentionLowering(TiledAttentionLowering):
    """Lowering of such an attention."""

    exchange = WEIGHTS

    def __init__(self, one: AttentionAnchor, style: KernelStyle, *, shares: bool = False) -> None:
        super().__init__(one, style, _shape(one))
        depth = self.shape.value_depth
        self.pitch, self.stage = PITCH, STAGE
        self.ring, self.last_stage = one.size * ROWS, (STAGES - 1) * self.stage
        self.of_keys = _Stages(one.size // DEPTH, DEPTH, self._read_keys, self._copy_keys)
        self.of_values = _Stages(KEYS // depth, depth, self._read_values, self._copy_values)

        self.groups = style.capabilities.units * GROUPS_OF_UNIT
        words = one.arguments.get("words", UINT64, -1) if shares else None
        self.shared = None if words is None else SharedTasks(words, N, -(-one.keys // KEYS))
        self.part: TaskPart | None = None

    def _arrays(self) -> list[Stmt]:
        return [Array(array, FLOAT32, 1, size, local=True) for array, size in _sizes(self.shape).items()]

    # -- parts of blocks ----------------------------------------------------------------------------------

    def _blocks(self, body: list[Stmt]) -> list[Stmt]:
        if (shared := self.shared) is None:
            return super()._blocks(body)
        drawn = shared.draw(self.one.names, 0)
        return [*drawn, WorkGroupBarrier(), *shared.open(), shared.loop(BLOCK_INDEX, body)]

    def _keys(self, scope: Scope) -> tuple[IndexLike, IndexLike]:
        if self.shared is None:
            return super()._keys(scope)
        self.part = self.shared.part(scope)
        stop = self.part.stop * KEYS
        return scope.integer(self.part.first * KEYS), scope.integer(index_min(stop, self.one.keys))

    def _handed(self) -> tuple[Argument, tuple[Var, ...]]:
        """Return the room for what is handed over with a block, and what that is."""
        variables = (*self.weights.highest, *self.weights.sums, *chain(*self.totals))
        numbers = self.groups * ROWS * sum(one.lanes for one in variables)
        return self.one.arguments.get("room", FLOAT32, -1, numbers=numbers), variables

    # -- operands into local memory -----------------------------------------------------------------------

    def _slabs(self, scope: Scope) -> None:
        """Load the queries of the block, scaled, and declare the work-item's part of all copies."""
        one = self.one
        self._bring_queries(scope)
        # Place 4 x + j in a stage is of key 8 j + x, and so on with the next 32.
        k, number = scope.narrow(LID % DEPTH), scope.narrow(LID // DEPTH)
        self.first_key = scope.narrow(number % VECTOR * ACROSS + number // VECTOR)
        apart = ROWS // DEPTH
        self.key_turns = [
            (place, place // VECTOR % ACROSS + place // (VECTOR * ACROSS) * VECTOR * ACROSS)
            for place in range(0, KEYS, apart)
        ]
        self.key_place = scope.narrow(self.ring + k * self.pitch + number)
        runs = one.columns // VECTOR
        self.first_value, column = scope.narrow(LID // runs), scope.narrow(LID % runs * VECTOR)
        self.value_turns = range(0, self.of_values.depth, ROWS // runs)
        self.value_place = scope.narrow(self.ring + self.first_value * one.columns + column)
        self.key_begin, self.value_begin = scope.integer(self.at_k + k), scope.integer(self.at_v + column)
        self.key, self.value = scope.name("i"), scope.name("i")
        self.key_source, self.value_source = scope.name("i"), scope.name("i")
        self.at_weights = scope.narrow(self.y * QUERIES)
        self.at_ring = scope.narrow(self.ring + self.x * VECTOR)

    def _bring_queries(self, scope: Scope) -> None:
        one = self.one
        scale = scope.let(Splat(scope.let(ConstantValue(one.scale), FLOAT32, 1)), FLOAT32, VECTOR)
        body, turn = scope.inner(VECTOR), Name("u")
        # Those of a work-item are side by side.
        line = self.block.first + LID // QUERIES + LID % QUERIES * self.shape.down
        line = body.integer(to_long(index_min(line, self.block.last) if self.ragged else line))
        aligned = self.aligned and copied_together(one.q, one.q.rows, one.size) == VECTOR
        load = Load(one.q.argument, self.at_q + one.q.rows.offset(line) + turn * VECTOR, aligned=aligned)
        number = one.apply(body, multiply.op, body.let(load, FLOAT32, VECTOR), scale)
        for lane in range(VECTOR):
            own = body.let(Picked((number,), (lane,)), FLOAT32, 1)
            body.add(PutItem(TILES, (turn * VECTOR + lane) * ROWS + LID, own))
        scope.add(For(turn, 0, one.size // VECTOR, 1, tuple(body.statements), unroll=4))

    def _begin(self, scope: Scope, start: IndexLike) -> list[Stmt]:
        one, inner = self.one, scope.inner()
        inner.add(
            SetInteger(self.key, start + self.first_key),
            SetInteger(self.key_source, self.key_begin + self.key * one.k.rows.stride),
            SetInteger(self.value, start + self.first_value),
            SetInteger(self.value_source, self.value_begin + self.value * one.v.rows.stride),
            SetInteger(HERE, 0),
        )
        for stage in range(STAGES - 1):
            self._copy_keys(inner, stage * self.stage, start < self.to_key)
            inner.add(EndCopies())
        inner.add(AwaitCopies(STAGES - 2), WorkGroupBarrier())
        if self.shared is not None and self.part is not None:
            room, variables = self._handed()
            take = TakeOver(room, self.shared.words, PLACE + 1, variables, ROWS)
            inner.add(If(self.part.first > 0, (take,)))
        return inner.statements

    def _there(self, line: IndexLike, exist: ConditionLike) -> ConditionLike:
        """Return whether there are numbers to copy, and a key or value `line`."""
        return all_of(exist, line < self.one.keys) if self.one.partial else exist

    def _copy_keys(self, scope: Scope, into: IndexLike, exist: ConditionLike) -> None:
        one, row = self.one, self.one.k.rows.stride
        own = scope.narrow(into + self.key_place)
        for place, key in self.key_turns:
            there = self._there(self.key + key, exist)
            scope.add(Copy(TILES, own + place, one.k.argument, self.key_source + key * row, 1, there))
        scope.add(SetInteger(self.key_source, self.key_source + DEPTH, new=False))

    def _copy_values(self, scope: Scope, into: IndexLike, exist: ConditionLike) -> None:
        one, row, depth = self.one, self.one.v.rows.stride, self.of_values.depth
        own = scope.narrow(into + self.value_place)
        for line in self.value_turns:
            source, there = self.value_source + line * row, self._there(self.value + line, exist)
            scope.add(Copy(TILES, own + line * one.columns, one.v.argument, source, VECTOR, there))
        scope.add(
            SetInteger(self.value, self.value + depth, new=False),
            SetInteger(self.value_source, self.value_source + depth * row, new=False),
        )

    # -- a tile of keys -----------------------------------------------------------------------------------

    def _tile(self, scope: Scope) -> None:
        one = self.one
        self.weights.leave(scope)
        scores, gates = self._scores(scope)
        self.weights.take(scope)
        # All of the tile's keys are on their way.
        scope.add(
            SetInteger(self.key, self.key + KEYS, new=False),
            SetInteger(self.key_source, self.key_source + (KEYS * one.k.rows.stride - one.size), new=False),
        )
        shrinks = self.weights.next(scope, scores, gates)
        scope.add(WorkGroupBarrier())
        for line, shrink in zip(self.totals, shrinks, strict=True):
            wide = scope.let(Splat(shrink), FLOAT32, VECTOR)
            for total in line:
                scope.add(Assign(total, Splat(one.apply(scope, multiply.op, total, wide))))
        more, whole = TILE + KEYS < self.to_key, scope.inner()
        self._multiply_stages(whole, self.of_values, self.of_keys, self.totals, more)
        if not one.hides:
            scope.add(*whole.statements)
            return
        from_last, to_first = one.seen_by_all(scope, self.block)
        part = scope.inner()
        self._multiply_seen(part, more)
        by_all = all_of(TILE >= from_last, TILE + KEYS <= to_first)
        scope.add(If(by_all, tuple(whole.statements), tuple(part.statements)))

    def _products(self, scope: Scope, begin: int, end: int) -> list[Var]:
        """Multiply the queries and the keys of a tile."""
        del begin, end
        sums = [[scope.let(ConstantValue(-0.0), FLOAT32, VECTOR) for _ in range(2)] for _ in range(QUERIES)]
        self._multiply_stages(scope, self.of_keys, self.of_values, sums, True)
        orders = (0, 1, 2, 3, 4, 5, 6, 7), (*BACK, 7, 6, 5, 4)
        return [scope.let(Picked(tuple(line), orders[i % 2]), FLOAT32, 2 * VECTOR) for i, line in enumerate(sums)]

    def _multiply_stages(
        self, scope: Scope, stages: _Stages, following: _Stages, sums: list[list[Var]], exist: ConditionLike
    ) -> None:
        """Add the products of a tile's stages, and fill those behind them; `exist` tells whether these exist."""
        ready, ahead = stages.read(scope, HERE, 0, 0), STAGES - 1
        parts = (
            (0, stages.steps - ahead, stages.copy, True),
            (stages.steps - ahead, stages.steps, following.copy, exist),
        )
        for begin, end, copy, there in parts:
            body, now = scope.inner(), ready
            after = body.narrow(choose(equal(HERE, self.last_stage), 0, HERE + self.stage))
            for k in range(stages.depth):
                if k == stages.depth - 1:
                    body.add(AwaitCopies(STAGES - 2), WorkGroupBarrier())
                    # Behind the last stage are others, which are read when their turn comes.
                    coming = now if end == stages.steps else stages.read(body, after, body.narrow(STEP + 1), 0)
                else:
                    coming = stages.read(body, HERE, STEP, k + 1)
                if k == COPIES_AT:
                    self._copy_into(body, copy, there)
                for i, line in enumerate(sums):
                    body.add(*self._row_products(body, now, line, i))
                now = coming
            if end < stages.steps:
                body.add(*(Assign(old, Splat(new)) for old, new in zip(chain(*ready), chain(*now), strict=True)))
            body.add(SetInteger(HERE, after, new=False))
            scope.add(For(STEP, begin, end, 1, tuple(body.statements), unroll=ROLLED))

    def _multiply_seen(self, scope: Scope, exist: ConditionLike) -> None:
        """Add the products of a tile's values to the sums of queries that see them, and fill the stages behind."""
        stages, ahead = self.of_values, STAGES - 1
        seen = [(scope.narrow(from_key - TILE), scope.narrow(to_key - TILE)) for from_key, to_key in self.seen]
        body = scope.inner()
        values, keys = body.inner(), body.inner()
        self._copy_into(values, stages.copy, True)
        self._copy_into(keys, self.of_keys.copy, exist)
        body.add(If(STEP + ahead < stages.steps, tuple(values.statements), tuple(keys.statements)))
        inner = body.inner()
        fragments, number = stages.read(inner, HERE, STEP, NUMBER), STEP * stages.depth + NUMBER
        for i, ((begin, end), line) in enumerate(zip(seen, self.totals, strict=True)):
            late = self.one.window is None or number >= begin
            inner.add(If(all_of(late, number < end), tuple(self._row_products(inner, fragments, line, i))))
        body.add(For(NUMBER, 0, stages.depth, 1, tuple(inner.statements), unroll=ROLLED))
        body.add(AwaitCopies(STAGES - 2), WorkGroupBarrier())
        body.add(SetInteger(HERE, choose(equal(HERE, self.last_stage), 0, HERE + self.stage), new=False))
        scope.add(For(STEP, 0, stages.steps, 1, tuple(body.statements), unroll=ROLLED))

    def _copy_into(
        self, scope: Scope, copy: Callable[[Scope, IndexLike, ConditionLike], None], exist: ConditionLike
    ) -> None:
        """Fill the stage that all have read before the last barrier."""
        copy(scope, scope.narrow(choose(equal(HERE, 0), self.last_stage, HERE - self.stage)), exist)
        scope.add(EndCopies())

    @staticmethod
    def _read(scope: Scope, array: str, begin: IndexLike, count: int, apart: int) -> list[Var]:
        return [scope.let(EarlyRead(array, begin + part * apart), FLOAT32, VECTOR) for part in range(count)]

    def _read_keys(self, scope: Scope, stage: IndexLike, step: IndexLike, k: IndexLike) -> Fragments:
        """Read number k of the queries and keys of a stage."""
        at = scope.narrow(self.at_weights + step * (DEPTH * ROWS)), scope.narrow(self.at_ring + stage)
        queries = self._read(scope, TILES, at[0] + k * ROWS, 2, VECTOR)
        return queries, self._read(scope, TILES, at[1] + k * self.pitch, 2, ACROSS * VECTOR)

    def _read_values(self, scope: Scope, stage: IndexLike, step: IndexLike, k: IndexLike) -> Fragments:
        """Read the weights and the columns of value k of a stage."""
        pitch = self.shape.weight_pitch
        at = scope.narrow(self.at_weights + step * (self.of_values.depth * pitch)), scope.narrow(self.at_ring + stage)
        weights = self._read(scope, WEIGHTS, at[0] + k * pitch, 2, VECTOR)
        return weights, self._read(scope, TILES, at[1] + k * self.one.columns, self.parts, ACROSS * VECTOR)

    @staticmethod
    def _row_products(scope: Scope, fragments: Fragments, line: list[Var], i: int) -> list[Stmt]:
        """Add the products of one number of keys, or of one value, to the sums of row `i`.

        Odd rows run from the last column to the first. Neighbours in the text then share a factor, which the device
        reads from its registers once.
        """
        rows, columns = fragments
        inner = scope.inner(VECTOR)
        factor = inner.let(Picked((rows[i // VECTOR],), (i % VECTOR,)), FLOAT32, VECTOR)
        pairs = [*zip(line, columns, strict=True)]
        for total, other in reversed(pairs) if i % 2 else pairs:
            other = inner.let(Picked((other,), BACK), FLOAT32, VECTOR) if i % 2 else other
            inner.add(Assign(total, Splat(inner.let(MultiplyAdd(factor, other, total), FLOAT32, VECTOR))))
        return inner.statements

    def _end(self, scope: Scope, mine: IndexLike) -> None:
        if self.shared is None or self.part is None:
            self._finish(scope, mine)
            return
        room, variables = self._handed()
        finish = scope.inner()
        self._finish(finish, mine)
        hand = HandOver(room, self.shared.words, PLACE, variables, ROWS)
        scope.add(If(self.part.left > 0, (hand,), tuple(finish.statements)))

    def _finish(self, scope: Scope, mine: IndexLike) -> None:
        # Sums of weights are exchanged where weights are.
        scope.add(AwaitCopies(0), WorkGroupBarrier())
        for i in range(1, QUERIES, 2):
            self.totals[i] = [scope.let(Picked((total,), BACK), FLOAT32, VECTOR) for total in self.totals[i]]
        super()._end(scope, mine)


def _shape(one: AttentionAnchor) -> Shape:
    """Return the tiling."""
    depths, parts = (DEPTH, VALUES // one.columns), one.columns // (ACROSS * VECTOR)
    return Shape(QUERIES, ROWS // QUERIES, ACROSS, VECTOR, one.size, *depths, VECTOR, parts, True)


def _sizes(shape: Shape) -> dict[str, int]:
    """Return the numbers of the local arrays, by their names."""
    return {TILES: shape.size * ROWS + STAGES * STAGE, WEIGHTS: max(KEYS * shape.weight_pitch, ROWS * LANES)}


def _why_not(task: LoweringTask) -> Reason | None:
    if (reason := why_no_attention(task)) is not None:
        return reason
    capabilities, wanted = task.style.capabilities, task.style.wanted
    one = AttentionAnchor(task.graph, task.region)
    if not capabilities.tensor_cores:
        return task.refuse("the device has no asynchronous copies")
    if wanted.work_group or wanted.block_rows:
        return task.refuse("blocks of another size are wanted")
    sides = (one.q, one.k, one.v)
    if {one.dtype, *(side.argument.dtype for side in sides)} != {FLOAT32}:
        return task.refuse("its numbers are no float32")
    if any(one.is_computed(side) or side.columns.stride != 1 for side in sides):
        return task.refuse("an operand is computed where it is loaded, or its numbers do not lie side by side")
    if one.gate or one.size % DEPTH or not STAGES * DEPTH <= one.size <= 128 or one.columns not in COLUMNS:
        return task.refuse("its queries or values have another size than large blocks take")
    if sum(_sizes(_shape(one)).values()) * FLOAT32.itemsize > capabilities.local_bytes:
        return task.refuse("the device has too little local memory for large blocks")
    if copied_together(one.v, one.v.rows, one.columns) % VECTOR:
        return task.refuse("its values do not begin at multiples of four numbers")
    if one.queries < ROWS or one.block_count(ROWS) < capabilities.units:
        return task.refuse("it has fewer large blocks than the device has compute units")
    return None


def _lower(task: LoweringTask) -> Kernel:
    def kernel(*, shares: bool) -> Kernel:
        lowering = CopiedAttentionLowering(AttentionAnchor(task.graph, task.region), task.style, shares=shares)
        groups = lowering.groups if shares else 0
        return replace(lowering.lower(task.name), knobs=KernelKnobs(), shares=groups)

    one = AttentionAnchor(task.graph, task.region)
    if one.causal or one.columns != HANDED_COLUMNS or one.keys < LEAST_TILES * KEYS:
        return kernel(shares=False)
    few = kernel(shares=True)
    return replace(kernel(shares=False), few=few, few_rows=ANY_ROWS)


COPIED_ATTENTION = Form(
    name="copied attention", accepts=_why_not, lower=_lower, geometry=by_handed_tiles, family="attention"
)
"""Exact attention of many float32 queries on GPUs with asynchronous copies."""
