"""Products of float32 matrices on GPUs with asynchronous copies: large tiles, whose operands pass a ring of stages.

A work-item has 8 x 16 sums in registers, so that each number that it reads serves for 8 or 16 products.
Totals of panels wait in local memory, where they cost no register. Operands that lie along k are turned
by copies of one number each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain

from flowcompute.fuse import Reason, Region
from flowcompute.graph import Graph
from flowcompute.imports import dataclass
from flowcompute.ir import (
    LID,
    ROLLED,
    Argument,
    Array,
    ArrayItem,
    Assign,
    AwaitCopies,
    ConditionLike,
    Copy,
    EarlyRead,
    EndCopies,
    For,
    If,
    IndexLike,
    Kernel,
    MultiplyAdd,
    Name,
    Picked,
    PutItem,
    SetInteger,
    Splat,
    Var,
    WorkGroupBarrier,
    all_of,
    any_of,
    choose,
    equal,
    index_min,
)
from flowcompute.ir.launches import by_tiles
from flowcompute.lower.emit import Scope
from flowcompute.lower.form import Form, LoweringTask
from flowcompute.lower.kernel_knobs import KernelStyle
from flowcompute.lower.matmul.matmul_anchor import PANEL, MatmulAnchor, why_no_product
from flowcompute.lower.matmul.tensor_cores import SUBGROUP, TILES, copied_together, lines_along_k
from flowcompute.lower.matmul.tiled_matmul import (
    LANES,
    PAD,
    TiledMatmulLowering,
    WorkGroupTile,
    lower_tiled,
)
from flowcompute.spec import FLOAT32

TILE = WorkGroupTile(128, 256, 8, 16)
DEPTH = 8
"""Numbers of k in a stage; divides `PANEL`."""
STAGES = 4
COPIES_AT = 2
"""Number of a stage whose products the copies of a later stage stand beside."""
DOWN, ACROSS = 8, 4
"""Work-items of a sub-group in a column, and in a row, of its part of the tile."""
PART_ROWS, PART_COLUMNS = TILE.item_rows * DOWN, TILE.item_columns * ACROSS
"""Rows and columns of a sub-group."""
STEP = Name("s", narrow=True)
"""Number of a step along k, in 32 bits: with 64 the compiler awaits copies half a step earlier."""
HERE = Name("here", narrow=True)
"""Offset of the stage that is multiplied."""
BACK = (3, 2, 1, 0)
"""Order of the columns in a vector of sums of odd rows."""
TOTALS = "totals"
"""Local array of the sums of earlier panels."""


@dataclass(frozen=True)
class _Side:
    """An operand, and a work-item's part of the copies of each stage.

    Attributes:
        argument: what is read.
        begin: numbers of a stage before this operand's.
        pitch: distance from one k to the next in local memory.
        place: of the work-item's first copy, in the first stage.
        source: of the same in `argument`.
        turns: distances of its other copies from the first, in local memory and in `argument`.
        numbers: of a copy.
        along_k: distance from one k to the next in `argument`.
    """

    argument: Argument
    begin: int
    pitch: int
    place: IndexLike
    source: IndexLike
    turns: list[tuple[int, int]]
    numbers: int
    along_k: int


class CopiedMatmulLowering(TiledMatmulLowering):
    """Lowering of such a product. Tiles at the end begin earlier, and leave out what the tile before stores."""

    def __init__(self, graph: Graph, region: Region, style: KernelStyle) -> None:
        super().__init__(graph, region, style, TILE)
        self.pitches = TILE.rows + PAD, TILE.columns + PAD
        self.stage = DEPTH * sum(self.pitches)

    # -- operands into local memory -----------------------------------------------------------------

    def _side_of(
        self, scope: Scope, argument: Argument, width: int, begin: int, base: IndexLike, strides: tuple[int, int, int]
    ) -> _Side:
        """Declare the copies of an operand whose tile has `width` rows or columns.

        Args:
            scope: where the statements go.
            argument: what is read.
            width: rows or columns of the tile.
            begin: numbers of a stage before this operand's.
            base: of the tile in `argument`.
            strides: along k, along rows or columns, and how many of these one copy moves; 0 where k is innermost.
        """
        (along_k, across, numbers), group, pitch = strides, TILE.group, width + PAD
        if not numbers:
            # A sub-group brings 8 numbers of 4 rows, which go to 32 banks.
            k, at, apart = scope.narrow(LID % DEPTH), scope.narrow(LID // DEPTH), group // DEPTH
            turns = [(turn * apart, turn * apart * across) for turn in range(width // apart)]
        else:
            runs = width // numbers
            k, at = scope.narrow(LID // runs), scope.narrow(LID % runs * numbers)
            apart = group // runs
            turns = [(turn * apart * pitch, turn * apart * along_k) for turn in range(DEPTH // apart)]
        place = scope.narrow(begin + k * pitch + at)
        source = scope.integer(base + k * along_k + at * across)
        return _Side(argument, begin, pitch, place, source, turns, numbers or 1, along_k)

    def _both(self, scope: Scope, row: IndexLike, column: IndexLike) -> tuple[_Side, _Side]:
        """Declare the copies of both operands of the tile at a row and a column of the result."""
        one = self.contraction
        first = one.row(scope, row)
        a, b = one.a, one.b
        rows = one.row_stride if one.row_stride is not None else a.rows.stride
        together = 0 if a.columns.stride == 1 else copied_together(a, a.columns, one.height)
        left = self._side_of(
            scope, a.argument, TILE.rows, 0, one.of_a(scope, first), (a.columns.stride, rows, together)
        )
        together = 0 if b.rows.stride == 1 else copied_together(b, b.rows, one.columns)
        base = scope.integer(one.of_b(scope, first) + column * b.columns.stride)
        strides = (b.rows.stride, b.columns.stride, together)
        return left, self._side_of(scope, b.argument, TILE.columns, DEPTH * self.pitches[0], base, strides)

    @staticmethod
    def _copy(
        scope: Scope,
        sides: tuple[_Side, _Side],
        sources: Sequence[IndexLike],
        into: IndexLike,
        exist: ConditionLike = True,
    ) -> None:
        """Start the copies of `DEPTH` numbers of k from `sources` into the stage at `into`; zeros unless they exist."""
        for side, source in zip(sides, sources, strict=True):
            own = scope.narrow(into + side.place)
            for place, distance in side.turns:
                scope.add(Copy(TILES, own + place, side.argument, source + distance, side.numbers, exist))

    # -- sums ---------------------------------------------------------------------------------------

    def _product(self, scope: Scope, row: IndexLike, until: IndexLike, column: IndexLike) -> None:
        one, ahead = self.contraction, STAGES - 1
        own_row, own_column = row, column
        row = scope.integer(index_min(row, until - TILE.rows))
        if one.columns % TILE.columns:
            column = scope.integer(index_min(column, one.columns - TILE.columns))
        sides = self._both(scope, row, column)
        part, item = scope.narrow(LID // SUBGROUP), scope.narrow(LID % SUBGROUP)
        parts = TILE.columns // PART_COLUMNS
        # Of four neighbouring work-items, pairs share rows and pairs share columns.
        top = scope.narrow(part // parts * PART_ROWS + (item // (2 * ACROSS) * 2 + item % 2) * LANES)
        left = scope.narrow(part % parts * PART_COLUMNS + item // 2 % ACROSS * LANES)
        sums = self._zeros(scope)
        self.arrays.append(Array(TILES, FLOAT32, 1, STAGES * self.stage, local=True))
        if one.inner > PANEL:
            self.arrays.append(Array(TOTALS, FLOAT32, 1, TILE.rows * TILE.columns, local=True))
            scope.add(*(self._put_total(i, h, sums[0][0]) for i in range(len(sums)) for h in self.wide_columns))
        # Others may still read the stages of the tile before.
        scope.add(WorkGroupBarrier())
        # Only sums and constants change these from step to step: products would be a fiftieth of the instructions.
        sources = [scope.name("i") for _ in sides]
        for source, side in zip(sources, sides, strict=True):
            scope.add(SetInteger(source, side.source))
        further = [
            SetInteger(source, source + DEPTH * side.along_k, new=False)
            for source, side in zip(sources, sides, strict=True)
        ]
        for step in range(ahead):
            self._copy(scope, sides, sources, step * self.stage)
            scope.add(EndCopies(), *further)
        scope.add(AwaitCopies(ahead - 1), WorkGroupBarrier())
        own = top, scope.narrow(DEPTH * self.pitches[0] + left)
        ready = self._fragments(scope, own, 0)
        steps, last_stage = one.inner // DEPTH, ahead * self.stage
        scope.add(SetInteger(HERE, 0))
        body = scope.inner()
        after = body.narrow(choose(equal(HERE, last_stage), 0, HERE + self.stage))
        now, here, there = ready, *([body.narrow(stage + place) for place in own] for stage in (HERE, after))
        for k in range(DEPTH):
            last = k == DEPTH - 1
            if last:
                body.add(AwaitCopies(ahead - 1), WorkGroupBarrier())
            following = self._fragments(body, there if last else here, 0 if last else k + 1)
            if k == COPIES_AT:
                # Behind the barrier of the step before, all have read the stage that is written. A branch round these
                # copies would keep the assembler from moving reads away from their products.
                before = body.narrow(choose(equal(HERE, 0), last_stage, HERE - self.stage))
                self._copy(body, sides, sources, before, STEP + ahead < steps)
                body.add(EndCopies(), *further)
            self._add_products(body, now, sums)
            now = following
        body.add(*(Assign(old, Splat(new)) for old, new in zip(chain(*ready), chain(*now), strict=True)))
        body.add(SetInteger(HERE, after, new=False))
        if one.inner > PANEL:
            per = PANEL // DEPTH
            ends = any_of(equal(STEP % per, per - 1), equal(STEP, steps - 1))
            body.add(If(ends, tuple(self._end_panel(body, sums))))
        scope.add(For(STEP, 0, steps, 1, tuple(body.statements), unroll=ROLLED), AwaitCopies(0))
        self._leave(scope, sums, (row, own_row, top), (column, own_column, left))

    def _leave(
        self,
        scope: Scope,
        sums: list[list[Var]],
        rows: tuple[IndexLike, IndexLike, IndexLike],
        columns: tuple[IndexLike, IndexLike, IndexLike],
    ) -> None:
        """Store the results.

        Args:
            scope: where the statements go.
            sums: of the work-item.
            rows: first row of the tile, first that no tile before makes, and the work-item's first in the tile.
            columns: the same of columns.
        """
        one, (row, own_row, top), (column, own_column, left) = self.contraction, rows, columns
        for i, line in enumerate(sums):
            r = scope.integer(row + (top + (i // LANES * DOWN * LANES + i % LANES)))
            for h, total in enumerate(line):
                if one.inner > PANEL:
                    total = scope.let(self._total(i, h), FLOAT32, LANES)
                if i % 2:
                    total = scope.let(Picked((total,), BACK), FLOAT32, LANES)
                j = scope.integer(column + (left + h * ACROSS * LANES))
                storing = scope.inner(LANES)
                one.store(storing, one.row(storing, r), j, None, total)
                exists = r >= own_row if column is own_column else all_of(r >= own_row, j >= own_column)
                scope.add(If(exists, tuple(storing.statements)))

    def _slot(self, i: int, h: int) -> IndexLike:
        return ((i * len(self.wide_columns) + h) * TILE.group + LID) * LANES

    def _total(self, i: int, h: int) -> ArrayItem:
        return ArrayItem(TOTALS, self._slot(i, h), vector=True)

    def _put_total(self, i: int, h: int, total: Var) -> PutItem:
        return PutItem(TOTALS, self._slot(i, h), total, vector=True)

    def _fragments(self, scope: Scope, begins: Sequence[IndexLike], k: int) -> list[list[Var]]:
        """Read the work-item's rows and columns of number `k` of the stage in which they begin at `begins`.

        They are read before the products of the number before are added. The compiler would read them behind those.
        """
        counts, apart = (TILE.item_rows // LANES, TILE.item_columns // LANES), (DOWN * LANES, ACROSS * LANES)
        return [
            [
                scope.let(EarlyRead(TILES, begin + (part * distance + k * pitch)), FLOAT32, LANES)
                for part in range(count)
            ]
            for begin, count, distance, pitch in zip(begins, counts, apart, self.pitches, strict=True)
        ]

    def _add_products(self, scope: Scope, fragments: list[list[Var]], sums: list[list[Var]]) -> None:
        """Add the products of one k, in odd rows from the last column to the first.

        Neighbours in the text then share a factor, which the device reads from its registers once.
        """
        rows, columns = fragments
        back = [scope.let(Picked((other,), BACK), FLOAT32, LANES) for other in columns]
        for i, line in enumerate(sums):
            factor = scope.let(Picked((rows[i // LANES],), (i % LANES,)), FLOAT32, LANES)
            pairs = [*zip(line, back if i % 2 else columns, strict=True)]
            for total, other in reversed(pairs) if i % 2 else pairs:
                scope.add(Assign(total, Splat(scope.let(MultiplyAdd(factor, other, total), FLOAT32, LANES))))


def _local_bytes(inner: int) -> int:
    """Return the bytes of local memory of a work-group whose sums have `inner` products."""
    totals = TILE.rows * TILE.columns if inner > PANEL else 0
    return (totals + STAGES * DEPTH * (TILE.rows + TILE.columns + 2 * PAD)) * FLOAT32.itemsize


def _why_not(task: LoweringTask) -> Reason | None:
    if (reason := why_no_product(task)) is not None:
        return reason
    capabilities, wanted = task.style.capabilities, task.style.wanted
    one = MatmulAnchor(task.graph, task.region)
    if not capabilities.tensor_cores or _local_bytes(one.inner) > capabilities.local_bytes:
        return task.refuse("the device has no asynchronous copies, or too little local memory for large tiles")
    if wanted.tile_rows or wanted.tile_columns:
        return task.refuse("tiles of another size are wanted")
    if {one.a.argument.dtype, one.b.argument.dtype, one.dtype} != {FLOAT32}:
        return task.refuse("its numbers are no float32")
    sides = (one.a, one.b)
    if any(one.is_computed(side) for side in sides) or not all(
        axes.single for side in sides for axes in (side.rows, side.columns)
    ):
        return task.refuse("a factor is computed where it is loaded, or has no single stride")
    rows = one.rows_together
    if (rows is not None and rows < TILE.rows) or one.columns < TILE.columns or one.columns % LANES:
        return task.refuse("its result is smaller than a tile, or its rows end within a vector")
    if one.inner % DEPTH or one.inner < DEPTH * STAGES:
        return task.refuse(f"its sums are short, or end within {DEPTH} products")
    a, b = lines_along_k(one.a.columns, one.a.rows), lines_along_k(one.b.rows, one.b.columns)
    if a is None or b is None or (one.row_stride is None if a else one.shared):
        return task.refuse("no neighbours lie along its factors")
    return None


def _lower(task: LoweringTask) -> Kernel:
    """Return the kernel, which leaves few rows to smaller tiles."""
    kernel = CopiedMatmulLowering(task.graph, task.region, task.style).lower(task.name)
    one = MatmulAnchor(task.graph, task.region)
    # Up to one and a half tiles a unit, smaller ones leave fewer units idle at the end.
    bands = task.style.capabilities.units * 3 // 2 // kernel.tile[1]
    few = bands * TILE.rows if one.shared else bands // -(-one.height // TILE.rows) * one.height
    if one.shared:
        few = max(few, TILE.rows - 1)
    if few < one.height:
        return kernel
    return replace(kernel, few=lower_tiled(task), few_rows=few)


COPIED_MATMUL = Form(name="copied matmul", accepts=_why_not, lower=_lower, geometry=by_tiles)
"""Large products of float32 matrices on GPUs with asynchronous copies."""
