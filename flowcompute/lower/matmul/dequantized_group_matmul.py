"""Products with numbers that are decoded from blocks, on GPUs: a line of work-items reads a column along its blocks.

The numbers of a column of B are neighbours in its blocks, as in `x @ w.T` of a file's weights. `LANES` work-items read
them together, and each decodes every `LANES`-th one in registers. A single row takes a column a line, so that as many
loads as possible are on their way. For several rows a line decodes once what it multiplies by all of them.

The order of the sum is that of `dequantized_matmul.py`, so CPUs and GPUs add alike. On discrete GPUs few rows have a
kernel of their own, of `staged_matmul.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain

from flowcompute.fuse import Reason, Region
from flowcompute.graph import Graph
from flowcompute.ir import (
    ANY_ROWS,
    GID,
    GSIZE,
    LID,
    Argument,
    Array,
    ArrayItem,
    Assign,
    Combine,
    ConditionLike,
    ConstantValue,
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
    Var,
    WorkGroupBarrier,
    all_of,
    index_min,
)
from flowcompute.ir.launches import by_tiles
from flowcompute.lower.emit import Scope
from flowcompute.lower.form import Form, LoweringTask
from flowcompute.lower.matmul.lane_sums import LANES, RUN, stored_sum
from flowcompute.lower.matmul.matmul_anchor import MatmulAnchor, block_format, reads_along_blocks, why_no_product
from flowcompute.lower.matmul.panel_sums import FIRST_K, K, sum_in_panels, zeros
from flowcompute.lower.matmul.ring_matmul import ring_matmul
from flowcompute.lower.matmul.staged_matmul import FEW_ROWS, TILE_ROWS, staged_matmul
from flowcompute.lower.matmul.tiled_matmul import TILE, place_of_tile
from flowcompute.spec import FLOAT32

GROUP = 256
"""Work-items in a work-group."""
LINES = GROUP // LANES
"""Lines of `LANES` work-items in a work-group."""
PITCH = LANES + 1
"""Distance of the sums of two results in local memory, so that they lie in different banks."""
UNROLLED = 8
"""Small blocks of a single row whose loads are on their way together."""
LARGE = 64
"""Numbers of a block from which on it is work enough for a turn of the loop."""
HIGH, WIDE = 4, 8
"""Rows and columns whose sums a line keeps in registers, where there are several rows."""
ACROSS = LINES // WIDE
"""Lines that share rows of a tile; the others share its columns."""
DOWN = LINES // ACROSS
"""Lines that share columns."""
ROWS = HIGH * DOWN
"""Rows of a tile, which has `LINES` columns."""
DEPTH = 2 * LANES
"""Numbers of k in the tiles of operands; divides a panel."""
TILE_PITCH = DEPTH + 2
"""Distance of two rows of such a tile, so that the lines of a sub-group read from different banks."""

LANE, LINE = LID % LANES, LID // LANES
RESULT, PART = Name("r"), Name("i")
"""Number of a result, and of a row of a line."""


class _DequantizedGroupLowering:
    """Lowering of a region with such a product for a GPU."""

    def __init__(self, graph: Graph, region: Region) -> None:
        self.region = region
        self.contraction = one = MatmulAnchor(graph, region)
        self.rows = 1 if one.rows_together == 1 else ROWS
        # Whole blocks are decoded in steps of `LANES` numbers, whose places in the block are known.
        numbers = block_format(graph, one.node.inputs[1]).numbers
        lies = one.b.lies
        begins = (lies.offset, lies.record, one.b.columns.stride, one.inner, *lies.strides[: one.b.stack])
        whole = one.is_computed(one.b) and numbers % LANES == 0 and all(place % numbers == 0 for place in begins)
        self.steps = numbers // LANES if whole else 1
        self.rest = one.inner % LANES

    def lower(self, name: str) -> Kernel:
        """Return the kernel; its work counts rows."""
        one = self.contraction
        scope = Scope(one.names, lanes=1)
        place = place_of_tile(scope, one, self.rows, LINES)
        row, until, column = place.row, place.until, place.column
        alone = self._single(scope, row, column)
        arrays: list[Stmt] = [Array("sums", FLOAT32, 1, (DOWN if self.rows > 1 else 1) * LINES * PITCH, local=True)]
        if self.rows == 1:
            scope.add(*alone)
        else:
            scope.add(If(until - row < 2, tuple(alone), tuple(self._several(scope, row, until, column))))
            arrays += [
                Array("left", FLOAT32, 1, ROWS * TILE_PITCH, local=True),
                Array("right", FLOAT32, 1, LINES * TILE_PITCH, local=True),
                Array("totals", FLOAT32, 1, HIGH * WIDE),
            ]
        return Kernel(
            name,
            self.region.name,
            one.arguments.ordered(),
            (*arrays, For(TILE, GID, place.many, GSIZE, tuple(scope.statements))),
            work="matmul",
            work_group=GROUP,
            units=one.units,
            tile=(self.rows, place.across),
        )

    # -- a single row -------------------------------------------------------------------------------

    def _single(self, outer: Scope, row: IndexLike, column: IndexLike) -> list[Stmt]:
        """Compute a row; each line has a column. Columns behind the last one repeat it."""
        one = self.contraction
        scope = outer.inner()
        at_a = one.of_a(scope, one.row(scope, row))
        at_b = self._of_b(scope, row, column + LINE)
        totals = zeros(one, scope, 1, 1)
        length = self.steps * LANES

        def add(inner: Scope, sums: list[list[Var]], start: IndexLike, stop: IndexLike) -> None:
            step = inner.inner()
            self._products(step, sums[0][0], at_a, at_b, K + LANE, self.steps)
            # Loops without a hint would be unrolled as far as the compiler likes.
            unroll = UNROLLED if length < LARGE else 2
            inner.add(For(K, start, stop, length, tuple(step.statements), unroll=unroll))

        sum_in_panels(one, scope, totals, add, one.inner - self.rest, RUN * LANES)
        if self.rest:
            rest = scope.inner()
            self._products(rest, totals[0][0], at_a, at_b, one.inner - self.rest + LANE, 1)
            scope.add(If(LANE < self.rest, tuple(rest.statements)))
        scope.add(PutItem("sums", LINE * PITCH + LANE, totals[0][0]), WorkGroupBarrier())
        self._add_stored(scope, LID, row, column, LID < LINES)
        scope.add(WorkGroupBarrier())
        return scope.statements

    def _products(self, scope: Scope, total: Var, at_a: IndexLike, at_b: IndexLike, k: IndexLike, steps: int) -> None:
        """Add the products of `steps` numbers along k, `LANES` apart, to a sum."""
        one = self.contraction
        a_stride, b_stride = one.a.columns.stride, one.b.rows.stride
        stride, lanes = (LANES * b_stride, steps) if steps > 1 else (1, 1)
        load = Load(one.b.argument, at_b + k * b_stride, stride, aligned=lanes > 1)
        decoded = one.factor(scope.beside(lanes), load)
        for step in range(steps):
            right = decoded if steps == 1 else scope.let(Picked((decoded,), (step,)), one.dtype, 1)
            left = one.factor(scope, Load(one.a.argument, at_a + (k + step * LANES) * a_stride))
            scope.add(Assign(total, Splat(scope.let(MultiplyAdd(left, right, total), one.dtype))))

    def _of_b(self, scope: Scope, row: IndexLike, column: IndexLike) -> IndexLike:
        """Declare the offset of a column in B. Behind the last one it is read again."""
        one = self.contraction
        base = one.of_b(scope, one.row(scope, row))
        return scope.integer(base + index_min(one.columns - 1, column) * one.b.columns.stride)

    # -- several rows -------------------------------------------------------------------------------

    def _several(self, outer: Scope, row: IndexLike, until: IndexLike, column: IndexLike) -> list[Stmt]:
        """Compute a tile of rows from tiles of both operands in local memory.

        Rows and columns behind the last ones repeat these, and are not stored. Behind the last k -0.0 is multiplied
        by 0, which changes no sum, not even the sign of a zero.
        """
        one = self.contraction
        scope = outer.inner()
        down, across = LINE // ACROSS * HIGH, LINE % ACROSS * WIDE
        in_panels = one.inner > RUN * LANES
        if in_panels:
            zero = scope.let(one.zero(), one.dtype)
            scope.add(For(PART, 0, HIGH * WIDE, 1, (PutItem("totals", PART, zero),), unroll=2))
        every, tall = LID % DEPTH, GROUP // DEPTH
        rows = [LID // DEPTH + turn * tall for turn in range(ROWS // tall)]
        columns = [LID // DEPTH + turn * tall for turn in range(LINES // tall)]
        last = until - 1
        at_a = [one.of_a(scope, one.row(scope, scope.integer(index_min(last, row + each)))) for each in rows]
        at_b = [self._of_b(scope, row, column + each) for each in columns]

        def add(inner: Scope, sums: list[list[Var]], start: IndexLike, stop: IndexLike) -> None:
            step = inner.inner()
            self._bring(step, "left", rows, [(one.a.argument, at, one.a.columns.stride) for at in at_a], -0.0, every)
            self._bring(step, "right", columns, [(one.b.argument, at, one.b.rows.stride) for at in at_b], 0.0, every)
            step.add(WorkGroupBarrier())
            own = step.inner()
            for part in range(DEPTH // LANES):
                self._multiply(own, sums, down, across, part * LANES + LANE)
            # Lines whose rows do not exist have nothing to do.
            step.add(If(row + down < until, tuple(own.statements)), WorkGroupBarrier())
            inner.add(For(K, start, stop, DEPTH, tuple(step.statements), unroll=2))

        def panel(inner: Scope, start: IndexLike, stop: IndexLike) -> None:
            sums = zeros(one, inner, HIGH, WIDE)
            add(inner, sums, start, stop)
            for number, total in enumerate(chain(*sums)):
                made = total
                if in_panels:
                    before = inner.let(ArrayItem("totals", number), one.dtype)
                    made = inner.let(Combine("sum", (before,), (total,), 0), one.dtype)
                inner.add(PutItem("totals", number, made))

        if in_panels:
            inner = scope.inner()
            panel(inner, FIRST_K, index_min(one.inner, FIRST_K + RUN * LANES))
            scope.add(For(FIRST_K, 0, one.inner, RUN * LANES, tuple(inner.statements), unroll=1))
        else:
            panel(scope, 0, one.inner)
        scope.add(For(PART, 0, HIGH, 1, tuple(self._one_of_each(scope, row, until, column, across)), unroll=2))
        return scope.statements

    def _bring(
        self,
        scope: Scope,
        array: str,
        places: Sequence[IndexLike],
        sources: Sequence[tuple[Argument, IndexLike, int]],
        nothing: float,
        every: IndexLike,
    ) -> None:
        """Load numbers of an operand into its tile; neighbouring work-items load neighbours along k."""
        one = self.contraction
        for place, (argument, at, stride) in zip(places, sources, strict=True):
            number = scope.let(ConstantValue(nothing), one.dtype)
            reading = scope.inner()
            reading.add(Assign(number, Splat(one.factor(reading, Load(argument, at + (K + every) * stride)))))
            scope.add(
                *([If(K + every < one.inner, tuple(reading.statements))] if one.inner % DEPTH else reading.statements)
            )
            scope.add(PutItem(array, place * TILE_PITCH + every, number))

    def _multiply(self, scope: Scope, sums: list[list[Var]], down: IndexLike, across: IndexLike, k: IndexLike) -> None:
        """Add the products of one k to the sums of a line."""
        dtype = self.contraction.dtype
        left = [scope.let(ArrayItem("left", (down + i) * TILE_PITCH + k), dtype) for i in range(HIGH)]
        right = [scope.let(ArrayItem("right", (across + i) * TILE_PITCH + k), dtype) for i in range(WIDE)]
        for a, line in zip(left, sums, strict=True):
            for b, total in zip(right, line, strict=True):
                scope.add(Assign(total, Splat(scope.let(MultiplyAdd(a, b, total), dtype))))

    def _one_of_each(
        self, outer: Scope, row: IndexLike, until: IndexLike, column: IndexLike, across: IndexLike
    ) -> list[Stmt]:
        """Add up and store row `PART` of each line."""
        scope = outer.inner()
        mine = LINE // ACROSS * LINES + across
        for i in range(WIDE):
            total = scope.let(ArrayItem("totals", PART * WIDE + i), FLOAT32)
            scope.add(PutItem("sums", (mine + i) * PITCH + LANE, total))
        scope.add(WorkGroupBarrier())
        own_row = row + RESULT // LINES * HIGH + PART
        own = scope.inner()
        self._add_stored(own, RESULT, own_row, column, own_row < until)
        scope.add(For(RESULT, LID, DOWN * LINES, GROUP, tuple(own.statements), unroll=2), WorkGroupBarrier())
        return scope.statements

    def _add_stored(
        self, outer: Scope, result: IndexLike, row: IndexLike, column: IndexLike, exists: ConditionLike
    ) -> None:
        """Add up the lanes of a result as a tree by halves, and store it."""
        one = self.contraction
        scope = outer.inner()
        total = stored_sum(scope, "sums", result * PITCH, LANES)
        place = scope.integer(column + result % LINES)
        one.store(scope, one.row(scope, scope.integer(row)), place, None, total)
        outer.add(If(all_of(exists, column + result % LINES < one.columns), tuple(scope.statements)))


def _why_not(task: LoweringTask) -> Reason | None:
    if (reason := why_no_product(task)) is not None:
        return reason
    if not task.is_gpu:
        return task.refuse("on CPUs a vector of numbers is decoded at once")
    assert task.anchor is not None
    if not reads_along_blocks(task.graph, task.anchor.id):
        return task.refuse("its right factor is not decoded from blocks along the sum")
    return None


def _lower(task: LoweringTask) -> Kernel:
    kernel = _DequantizedGroupLowering(task.graph, task.region).lower(task.name)
    single = ring_matmul(task) or staged_matmul(task, 1)
    if single is None:
        return kernel
    if MatmulAnchor(task.graph, task.region).rows_together == 1:
        return replace(kernel, few=single, few_rows=ANY_ROWS)
    several = staged_matmul(task, TILE_ROWS)
    if several is None:
        return replace(kernel, few=single, few_rows=TILE_ROWS)
    return replace(kernel, few=replace(several, few=single, few_rows=1), few_rows=FEW_ROWS)


DEQUANTIZED_GROUP_MATMUL = Form(
    name="dequantized group matmul", accepts=_why_not, lower=_lower, geometry=by_tiles, joins=True, leads=True
)
"""Products with decoded numbers on GPUs, of which columns are neighbours in blocks."""
