"""Products of matrices on GPUs: a work-group computes a tile of the result from operand tiles in local memory.

Each work-item accumulates a small block in registers (register blocking): rows by vectors of four columns.
While one pair of operand tiles is multiplied, the next is loaded from global memory. The epilogue runs in
registers before anything is stored.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from flowcompute.fuse import Reason, Region
from flowcompute.graph import Graph
from flowcompute.imports import dataclass
from flowcompute.ir import (
    GID,
    GSIZE,
    LID,
    Array,
    ArrayItem,
    Assign,
    Combine,
    ConstantValue,
    Expr,
    For,
    If,
    IndexLike,
    Kernel,
    Load,
    MultiplyAdd,
    N,
    Name,
    Picked,
    PutItem,
    Splat,
    Stmt,
    Var,
    WorkGroupBarrier,
    any_of,
    equal,
    index_min,
    to_long,
)
from flowcompute.ir.launches import by_tiles
from flowcompute.lower.anchor_point import Axes, Operand
from flowcompute.lower.emit import Scope
from flowcompute.lower.form import Form, LoweringTask
from flowcompute.lower.kernel_knobs import FormKnobs, KernelStyle, Knob
from flowcompute.lower.matmul.matmul_anchor import PANEL, MatmulAnchor, why_no_product
from flowcompute.strategy import KernelKnobs

LANES = 4
DEPTH = 16
"""Numbers of k in a tile of A or B; divides `PANEL`."""
BAND = 8
"""Rows of tiles that neighbouring work-groups process column by column, so that both operands hit the cache."""
TILE, STEP = Name("t"), Name("s")
"""Number of a tile of the result, and of a step along k."""
K = Name("k")
FEW_TILE = 32
"""Rows and columns of a tile where larger ones are few."""
IDLE_UNITS = 4
"""Compute units for each tile from which on smaller ones are taken: larger ones compute up to twice as much a load."""
PAD = 4
"""Padding between the rows of a local tile, so that work-items that write a column use different banks."""
NEAR = 1 << 23
"""Bound of strides below which offsets within one tile fit into 32 bits."""


@dataclass(frozen=True)
class WorkGroupTile:
    """Rows and columns of the result per work-group, and per work-item."""

    rows: int
    columns: int
    item_rows: int
    item_columns: int

    @property
    def group(self) -> int:
        """Work-items in a work-group."""
        return self.across * (self.rows // self.item_rows)

    @property
    def across(self) -> int:
        """Work-items of a row of the work-group."""
        return self.columns // self.item_columns


def choose_tile(rows: int | None, columns: int, itemsize: int, style: KernelStyle) -> WorkGroupTile:
    """Choose the tile: the wanted knobs, else one not much larger than the matrix; local memory stays below 40 KiB."""
    largest = 128 if itemsize <= 4 else 64
    height, width = (
        next((size for size in (16, 32, 64) if side <= size), largest)
        for side in (largest if rows is None else rows, columns)
    )
    knobs = style.settled(TILED_MATMUL.knobs, tile_rows=min(height, largest), tile_columns=min(width, largest))
    height, width = min(knobs.tile_rows or height, largest), min(knobs.tile_columns or width, largest)
    return WorkGroupTile(height, width, height // 16 if height == 128 else 4, width // 16 if width == 128 else 4)


@dataclass(frozen=True)
class TilePosition:
    """Position of tile `t` of the result: its first row, the end of its rows, and its first column.

    Attributes:
        across: tiles of a row of tiles.
        many: tiles of a launch.
    """

    row: IndexLike
    until: IndexLike
    column: IndexLike
    across: int
    many: IndexLike


def place_of_tile(scope: Scope, one: MatmulAnchor, rows: int, columns: int) -> TilePosition:
    """Declare the position of a tile of `rows` and `columns`.

    The order of tiles is such that neighbouring work-groups find their operands in cache.
    """
    across = -(-one.columns // columns)
    high = -(-one.height // rows)
    within: IndexLike = TILE
    first: IndexLike = 0
    until: IndexLike = N
    tall: IndexLike = high
    if one.shared:
        tall = scope.integer((N + (rows - 1)) // rows)
    else:
        within = scope.integer(TILE % (high * across))
        first = scope.integer(TILE // (high * across) * one.height)
        until = scope.integer(first + one.height)
    band = scope.integer(within // (BAND * across))
    inside = scope.integer(within % (BAND * across))
    side = scope.integer(index_min(BAND, tall - band * BAND))
    row = scope.integer(first + (band * BAND + inside % side) * rows)
    column = scope.integer(inside // side * columns)
    many = (N + (rows - 1)) // rows if one.shared else N // one.height * high
    return TilePosition(row, until, column, across, many * across)


@dataclass(frozen=True)
class Side:
    """Operand that is loaded into local memory.

    Attributes:
        array: its two tiles, one after the other; `length` numbers each, rows `pitch` apart.
        slots: for each number that a work-item loads, its place in a tile and its k in the tile.
        indices: offsets of these numbers from `origin`. They leave out k without an origin, or where
            `depth` has several axes.
        depth: axes of k.
        origin: offset of the tile, so that 32 bits suffice for the indices.
        brought: registers with the numbers of the next tile.
    """

    operand: Operand
    array: str
    length: int
    pitch: int
    slots: list[tuple[IndexLike, IndexLike]]
    indices: list[IndexLike]
    depth: Axes
    origin: IndexLike | None
    brought: list[Var]


class TiledMatmulLowering:
    """Lowering of a region with a product for a GPU."""

    def __init__(self, graph: Graph, region: Region, style: KernelStyle, tile: WorkGroupTile | None = None) -> None:
        self.region = region
        self.contraction = one = MatmulAnchor(graph, region)
        self.tile = tile or choose_tile(one.rows_together, one.columns, one.dtype.itemsize, style)
        sides = {} if tile else {"tile_rows": self.tile.rows, "tile_columns": self.tile.columns}
        self.knobs = KernelKnobs(**sides)
        self.wide_rows = range(self.tile.item_rows // 4)
        self.wide_columns = range(self.tile.item_columns // LANES)
        self.arrays: list[Stmt] = []
        self.hidden: IndexLike = 0

    def lower(self, name: str) -> Kernel:
        """Return the kernel; its work counts rows of the result."""
        one, tile = self.contraction, self.tile
        scope = Scope(one.names, lanes=LANES)
        place = place_of_tile(scope, one, tile.rows, tile.columns)
        self._product(scope, place.row, place.until, place.column)
        body = For(TILE, GID, place.many, GSIZE, tuple(scope.statements))
        return Kernel(
            name,
            self.region.name,
            one.arguments.ordered(),
            (*self.arrays, body),
            work="matmul",
            work_group=tile.group,
            units=one.units,
            lanes=LANES,
            tile=(tile.rows, place.across),
            knobs=self.knobs,
        )

    # -- operands into local memory -----------------------------------------------------------------

    def _sides(self, scope: Scope, row: IndexLike, until: IndexLike, column: IndexLike) -> tuple[Side, Side]:
        """Describe both operands.

        Numbers behind the last row or column repeat it, and their results are never stored.
        """
        one, tile = self.contraction, self.tile
        last = scope.narrow(index_min(tile.rows, until - row) - 1)
        right = scope.narrow(index_min(tile.columns, one.columns - column) - 1)
        of_b = one.of_b(scope, one.row(scope, row))
        if one.b.columns.single:
            of_b = scope.integer(of_b + column * one.b.columns.stride)

        def below(inside: IndexLike) -> IndexLike:
            inside = index_min(inside, right)
            if one.b.columns.single:
                return inside * one.b.columns.stride
            return one.b.columns.offset(scope.narrow(column + inside))

        def far(inside: IndexLike) -> IndexLike:
            return one.of_a(scope, one.row(scope, scope.integer(row + index_min(inside, last))))

        def near(inside: IndexLike) -> IndexLike:
            assert one.row_stride is not None
            return index_min(inside, last) * one.row_stride

        step, rows = one.a.columns.stride, one.row_stride
        is_near = rows is not None and max(rows, step) < NEAR
        of_a = one.of_a(scope, one.row(scope, row)) if is_near else None
        a = self._side(
            scope, one.a, tile.rows, one.a.columns, near if is_near else far, of_a, by_depth=step <= one.a.rows.stride
        )
        by_depth = one.b.columns.stride > one.b.rows.stride
        return a, self._side(scope, one.b, tile.columns, one.b.rows, below, of_b, by_depth=by_depth)

    def _side(
        self,
        scope: Scope,
        operand: Operand,
        width: int,
        depth: Axes,
        place: Callable[[IndexLike], IndexLike],
        origin: IndexLike | None,
        *,
        by_depth: bool,
    ) -> Side:
        """Describe the loads of an operand.

        Neighbouring work-items load neighbours in memory: along k if `by_depth`, else along rows or
        columns.
        """
        dtype, group = self.contraction.dtype, self.tile.group
        pitch = width + PAD
        array = f"l{next(scope.names)}"
        self.arrays.append(Array(array, dtype, 1, 2 * DEPTH * pitch, local=True))
        run = DEPTH if by_depth else width
        slots: list[tuple[IndexLike, IndexLike]] = []
        indices: list[IndexLike] = []
        brought = []
        for turn in range(-(-DEPTH * width // group)):
            # Where work-items are whole runs, one register and a constant give the index of every iteration.
            whole, begin = group % run == 0, turn * group
            across = LID % run if whole else (LID + begin) % run
            along = LID // run + begin // run if whole else (LID + begin) // run
            k, inside = (scope.narrow(index) for index in ((across, along) if by_depth else (along, across)))
            slots.append((scope.narrow(k * pitch + inside), k))
            along_k = k * depth.stride if depth.single else 0
            indices.append(place(inside) if origin is None else scope.narrow(place(inside) + along_k))
            brought.append(scope.let(self.contraction.zero(), dtype, 1))
        return Side(operand, array, DEPTH * pitch, pitch, slots, indices, depth, origin, brought)

    def _bring(self, side: Side, start: IndexLike, *, nothing: ConstantValue) -> list[Stmt]:
        """Load the tile that begins at k = `start`, with `nothing` behind the last k."""
        one = self.contraction
        scope = Scope(one.names, lanes=1)
        origin, single = side.origin, side.depth.single
        if origin is not None and single:
            origin = scope.integer(origin + start * side.depth.stride)
        for (_, k), index, var in zip(side.slots, side.indices, side.brought, strict=True):
            reading = scope.inner(1)
            at = index if origin is None else origin + index
            if origin is None or not single:
                at += side.depth.offset(reading.integer(to_long(start + k)))
            reading.add(Assign(var, Splat(self._number(reading, side, at, start + k))))
            if one.inner % DEPTH:
                scope.add(If(start + k < one.inner, tuple(reading.statements), (Assign(var, nothing),)))
            else:
                scope.add(*reading.statements)
        return scope.statements

    def _number(self, scope: Scope, side: Side, at: IndexLike, k: IndexLike) -> Var:
        """Load the number at an index, which is number `k` of a sum."""
        del k
        return self.contraction.factor(scope, Load(side.operand.argument, at))

    @staticmethod
    def _put(side: Side, half: IndexLike) -> list[Stmt]:
        """Store the loaded registers in one of the two local tiles."""
        return [
            PutItem(side.array, half * side.length + place, var)
            for (place, _), var in zip(side.slots, side.brought, strict=True)
        ]

    # -- sums ---------------------------------------------------------------------------------------

    def _product(self, scope: Scope, row: IndexLike, until: IndexLike, column: IndexLike) -> None:
        one, tile = self.contraction, self.tile
        a, b = self._sides(scope, row, until, column)
        # -0.0 * 0.0 is -0.0, which changes no sum, not even the sign of a zero.
        nothing = {id(a): ConstantValue(one.zero().value), id(b): ConstantValue(0)}
        sums = self._zeros(scope)
        in_panels = one.inner > PANEL
        if in_panels:
            self.arrays.append(Array("totals", one.dtype, LANES, len(sums) * len(sums[0])))
            # Values that only the end of a panel needs would take half of the registers. The index keeps them in
            # memory: n >> 62 is zero, but the compiler does not know that.
            self.hidden = scope.integer(N >> 62)
            scope.add(*(self._put_total(i, h, sums[0][0]) for i in range(len(sums)) for h in self.wide_columns))
        steps = -(-one.inner // DEPTH)
        for side in (a, b):
            scope.add(*self._bring(side, 0, nothing=nothing[id(side)]), *self._put(side, 0))
        scope.add(WorkGroupBarrier())
        body = Scope(one.names, scope)
        more = STEP + 1 < steps
        ahead = body.integer((STEP + 1) * DEPTH)
        body.add(If(more, tuple(s for side in (a, b) for s in self._bring(side, ahead, nothing=nothing[id(side)]))))
        self._multiply(body, a, b, sums)
        if in_panels:
            per = PANEL // DEPTH
            ends = any_of(equal(STEP % per, per - 1), equal(STEP, steps - 1))
            body.add(If(ends, tuple(self._end_panel(body, sums))))
        body.add(If(more, tuple(s for side in (a, b) for s in self._put(side, (STEP + 1) % 2))), WorkGroupBarrier())
        scope.add(For(STEP, 0, steps, 1, tuple(body.statements)))
        y, x = (scope.integer(index) for index in (LID // tile.across, LID % tile.across))
        for i, line in enumerate(sums):
            r = scope.integer(row + self._offset(y, i // 4, tile.rows) + i % 4)
            for h, total in enumerate(line):
                if in_panels:
                    total = scope.let(self._total(i, h), one.dtype, LANES)
                self._store(scope, r, until, column + self._offset(x, h, tile.columns), total)

    def _slot(self, i: int, h: int) -> IndexLike:
        return self.hidden + (i * len(self.wide_columns) + h)

    def _total(self, i: int, h: int) -> ArrayItem:
        """Return the total of earlier panels of a vector."""
        return ArrayItem("totals", self._slot(i, h))

    def _put_total(self, i: int, h: int, total: Var) -> PutItem:
        """Set the same."""
        return PutItem("totals", self._slot(i, h), total)

    @staticmethod
    def _offset(item: IndexLike, part: int, size: int) -> IndexLike:
        """Return the begin of the work-item's block `part` of four rows or columns in the tile."""
        return item * 4 + part * size // 2

    def _zeros(self, scope: Scope) -> list[list[Var]]:
        zero, dtype = self.contraction.zero(), self.contraction.dtype
        return [[scope.let(zero, dtype, LANES) for _ in self.wide_columns] for _ in range(self.tile.item_rows)]

    def _multiply(self, scope: Scope, a: Side, b: Side, sums: list[list[Var]]) -> None:
        """Add the products of the two local tiles, in order of k."""
        tile, dtype = self.tile, self.contraction.dtype
        halves = [scope.integer(STEP % 2 * side.length) for side in (a, b)]
        y, x = (scope.integer(index) for index in (LID // tile.across, LID % tile.across))
        inner = scope.inner(LANES)

        def vector(side: Side, half: IndexLike, item: IndexLike, part: int, size: int) -> Var:
            index = half + K * side.pitch + self._offset(item, part, size)
            return inner.let(ArrayItem(side.array, index, vector=True), dtype, LANES)

        left = [vector(a, halves[0], y, part, tile.rows) for part in self.wide_rows]
        right = [vector(b, halves[1], x, part, tile.columns) for part in self.wide_columns]
        for i, line in enumerate(sums):
            factor = inner.let(Picked((left[i // 4],), (i % 4,)), dtype, LANES)
            for total, other in zip(line, right, strict=True):
                inner.add(Assign(total, Splat(inner.let(self._added(factor, other, total), dtype, LANES))))
        scope.add(For(K, 0, DEPTH, 1, tuple(inner.statements), unroll=1))

    def _added(self, a: Var, b: Var, c: Var) -> Expr:
        """Return `a * b + c`."""
        return MultiplyAdd(a, b, c)

    def _end_panel(self, scope: Scope, sums: list[list[Var]]) -> list[Stmt]:
        """Add a panel's sums to those of earlier panels; the first is added to -0.0, which changes no bit."""
        inner = scope.inner(LANES)
        for i, line in enumerate(sums):
            for h, panel in enumerate(line):
                before = inner.let(self._total(i, h), panel.dtype)
                added = inner.let(Combine("sum", (before,), (panel,), 0), panel.dtype)
                inner.add(self._put_total(i, h, added), Assign(panel, self.contraction.zero()))
        return inner.statements

    # -- results ------------------------------------------------------------------------------------

    def _store(self, scope: Scope, r: IndexLike, until: IndexLike, column: IndexLike, total: Var) -> None:
        one = self.contraction
        inner = scope.inner(LANES)
        j = inner.integer(column)
        count = None if one.columns % LANES == 0 else inner.integer(index_min(LANES, one.columns - j))
        storing = inner.inner(LANES)
        one.store(storing, one.row(storing, r), j, count, total)
        inner.add(If(j < one.columns, tuple(storing.statements)))
        scope.add(If(r < until, tuple(inner.statements)))


def why_no_tiles(task: LoweringTask) -> Reason | None:
    """Return why no work-group makes tiles of a region's product."""
    return why_no_product(task) if task.is_gpu else task.refuse("work-items of a CPU share no local memory")


def lower_tiled(task: LoweringTask) -> Kernel:
    """Return the kernel, which leaves few rows to smaller tiles, so that more of the units have one."""
    kernel = TiledMatmulLowering(task.graph, task.region, task.style).lower(task.name)
    one, wanted = MatmulAnchor(task.graph, task.region), task.style.wanted
    assert kernel.tile is not None
    rows, across = kernel.tile
    few_rows = task.style.capabilities.units // IDLE_UNITS // across * rows
    if one.rows_together is not None or wanted.tile_rows or wanted.tile_columns or rows <= FEW_TILE or not few_rows:
        return kernel
    tile = WorkGroupTile(FEW_TILE, min(FEW_TILE, kernel.knobs.tile_columns or FEW_TILE), 4, 4)
    few = TiledMatmulLowering(task.graph, task.region, task.style, tile).lower(task.name)
    return replace(kernel, few=few, few_rows=few_rows)


TILED_MATMUL = Form(
    name="tiled matmul",
    accepts=why_no_tiles,
    lower=lower_tiled,
    geometry=by_tiles,
    knobs=FormKnobs(gpu=(Knob("tile_rows", (16, 32, 64, 128)), Knob("tile_columns", (16, 32, 64, 128)))),
    family="matmul",
)
"""Products of matrices on GPUs."""
