"""Products of matrices on tensor cores: half formats, and float32 by three products of parts, summed in float32.

A work-group computes a tile of the result. Asynchronous copies move its operands through a ring of stages
in local memory. Sub-groups of 32 work-items multiply fragments of a stage while they read the next
fragments. At the end the sums pass through local memory, so that neighbouring work-items run the epilogue
and store neighbouring numbers.

A sum runs over k in steps of 16, in order, from k = 0. The device decides the order and the rounding within
a step. That order belongs to the product of half formats on such devices; no tile size changes it.

Tensor cores multiply 11 bits of a float32. With `precision="tf32x3"` a factor is split into a leading part
and a rest. Three of the four products are added (Fasi et al., 2021; Ootomo and Yokota, 2022):

    |error| <= 1.25 * 2^-20 * sum |a| |b|   from the parts, besides the error of summation.

Tensor cores truncate sums instead of rounding them. So they add only 32 numbers of k, in 12 steps (error up
to 12 * 2^-23 of these). Such sums are then added in float32, rounded. Measured for k = 8192: 2^-23.9 for
normal numbers and 2^-19.5 for positive ones. cuBLAS has 2^-21.6 and 2^-17.2 in float32.
"""

from __future__ import annotations

from flowcompute.fuse import Reason, Region
from flowcompute.imports import dataclass
from flowcompute.ir import (
    GID,
    GSIZE,
    LID,
    Array,
    Assign,
    AwaitCopies,
    Combine,
    ConditionLike,
    EndCopies,
    For,
    FragmentMultiply,
    If,
    IndexLike,
    Kernel,
    Splat,
    Var,
    WorkGroupBarrier,
    index_min,
    to_int,
    to_long,
)
from flowcompute.ir.launches import by_tiles
from flowcompute.lower.emit import Scope
from flowcompute.lower.form import Form, LoweringTask
from flowcompute.lower.matmul.matmul_anchor import MatmulAnchor, why_no_product
from flowcompute.lower.matmul.tensor_cores.tensor_results import LANES, PITCH, results_of
from flowcompute.lower.matmul.tensor_cores.tensor_tile import (
    CHUNK_BYTES,
    EDGE,
    SUBGROUP,
    TILES,
    Feed,
    FragmentReader,
    TensorTile,
    copied_together,
    lines_along_k,
    three_terms,
)
from flowcompute.lower.matmul.tiled_matmul import STEP, TILE, place_of_tile
from flowcompute.spec import BFLOAT16, FLOAT16, FLOAT32

LEAST = 16
"""Fewest rows or columns; for fewer, fragments would be mostly empty."""


@dataclass(frozen=True)
class TensorWorkGroup:
    """Tile of a work-group.

    Attributes:
        rows, columns: rows and columns of the result.
        depth: numbers of k in a stage.
        stages: stages of the ring.
        subgroup_rows, subgroup_columns: rows and columns of a sub-group.
    """

    rows: int
    columns: int
    depth: int
    stages: int
    subgroup_rows: int
    subgroup_columns: int

    @property
    def down(self) -> int:
        """Sub-groups in a column of the tile."""
        return self.rows // self.subgroup_rows

    @property
    def group(self) -> int:
        """Work-items in the work-group."""
        return self.down * (self.columns // self.subgroup_columns) * SUBGROUP

    def local_bytes(self, itemsize: int) -> int:
        """Return the bytes of its local memory."""
        ring = self.stages * self.depth * (self.rows + self.columns) * itemsize
        return max(ring, self.rows * (self.columns + PITCH) * FLOAT32.itemsize)


SHAPES = {
    2: (
        TensorWorkGroup(128, 256, 64, 3, 64, 64),
        TensorWorkGroup(128, 128, 64, 3, 64, 32),
        TensorWorkGroup(64, 64, 64, 3, 32, 32),
    ),
    4: (TensorWorkGroup(128, 128, 32, 4, 64, 32), TensorWorkGroup(64, 64, 32, 3, 32, 32)),
}
"""Tiles by the bytes of a factor's numbers, the largest first."""


def choose_tile(rows: int | None, columns: int, itemsize: int, local_bytes: int) -> TensorWorkGroup:
    """Choose the largest tile that is not much larger than the matrix and fits into local memory."""
    *larger, smallest = SHAPES[itemsize]
    for tile in larger:
        fits = tile.local_bytes(itemsize) <= local_bytes
        if fits and columns > tile.columns // 2 and (rows is None or rows > tile.rows // 2):
            return tile
    return smallest


class _TensorMatmulLowering:
    def __init__(self, one: MatmulAnchor, region: Region, tile: TensorWorkGroup) -> None:
        self.one, self.region, self.tile = one, region, tile
        a, b = lines_along_k(one.a.columns, one.a.rows), lines_along_k(one.b.rows, one.b.columns)
        # If B is shared, lines of A must run along k. Rows of all records are neighbours at most within
        # windows, whose number is unknown.
        self.fits = a is not None and b is not None and (a or not one.shared)
        begin = 0
        self.tiles: list[TensorTile] = []
        for along_k, size in ((a, tile.rows), (b, tile.columns)):
            lines, width = (size, tile.depth) if along_k else (tile.depth, size)
            self.tiles.append(TensorTile(begin, one.a.argument.dtype, lines, width, bool(along_k)))
            begin += tile.stages * lines * width
        self.steps = -(-one.inner // tile.depth)
        self.dtype = one.a.argument.dtype
        self.exact = self.dtype != FLOAT32
        """True if tensor cores multiply the factors without splitting them."""

    def lower(self, name: str) -> Kernel:
        """Return the kernel; its work counts rows of the result."""
        one, tile = self.one, self.tile
        scope = Scope(one.names, lanes=LANES)
        place = place_of_tile(scope, one, tile.rows, tile.columns)
        self.row, self.until, self.column = place.row, place.until, place.column
        sums = self._product(scope)
        results = results_of(one, place, (tile.rows, tile.columns), tile.group)
        results.add(scope, sums, self.top, self.left, lambda _, __, pair: pair)
        size = tile.local_bytes(one.a.argument.dtype.itemsize) // FLOAT32.itemsize
        body = For(TILE, GID, place.many, GSIZE, tuple(scope.statements))
        return Kernel(
            name,
            self.region.name,
            one.arguments.ordered(),
            (Array(TILES, FLOAT32, 1, size, local=True), body),
            work="matmul",
            work_group=tile.group,
            units=one.units,
            lanes=LANES,
            tile=(tile.rows, place.across),
            tensor=self.exact,
        )

    # -- operands into local memory ---------------------------------------------------------------------

    def _feeds(self, scope: Scope) -> tuple[Feed, Feed]:
        one, tile = self.one, self.tile
        a, b = self.tiles
        first = one.row(scope, self.row)
        of_a, of_b = one.of_a(scope, first), one.of_b(scope, first)
        stride = one.row_stride if a.along_k else one.a.columns.stride
        extent = one.inner if a.along_k else one.height

        def line_of_a(inner: Scope, line: IndexLike) -> IndexLike:
            if stride is not None:
                return of_a + to_long(line) * stride
            return one.of_a(inner, one.row(inner, inner.integer(index_min(self.row + line, self.until - 1))))

        def row_exists(line: IndexLike, at: IndexLike) -> ConditionLike:
            return self.row + (line if a.along_k else at) < self.until

        left = Feed(
            scope,
            a,
            one.a.argument,
            copied_together(one.a, one.a.rows if a.along_k else one.a.columns, extent),
            tile.group,
            line_of_a,
            stride,
            row_exists,
        )
        across = one.b.columns.stride
        of_b = scope.integer(of_b + self.column * across)
        lines, width = (one.b.columns, one.inner) if b.along_k else (one.b.rows, one.columns)

        def column_exists(line: IndexLike, at: IndexLike) -> ConditionLike:
            return one.columns % tile.columns == 0 or self.column + (line if b.along_k else at) < one.columns

        right = Feed(
            scope,
            b,
            one.b.argument,
            copied_together(one.b, lines, width),
            tile.group,
            lambda _, line: of_b + to_long(line) * lines.stride,
            lines.stride,
            column_exists,
        )
        return left, right

    def _bring(self, scope: Scope, feeds: tuple[Feed, Feed], step: IndexLike, stage: IndexLike) -> None:
        """Start the copies of a step of `depth` numbers of k, with zeros behind the last k."""
        one, depth = self.one, self.tile.depth
        k = scope.integer(step * depth)
        for feed, stride in zip(feeds, (one.a.columns.stride, one.b.rows.stride), strict=True):
            along_k = feed.tile.along_k

            def limit(line: IndexLike, at: IndexLike, along_k: bool = along_k) -> ConditionLike:
                return k + (at if along_k else line) < one.inner

            feed.bring(scope, stage, k * stride, limit if one.inner % depth else None)

    # -- sums -------------------------------------------------------------------------------------------

    def _product(self, scope: Scope) -> list[list[Var]]:
        """Multiply, and return the sums of each sub-group's fragments."""
        one, tile = self.one, self.tile
        feeds = self._feeds(scope)
        subgroup = scope.narrow(LID // SUBGROUP)
        self.top = scope.narrow(subgroup % tile.down * tile.subgroup_rows)
        self.left = scope.narrow(subgroup // tile.down * tile.subgroup_columns)
        readers = tuple(
            FragmentReader(scope, side, first, right=right)
            for side, first, right in zip(self.tiles, (self.top, self.left), (False, True), strict=True)
        )
        sums = [
            [scope.let(one.zero(), FLOAT32, 4) for _ in range(tile.subgroup_columns // 8)]
            for _ in range(tile.subgroup_rows // EDGE)
        ]
        totals = [] if self.exact else [[scope.let(one.zero(), FLOAT32, 4) for _ in line] for line in sums]
        ahead = tile.stages - 1
        for step in range(ahead):
            if step < self.steps:
                self._bring(scope, feeds, step, step)
            scope.add(EndCopies())
        scope.add(AwaitCopies(ahead - 1), WorkGroupBarrier())
        ready = self._read(scope, readers, 0, 0)
        body = scope.inner()
        self._step(body, feeds, readers, sums, ready)
        self._end_stage(body, sums, totals)
        scope.add(For(STEP, 0, self.steps, 1, tuple(body.statements)))
        return totals or sums

    def _read(self, scope: Scope, readers: tuple[FragmentReader, ...], stage: IndexLike, step: int) -> list[list[Var]]:
        counts = (self.tile.subgroup_rows // EDGE, self.tile.subgroup_columns // EDGE)
        return [
            [reader.read(scope, stage, part, step) for part in range(count)]
            for reader, count in zip(readers, counts, strict=True)
        ]

    def _step(
        self,
        scope: Scope,
        feeds: tuple[Feed, Feed],
        readers: tuple[FragmentReader, ...],
        sums: list[list[Var]],
        ready: list[list[Var]],
    ) -> None:
        """Multiply a stage; each multiplication's fragments are read during the one before."""
        tile, ahead = self.tile, self.tile.stages - 1
        here, after = (scope.narrow(to_int(STEP + later) % tile.stages) for later in (0, 1))
        every = tile.depth * self.dtype.itemsize // (2 * CHUNK_BYTES)
        now = ready
        for part in range(every):
            last = part == every - 1
            if last:
                # Behind the barrier all work-items have read this stage, which the next step overwrites.
                scope.add(AwaitCopies(ahead - 1), WorkGroupBarrier())
            prefetched = self._read(scope, readers, after if last else here, 0 if last else part + 1)
            if part == 0:
                further = scope.inner()
                self._bring(further, feeds, STEP + ahead, scope.narrow(to_int(STEP + ahead) % tile.stages))
                scope.add(If(STEP + ahead < self.steps, tuple(further.statements)), EndCopies())
            self._multiply(scope, now, sums)
            now = prefetched
        for before, later in zip(ready, now, strict=True):
            scope.add(*(Assign(a, Splat(b)) for a, b in zip(before, later, strict=True)))

    def _multiply(self, scope: Scope, fragments: list[list[Var]], sums: list[list[Var]]) -> None:
        for rows, columns in [tuple(fragments)] if self.exact else three_terms(scope, *fragments):
            for a, line in zip(rows, sums, strict=True):
                for j, total in enumerate(line):
                    scope.add(Assign(total, FragmentMultiply(a, columns[j // 2], j % 2, total, self.dtype)))

    def _end_stage(self, scope: Scope, sums: list[list[Var]], totals: list[list[Var]]) -> None:
        """Add the sums of a stage by rounded additions, since tensor cores truncate sums."""
        for line, whole in zip(sums, totals, strict=False):
            for part, total in zip(line, whole, strict=True):
                scope.add(Assign(total, Splat(scope.let(Combine("sum", (total,), (part,), 0), FLOAT32, 4))))
                scope.add(Assign(part, self.one.zero()))


def _lowering(task: LoweringTask) -> _TensorMatmulLowering:
    one = MatmulAnchor(task.graph, task.region)
    itemsize, local_bytes = one.a.argument.dtype.itemsize, task.style.capabilities.local_bytes
    return _TensorMatmulLowering(one, task.region, choose_tile(one.rows_together, one.columns, itemsize, local_bytes))


def _why_not(task: LoweringTask) -> Reason | None:
    if (reason := why_no_product(task)) is not None:
        return reason
    if not task.style.capabilities.tensor_cores:
        return task.refuse(f"{task.style.capabilities.name} has no tensor cores")
    one = MatmulAnchor(task.graph, task.region)
    sides, dtype = (one.a, one.b), one.a.argument.dtype
    dtypes = (FLOAT16, BFLOAT16, FLOAT32) if task.style.precision == "tf32x3" else (FLOAT16, BFLOAT16)
    if dtype not in dtypes or (one.b.argument.dtype, one.dtype) != (dtype, FLOAT32):
        return task.refuse("tensor cores do not multiply its factors' dtypes, or its sums are no float32")
    rows = one.rows_together
    if not one.inner or one.columns < LEAST or (rows is not None and rows < LEAST):
        return task.refuse(f"its result has fewer than {LEAST} rows or columns, or no products")
    if any(side.argument.value in task.region.nodes for side in sides):
        return task.refuse("a factor is computed where it is loaded")
    if not all(axes.single for side in sides for axes in (side.rows, side.columns)):
        return task.refuse("no single stride serves a factor's rows and columns")
    return None if _lowering(task).fits else task.refuse("no neighbours lie along its factors")


def _lower(task: LoweringTask) -> Kernel:
    return _lowering(task).lower(task.name)


TENSOR_MATMUL = Form(name="tensor matmul", accepts=_why_not, lower=_lower, geometry=by_tiles)
"""Products of matrices by tensor cores."""
