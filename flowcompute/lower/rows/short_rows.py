"""Kernels for rows of few numbers on CPUs: lanes are neighbouring rows, and columns are unrolled.

A row with fewer numbers than a vector has lanes would leave most lanes idle. Overlapping windows would also
read each number several times. Here a vector holds one column of as many neighbouring rows, so that a
reduction needs no work across lanes. The order in which columns are combined is the canonical one. Rows
that fill no vector at the end of a work-item's range are processed one by one.
"""

from __future__ import annotations

import itertools
import math

from flowcompute.elements import Kind
from flowcompute.elements.generated import Generator
from flowcompute.fuse import Reason
from flowcompute.ir import (
    CHUNK,
    GID,
    Apply,
    CallFunction,
    Combine,
    For,
    Generate,
    IndexLike,
    Integer,
    Kernel,
    Let,
    N,
    Name,
    SetInteger,
    Stmt,
    Var,
    index_min,
    row_lanes,
)
from flowcompute.ir.launches import by_rows
from flowcompute.lower.emit import START, STOP, Arguments, Scope, loads_of
from flowcompute.lower.form import Form, LoweringTask
from flowcompute.lower.kernel_knobs import CPU_ITEMS, CPU_VECTOR, FormKnobs
from flowcompute.lower.reduction import Parts, Reduction, tree_of
from flowcompute.lower.rows.row_shape import RowShape, RowStrides
from flowcompute.lower.rows.row_sweep import ROW, ROW_LANES, ColumnPoint, RowSweep
from flowcompute.spec import INT64

WRITTEN_OUT = 512
"""Most vector operations for which columns are unrolled.

Measured with PoCL 3.0 (LLVM 14): such kernels take half a second to compile. The shortest take 0.15 s, and
the same rows processed one by one 0.2 s. At this size they are still two to three times as fast.
"""

_COMBINED = {"argmin": 4, "argmax": 4, "min": 3, "max": 3}
"""Operations of a reduction's step, where there is more than one."""


def _body(vectors: LaneSweep, rest: RowSweep) -> list[Stmt]:
    """Distribute rows: ranges of work-items begin at whole vectors, so that only the last one has a rest."""
    lanes, whole = vectors.shape.lanes, Name("whole")
    return [
        SetInteger(START, index_min(N, (GID * CHUNK + (lanes - 1)) // lanes * lanes)),
        SetInteger(STOP, index_min(N, ((GID + 1) * CHUNK + (lanes - 1)) // lanes * lanes)),
        SetInteger(whole, STOP - (STOP - START) % lanes),
        For(ROW, START, whole, lanes, tuple(vectors.scope.statements)),
        rest.loop(whole, STOP, 1),
    ]


def _operations(statement: Stmt) -> int:
    """Estimate the operations on vectors of four-byte numbers that a statement becomes."""
    if isinstance(statement, CallFunction):
        return statement.op.cost
    if not isinstance(statement, Let):
        return 1
    expr, wide = statement.expr, 2 if statement.var.dtype.itemsize == 8 else 1
    if isinstance(expr, Apply | Generate):
        return wide * expr.op.cost
    return wide * (_COMBINED.get(expr.op, 1) if isinstance(expr, Combine) else 1)


def _places(shape: RowShape) -> list[RowStrides]:
    """Return the strides of all values that the region reads, generates or stores."""
    region, nodes = shape.region, shape.graph.nodes
    made = [i for i in region.nodes if i in region.outputs or isinstance(nodes[i].op, Generator)]
    return [shape.place_of(access)[1] for access in loads_of(shape.graph, region)] + [shape.stored(i) for i in made]


def row_stride(shape: RowShape, place: RowStrides) -> int | None:
    """Return the distance from one row to the next, through all records; None where it varies."""
    sizes = [shape.region.domain[axis] for axis in shape.row_axes]
    steps = [(1, place.record), *((size, stride) for size, stride in zip(sizes, place.rows, strict=True) if size != 1)]
    for (_, outer), (size, inner) in itertools.pairwise(steps):
        if outer != size * inner:
            return None
    return steps[-1][1]


class LaneSweep(RowSweep):
    """Sweeps over rows `r` to `r + lanes`, one in each lane, in one straight line without loops."""

    def __init__(self, shape: RowShape, arguments: Arguments, scope: Scope) -> None:
        super().__init__(shape, arguments, scope, None)
        # The values of a column are computed once and known in all later phases.
        self.kept = {}
        self.columns = [ColumnPoint(self.row, scope.beside(), column, None, 0) for column in range(shape.columns)]

    # -- addresses ----------------------------------------------------------------------------

    def base(self, name: str, place: RowStrides, offset: int = 0) -> IndexLike:
        """Return the offset of the first row in an argument; lanes have rows of their own."""
        del name, place
        return offset

    def address(self, base: IndexLike, place: RowStrides, column: IndexLike) -> tuple[IndexLike, int, None]:
        """Return the index of a column of row `r`, and its stride from row to row."""
        assert isinstance(column, int), "columns are unrolled"
        sizes = [self.shape.region.domain[axis] for axis in self.shape.column_axes]
        below = [math.prod(sizes[position + 1 :]) for position in range(len(sizes))]
        for size, under, stride in zip(sizes, below, place.columns, strict=True):
            base += column // under % size * stride
        return *self.address_of_row(base, place), None

    def address_of_row(self, base: IndexLike, place: RowStrides) -> tuple[IndexLike, int]:
        """Return the index of a number of row `r`, and its stride from row to row."""
        stride = row_stride(self.shape, place)
        assert stride is not None
        return ROW * stride + base, stride

    # -- sweeps -------------------------------------------------------------------------------

    def emit(self) -> None:
        """Emit all phases, then the outputs."""
        for phase in range(self.shape.depth):
            self.reduce(phase)
        for point in self.columns:
            self.store_at(point)
        for output in self.row_outputs:
            self.row.store(output, *self.address_of_row(*self.stored(output)))

    def point(self, scope: Scope, column: IndexLike, count: IndexLike | None, phase: int) -> ColumnPoint:
        """Return the point at a column, which is the same for all phases."""
        del scope, count, phase
        assert isinstance(column, int), "columns are unrolled"
        return self.columns[column]

    def prefetches(self, phase: int) -> bool:
        """Return that no sweep prefetches: lanes read neighbouring rows one after the other."""
        del phase
        return False

    def of_row(self, node: int, result: Var) -> Var:
        """Return the result of a reduction, which each lane has of its own row."""
        del node
        return result

    def results(self, reductions: list[Reduction]) -> list[Parts]:
        """Emit the reductions of one phase together, so that a column's values live shortly."""
        lanes = row_lanes(self.shape.columns)

        def leaf(lane: int) -> list[Parts]:
            return [self._lane(reduction, lane, lanes) for reduction in reductions]

        return tree_of(self.scope, reductions, leaf, lanes)

    def _given(self, reduction: Reduction, column: int) -> Parts:
        """Return the operands of a step; one column serves all rows in a vector."""
        operands = reduction.operands(self.scope, column, None)
        return (*operands, self.scope.let(Integer(column), INT64)) if reduction.finds else operands

    def _lane(self, reduction: Reduction, lane: int, lanes: int) -> Parts:
        """Accumulate one canonical lane, in order."""
        first = self._given(reduction, lane)
        if reduction.op == "vecdot":
            first = reduction.combined(self.scope, reduction.start(self.scope, self.scope.lanes), first, fused=True)
        total = first
        for column in range(lane + lanes, self.shape.columns, lanes):
            total = reduction.combined(self.scope, total, self._given(reduction, column), fused=True)
        return total


def _why_not(task: LoweringTask) -> Reason | None:
    region = task.region
    if region.anchor is not None:
        return task.refuse("it has an anchor")
    if task.is_gpu:
        return task.refuse("rows are walked by vectors of a CPU")
    if not region.stream or region.folds:
        return task.refuse("its rows are no stream's, or are folded")
    shape = RowShape(task.graph, region, task.style, {}, SHORT_ROWS.knobs)
    strides = [row_stride(shape, place) for place in _places(shape)]
    dense = all(stride in (0, 1) for stride in strides)
    # Numbers that lie apart are read one by one: rows that fill vectors are then better read as vectors.
    if None in strides or not 0 < shape.columns <= (WRITTEN_OUT if dense else shape.lanes - 1):
        return task.refuse("its rows are too long, or lie at no even distance")
    if shape.columns * sum(shape.full_key(i) or shape.kind(i) is Kind.REDUCE for i in region.nodes) <= WRITTEN_OUT:
        # What is shared between columns is seen as it is written out, which is little here.
        vectors = _emitted(shape, Arguments(), itertools.count())
        if sum(_operations(statement) for statement in vectors.scope.statements) <= WRITTEN_OUT:
            return None
    return task.refuse(f"more than {WRITTEN_OUT} operations would be written out for a row")


def _emitted(shape: RowShape, arguments: Arguments, names: itertools.count[int]) -> LaneSweep:
    vectors = LaneSweep(shape, arguments, Scope(names, lanes=shape.lanes))
    vectors.emit()
    return vectors


def _lower(task: LoweringTask) -> Kernel:
    shape = RowShape(task.graph, task.region, task.style, {}, SHORT_ROWS.knobs)
    arguments, names = Arguments(), itertools.count()
    vectors = _emitted(shape, arguments, names)
    rest = RowSweep(shape, arguments, Scope(names, lanes=ROW_LANES), None)
    rest.emit()
    return Kernel(
        task.name,
        task.region.name,
        arguments.ordered(),
        (*rest.declared, *_body(vectors, rest)),
        work="rows",
        units=shape.rows,
        lanes=shape.lanes,
        knobs=shape.knobs,
        notes={"depth": shape.depth, "short": True},
    )


SHORT_ROWS = Form(
    name="short rows", accepts=_why_not, lower=_lower, geometry=by_rows, knobs=FormKnobs(cpu=(CPU_VECTOR, CPU_ITEMS))
)
"""Rows of few numbers on CPUs."""
