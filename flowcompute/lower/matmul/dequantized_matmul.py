"""Products with numbers that are decoded from blocks, on CPUs: both factors are read along k.

The numbers of a column of B are neighbours in its blocks, as in `x @ w.T` of a file's weights. A vector of them is
decoded at once and multiplied by a vector of a row of A. So a single row takes as long as decoding. Columns that are
decoded for many rows are kept in a private array (see `halved_lanes.py`).

Lane l of `LANES` sums the products whose k is l modulo `LANES`, in order. Panels of `RUN` * `LANES` products are summed
on their own and added up. Products behind the last whole vector come last. Lanes are added as a tree by halves. That
order belongs to products whose right factor is `dequantize` along k; no tile changes it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from flowcompute.fuse import FEW_ROWS, Reason, Region
from flowcompute.graph import Graph
from flowcompute.imports import dataclass
from flowcompute.ir import (
    GID,
    GSIZE,
    PHASE,
    Array,
    ArrayItem,
    For,
    If,
    IndexLike,
    Kernel,
    Load,
    N,
    Name,
    PutItem,
    SetInteger,
    Stmt,
    Var,
    While,
    equal,
    index_min,
)
from flowcompute.ir.launches import ROWS_PER_ITEM, by_strips, even_rows
from flowcompute.lower.anchor_point import Operand, Row
from flowcompute.lower.emit import Scope
from flowcompute.lower.form import Form, LoweringTask
from flowcompute.lower.kernel_knobs import KernelStyle
from flowcompute.lower.matmul.halved_lanes import HALF, add_product, halves, halves_summed, put_halves
from flowcompute.lower.matmul.lane_sums import LANES, RUN, added_up
from flowcompute.lower.matmul.matmul_anchor import MatmulAnchor, block_format, reads_along_blocks, why_no_product
from flowcompute.lower.matmul.panel_sums import K, sum_in_panels, zeros
from flowcompute.lower.row_groups import group_arrays, group_end, group_rows, row_at
from flowcompute.lower.rows import ProductRows
from flowcompute.spec import FLOAT32

STRIP = 16
"""Columns whose results are stored together: the vector of the epilogue."""
DECODED = 4
"""Columns that are decoded together. Those of many rows stay in the nearest cache for all of them."""
UNROLL = 2
"""Vectors of k for each turn of the loop: as many as there are in most of the small blocks, whose scales they share."""
TILE_ROWS = 3
"""Rows of a tile of `DECODED` columns: halves of their sums, of the rows and of a column take AVX2's 16 registers.
Tiles of two rows have eight sums, as many as multiply-adds are in progress. They take rows that are left."""
LEFT_BYTES = 384 << 10
"""Bytes of rows of A, or of halves of them, that stay in the second cache while they are multiplied by a strip."""
STAGES = 2
"""Launches of a product whose rows of A are made by a row_maker: one stores them, one multiplies."""
FEWEST_ROWS = 32
"""Rows for which it pays to decode a column, however long they are."""
GROUPED_ROWS = 1024
"""Rows of a block whose rows choose their matrices: each matrix is decoded once for those that choose it."""
RIGHT_BYTES = 512 << 10
"""Most bytes of decoded columns in a private array. Longer columns are decoded for each row."""

TASK, TASKS, AFTER = Name("t"), Name("tasks"), Name("after")
"""A strip of columns of a block of rows, how many there are, and the end of those of a work-item."""
FIRST_STRIP, LAST_STRIP, STRIP_INDEX = Name("first_strip"), Name("last_strip"), Name("strip")
HEIGHT, BEGIN, END, TILED = Name("height"), Name("begin"), Name("end"), Name("tiled")
"""Rows of a block: their number, the first, their end, and the end of those in whole tiles."""
FROM, TO = Name("from"), Name("to")
"""Places of a group of rows that choose one matrix."""
ROW, COLUMN, WITHIN, PART = Name("r"), Name("j"), Name("c"), Name("d")
"""A row, the first column of a strip, the first one of those decoded together, and of a tile among them."""


@dataclass(frozen=True)
class _Along:
    """A place along k: `behind` numbers behind one that vectors share."""

    k: IndexLike
    behind: int = 0

    @property
    def index(self) -> IndexLike:
        """The place as one index."""
        return self.k + self.behind


class _DequantizedLowering:
    """Lowering of a region with such a product."""

    def __init__(self, graph: Graph, region: Region, style: KernelStyle) -> None:
        self.region = region
        self.contraction = one = MatmulAnchor(graph, region)
        rows = region.row_maker
        self.rows = None if rows is None else ProductRows(graph, rows, style, one.arguments, one.names)
        self.pitch = -(-one.inner // LANES) * LANES
        self.row_bytes = self.pitch * FLOAT32.itemsize
        in_place = not one.is_computed(one.a) and one.a.columns.stride == 1 and one.a.argument.dtype == FLOAT32
        self.grouped = one.chosen is not None
        # Blocks are cut from all rows, and not from those of each matrix.
        self.across = one.shared or self.grouped
        self.many = one.height > 1 or (self.across and (region.stream or one.units > 1))
        # Places of rows that multiply one matrix: rows of the block, or of a group.
        self.first, self.last = (FROM, TO) if self.grouped else (BEGIN, END)
        whole = one.inner - one.inner % LANES
        self.together = UNROLL if whole % (UNROLL * LANES) == 0 and self._is_aligned(one.b, UNROLL * LANES) else 1
        numbers = block_format(graph, one.node.inputs[1]).numbers
        self.by_blocks = self.together > 1 and self._is_aligned(one.b, numbers)
        # Scales of larger blocks take many registers.
        self.at_once = 2 if numbers == self.together * LANES else 1
        self.buffered = self.many and DECODED * self.row_bytes <= RIGHT_BYTES
        # Where A is computed as it is loaded, or scattered, each number is computed and picked once. Rows that share
        # columns are kept by halves. Those that choose matrices are too many.
        picked = self.rows is not None or not in_place or (self.buffered and not self.grouped)
        self.kept = picked and self.row_bytes <= LEFT_BYTES
        self.halved = self.buffered and self.kept
        fit = LEFT_BYTES * (2 if self.halved else 1) // max(1, self.row_bytes)
        fewest, most = (GROUPED_ROWS, GROUPED_ROWS) if self.grouped else (FEWEST_ROWS, ROWS_PER_ITEM)
        self.block = min(most, max(1 if self.kept else fewest, fit)) if self.many else 1
        # Upper halves of rows, and of columns, lie behind all lower ones.
        self.half = self.pitch // 2
        self.apart = self.block * self.half
        self.strips = max(1, -(-one.columns // STRIP))
        # What is computed around the product calls functions, for which the device may not take wider vectors.
        self.width = min(style.capabilities.lanes, LANES)

    def lower(self, name: str) -> Kernel:
        """Return the kernel; its work counts rows."""
        one, rows = self.contraction, self.rows
        product: tuple[Stmt, ...] = (
            SetInteger(TASKS, self._blocks() * self.strips),
            SetInteger(TASK, (TASKS + GSIZE - 1) // GSIZE * GID),
            SetInteger(AFTER, index_min(TASKS, TASK + (TASKS + GSIZE - 1) // GSIZE)),
            While(TASK < AFTER, tuple(self._tasks())),
        )
        if rows is not None:
            # The first of the parts of a launch stores the rows that all of them read.
            stored = (rows.stored(GID, N, GSIZE),) if self.region.place == 0 else ()
            product = (*rows.declared, If(PHASE > 0, product, stored))
        body = (*self._arrays(), *product)
        return Kernel(
            name,
            self.region.name,
            one.arguments.ordered(),
            body,
            work="matmul",
            units=one.units,
            lanes=LANES,
            tile=(self.block, self.strips),
            stages=1 if rows is None else STAGES,
            at_once=0 if rows is None else FEW_ROWS // one.units,
        )

    # -- rows and strips ----------------------------------------------------------------------------

    def _blocks(self) -> IndexLike:
        """Return the blocks of rows of a launch. The rows of a block, or of its groups, multiply one matrix."""
        return self._blocks_of_matrix if self.across else N // self.contraction.height * self._blocks_of_matrix

    @property
    def _blocks_of_matrix(self) -> IndexLike:
        rows = N if self.across else self.contraction.height
        return (rows + self.block - 1) // self.block

    def _tasks(self) -> list[Stmt]:
        """Compute the next strips of a block of rows."""
        one = self.contraction
        scope = Scope(one.names, lanes=LANES)
        block, each = TASK // self.strips, N if self.across else one.height
        begin: IndexLike = block * HEIGHT
        until: IndexLike = N
        if not self.across:
            matrix = block // self._blocks_of_matrix
            begin = matrix * one.height + block % self._blocks_of_matrix * HEIGHT
            until = (matrix + 1) * one.height
        scope.add(
            SetInteger(FIRST_STRIP, TASK % self.strips),
            SetInteger(LAST_STRIP, index_min(self.strips, FIRST_STRIP + AFTER - TASK)),
            SetInteger(HEIGHT, even_rows(each, self._blocks_of_matrix, self.block, TILE_ROWS)),
            SetInteger(BEGIN, begin),
            SetInteger(END, index_min(until, BEGIN + HEIGHT)),
        )
        scope.add(SetInteger(TASK, TASK + LAST_STRIP - FIRST_STRIP, new=False))
        if self.kept:
            scope.add(self._keep())
        strip = scope.inner()
        strip.add(SetInteger(COLUMN, STRIP_INDEX * STRIP))
        if self.grouped:
            group_rows(scope, END - BEGIN, lambda inner, row: one.matrix_of(one.row(inner, inner.integer(BEGIN + row))))
            strip.add(*self._groups(strip))
        else:
            strip.add(self._sums(strip, one.of_b(scope, one.row(scope, BEGIN))))
        strip.add(*self._epilogue())
        scope.add(For(STRIP_INDEX, FIRST_STRIP, LAST_STRIP, 1, tuple(strip.statements)))
        return scope.statements

    def _groups(self, strip: Scope) -> list[Stmt]:
        """Compute the sums of a strip, of one group of rows after the other."""
        scope = strip.inner()
        scope.add(SetInteger(TO, group_end(FROM)))
        at_b = self.contraction.of_b(scope, self._row(scope, FROM))
        scope.add(self._sums(scope, at_b), SetInteger(FROM, TO, new=False))
        return [SetInteger(FROM, 0), While(FROM < END - BEGIN, tuple(scope.statements))]

    def _sums(self, strip: Scope, at_b: IndexLike) -> Stmt:
        """Compute the sums of a strip, of rows that multiply one matrix."""
        columns = self.contraction.columns
        groups = index_min(STRIP, columns - COLUMN) if columns % STRIP else STRIP
        return For(WITHIN, 0, groups, DECODED, tuple(self._columns(strip, at_b)))

    def _row(self, scope: Scope, place: IndexLike) -> Row:
        """Declare the row that stands at a place: itself, or one of a group."""
        return self.contraction.row(scope, scope.integer(BEGIN + row_at(place) if self.grouped else place))

    def _arrays(self) -> list[Stmt]:
        arrays: list[Stmt] = [Array("sums", FLOAT32, 1, self.block * STRIP)]
        if self.grouped:
            arrays += group_arrays(self.block)
        if self.kept:
            arrays.append(Array("left", FLOAT32, 1, self.block * self.pitch or 1))
        if self.buffered:
            arrays.append(Array("decoded", FLOAT32, 1, DECODED * self.pitch or 1))
            arrays.append(Array("lower", FLOAT32, 1, self.block * DECODED * HALF))
        return arrays

    def _keep(self) -> Stmt:
        """Compute the block's rows of A, or copy those that the first stage has stored."""
        if self.rows is None:
            return self._load()
        return If(equal(PHASE, STAGES), (self.rows.kept(self._put, BEGIN, END),), (self._load(),))

    def _load(self) -> Stmt:
        one = self.contraction
        line = Scope(one.names, lanes=self.width)
        at_a, stride = one.of_a(line, one.row(line, ROW)), one.a.columns.stride

        def vector(scope: Scope, at: _Along, count: int | None) -> None:
            self._put(scope, at.index, one.factor(scope, Load(one.a.argument, at_a + at.index * stride, stride, count)))

        self._along_k(line, vector, self.width)
        return For(ROW, BEGIN, END, 1, tuple(line.statements))

    def _put(self, scope: Scope, k: IndexLike, numbers: Var) -> None:
        """Keep a vector of the row of A at `ROW`."""
        if self.halved:
            put_halves(scope, "left", (ROW - BEGIN) * self.half, self.apart, k, numbers)
        else:
            scope.add(PutItem("left", (ROW - BEGIN) * self.pitch + k, numbers, vector=True))

    def _along_k(
        self, scope: Scope, vector: Callable[[Scope, _Along, int | None], None], width: int = LANES, together: int = 1
    ) -> None:
        """Repeat statements for each vector of k; the last one may have fewer numbers."""
        rest = self.contraction.inner % width
        scope.add(_loop(scope, vector, 0, self.contraction.inner - rest, width, together))
        if rest:
            last = scope.inner()
            vector(last, _Along(self.contraction.inner - rest), rest)
            scope.add(If(True, tuple(last.statements)))

    def _epilogue(self) -> list[Stmt]:
        """Store the strip of all rows."""
        one = self.contraction

        def stored(columns: int) -> Stmt:
            outer = Scope(one.names, lanes=self.width)
            row = one.row(outer, ROW)
            for first in range(0, columns, self.width):
                scope = outer.inner()
                total = scope.let(ArrayItem("sums", (ROW - BEGIN) * STRIP + first, vector=True), FLOAT32)
                left = columns - first
                one.store(scope, row, COLUMN + first, left if left < self.width else None, total)
                outer.add(*([If(True, tuple(scope.statements))] if columns > self.width else scope.statements))
            return For(ROW, BEGIN, END, 1, tuple(outer.statements))

        rest = one.columns % STRIP
        if one.columns < STRIP:
            return [stored(rest)] if rest else []
        if not rest:
            return [stored(STRIP)]
        return [If(COLUMN + STRIP <= one.columns, (stored(STRIP),), (stored(rest),))]

    # -- sums ---------------------------------------------------------------------------------------

    def _columns(self, strip: Scope, at_b: IndexLike) -> list[Stmt]:
        """Compute the columns that are decoded together, of all rows of the block."""
        scope = strip.inner()
        some = scope.inner()
        starts = [self._start(some, at_b, WITHIN + PART + number) for number in range(self.at_once)]
        some.add(For(ROW, self.first, self.last, 1, tuple(self._alone(some, starts))))
        alone = For(PART, 0, DECODED, self.at_once, tuple(some.statements))
        if not self.buffered:
            scope.add(alone)
        else:
            scope.add(If(self.last - self.first < 2, (alone,), tuple(self._buffered(scope, at_b))))
        return scope.statements

    def _start(self, scope: Scope, at_b: IndexLike, column: IndexLike) -> IndexLike:
        """Declare the offset of a column in B. Behind the last one it is read again."""
        one = self.contraction
        column = COLUMN + column
        if one.columns % DECODED:
            column = index_min(column, one.columns - 1)
        return scope.integer(at_b + column * one.b.columns.stride)

    def _right(self, scope: Scope, start: IndexLike, at: _Along, count: int | None) -> Var:
        """Load numbers of a column of B."""
        one, stride = self.contraction, self.contraction.b.rows.stride
        if self.together > 1 and count is None:
            index, along = (start, at.k) if self.by_blocks else (start + at.k, 0)
            together = self.together * LANES
            load = Load(one.b.argument, index, aligned=True, behind=at.behind, together=together, along=along)
        else:
            aligned = count is None and self._is_aligned(one.b)
            load = Load(one.b.argument, start + at.index * stride, stride, count, aligned=aligned)
        return one.factor(scope, load)

    def _is_aligned(self, operand: Operand, run: int = LANES) -> bool:
        """Check whether runs along k begin at multiples of their length, counted in numbers that are decoded."""
        return self.contraction.begins_at_multiples(operand, run, operand.columns.stride)

    def _buffered(self, scope: Scope, at_b: IndexLike) -> list[Stmt]:
        """Decode columns into a private array, and multiply them by all rows of the block."""
        made = scope.inner()
        line = made.inner()
        start = self._start(line, at_b, WITHIN + PART)

        def vector(inner: Scope, at: _Along, count: int | None) -> None:
            numbers = self._right(inner, start, at, count)
            put_halves(inner, "decoded", PART * self.half, DECODED * self.half, at.index, numbers)

        self._along_k(line, vector, together=self.together)
        made.add(For(PART, 0, DECODED, 1, tuple(line.statements)))
        rows = self.last - self.first
        # Two rows or more are some tiles of three, and at most two of two.
        made.add(SetInteger(TILED, self.last - rows * 2 % TILE_ROWS * 2))
        for upper in (0, 1):
            made.add(
                For(ROW, self.first, TILED, TILE_ROWS, tuple(self._tile(made, TILE_ROWS, upper))),
                For(ROW, TILED, self.last, 2, tuple(self._tile(made, 2, upper))),
            )
        return made.statements

    def _tile(self, outer: Scope, rows: int, upper: int) -> list[Stmt]:
        """Compute one half of the decoded columns' sums, of `rows` rows from `ROW` on.

        Those of the lower half are kept in an array. Those of the upper half are added to them for the epilogue.
        """
        scope = outer.inner().beside(HALF)
        placed = [self._row(scope, ROW + number) for number in range(rows)]
        at_rows = [self._of_a(scope, row) for row in placed]

        def left(inner: Scope, row: int, k: IndexLike, count: int | None) -> Var:
            if self.halved:
                return inner.let(ArrayItem("left", at_rows[row] + upper * self.apart + k, vector=True), FLOAT32)
            return self._left(inner, at_rows[row], k * 2 + upper * HALF, count)

        kept = (ROW - self.first) * DECODED * HALF
        totals = halves_summed(self.contraction, scope, upper, (rows, DECODED), left, kept)
        for number, total in enumerate(added_up(scope, totals, rows, HALF) if upper else ()):
            row = placed[number].number if self.grouped else ROW + number
            scope.add(PutItem("sums", (row - BEGIN) * STRIP + WITHIN, total, vector=True))
        return scope.statements

    def _alone(self, outer: Scope, starts: Sequence[IndexLike]) -> list[Stmt]:
        """Compute the sums of a row and columns, which are decoded meanwhile, and keep them for the epilogue."""
        one = self.contraction
        scope = outer.inner()
        row = self._row(scope, ROW)
        at_a = self._of_a(scope, row)
        totals = zeros(one, scope, 1, len(starts))

        def products(inner: Scope, at: _Along, count: int | None, sums: Sequence[Var]) -> None:
            if self.halved:
                a = halves(inner, "left", at_a, self.apart, at.index)
            else:
                a = self._left(inner, at_a, at.index, count)
            for start, total in zip(starts, sums, strict=True):
                add_product(inner, total, a, self._right(inner, start, at, count), count)

        def add(inner: Scope, sums: list[list[Var]], begin: IndexLike, end: IndexLike) -> None:
            vector = partial(products, sums=sums[0])
            inner.add(_loop(inner, vector, begin, end, LANES, self.together))

        rest = one.inner % LANES
        sum_in_panels(one, scope, totals, add, one.inner - rest, RUN * LANES)
        if rest:
            last = scope.inner()
            products(last, _Along(one.inner - rest), rest, totals[0])
            scope.add(If(True, tuple(last.statements)))
        (own,) = added_up(scope, totals[0], 1, LANES)
        number = row.number if self.grouped else ROW
        scope.add(PutItem("sums", (number - BEGIN) * STRIP + WITHIN + PART, own, vector=own.lanes > 1))
        return scope.statements

    def _of_a(self, scope: Scope, row: Row) -> IndexLike:
        """Declare the begin of a row of A, in memory or in the array that keeps it."""
        pitch = self.half if self.halved else self.pitch
        return scope.integer((row.number - BEGIN) * pitch) if self.kept else self.contraction.of_a(scope, row)

    def _left(self, scope: Scope, at: IndexLike, k: IndexLike, count: int | None) -> Var:
        """Return numbers of a row of A that lie in order."""
        one, stride = self.contraction, self.contraction.a.columns.stride
        if self.kept:
            return scope.let(ArrayItem("left", at + k, vector=True), FLOAT32)
        return one.factor(scope, Load(one.a.argument, at + k * stride, stride, count))


def _loop(
    scope: Scope,
    vector: Callable[[Scope, _Along, int | None], None],
    start: IndexLike,
    stop: IndexLike,
    width: int,
    together: int,
) -> Stmt:
    """Return a loop over whole vectors of k, `together` of them in each turn."""
    step = scope.inner()
    for number in range(together):
        vector(step, _Along(K, number * width), None)
    return For(K, start, stop, width * together, tuple(step.statements), unroll=UNROLL)


def _why_not(task: LoweringTask) -> Reason | None:
    if (reason := why_no_product(task)) is not None:
        return reason
    if task.is_gpu:
        return task.refuse("a work-item of a GPU has no such caches")
    assert task.anchor is not None
    if not reads_along_blocks(task.graph, task.anchor.id):
        return task.refuse("its right factor is not decoded from blocks along the sum")
    return None


def _lower(task: LoweringTask) -> Kernel:
    return _DequantizedLowering(task.graph, task.region, task.style).lower(task.name)


DEQUANTIZED_MATMUL = Form(
    name="dequantized matmul",
    accepts=_why_not,
    lower=_lower,
    geometry=by_strips,
    joins=True,
    takes_rows=True,
    family="matmul",
)
"""Products with decoded numbers on CPUs, of which columns are neighbours in blocks."""
