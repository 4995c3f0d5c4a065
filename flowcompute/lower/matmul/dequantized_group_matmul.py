"""Products with numbers that are decoded from blocks, on GPUs: a line of work-items reads a column along its blocks.

The numbers of a column of B are neighbours in its blocks, as in `x @ w.T` of a file's weights. `LANES` work-items read
them together, and each decodes every `LANES`-th one in registers. A single row takes a column a line, so that as many
loads as possible are on their way. For several rows a line decodes once what it multiplies by all of them.

The order of the sum is that of `dequantized_matmul.py`, so CPUs and GPUs add alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from flowcompute.fuse import Reason, Region
from flowcompute.graph import Graph
from flowcompute.ir import (
    GID,
    GSIZE,
    LID,
    Array,
    ArrayItem,
    Assign,
    Combine,
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
    index_min,
)
from flowcompute.lower.emit import Scope
from flowcompute.lower.form import Form, LoweringTask
from flowcompute.lower.geometry import by_tiles
from flowcompute.lower.matmul.dequantized_matmul import LANES, RUN, block_numbers, reads_along_blocks
from flowcompute.lower.matmul.matmul_anchor import MatmulAnchor, why_no_product
from flowcompute.lower.matmul.panel_sums import K, sum_in_panels, zeros
from flowcompute.lower.matmul.tiled_matmul import TILE, place_of_tile
from flowcompute.spec import FLOAT32

GROUP = 256
"""Work-items in a work-group."""
LINES = GROUP // LANES
"""Lines of `LANES` work-items in a work-group."""
PITCH = LANES + 1
"""Distance of the sums of two columns in local memory, so that they lie in different banks."""
UNROLLED = 4
"""Small blocks whose loads are on their way together."""
LARGE = 64
"""Numbers of a block from which on it is work enough for a turn of the loop."""


@dataclass(frozen=True)
class _Layout:
    """Arrangement of work-items: what a line of them computes, and how the lines of a work-group lie over its tile.

    Attributes:
        rows, columns: of each line.
        down: lines that share the columns, with other rows each.
    """

    rows: int = 1
    columns: int = 1
    down: int = 1

    @property
    def across(self) -> int:
        """Lines that share rows."""
        return LINES // self.down

    @property
    def tile_rows(self) -> int:
        """Rows of the tile of a work-group. All tiles have `LINES` columns."""
        return self.rows * self.down


ONE, MANY = _Layout(), _Layout(rows=4, columns=4, down=4)
"""For a single row, and for more, which share in registers what was decoded."""

LANE, LINE = LID % LANES, LID // LANES
RESULT = Name("r")
"""Number of a result of the tile, row by row."""


class _DequantizedGroupLowering:
    """Lowering of a region with such a product for a GPU."""

    def __init__(self, graph: Graph, region: Region) -> None:
        self.region = region
        self.contraction = one = MatmulAnchor(graph, region)
        self.rows = ONE.tile_rows if one.rows_together == 1 else MANY.tile_rows
        # Whole blocks are decoded in steps of `LANES` numbers, whose places in the block are known.
        numbers = block_numbers(graph, one.node.inputs[1])
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
        alone = self._sums(scope, row, until, column, ONE)
        if self.rows == 1:
            scope.add(*alone)
        else:
            scope.add(If(until - row < 2, tuple(alone), tuple(self._sums(scope, row, until, column, MANY))))
        scope.add(WorkGroupBarrier())
        self._add_stored(scope, row, until, column)
        scope.add(WorkGroupBarrier())
        sums = Array("sums", FLOAT32, 1, self.rows * LINES * PITCH, local=True)
        return Kernel(
            name,
            self.region.name,
            one.arguments.ordered(),
            (sums, For(TILE, GID, place.many, GSIZE, tuple(scope.statements))),
            work="matmul",
            work_group=GROUP,
            units=one.units,
            tile=(self.rows, place.across),
        )

    def _sums(self, outer: Scope, row: IndexLike, until: IndexLike, column: IndexLike, layout: _Layout) -> list[Stmt]:
        """Compute the lanes of the sums of a tile. Rows and columns behind the last ones repeat these."""
        one = self.contraction
        scope = outer.inner()
        down, across = LINE // layout.across * layout.rows, LINE % layout.across * layout.columns
        last = until - 1
        at_a = [
            one.of_a(scope, one.row(scope, scope.integer(index_min(last, row + down + i)))) for i in range(layout.rows)
        ]
        base = one.of_b(scope, one.row(scope, row))
        at_b = [
            scope.integer(base + index_min(one.columns - 1, column + across + i) * one.b.columns.stride)
            for i in range(layout.columns)
        ]
        totals = zeros(one, scope, layout.rows, layout.columns)
        # For more rows decoding is a small part, and places that are computed are less text.
        steps = self.steps if layout is ONE else 1

        def add(inner: Scope, sums: list[list[Var]], start: IndexLike, stop: IndexLike) -> None:
            step = inner.inner()
            self._products(step, sums, at_a, at_b, K + LANE, steps)
            length = steps * LANES
            unroll = UNROLLED if layout is ONE and length < LARGE else 1
            inner.add(For(K, start, stop, length, tuple(step.statements), unroll=unroll))

        sum_in_panels(one, scope, totals, add, one.inner - self.rest, RUN * LANES)
        if self.rest:
            rest = scope.inner()
            self._products(rest, totals, at_a, at_b, one.inner - self.rest + LANE, 1)
            scope.add(If(LANE < self.rest, tuple(rest.statements)))
        for i, line in enumerate(totals):
            for j, total in enumerate(line):
                scope.add(PutItem("sums", ((down + i) * LINES + across + j) * PITCH + LANE, total))
        # Lines whose rows do not exist have nothing to do.
        return (
            scope.statements
            if layout is ONE
            else [If(row + LINE // layout.across * layout.rows < until, tuple(scope.statements))]
        )

    def _products(
        self,
        scope: Scope,
        sums: list[list[Var]],
        at_a: Sequence[IndexLike],
        at_b: Sequence[IndexLike],
        k: IndexLike,
        steps: int,
    ) -> None:
        """Add the products of `steps` numbers along k, `LANES` apart, to the sums of all rows and columns."""
        one = self.contraction
        a_stride, b_stride = one.a.columns.stride, one.b.rows.stride
        stride, lanes = (LANES * b_stride, steps) if steps > 1 else (1, 1)
        right = [
            one.factor(scope.beside(lanes), Load(one.b.argument, at + k * b_stride, stride, aligned=lanes > 1))
            for at in at_b
        ]
        for step in range(steps):
            decoded = [
                one_number if steps == 1 else scope.let(Picked((one_number,), (step,)), one.dtype, 1)
                for one_number in right
            ]
            for at, line in zip(at_a, sums, strict=True):
                left = one.factor(scope, Load(one.a.argument, at + (k + step * LANES) * a_stride))
                for b, total in zip(decoded, line, strict=True):
                    scope.add(Assign(total, Splat(scope.let(MultiplyAdd(left, b, total), one.dtype))))

    def _add_stored(self, outer: Scope, row: IndexLike, until: IndexLike, column: IndexLike) -> None:
        """Add up the lanes of each result as a tree by halves, and store it."""
        one = self.contraction
        scope = outer.inner()
        parts = [scope.let(ArrayItem("sums", RESULT * PITCH + lane), FLOAT32) for lane in range(LANES)]
        while len(parts) > 1:
            half = len(parts) // 2
            pairs = zip(parts[:half], parts[half:], strict=True)
            parts = [scope.let(Combine("sum", (a,), (b,), 0), FLOAT32) for a, b in pairs]
        own = one.row(scope, scope.integer(row + RESULT // LINES))
        one.store(scope, own, scope.integer(column + RESULT % LINES), None, parts[0])
        exists = If(column + RESULT % LINES < one.columns, tuple(scope.statements))
        outer.add(For(RESULT, LID, index_min(self.rows, until - row) * LINES, GROUP, (exists,)))


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
    return _DequantizedGroupLowering(task.graph, task.region).lower(task.name)


DEQUANTIZED_GROUP_MATMUL = Form(name="dequantized group matmul", accepts=_why_not, lower=_lower, geometry=by_tiles)
"""Products with decoded numbers on GPUs, of which columns are neighbours in blocks."""
