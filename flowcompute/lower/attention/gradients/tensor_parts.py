"""Parts of the gradient of attention on tensor cores: half formats, sums in float32 (FlashAttention-2, Dao, 2023).

A work-group has 64 or 128 rows: queries, or keys where the gradient is that of keys and values. Rows of the other kind
pass through local memory in tiles of 64, the next one while the current one is multiplied. Of each tile

    scores = rows tile^T,   weights = exp2(scores - L),   slopes = weights * (G V^T - D)

stay in the registers in which they are left factors of the sums: slopes times the tile's keys for dQ, its queries for
dK, and weights times its cotangents for dV. So each sum is made by one work-item, and no work-groups meet.

The following is part of the definition of these parts on such devices:

- Tiles of 64 rows pass in order. Products are summed in steps of 16, within which the device decides the order.
- Weights and slopes are rounded to the half format before they multiply.
- Logarithms are those of the weights of attention (`tensor_attention`).

Blocks change no bit of sums: what a row does not see has weights of 0. Where it is not finite, it gives NaN. Blocks of
logarithms have 64 rows.
"""

from __future__ import annotations

import math

import numpy as np

from flowcompute.elements.math import log, multiply
from flowcompute.elements.nn import ATTENTION_PART
from flowcompute.fuse import Reason
from flowcompute.ir import (
    GID,
    GSIZE,
    LID,
    PART_ROWS,
    PART_STAGES,
    Array,
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
    Join,
    Kernel,
    MultiplyAdd,
    N,
    NormalPower,
    Splat,
    Var,
    WorkGroupBarrier,
    all_of,
    equal,
    index_min,
    part_bytes,
    part_width,
    to_int,
    to_long,
)
from flowcompute.ir.launches import by_tiles
from flowcompute.lower.anchor_point import Operand
from flowcompute.lower.attention.attention_anchor import BLOCK_INDEX, TILE
from flowcompute.lower.attention.gradients.part_anchor import PartAnchor
from flowcompute.lower.attention.tensor_masking import Masking
from flowcompute.lower.attention.tensor_softmax import HALVES, Weights, in_powers
from flowcompute.lower.emit import Scope
from flowcompute.lower.form import Form, LoweringTask
from flowcompute.lower.matmul import (
    EDGE,
    LANES,
    SUBGROUP,
    TILES,
    Feed,
    FragmentReader,
    Results,
    TensorTile,
    copied_together,
)
from flowcompute.spec import FLOAT32

SUBGROUPS = 4
GROUP = SUBGROUPS * SUBGROUP
"""Work-items of a work-group."""
_PARTS = PART_ROWS // EDGE
"""Blocks of 16 rows in a tile."""
_UINT32 = np.dtype(np.uint32)


class _PartLowering:
    def __init__(self, task: LoweringTask) -> None:
        self.task = task
        self.one = one = PartAnchor(task.graph, task.region)
        self.dtype = one.q.argument.dtype
        self.sizes = [one.size, one.columns][: len(one.rows)]
        self.edges, self.strip = _shape(one, task.style.capabilities.local_bytes)
        self.height = SUBGROUPS * self.edges * EDGE
        self.begins: list[int] = []
        begin = 0
        for lines in (self.height, PART_STAGES * PART_ROWS):
            for numbers in self.sizes:
                self.begins.append(begin)
                begin += lines * part_width(numbers)
        self.local = begin // 2

    def lower(self) -> Kernel:
        """Return the kernel; its work counts blocks of rows."""
        one = self.one
        scope = Scope(one.names, lanes=LANES)
        self._block(scope)
        return Kernel(
            self.task.name,
            self.task.region.name,
            one.arguments.ordered(),
            (
                Array(TILES, FLOAT32, 1, self.local, local=True),
                For(BLOCK_INDEX, GID, N, GSIZE, tuple(scope.statements)),
            ),
            work="matmul",
            work_group=GROUP,
            units=one.block_count(self.height),
            lanes=LANES,
            tensor=True,
        )

    # -- a block of rows ------------------------------------------------------------------------------------

    def _block(self, scope: Scope) -> None:
        one = self.one
        self.block = block = one.block(scope, self.height)
        self.top = scope.narrow(LID // SUBGROUP * (self.edges * EDGE))
        mine = scope.integer(block.first + self.top + LID % SUBGROUP // 4)
        self.own = [[mine + (edge * EDGE + 8 * lower) for lower in HALVES] for edge in range(self.edges)]
        self.at_mask = one.base(scope, one.mask, block)
        self._feeds(scope)
        self.weights = [Weights(scope, one) for _ in self.own] if one.which == "log" else []
        self.scale = scope.let(ConstantValue(in_powers(one.scale)), FLOAT32, 4)
        terms = range(0 if one.is_turned else len(one.terms))
        self.row_terms = [[self._row_term(scope, number, own) for own in self.own] for number in terms]
        self.sums = [
            [[scope.let(ConstantValue(0.0), FLOAT32, 4) for _ in range(-(-numbers // EDGE) * 2)] for _ in self.own]
            for numbers in self.sizes[: {"log": 0, "queries": 1, "keys": 2}[one.which]]
        ]
        start, stop = one.tiles(scope, block)
        for feed in self.row_feeds:
            feed.bring(scope, 0, 0)
        self._bring(scope, start, stop)
        tile = scope.inner()
        self._tile(tile, stop)
        scope.add(For(TILE, start, stop, PART_ROWS, tuple(tile.statements)), AwaitCopies(0), WorkGroupBarrier())
        self._store(scope)

    def _row_term(self, scope: Scope, number: int, own: list[IndexLike]) -> Var:
        """Load a term of two rows of the work-item, in the layout of their sums."""
        one, inner = self.one, scope.beside(1)
        pairs = []
        for row in own:
            term = one.term(inner, number, self.block, index_min(row, self.block.last))
            pairs.append(scope.let(Splat(self._in_powers(inner, term) if number == 0 else term), FLOAT32, 2))
        return scope.let(Join(*pairs), FLOAT32, 4)

    def _in_powers(self, scope: Scope, term: Var) -> Var:
        factor = scope.let(ConstantValue(in_powers(1.0)), FLOAT32, term.lanes)
        return self.one.apply(scope, multiply.op, term, factor)

    # -- operands into local memory -------------------------------------------------------------------------

    def _feeds(self, scope: Scope) -> None:
        one, block, count = self.one, self.block, len(self.sizes)
        self.row_feeds, self.tile_feeds = [], []
        self.left, self.right, self.across = [], [], []
        for place, (operand, passing, numbers) in enumerate(zip(one.rows, one.tiles_of, self.sizes, strict=True)):
            width = part_width(numbers)
            rows = TensorTile(self.begins[place], self.dtype, self.height, width, along_k=True)
            tile = TensorTile(self.begins[count + place], self.dtype, PART_ROWS, width, along_k=True)
            turned = TensorTile(self.begins[count + place], self.dtype, PART_ROWS, width, along_k=False)
            at = one.base(scope, operand, block) + block.first * operand.rows.stride
            self.row_feeds.append(self._feed(scope, operand, rows, at, own=True))
            self.tile_feeds.append(self._feed(scope, passing, tile, one.base(scope, passing, block), own=False))
            self.left.append(FragmentReader(scope, rows, self.top, right=False))
            self.right.append(FragmentReader(scope, tile, 0, right=True))
            self.across.append(FragmentReader(scope, turned, 0, right=True))

    def _feed(self, scope: Scope, operand: Operand, tile: TensorTile, origin: IndexLike, *, own: bool) -> Feed:
        """Return a feed of rows of an operand: those of the block if `own`, else those of a tile."""
        origin, numbers, step = scope.integer(origin), math.prod(operand.columns.sizes), operand.columns.stride

        def exists(line: IndexLike, at: IndexLike) -> ConditionLike:
            in_rows = not own or self.block.first + line < self.one.height
            return all_of(in_rows, numbers >= tile.width or at < numbers)

        return Feed(
            scope,
            tile,
            operand.argument,
            copied_together(operand, operand.rows, numbers) if step == 1 else 1,
            GROUP,
            lambda _, line: origin + to_long(line) * operand.rows.stride,
            operand.rows.stride,
            exists,
            step,
        )

    def _bring(self, scope: Scope, row: IndexLike, stop: IndexLike) -> None:
        """Start the asynchronous copies of the tile from `row` on, as one group of copies."""
        one, inner = self.one, scope.inner()
        first = inner.integer(row)

        def limit(line: IndexLike, at: IndexLike) -> ConditionLike:
            del at
            return first + line < one.passing

        stage = inner.narrow(to_int(first // PART_ROWS % PART_STAGES))
        for feed, operand in zip(self.tile_feeds, one.tiles_of, strict=True):
            feed.bring(inner, stage, first * operand.rows.stride, limit if one.partial else None)
        scope.add(If(row < stop, tuple(inner.statements)), EndCopies())

    # -- a tile ---------------------------------------------------------------------------------------------

    def _tile(self, scope: Scope, stop: IndexLike) -> None:
        """Compute scores, weights, slopes and sums of a tile."""
        scope.add(AwaitCopies(0), WorkGroupBarrier())
        self._bring(scope, TILE + PART_ROWS, stop)
        self.stage = scope.narrow(to_int(TILE // PART_ROWS % PART_STAGES))
        for first in range(0, _PARTS, self.strip):
            self._strip(scope, range(first, first + self.strip))

    def _strip(self, scope: Scope, parts: range) -> None:
        """Take some blocks of 16 rows of a tile."""
        one = self.one
        zeros = [[scope.let(ConstantValue(0.0), FLOAT32, 4) for _ in range(2 * len(parts))] for _ in self.own]
        scores = self._product(scope, 0, parts, zeros)
        masking = Masking(one, self.block, self.own, self.at_mask, parts.start * EDGE)
        masking.add(scope, scores, TILE)
        masking.hide(scope, scores, TILE)
        if self.weights:
            for of_edge, line in zip(self.weights, scores, strict=True):
                of_edge.next(scope, line)
            return
        weights = [
            [
                scope.let(NormalPower(self._above(scope, score, less)), FLOAT32, 4)
                for score, less in zip(*lines, strict=True)
            ]
            for lines in zip(scores, self._terms(scope, 0, parts), strict=True)
        ]
        changes = self._product(scope, 1, parts, self._terms(scope, 1, parts))
        slopes = [
            [one.apply(scope, multiply.op, *pair) for pair in zip(*lines, strict=True)]
            for lines in zip(weights, changes, strict=True)
        ]
        if one.is_turned:
            self._add(scope, 1, parts, weights)
        self._add(scope, 0, parts, slopes)

    def _above(self, scope: Scope, score: Var, less: Var) -> Var:
        """Return the logarithms of weights, in powers of two. Scores with a mask are in these already."""
        if self.one.mask is not None:
            return self.one.added(scope, score, less)
        return scope.let(MultiplyAdd(score, self.scale, less), FLOAT32, 4)

    def _terms(self, scope: Scope, number: int, parts: range) -> list[list[Var]]:
        """Return a term for each 16 rows and each 8 rows of a tile, in the layout of sums; slopes are added to them."""
        if not self.one.is_turned:
            return [
                [scope.let(Splat(term), FLOAT32, 4) if number else term for _ in range(2 * len(parts))]
                for term in self.row_terms[number]
            ]
        pairs, columns = scope.beside(2), []
        for part in range(2 * parts.start, 2 * parts.stop):
            pair = self.one.term(pairs, number, self.block, TILE + LID % 4 * 2 + part * 8)
            columns.append(self._in_powers(pairs, pair) if number == 0 else pair)
        return [[scope.let(Join(pair, pair), FLOAT32, 4) for pair in columns] for _ in self.own]

    def _product(self, scope: Scope, place: int, parts: range, sums: list[list[Var]]) -> list[list[Var]]:
        """Add the products of the sub-group's rows with those of a tile to sums, for each 8 rows of it."""
        for step in range(-(-self.sizes[place] // EDGE)):
            left = [self.left[place].read(scope, 0, edge, step) for edge in range(self.edges)]
            for at, part in enumerate(parts):
                self._multiply(scope, left, self.right[place].read(scope, self.stage, part, step), sums, at)
        return sums

    def _add(self, scope: Scope, place: int, steps: range, factors: list[list[Var]]) -> None:
        """Add factors of rows of a tile times these rows to the sums."""
        for at, step in enumerate(steps):
            fragments = [FragmentOf(line[2 * at], line[2 * at + 1], self.dtype) for line in factors]
            left = [scope.let(fragment, _UINT32, 4) for fragment in fragments]
            for part in range(len(self.sums[place][0]) // 2):
                right = self.across[place].read(scope, self.stage, part, step)
                self._multiply(scope, left, right, self.sums[place], part)

    def _multiply(self, scope: Scope, rows: list[Var], right: Var, sums: list[list[Var]], part: int) -> None:
        """Add products of fragments to the sums of 16 columns."""
        for half in range(2):
            for left, line in zip(rows, sums, strict=True):
                total = line[2 * part + half]
                scope.add(Assign(total, FragmentMultiply(left, right, half, total, self.dtype)))

    # -- results --------------------------------------------------------------------------------------------

    def _store(self, scope: Scope) -> None:
        if self.weights:
            self._store_logarithms(scope)
            return
        factor = scope.let(ConstantValue(self.one.scale), FLOAT32, 4)
        scaled = [[self.one.apply(scope, multiply.op, total, factor) for total in line] for line in self.sums[0]]
        columns = zip([scaled, *self.sums[1:]], self.sizes, (0, self.one.size), strict=False)
        for sums, numbers, first in columns:
            for edge, line in enumerate(sums):
                self._store_columns(scope, line, edge, numbers, first)

    def _store_columns(self, scope: Scope, sums: list[Var], edge: int, numbers: int, first: int) -> None:
        """Store sums of 16 rows as `numbers` columns of the result from column `first` on."""
        one, block = self.one, self.block

        def exists(row: IndexLike, column: IndexLike) -> ConditionLike:
            return all_of(block.first + row <= block.last, column < numbers)

        def store(inner: Scope, row: IndexLike, column: IndexLike, made: Var) -> None:
            own, at = inner.integer(to_long(block.first + row)), inner.integer(to_long(column))
            count = None if numbers % LANES == 0 else inner.integer(index_min(LANES, numbers - at))
            one.store(inner, block.row(own), at + first, count, made)

        results = Results(self.height, numbers, GROUP, store, exists)
        results.add_from_registers(scope, sums, self.top + edge * EDGE)

    def _store_logarithms(self, scope: Scope) -> None:
        """Store the logarithm of each row's sum of weights, by one of the four work-items that have it."""
        one, inner = self.one, scope.beside(1)
        scale = inner.let(ConstantValue(one.scale if one.mask is None else math.log(2)), FLOAT32)
        for weights, own in zip(self.weights, self.own, strict=True):
            for lower, row in zip(HALVES, own, strict=True):
                whole = one.apply(inner, log.op, weights.whole(inner, lower))
                made = inner.let(MultiplyAdd(weights.highest[lower], scale, whole), FLOAT32)
                last = scope.inner(1)
                one.store(last, self.block.row(last.integer(row)), 0, None, made)
                scope.add(If(all_of(equal(LID % 4, 0), row <= self.block.last), tuple(last.statements)))


def _shape(one: PartAnchor, local_bytes: int) -> tuple[int, int]:
    """Return the blocks of 16 rows of a sub-group, and those of a tile that it takes at a time.

    Two blocks share each fragment of a tile, as far as there are registers for the sums of both. Logarithms have one:
    a tile that a row does not see may change the last bit of its sum, so their blocks have one size.
    """
    numbers = max(one.size, one.columns)
    if one.which == "log" or numbers > PART_ROWS or part_bytes(one.size, one.columns, 2) > local_bytes:
        return 1, _PARTS
    return 2, _PARTS // 2 if one.is_turned else _PARTS


def _why_not(task: LoweringTask) -> Reason | None:
    if task.anchor is None or task.anchor.op is not ATTENTION_PART:
        return task.refuse("its anchor is no part of attention's gradient")
    return None


def _lower(task: LoweringTask) -> Kernel:
    return _PartLowering(task).lower()


ATTENTION_PARTS = Form(name="attention parts", accepts=_why_not, lower=_lower, geometry=by_tiles)
"""Parts of the gradient of attention in half formats."""
