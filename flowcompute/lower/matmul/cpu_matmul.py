"""Products of matrices on CPUs: tiles of rows by vectors of columns, with the sums in registers.

A work-item takes a range of rows and loops over strips of columns. A strip of B thus stays in cache for all
its rows. The epilogue runs before the result is stored.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from flowcompute.fuse import Reason, Region
from flowcompute.graph import Graph
from flowcompute.ir import (
    CHUNK,
    GID,
    LANE,
    Array,
    ArrayItem,
    Assign,
    Combine,
    DeviceCapabilities,
    For,
    If,
    IndexLike,
    Kernel,
    Load,
    MultiplyAdd,
    N,
    Name,
    PutItem,
    SetInteger,
    Splat,
    Stmt,
    Var,
    While,
    equal,
    index_min,
)
from flowcompute.ir.launches import ROWS_PER_ITEM, by_shares
from flowcompute.lower.anchor_point import Axes, Row
from flowcompute.lower.emit import Scope
from flowcompute.lower.form import Form, LoweringTask
from flowcompute.lower.kernel_knobs import FormKnobs, KernelStyle, Knob
from flowcompute.lower.matmul.matmul_anchor import PANEL, MatmulAnchor, why_no_product
from flowcompute.lower.matmul.panel_sums import FIRST_K, SHORT, K, loop_over_k, sum_in_panels, zeros
from flowcompute.lower.matmul.strided_columns import StridedColumns, are_strided_columns, in_order
from flowcompute.strategy import KernelKnobs

STRIP_BYTES = 64
"""Bytes of a row in a tile: four rows of it are 8 AVX2 accumulators, which keep the multipliers busy."""
TILE_ROWS = 4
PACKED_ROWS = 16
"""Fewest rows for which a panel of B is first packed, so that its rows are contiguous."""
PACKED_WINDOW_ROWS = 8
"""The same of windows, whose places are computed for each k of each tile otherwise."""
WIDE = 4
"""Vectors of a row that are computed together where a matrix has few rows."""
GATHERED = 8
"""Most vectors of columns that are gathered from lines shorter than half a vector. Each has a text of its own."""
LEFT_BYTES = 512 << 10
"""Bytes of rows of A that are kept where A is computed as it is loaded, so that each number is computed once."""
START, STOP = Name("start"), Name("stop")
"""Rows of a work-item."""
BEGIN, END = Name("begin"), Name("end")
"""Rows of it that are computed together."""
ROW, COLUMN = Name("r"), Name("j")
LINE, AT_LINE = Name("y"), Name("at_y")
"""Index of all but the last axis of columns, and its offset in B."""
AT_K = Name("at_k")
"""Offset of a k in B."""


Strip = tuple[int, ...]
"""Begins of the vectors of B that are multiplied together, counted in columns from the first."""


class MatmulLowering:
    """Lowering of a region with a product for a CPU."""

    def __init__(self, graph: Graph, region: Region, style: KernelStyle) -> None:
        self.region = region
        self.contraction = one = MatmulAnchor(graph, region)
        itemsize = one.dtype.itemsize
        self.lanes = strip_lanes(style.capabilities, itemsize)
        strip = max(self.lanes, STRIP_BYTES // itemsize)
        self.knobs = style.settled(CPU_MATMUL.knobs, tile_columns=strip)
        self.tile_rows, strip = self.knobs.tile_rows or TILE_ROWS, self.knobs.tile_columns or strip
        self.strip = _adjacent(strip // self.lanes, self.lanes)
        # Distant rows of B, above all at powers of two, would evict each other from the cache.
        least = PACKED_ROWS if one.b.rows.single or one.inner <= SHORT else PACKED_WINDOW_ROWS
        self.packed = region.stream or one.units >= least if one.shared else one.height >= least
        self.in_panels = one.inner > PANEL
        # A vector of a short line, as of a window, would be empty for the most part.
        lines = one.b.columns
        short = not lines.single and 2 * lines.sizes[-1] <= self.lanes and math.prod(lines.sizes) == one.columns
        self.gathered = self.packed and short and one.columns <= GATHERED * self.lanes
        # With one row per matrix, or few, nothing else shares the loads of B.
        self.thin = not self.packed and not one.shared and one.height < TILE_ROWS
        self.in_pairs = self.thin and one.inner <= SHORT and are_strided_columns(one)
        # Where A is computed as it is loaded, a block of its rows is computed before any result column.
        self.kept = one.is_computed(one.a)
        self.pitch = -(-one.inner // self.lanes) * self.lanes
        high = self.tile_rows
        fit = LEFT_BYTES // max(1, self.pitch * itemsize) // high * high
        self.block = max(high, min(ROWS_PER_ITEM, fit))

    def lower(self, name: str) -> Kernel:
        """Return the kernel; its work counts rows."""
        one = self.contraction
        body = self._columns() if one.b.columns.single or self.gathered else self._lines()
        ends = [] if one.shared else [(BEGIN // one.height + 1) * one.height]
        if self.kept:
            ends.append(BEGIN + self.block)
            body = [*self._keep(), *body]
        if not ends:
            rows: list[Stmt] = [SetInteger(BEGIN, START), SetInteger(END, STOP), *body]
        else:
            until: IndexLike = STOP
            for end in ends:
                until = index_min(until, end)
            again = SetInteger(BEGIN, END, new=False)
            rows = [SetInteger(BEGIN, START), While(BEGIN < STOP, (SetInteger(END, until), *body, again))]
        together = one.height if self.packed and not one.shared and one.height <= ROWS_PER_ITEM else self.tile_rows
        return Kernel(
            name,
            self.region.name,
            one.arguments.ordered(),
            (*self._arrays(), SetInteger(START, GID * CHUNK), SetInteger(STOP, index_min(N, START + CHUNK)), *rows),
            work="matmul",
            units=one.units,
            lanes=self.lanes,
            tile=(together, 1),
            knobs=KernelKnobs() if self.thin else self.knobs,
        )

    def _lines(self) -> list[Stmt]:
        """Loop over the outer column axes where several strides serve the columns; strips run along the last axis."""
        outer = self.contraction.b.columns.outer()
        body = (SetInteger(AT_LINE, outer.offset(LINE)), *self._columns())
        return [For(LINE, 0, math.prod(outer.sizes), 1, body)]

    def _columns(self) -> list[Stmt]:
        """Loop over strips of columns, as wide as they fit."""
        one = self.contraction
        size = one.columns if self.gathered or not one.columns else one.b.columns.sizes[-1]
        if self.thin and size >= self.lanes:
            return self._wide_strips(size)
        width = self.lanes * len(self.strip)
        strips: list[Stmt] = []
        column = 0
        if (whole := size // width * width) and not self.gathered:
            strips.append(For(COLUMN, 0, whole, width, tuple(self._strip(self.strip, None))))
            column = whole
        while column < size:
            count = min(self.lanes, size - column)
            if count < self.lanes <= size:
                # The vector overlaps the strip before: a whole vector is faster than a part of one.
                column, count = size - self.lanes, self.lanes
            body = self._strip((0,), count if count < self.lanes else None)
            strips.append(If(True, (SetInteger(COLUMN, column), *body)))
            column += count
        return strips

    def _wide_strips(self, size: int) -> list[Stmt]:
        """Loop over strips of several vectors of one row.

        A vector's sum is one chain of dependent additions, and there is one row per matrix to interleave.
        """
        lanes, width = self.lanes, self.lanes * WIDE
        strips: list[Stmt] = []
        if whole := size // width * width:
            strips.append(For(COLUMN, 0, whole, width, tuple(self._strip(_adjacent(WIDE, lanes), None))))
        # The last vector ends with the row and overlaps the one before.
        starts = list(dict.fromkeys(min(start, size - lanes) for start in range(whole, size, lanes)))
        if starts:
            places = tuple(start - starts[0] for start in starts)
            strips.append(If(True, (SetInteger(COLUMN, starts[0]), *self._strip(places, None))))
        return strips

    def _keep(self) -> list[Stmt]:
        """Compute the block's rows of A."""
        one = self.contraction
        line = Scope(one.names, lanes=self.lanes)
        at_a = one.of_a(line, one.row(line, ROW))

        def vector(k: IndexLike, count: int | None) -> list[Stmt]:
            inner = line.inner()
            stride = one.a.columns.stride
            numbers = one.factor(inner, Load(one.a.argument, at_a + k * stride, stride, count))
            inner.add(PutItem("left", (ROW - BEGIN) * self.pitch + k, numbers, vector=True))
            return inner.statements

        whole = one.inner // self.lanes * self.lanes
        line.add(For(K, 0, whole, self.lanes, tuple(vector(K, None))))
        if one.inner > whole:
            line.add(If(True, tuple(vector(whole, one.inner - whole))))
        return [For(ROW, BEGIN, END, 1, tuple(line.statements))]

    def _arrays(self) -> list[Stmt]:
        one = self.contraction
        kept: list[Stmt] = [Array("left", one.dtype, 1, self.block * self.pitch or 1)] if self.kept else []
        if not self.packed:
            return kept
        panel = min(one.inner, PANEL) * len(self.strip)
        arrays: list[Stmt] = [*kept, Array("packed", one.dtype, self.lanes, panel or 1)]
        if self.in_panels:
            arrays.append(Array("totals", one.dtype, self.lanes, ROWS_PER_ITEM * len(self.strip)))
        return arrays

    def _strip(self, strip: Strip, count: int | None) -> list[Stmt]:
        """Compute a strip of columns for all rows."""
        if not self.packed:
            return self._rows(lambda rows: self._tile(rows, strip, count))
        one = self.contraction
        scope = Scope(one.names, lanes=self.lanes)
        at_b = one.of_b(scope, one.row(scope, BEGIN))
        if not self.in_panels:
            scope.add(*self._pack(at_b, 0, one.inner, strip, count))
            scope.add(*self._rows(lambda rows: self._packed_tile(rows, strip, count, 0, one.inner)))
            return scope.statements
        clear, slot = scope.inner(), Name("i")
        clear.add(PutItem("totals", slot, clear.let(one.zero(), one.dtype)))
        scope.add(For(slot, 0, ROWS_PER_ITEM * len(self.strip), 1, tuple(clear.statements)))
        panel = scope.inner()
        length = panel.integer(index_min(PANEL, one.inner - FIRST_K))
        panel.add(*self._pack(at_b, FIRST_K, length, strip, count))
        panel.add(*self._rows(lambda rows: self._packed_tile(rows, strip, count, FIRST_K, length)))
        scope.add(For(FIRST_K, 0, one.inner, PANEL, tuple(panel.statements)))
        return scope.statements

    def _rows(self, tile: Callable[[int], list[Stmt]]) -> list[Stmt]:
        """Loop over all rows, tile by tile; the rows of a tile multiply one matrix."""
        if self.thin:
            return [For(ROW, BEGIN, END, 1, tuple(tile(1)))]
        high = self.tile_rows
        whole, single = tuple(tile(high)), tuple(tile(1))
        tiled = Name("tiled")
        loops = (For(ROW, BEGIN, tiled, high, whole), For(ROW, tiled, END, 1, single))
        return [If(True, (SetInteger(tiled, BEGIN + (END - BEGIN) // high * high), *loops))]

    # -- tiles ----------------------------------------------------------------------------------------

    def _places(self, scope: Scope, rows: int) -> list[Row]:
        return [self.contraction.row(scope, scope.integer(ROW + row)) for row in range(rows)]

    def _store(self, scope: Scope, row: Row, place: int, count: int | None, total: Var) -> None:
        columns = self.contraction.b.columns
        line = 0 if columns.single or self.gathered else LINE * columns.sizes[-1]
        self.contraction.store(scope, row, line + COLUMN + place, count, total)

    def _tile(self, rows: int, strip: Strip, count: int | None) -> list[Stmt]:
        """Compute a tile from B in place, with all sums in registers."""
        one = self.contraction
        scope = Scope(one.names, lanes=self.lanes)
        places = self._places(scope, rows)
        at_a, at_b = [self._of_a(scope, row) for row in places], one.of_b(scope, places[0])
        totals = zeros(one, scope, rows, len(strip))

        def columns(inner: Scope) -> list[Var]:
            return self._from_b(inner, at_b, one.b.rows.offset(K), strip, count)

        def add(inner: Scope, sums: list[list[Var]], start: IndexLike, stop: IndexLike) -> None:
            self._accumulate(inner, sums, at_a, start, inner.integer(stop), columns)

        if self.in_pairs and count is None:
            totals = self._strided_columns(scope, totals, at_a, at_b, strip)
        else:
            sum_in_panels(one, scope, totals, add)
        for row, line in zip(places, totals, strict=True):
            for place, total in zip(strip, line, strict=True):
                self._store(scope, row, place, count, total)
        return scope.statements

    def _packed_tile(
        self, rows: int, strip: Strip, count: int | None, start: IndexLike, length: IndexLike
    ) -> list[Stmt]:
        """Compute a tile of one packed panel; the sums of earlier panels are in `totals`."""
        one = self.contraction
        scope = Scope(one.names, lanes=self.lanes)
        places = self._places(scope, rows)
        sums = zeros(one, scope, rows, len(strip))
        at_a = [scope.integer(self._of_a(scope, row) + start * self.stride) for row in places]

        def packed(inner: Scope) -> list[Var]:
            return [inner.let(ArrayItem("packed", K * len(strip) + i), one.dtype) for i in range(len(strip))]

        self._accumulate(scope, sums, at_a, 0, length, packed)
        for position, (row, line) in enumerate(zip(places, sums, strict=True)):
            for vector, own in enumerate(line):
                if not self.in_panels:
                    self._store(scope, row, strip[vector], count, own)
                    continue
                slot = (ROW - BEGIN + position) * len(strip) + vector
                # The totals are -0.0 before the first panel, which changes no bit.
                before = scope.let(ArrayItem("totals", slot), one.dtype)
                added = scope.let(Combine("sum", (before,), (own,), 0), one.dtype)
                last = scope.inner()
                self._store(last, row, strip[vector], count, added)
                more = FIRST_K + PANEL < one.inner
                scope.add(If(more, (PutItem("totals", slot, added),), tuple(last.statements)))
        return scope.statements

    def _of_a(self, scope: Scope, row: Row) -> IndexLike:
        """Declare the begin of a row of A, in memory or in the array that keeps it."""
        if self.kept:
            return scope.integer((row.number - BEGIN) * self.pitch)
        return self.contraction.of_a(scope, row)

    @property
    def stride(self) -> int:
        """Distance from one number of a row of A to the next."""
        return 1 if self.kept else self.contraction.a.columns.stride

    def _left(self, scope: Scope, at: IndexLike, along: IndexLike) -> Var:
        """Broadcast one number of A to all lanes, `along` numbers behind the begin of its row."""
        one = self.contraction
        if self.kept:
            return scope.let(Splat(scope.let(ArrayItem("left", at + along), one.dtype, 1)), one.dtype)
        return one.factor(scope, Load(one.a.argument, at, 0, along=along))

    def _pack(
        self, at_b: IndexLike, start: IndexLike, length: IndexLike, strip: Strip, count: int | None
    ) -> list[Stmt]:
        """Copy a panel of B, `length` rows from `start`, into `packed`."""
        one, rows = self.contraction, self.contraction.b.rows
        copy = Scope(one.names, lanes=self.lanes)
        begin, step = ([], []) if rows.single else _incremental_offset(rows, start)
        at_k = AT_K if begin else rows.offset(start + K)
        for vector, var in enumerate(self._from_b(copy, at_b, at_k, strip, count)):
            copy.add(PutItem("packed", K * len(strip) + vector, var))
        loop = For(K, 0, length, 1, (*copy.statements, *step))
        return [If(True, (*begin, loop)) if begin else loop]

    def _from_b(self, scope: Scope, at_b: IndexLike, at_k: IndexLike, strip: Strip, count: int | None) -> list[Var]:
        """Load the vectors of a row of B at an offset."""
        one, b = self.contraction, self.contraction.b
        if self.gathered:
            every = [at_b + at_k + b.columns.offset(COLUMN + place + LANE) for place in strip]
            return [one.factor(scope, Load(b.argument, at_b, 1, count, each)) for each in every]
        at, stride = at_b + at_k + (0 if b.columns.single else AT_LINE), b.columns.stride
        return [one.factor(scope, Load(b.argument, at + (COLUMN + place) * stride, stride, count)) for place in strip]

    def _accumulate(
        self,
        scope: Scope,
        sums: list[list[Var]],
        at_a: list[IndexLike],
        start: IndexLike,
        stop: IndexLike,
        columns: Callable[[Scope], list[Var]],
    ) -> None:
        inner = scope.inner()
        self._add_products(inner, sums, at_a, K, columns(inner))
        loop_over_k(self.contraction, scope, start, stop, inner)

    def _strided_columns(
        self, scope: Scope, sums: list[list[Var]], at_a: list[IndexLike], at_b: IndexLike, strip: Strip
    ) -> list[list[Var]]:
        """Return the sums where columns have stride two, with all of k unrolled."""
        at = at_b + (0 if self.contraction.b.columns.single else AT_LINE)
        starts = [at + (COLUMN + place) * 2 for place in strip]
        for k, turn, right in StridedColumns(self.contraction, self.lanes).rows(scope, starts):
            for i, columns in enumerate(right):
                self._add_products(turn, sums, at_a, k + i, columns)
            scope.add(If(True, tuple(turn.statements)))
        return [[in_order(scope, own) for own in line] for line in sums]

    def _add_products(
        self, scope: Scope, sums: list[list[Var]], at_a: list[IndexLike], k: IndexLike, columns: list[Var]
    ) -> None:
        """Add the products of column `k` of A and these vectors of row `k` of B."""
        for at, line in zip(at_a, sums, strict=True):
            a = self._left(scope, at, k * self.stride)
            for own, b in zip(line, columns, strict=True):
                scope.add(Assign(own, Splat(scope.let(MultiplyAdd(a, b, own), own.dtype))))


def _adjacent(vectors: int, lanes: int) -> Strip:
    """Return the strip of so many adjacent vectors."""
    return tuple(vector * lanes for vector in range(vectors))


def _incremental_offset(axes: Axes, start: IndexLike) -> tuple[list[Stmt], list[Stmt]]:
    """Return the statements that declare `at_k`, the offset of index `start` of all axes, and those that advance it.

    No index is divided. For few rows of A, divisions took a third as long as the product itself.
    """
    begin: list[Stmt] = [SetInteger(AT_K, axes.offset(start))]
    step: tuple[Stmt, ...] = ()
    below = 1
    for axis in reversed(range(1, len(axes.sizes))):
        size = axes.sizes[axis]
        begin.append(SetInteger(Name(f"axis{axis}"), start // below % size))
        below *= size
    for axis in range(1, len(axes.sizes)):
        size, name = axes.sizes[axis], Name(f"axis{axis}")
        back = axes.strides[axis - 1] - size * axes.strides[axis]
        carried = (SetInteger(name, 0, new=False), SetInteger(AT_K, AT_K + back, new=False), *step)
        step = (SetInteger(name, name + 1, new=False), If(equal(name, size), carried))
    return begin, [SetInteger(AT_K, AT_K + axes.stride, new=False), *step]


def _why_not(task: LoweringTask) -> Reason | None:
    return task.refuse("a work-item of a GPU has no such caches") if task.is_gpu else why_no_product(task)


def _lower(task: LoweringTask) -> Kernel:
    return MatmulLowering(task.graph, task.region, task.style).lower(task.name)


def strip_lanes(capabilities: DeviceCapabilities, itemsize: int) -> int:
    """Return the lanes of a vector on a CPU for numbers of `itemsize` bytes: one strip, but never fewer than 8."""
    return min(capabilities.lanes, max(8, STRIP_BYTES // itemsize))


CPU_MATMUL = Form(
    name="cpu matmul",
    accepts=_why_not,
    lower=_lower,
    geometry=by_shares,
    knobs=FormKnobs(cpu=(Knob("tile_rows", (2, 4, 8), TILE_ROWS), Knob("tile_columns", (16, 32, 64)))),
    family="matmul",
)
"""Products of matrices on CPUs; where matrices have few rows it has no knobs."""
