"""Attention by groups of four sub-groups, whose operands tensor copies bring: half formats on Hopper.

A work-group keeps a compute unit to itself and takes one block of queries after the other. One work-item copies tiles
of keys and values into a ring of stages in local memory, also those of the next block while one is stored. Each group
of four sub-groups has 64 queries. It takes tiles in pairs: scores of both are one product. Weights are computed while
weighted values of the pair before are added (FlashAttention-3, Shah et al., 2024). They stay in the registers in which
the second product needs them. Sums are multiplied between the two tiles of a pair, as tile by tile. Where values have
two slabs, groups take turns: one starts its products when the other has its scores and computes weights.

Tiles of keys, steps of k and the order of all sums are those of attention by single sub-groups (`tensor_attention`).
So are blocks of queries under a causal mask. No form changes a bit on a device.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import chain
from typing import NamedTuple

import numpy as np

from flowcompute.elements.math import multiply
from flowcompute.fuse import Reason
from flowcompute.ir import (
    GID,
    GSIZE,
    LID,
    MAP_BYTES,
    MOST_MAPS,
    RING_GROUP,
    Array,
    Assign,
    AwaitStage,
    BoxCopy,
    ConstantValue,
    FillStages,
    For,
    FragmentOf,
    FreeStage,
    GroupMultiply,
    If,
    IndexLike,
    IsZero,
    Kernel,
    N,
    Name,
    NoneZero,
    OpenRing,
    OverlappedMultiply,
    PassSteps,
    PassTurn,
    PutItem,
    RingRoles,
    SetInteger,
    Splat,
    Stmt,
    TakeTurn,
    TensorMap,
    Var,
    choose,
)
from flowcompute.ir.launches import by_resident_tiles
from flowcompute.lower.anchor_point import Operand
from flowcompute.lower.attention.attention_anchor import (
    BLOCK_INDEX,
    KEYS,
    TILE,
    AttentionAnchor,
    QueryBlock,
    why_no_attention,
)
from flowcompute.lower.attention.tensor_masking import Masking, Unseen
from flowcompute.lower.attention.tensor_softmax import HALVES, WHOLE, Quotients, Weights
from flowcompute.lower.attention.tensor_tiling import WIDE
from flowcompute.lower.emit import Scope
from flowcompute.lower.form import Form, LoweringTask
from flowcompute.lower.matmul import CHUNK_BYTES, EDGE, LANES, PITCH, STRIP, SUBGROUP, TILES
from flowcompute.spec import BFLOAT16, FLOAT16, FLOAT32, UINT8

GROUP = 4 * SUBGROUP
"""Work-items that multiply together; each group has 64 queries."""
GROUPS = 2
ROWS = 64 * GROUPS
WORKERS = GROUPS * GROUP
WORK_GROUP = WORKERS + GROUP
REGISTERS = 40, 232
"""Registers of a work-item that copies and of one that works, which together are those of a compute unit."""
PAIR = 2 * KEYS
"""Keys that are multiplied together."""
SLAB = 64
"""Numbers of a query, key or value in a box: lines of 128 bytes, in which copies exchange chunks."""
STAGES = 8
"""Most stages, each with two tiles of keys or of values."""
LEAST_STAGES = 4
"""Fewest: keys and values of two tiles, and those of the next two."""
BARRIERS, FIELDS = "barriers", "fields"
"""Local arrays of the barriers of stages, and of the maps that are being made."""
RESULTS = "results"
"""Local array that results go through, while the stages are filled for the next block."""
_ROUND, _STEP, _STAGE = Name("round"), Name("s"), Name("stage")
_OF_KEYS, _OF_VALUES = Name("of_keys"), Name("of_values")
_WHOLES = ROWS + 4 * WORKERS
"""Numbers of `WHOLE`: behind the sums of weights are places that nobody reads."""
_UINT32, _UINT64 = np.dtype(np.uint32), np.dtype(np.uint64)


def _slabs(numbers: int) -> int:
    """Return the boxes that hold so many numbers of a line."""
    return -(-numbers // SLAB)


def _local_numbers(one: AttentionAnchor) -> tuple[int, int]:
    """Return the numbers of all queries, and those of a stage."""
    return ROWS * SLAB * _slabs(one.size), PAIR * SLAB * max(_slabs(one.size), _slabs(one.columns))


def _result_numbers(one: AttentionAnchor) -> int:
    """Return the numbers of the results of a block that are in local memory at a time."""
    return ROWS * (min(STRIP, -(-one.columns // 8) * 8) + PITCH)


def _stages(one: AttentionAnchor, local_bytes: int) -> int:
    """Return how many stages local memory holds beside queries, results and what else is there; STAGES at most."""
    queries, stage = (numbers * one.q.argument.dtype.itemsize for numbers in _local_numbers(one))
    others = (_result_numbers(one) + _WHOLES) * FLOAT32.itemsize + MOST_MAPS * MAP_BYTES + 1024
    return min(STAGES, (local_bytes - queries - others) // stage)


def _distance(operand: Operand) -> int:
    """Return a distance in numbers of which all matrices of an operand lie at multiples; 0 where there is one."""
    shape = operand.spec.shape[: operand.stack]
    strides = (stride for size, stride in zip(shape, operand.lies.strides, strict=False) if size != 1)
    return math.gcd(operand.lies.record, *strides)


class _Tiles(NamedTuple):
    """Tiles of keys of a block, in pairs of which the last one is whole.

    Attributes:
        start, stop: begin of the first tile, and end of the keys.
        odd: 1 where the first pair has one tile, else 0.
        first: begin of the first pair.
        pairs: number of pairs.
    """

    start: IndexLike
    stop: IndexLike
    odd: IndexLike
    first: IndexLike
    pairs: IndexLike


class _WarpGroupAttentionLowering:
    def __init__(self, task: LoweringTask) -> None:
        self.task = task
        self.one = one = AttentionAnchor(task.graph, task.region)
        self.dtype = one.q.argument.dtype
        self.queries, self.stage = _local_numbers(one)
        # Products of one slab are too short for that: weights are what takes time.
        self.turns = _slabs(one.columns) > 1
        self.maps = [
            TensorMap(
                side.argument,
                side.lies.offset,
                math.prod(side.columns.sizes),
                count,
                side.rows.stride,
                (SLAB, rows),
                _distance(side),
            )
            for side, count, rows in ((one.q, one.queries, ROWS), (one.k, one.keys, KEYS), (one.v, one.keys, KEYS))
        ]
        room = one.arguments.get("maps", UINT8, one.node.id)
        # Equal views of one argument share a map.
        stages = _stages(one, task.style.capabilities.local_bytes)
        self.ring = OpenRing(tuple(dict.fromkeys(self.maps)), room, FIELDS, BARRIERS, stages, WORKERS)

    def lower(self) -> Kernel:
        """Return the kernel; its work counts blocks of queries."""
        one, ring = self.one, self.ring
        # The first group has the turn at first.
        begin = (If(RING_GROUP > GROUPS - 2, (PassTurn(GROUPS),)),) if self.turns else ()
        roles = RingRoles(ring, (self._each_block(self._copies),), (*begin, self._each_block(self._block)), REGISTERS)
        operands = (self.queries + ring.stages * self.stage) * self.dtype.itemsize // FLOAT32.itemsize
        return Kernel(
            self.task.name,
            self.task.region.name,
            one.arguments.ordered(),
            (
                Array(TILES, FLOAT32, 1, operands, local=True, alignment=1024),
                Array(RESULTS, FLOAT32, 1, _result_numbers(one), local=True),
                Array(WHOLE, FLOAT32, 1, _WHOLES, local=True),
                Array(BARRIERS, _UINT64, 1, 2 * ring.stages, local=True),
                Array(FIELDS, _UINT32, 1, MOST_MAPS * MAP_BYTES // 4, local=True, alignment=MAP_BYTES),
                ring,
                roles,
            ),
            work="matmul",
            work_group=WORK_GROUP,
            units=one.block_count(ROWS),
            lanes=LANES,
            tensor=True,
        )

    def _each_block(self, add: Callable[[Scope], None]) -> For:
        """Return the loop over the blocks of a work-group."""
        scope = Scope(self.one.names, lanes=LANES)
        add(scope)
        # Work-groups take blocks there and back, so that all have blocks of about as many tiles.
        turned = choose(_ROUND % 2 < 1, GID, GSIZE - 1 - GID)
        number = SetInteger(BLOCK_INDEX, _ROUND * GSIZE + turned)
        return For(_ROUND, 0, (N + GSIZE - 1) // GSIZE, 1, (number, If(BLOCK_INDEX < N, tuple(scope.statements))))

    # -- a block of queries -------------------------------------------------------------------------------

    def _block(self, scope: Scope) -> None:
        """Add what the workers do for a block."""
        one = self.one
        block = one.block(scope, ROWS)
        top = scope.narrow(LID // SUBGROUP * EDGE)
        mine = scope.integer(block.first + top + LID % SUBGROUP // 4)
        own = [[mine + 8 * lower for lower in HALVES]]
        self.masking = Masking(one, block, own, one.base(scope, one.mask, block))
        self.weights = Weights(scope, one)
        self.totals = [scope.let(ConstantValue(0.0), FLOAT32, 4) for _ in range(-(-one.columns // 8))]
        tiles = self._tiles(scope, block)
        work = scope.inner()
        self._work(work, tiles)
        scope.add(If(tiles.start < tiles.stop, tuple(work.statements)), PassSteps(self.ring, 2 * tiles.pairs))
        correct = Unseen(one, block).correct if one.causal else None
        quotients = Quotients(one, block, ROWS, WORK_GROUP, top, correct, apart=RESULTS)
        quotients.store(scope, [self.weights], [self.totals])

    def _tiles(self, scope: Scope, block: QueryBlock) -> _Tiles:
        """Declare the tiles of keys of a block."""
        start, stop = self.one.tiles(scope, block)
        count = scope.integer((stop - start + KEYS - 1) // KEYS)
        odd = scope.integer(count % 2)
        return _Tiles(start, stop, odd, scope.integer(start - odd * KEYS), scope.integer((count + 1) // 2))

    def _copies(self, scope: Scope) -> None:
        """Add the copies for a block: steps of even numbers bring keys, odd ones values."""
        one = self.one
        block = one.block(scope, ROWS)
        tiles = self._tiles(scope, block)
        of_q, of_k, of_v = self.maps
        in_q, in_k, in_v = (self._matrix(scope, side, block) for side in (one.q, one.k, one.v))
        queries = [
            BoxCopy(of_q, slab * ROWS * SLAB, slab * SLAB, block.first, in_q) for slab in range(_slabs(one.size))
        ]
        begin, tile = self.queries + _STAGE * self.stage, tiles.first + _STEP // 2 * PAIR
        # Zeros stand for the tile beside an odd one: values there may be infinite. No rows lie before the first one.
        rows = (tile if one.window is None else choose(tile < tiles.start, -KEYS, tile)), tile + KEYS
        keys, values = (
            [
                BoxCopy(of, begin + (slab * PAIR + half * KEYS) * SLAB, slab * SLAB, row, matrix)
                for slab in range(_slabs(numbers))
                for half, row in enumerate(rows)
            ]
            for of, matrix, numbers in ((of_k, in_k, one.size), (of_v, in_v, one.columns))
        )
        fills = (tuple(keys), tuple(values))
        # The last keys of the block before are given back when its queries are no longer read.
        scope.add(FillStages(self.ring, TILES, _STEP, _STAGE, 2 * tiles.pairs, fills, tuple(queries), behind=2))

    def _matrix(self, scope: Scope, operand: Operand, block: QueryBlock) -> IndexLike:
        """Declare the number of a block's matrix, counted in the distance of the operand's map."""
        distance = _distance(operand)
        if not distance:
            return 0
        lies = operand.lies
        counted = replace(
            lies,
            offset=0,
            record=lies.record // distance,
            # Strides that are no multiples are those of axes of one matrix or of the matrix itself.
            strides=tuple(stride // distance for stride in lies.strides),
        )
        return self.one.base(scope, replace(operand, lies=counted), block)

    def _work(self, scope: Scope, tiles: _Tiles) -> None:
        """Take the pairs of tiles: scores and weights of each beside the weighted values of the one before."""
        ring = self.ring
        scores = [scope.let(ConstantValue(0.0), FLOAT32, 4) for _ in range(PAIR // 8)]
        fragments = [scope.let(ConstantValue(0), _UINT32, 4) for _ in range(PAIR // EDGE)]
        later = scope.let(ConstantValue(0.0), FLOAT32, 4)
        halves = [scores[: KEYS // 8], scores[KEYS // 8 :]], [fragments[: KEYS // EDGE], fragments[KEYS // EDGE :]]
        pairs = list(zip(*halves, strict=True))
        product, values = self._scores(scores), [self._values(tuple(of), half) for half, (_, of) in enumerate(pairs)]
        scope.add(AwaitStage(ring, 0, _OF_KEYS), product, FreeStage(ring, _OF_KEYS))
        for half, (line, of) in enumerate(pairs):
            # Beside an odd tile no number counts: its scores are none, and its weights are zeros.
            counts = half == 1 or tiles.odd < 1
            inner = scope.inner()
            self._mask(inner, [line], tiles.first + half * KEYS)
            self._pack(inner, self.weights.next(inner, line), of)
            inner.add(Assign(later, Splat(self.weights.shrink)))
            if counts is not False:
                scope.add(*inner.statements if counts is True else [If(counts, tuple(inner.statements))])
        body = scope.inner()
        number = body.integer((TILE - tiles.first) // PAIR)
        body.add(AwaitStage(ring, 2 * number, _OF_KEYS), AwaitStage(ring, 2 * number - 1, _OF_VALUES))
        rescaling, weighing, further = body.inner(), body.inner(), body.inner()
        self._rescale(rescaling, later)
        if self.turns:
            body.add(TakeTurn(GROUPS))
            weighing.add(PassTurn(GROUPS))
        weighing.add(FreeStage(ring, _OF_KEYS))
        self._mask(weighing, halves[0], TILE)
        largest, before = self._largest(weighing, halves[0]), self.weights.total
        if not self.weights.normal:
            before = weighing.let(Splat(before), FLOAT32, 4)
        # Powers of two are slow. In turns, those of the second tile are computed beside multiplied sums.
        rest, shrinks, powers, weights = further if self.turns else weighing, [], [], []
        for place, line, highest in zip((weighing, rest), halves[0], largest, strict=True):
            weights.append(self.weights.next(place, line, highest, normal=True))
            shrinks.append(self.weights.shrink)
            powers.append(self.weights.powers)
        rest.add(Assign(later, Splat(self.weights.shrink)))
        # What is stored is computed. Otherwise the assembler computes these weights when values have been awaited.
        weighing.add(PutItem(WHOLE, ROWS + 4 * LID, self.weights.total, vector=True))
        behind = tuple(rescaling.statements), tuple(weighing.statements), ()
        body.add(OverlappedMultiply((values[0], product, values[1]), behind), FreeStage(ring, _OF_VALUES))
        body.add(*further.statements)
        self._rescale(body, shrinks[0])
        for line, of in zip(weights, halves[1], strict=True):
            self._pack(body, line, of)
        if not self.weights.normal:
            body.add(self._all_weights(body, before, shrinks, powers, halves[1]))
        scope.add(For(TILE, tiles.first + PAIR, tiles.stop, PAIR, tuple(body.statements)))
        scope.add(AwaitStage(ring, 2 * tiles.pairs - 1, _OF_VALUES), values[0])
        self._rescale(scope, later)
        scope.add(values[1], FreeStage(ring, _OF_VALUES))

    def _mask(self, scope: Scope, tiles: Sequence[list[Var]], first: IndexLike) -> None:
        """Mask the scores of neighbouring tiles."""
        for number, scores in enumerate(tiles):
            self.masking.add(scope, [scores], first + number * KEYS)
            self.masking.hide(scope, [scores], first + number * KEYS)

    def _largest(self, scope: Scope, tiles: Sequence[list[Var]]) -> Sequence[list[Var] | None]:
        """Compute the largest scores up to each of neighbouring tiles, or leave that to the weights of each."""
        if not self.turns:
            return [None] * len(tiles)
        largest = [self.weights.highest]
        for scores in tiles:
            largest.append(self.weights.largest(scope, scores, largest[-1]))
        return largest[1:]

    def _rescale(self, scope: Scope, shrink: Var) -> None:
        """Multiply the sums by the weight of the largest score before."""
        for total in self.totals:
            scope.add(Assign(total, Splat(self.one.apply(scope, multiply.op, total, shrink))))

    def _pack(self, scope: Scope, weights: Sequence[Var], fragments: Sequence[Var]) -> None:
        """Set weights as left operands."""
        for one, low, high in zip(fragments, weights[::2], weights[1::2], strict=True):
            scope.add(Assign(one, FragmentOf(low, high, self.dtype)))

    def _all_weights(
        self,
        scope: Scope,
        before: Var,
        shrinks: Sequence[Var],
        powers: Sequence[Sequence[Var]],
        packed: Sequence[Sequence[Var]],
    ) -> Stmt:
        """Compute the weights of a pair again where one of them is 0, and may be a number below 2^-126.

        Such numbers take four instructions in place of one. They are rare, so a sub-group looks whether it has any.

        Args:
            scope: where it looks.
            before: sums of weights before the pair.
            shrinks: factors of these sums before each tile.
            powers: powers of two of each tile.
            packed: weights of each tile as left operands.
        """
        again, total = scope.inner(), before
        for shrink, line, fragments in zip(shrinks, powers, packed, strict=True):
            weights = [self.weights.weight(again, power) for power in line]
            total = self.one.sum_of_weights(again, total, shrink, weights)
            self._pack(again, weights, fragments)
        again.add(Assign(self.weights.total, Splat(total)))
        none_zero = scope.let(NoneZero(tuple(chain(*packed))), _UINT32, 1)
        return If(IsZero(none_zero.name), tuple(again.statements))

    def _scores(self, scores: list[Var]) -> GroupMultiply:
        """Return the product of the group's queries with the keys of a stage."""
        left, right = RING_GROUP * (64 * SLAB), self.queries + _OF_KEYS * self.stage
        depth, further = -(-self.one.size // EDGE) * EDGE, (ROWS * SLAB, PAIR * SLAB)
        return GroupMultiply(tuple(scores), TILES, left, right, True, depth, self.dtype, further, fresh=True)

    def _values(self, fragments: tuple[Var, ...], half: int) -> GroupMultiply:
        """Return the product of weights with the values of one tile of a stage."""
        right = self.queries + _OF_VALUES * self.stage + half * KEYS * SLAB
        return GroupMultiply(tuple(self.totals), TILES, fragments, right, False, KEYS, self.dtype, aside=PAIR * SLAB)


def _why_not(task: LoweringTask) -> Reason | None:
    if (reason := why_no_attention(task)) is not None:
        return reason
    capabilities = task.style.capabilities
    if not capabilities.warp_groups:
        return task.refuse(f"four sub-groups of {capabilities.name} do not multiply together")
    one = AttentionAnchor(task.graph, task.region)
    operands, dtype = (one.q, one.k, one.v), one.q.argument.dtype
    if dtype not in (FLOAT16, BFLOAT16) or any(side.argument.dtype != dtype for side in operands):
        return task.refuse("its operands are of no half format")
    if one.scale <= 0 or not one.size or max(one.size, one.columns) > WIDE:
        return task.refuse(f"its scores have no positive scale, or its heads have no or more than {WIDE} numbers")
    if one.queries < ROWS or not one.keys:
        return task.refuse(f"it has fewer than {ROWS} queries, or no keys")
    if any(side.argument.value in task.region.nodes for side in operands):
        return task.refuse("an operand is computed where it is loaded")
    if not all(axes.single for side in operands for axes in (side.rows, side.columns)):
        return task.refuse("no single stride serves an operand's rows and columns")
    if any(side.columns.stride != 1 for side in operands):
        return task.refuse("no neighbours lie along its operands' rows")
    places = [(side.lies.offset, side.rows.stride, _distance(side)) for side in operands]
    if any(place * dtype.itemsize % CHUNK_BYTES for three in places for place in three):
        return task.refuse(f"rows of an operand do not begin at multiples of {CHUNK_BYTES} bytes")
    if any(side.rows.stride <= 0 for side in operands):
        return task.refuse("rows of an operand lie in the opposite order")
    if _stages(one, capabilities.local_bytes) < LEAST_STAGES:
        return task.refuse("local memory is too small")
    return None


def _lower(task: LoweringTask) -> Kernel:
    return _WarpGroupAttentionLowering(task).lower()


WARP_GROUP_ATTENTION = Form(name="warp-group attention", accepts=_why_not, lower=_lower, geometry=by_resident_tiles)
"""Attention of half formats by groups of four sub-groups."""
