"""Attention on tensor cores: half formats, scores and sums in float32 (FlashAttention-2, Dao, 2023).

Each sub-group of 32 work-items takes 16 or 32 queries of a head. Tiles of keys and values pass through
local memory; the next tiles are loaded while the current ones are multiplied. Scores become weights in the
registers in which the second multiplication needs them.

The following is part of the definition of attention in half formats on such devices:

- Keys are processed in tiles of `KEYS`, in order.
- Scores (over d) and weighted values (over keys) are summed in steps of 16. The device decides the order
  within a step.
- Weights are summed in 8 classes by the key's number modulo 8, in order. The classes are added pairwise.
- Weights are powers of two, to about 2 ulp of float32. They are rounded to the half format before they
  multiply values.
- A tile of which a query of its block sees nothing counts like others.

No size that knobs choose changes a bit: under a causal mask, blocks have the size that shapes give. For 16 queries or
fewer, each of four sub-groups takes every fourth block of 16 keys. Their sums are added in order.

float32 is multiplied in three terms where `precision="tf32x3"` asks for it, as in `lower_tensor_matmul`.
Tensor cores then sum the weighted values of a tile, and fma adds the tiles.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np

from flowcompute.elements.math import multiply
from flowcompute.fuse import Reason
from flowcompute.imports import dataclass
from flowcompute.ir import (
    GID,
    GSIZE,
    LID,
    Array,
    ArrayItem,
    Assign,
    AwaitCopies,
    ConditionLike,
    ConstantValue,
    EndCopies,
    For,
    FragmentMultiply,
    FragmentOf,
    If,
    IndexLike,
    Kernel,
    MultiplyAdd,
    N,
    PutItem,
    Splat,
    Var,
    WordsOf,
    WorkGroupBarrier,
    all_of,
    to_int,
    to_long,
)
from flowcompute.ir.launches import by_tiles
from flowcompute.lower.anchor_point import Operand
from flowcompute.lower.attention.attention_anchor import BLOCK_INDEX, KEYS, TILE, AttentionAnchor, why_no_attention
from flowcompute.lower.attention.tensor_masking import Masking, Unseen
from flowcompute.lower.attention.tensor_softmax import HALVES, WHOLE, Quotients, Weights
from flowcompute.lower.attention.tensor_tiling import KNOBS, STAGES, SUBGROUPS, TensorShape, fitting_shape
from flowcompute.lower.emit import Scope
from flowcompute.lower.form import Form, LoweringTask
from flowcompute.lower.matmul import (
    EDGE,
    LANES,
    SUBGROUP,
    TILES,
    Feed,
    FragmentReader,
    TensorTile,
    copied_together,
    three_terms,
)
from flowcompute.spec import BFLOAT16, FLOAT16, FLOAT32

HIGHEST = "highest"
"""Local array of each query's largest score in each sub-group."""


@dataclass(frozen=True)
class _ProductBlock:
    """Step of k and block of 16 columns of a multiplication."""

    step: int
    part: int


class _TensorAttentionLowering:
    def __init__(self, one: AttentionAnchor, shape: TensorShape) -> None:
        self.one, self.shape = one, shape
        self.dtype, self.exact, self.split = one.q.argument.dtype, shape.exact, shape.split
        self.rows, self.edges = shape.rows, shape.edges
        self.q_tile, self.k_tile, self.v_tile = shape.tiles

    def lower(self, name: str) -> Kernel:
        """Return the kernel; its work counts blocks of queries."""
        one = self.one
        scope = Scope(one.names, lanes=LANES)
        self._block(scope)
        return Kernel(
            name,
            one.region.name,
            one.arguments.ordered(),
            (
                Array(TILES, FLOAT32, 1, self.shape.local_bytes // FLOAT32.itemsize, local=True),
                Array(WHOLE, FLOAT32, 1, self.rows, local=True),
                *([Array(HIGHEST, FLOAT32, 1, self.rows, local=True)] if self.split else []),
                For(BLOCK_INDEX, GID, N, GSIZE, tuple(scope.statements)),
            ),
            work="matmul",
            work_group=self.shape.group,
            units=one.block_count(self.rows),
            lanes=LANES,
            tensor=self.exact,
            knobs=self.shape.knobs,
        )

    # -- a block of queries -------------------------------------------------------------------------------

    def _block(self, scope: Scope) -> None:
        one = self.one
        self.block = block = one.block(scope, self.rows)
        self.top = scope.narrow(LID // SUBGROUP * (self.edges * EDGE))
        self.first_key: IndexLike = self.top if self.split else 0
        self.first_query: IndexLike = 0 if self.split else self.top
        mine = scope.integer(block.first + self.first_query + LID % SUBGROUP // 4)
        # These are expressions, not variables: 64-bit values that only a few tiles use would take many registers.
        own = [[mine + (edge * EDGE + 8 * lower) for lower in HALVES] for edge in range(self.edges)]
        self.masking = Masking(one, block, own, one.base(scope, one.mask, block), self.first_key)
        self._feeds(scope)
        self._state(scope)
        start, stop = one.tiles(scope, block)
        self.q_feed.bring(scope, 0, 0)
        self._bring(scope, self.k_feed, start, stop)
        self._bring(scope, self.v_feed, start, stop)
        self._bring(scope, self.k_feed, start + KEYS, stop)
        tile = scope.inner()
        self._tile(tile, stop)
        scope.add(For(TILE, start, stop, KEYS, tuple(tile.statements)), AwaitCopies(0))
        self._end(scope)

    def _state(self, scope: Scope) -> None:
        """Declare the state that is carried from tile to tile, for each 16 queries of the sub-group."""
        one, edges = self.one, range(self.edges)
        self.weights = [Weights(scope, one) for _ in edges]
        self.totals = [[scope.let(ConstantValue(0.0), FLOAT32, 4) for _ in range(-(-one.columns // 8))] for _ in edges]

    # -- operands into local memory -----------------------------------------------------------------------

    def _feeds(self, scope: Scope) -> None:
        one = self.one
        at_q = one.base(scope, one.q, self.block)
        at_block = at_q + self.block.first * one.q.rows.stride
        self.q_feed = self._feed(scope, one.q, self.q_tile, at_block, one.queries)
        at_k, at_v = (one.base(scope, side, self.block) for side in (one.k, one.v))
        self.k_feed = self._feed(scope, one.k, self.k_tile, at_k, one.keys)
        self.v_feed = self._feed(scope, one.v, self.v_tile, at_v, one.keys)
        self.readers = (
            FragmentReader(scope, self.q_tile, self.first_query, right=False),
            FragmentReader(scope, self.k_tile, self.first_key, right=True),
            FragmentReader(scope, self.v_tile, 0, right=True, depth=self.first_key),
        )

    def _feed(self, scope: Scope, operand: Operand, tile: TensorTile, origin: IndexLike, count: int) -> Feed:
        """Return a feed of rows of an operand (queries, keys or values), of which there are `count`."""
        origin = scope.integer(origin)
        rows_are_lines = operand.columns.stride == 1
        numbers = math.prod(operand.columns.sizes)
        lines = operand.rows if rows_are_lines else operand.columns
        extent = numbers if rows_are_lines else count
        width = tile.width if rows_are_lines else tile.lines

        def exists(line: IndexLike, at: IndexLike) -> ConditionLike:
            row, column = (line, at) if rows_are_lines else (at, line)
            in_rows = operand is not self.one.q or self.block.first + row < count
            return all_of(in_rows, numbers >= width or column < numbers)

        return Feed(
            scope,
            tile,
            operand.argument,
            copied_together(operand, lines, extent),
            self.shape.group,
            lambda _, line: origin + to_long(line) * lines.stride,
            lines.stride,
            exists,
        )

    def _bring(self, scope: Scope, feed: Feed, key: IndexLike, stop: IndexLike) -> None:
        """Start the asynchronous copy of keys or values from `key` on, as one group of copies."""
        one = self.one
        operand = one.k if feed is self.k_feed else one.v
        rows_are_lines = operand.columns.stride == 1
        inner = scope.inner()
        first = inner.integer(key)

        def limit(line: IndexLike, at: IndexLike) -> ConditionLike:
            return first + (line if rows_are_lines else at) < one.keys

        stage = inner.narrow(to_int(first // KEYS % STAGES))
        feed.bring(inner, stage, first * operand.rows.stride, limit if one.partial else None)
        scope.add(If(key < stop, tuple(inner.statements)), EndCopies())

    # -- a tile of keys -------------------------------------------------------------------------------------

    def _tile(self, scope: Scope, stop: IndexLike) -> None:
        """Compute scores, weights and sums of a tile of keys."""
        self.stage = scope.narrow(to_int(TILE // KEYS % STAGES))
        scope.add(AwaitCopies(2), WorkGroupBarrier())
        self._bring(scope, self.v_feed, TILE + KEYS, stop)
        scores = self._scores(scope)
        self.masking.hide(scope, scores, TILE)
        weights = [of_edge.next(scope, line) for of_edge, line in zip(self.weights, scores, strict=True)]
        scope.add(AwaitCopies(2), WorkGroupBarrier())
        self._bring(scope, self.k_feed, TILE + 2 * KEYS, stop)
        self._add(scope, weights)

    def _scores(self, scope: Scope) -> list[list[Var]]:
        """Multiply each 16 queries with each 8 keys, and add the mask where there is one."""
        one, (of_q, of_k, _) = self.one, self.readers
        scores = [
            [scope.let(ConstantValue(0.0), FLOAT32, 4) for _ in range(2 * self.shape.parts)] for _ in range(self.edges)
        ]
        units = [
            _ProductBlock(step, part)
            for step in range(-(-one.size // self.shape.step))
            for part in range(self.shape.parts)
        ]
        queries = [of_q.read(scope, 0, edge, 0) for edge in range(self.edges)]
        for unit, keys in _prefetched(units, lambda unit: of_k.read(scope, self.stage, unit.part, unit.step)):
            if unit.part == 0 and unit.step:
                queries = [of_q.read(scope, 0, edge, unit.step) for edge in range(self.edges)]
            self._multiply(scope, queries, keys, scores, unit.part)
        self.masking.add(scope, scores, TILE)
        return scores

    # -- values ---------------------------------------------------------------------------------------------

    def _add(self, scope: Scope, weights: list[list[Var]]) -> None:
        """Add the weighted values."""
        of_v = self.readers[2]
        sums = self._rescaled(scope)
        parts = -(-self.one.columns // EDGE)
        steps = self.shape.parts * EDGE // self.shape.step
        units = [_ProductBlock(step, part) for step in range(steps) for part in range(parts)]
        left: list[Var] = []
        for unit, values in _prefetched(units, lambda unit: of_v.read(scope, self.stage, unit.part, unit.step)):
            if unit.part == 0:
                left = [self._left(scope, line, unit.step) for line in weights]
            self._multiply(scope, left, values, sums, unit.part)
        if not self.exact:
            # Tensor cores truncate sums instead of rounding them, so fma adds the sums of a tile.
            for of_edge, line, added in zip(self.weights, self.totals, sums, strict=True):
                for total, more in zip(line, added, strict=True):
                    scope.add(Assign(total, MultiplyAdd(total, of_edge.shrink, more)))

    def _rescaled(self, scope: Scope) -> list[list[Var]]:
        """Return the accumulators of a tile: the earlier sums, multiplied by `shrink`, or zeros if not `exact`."""
        if not self.exact:
            return [[scope.let(ConstantValue(0.0), FLOAT32, 4) for _ in line] for line in self.totals]
        for of_edge, line in zip(self.weights, self.totals, strict=True):
            for total in line:
                scope.add(Assign(total, Splat(self.one.apply(scope, multiply.op, total, of_edge.shrink))))
        return self.totals

    def _left(self, scope: Scope, weights: list[Var], step: int) -> Var:
        """Convert weights to a fragment."""
        if not self.exact:
            return scope.let(WordsOf(weights[step]), np.dtype(np.uint32), 4)
        return scope.let(FragmentOf(weights[2 * step], weights[2 * step + 1], self.dtype), np.dtype(np.uint32), 4)

    def _multiply(self, scope: Scope, rows: list[Var], columns: Var, sums: list[list[Var]], part: int) -> None:
        """Add products of fragments to the sums of 16 columns."""
        for left, (right,) in [(rows, [columns])] if self.exact else three_terms(scope, rows, [columns]):
            for half in range(2):
                for fragment, line in zip(left, sums, strict=True):
                    if 2 * part + half < len(line):
                        total = line[2 * part + half]
                        scope.add(Assign(total, FragmentMultiply(fragment, right, half, total, self.dtype)))

    # -- results --------------------------------------------------------------------------------------------

    def _end(self, scope: Scope) -> None:
        """Divide by the sum of weights, apply the epilogue, and store."""
        shares = self._shares(scope, scope.narrow(self.top + to_int(LID) % SUBGROUP // 4)) if self.split else None
        quotients = Quotients(
            self.one,
            self.block,
            self.rows,
            self.shape.group,
            self.top,
            Unseen(self.one, self.block).correct if self.one.causal else None,
            SUBGROUPS if self.split else 1,
        )
        quotients.store(scope, self.weights, self.totals, shares)

    def _shares(self, scope: Scope, place: IndexLike) -> list[Var]:
        """Return the factors of a sub-group's sums of its queries, by which sub-groups that share queries add them."""
        (weights,) = self.weights
        for lower, highest in zip(HALVES, weights.highest, strict=True):
            scope.add(PutItem(HIGHEST, place + 8 * lower, highest))
        scope.add(WorkGroupBarrier())
        shares = []
        for lower in HALVES:
            row = LID % SUBGROUP // 4 + 8 * lower
            highest, *more = (
                scope.let(ArrayItem(HIGHEST, row + subgroup * EDGE), FLOAT32, 1) for subgroup in range(SUBGROUPS)
            )
            for other in more:
                highest = self.one.larger_number(scope, highest, other)
            shares.append(weights.share_of(scope, lower, highest))
        return shares


def _prefetched(
    units: list[_ProductBlock], read: Callable[[_ProductBlock], Var]
) -> Iterator[tuple[_ProductBlock, Var]]:
    """Yield each unit with its fragment, after the read of the next fragment has been issued."""
    prefetched = read(units[0])
    for unit, following in zip(units, [*units[1:], None], strict=True):
        now = prefetched
        if following is not None:
            prefetched = read(following)
        yield unit, now


def _why_not(task: LoweringTask) -> Reason | None:
    if (reason := why_no_attention(task)) is not None:
        return reason
    if not task.style.capabilities.tensor_cores:
        return task.refuse(f"{task.style.capabilities.name} has no tensor cores")
    one = AttentionAnchor(task.graph, task.region)
    if not one.is_plain:
        return task.refuse("it is a part of attention's gradient")
    operands, dtype = (one.q, one.k, one.v), one.q.argument.dtype
    dtypes = (FLOAT16, BFLOAT16, FLOAT32) if task.style.precision == "tf32x3" else (FLOAT16, BFLOAT16)
    if dtype not in dtypes or any(side.argument.dtype != dtype for side in operands):
        return task.refuse("tensor cores do not multiply its operands' dtypes")
    if one.scale <= 0 or not one.size:
        return task.refuse("its scores have no positive scale, or nothing to add up")
    if any(side.argument.value in task.region.nodes for side in operands):
        return task.refuse("an operand is computed where it is loaded")
    if not all(axes.single for side in operands for axes in (side.rows, side.columns)):
        return task.refuse("no single stride serves an operand's rows and columns")
    if fitting_shape(one, task.style) is None:
        return task.refuse("its tiles do not fit into local memory, or no neighbours lie along its operands")
    return None


def _lower(task: LoweringTask) -> Kernel:
    one = AttentionAnchor(task.graph, task.region)
    shape = fitting_shape(one, task.style)
    assert shape is not None
    return _TensorAttentionLowering(one, shape).lower(task.name)


TENSOR_ATTENTION = Form(name="tensor attention", accepts=_why_not, lower=_lower, geometry=by_tiles, knobs=KNOBS)
"""Attention by tensor cores."""
