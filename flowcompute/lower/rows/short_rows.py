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
from flowcompute.fuse import Access, Reason
from flowcompute.graph import Node
from flowcompute.ir import (
    CHUNK,
    FIRST,
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
    Load,
    N,
    Name,
    SetInteger,
    Stmt,
    Var,
    index_min,
    row_lanes,
)
from flowcompute.lower.emit import START, STOP, Arguments, Key, Point, Scope, loaded, loads_of
from flowcompute.lower.form import Form, LoweringTask
from flowcompute.lower.geometry import by_rows
from flowcompute.lower.kernel_knobs import CPU_ITEMS, CPU_VECTOR, FormKnobs
from flowcompute.lower.reduction import Parts, Reduction, tree_of
from flowcompute.lower.rows.row_shape import RowShape, RowStrides
from flowcompute.lower.rows.row_sweep import ROW, RowSweep
from flowcompute.lower.rows.rows_form import ROW_LANES
from flowcompute.spec import INT64

WRITTEN_OUT = 512
"""Most vector operations for which columns are unrolled.

Measured with PoCL 3.0 (LLVM 14): such kernels take half a second to compile. The shortest take 0.15 s, and
the same rows processed one by one 0.2 s. At this size they are still two to three times as fast.
"""

_COMBINED = {"argmin": 4, "argmax": 4, "min": 3, "max": 3}
"""Operations of a reduction's step, where there is more than one."""


def _body(vectors: _ShortRows, rest: RowSweep) -> list[Stmt]:
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


class _RowsPoint(Point):
    """Rows `r` to `r + lanes`: one of their columns, or the values that are constant along the columns."""

    def __init__(self, rows: _ShortRows, scope: Scope, column: int | None = None) -> None:
        super().__init__(rows.shape.graph, rows.shape.region, rows.arguments, scope)
        self.rows = rows
        self.column = column

    def home(self, key: Key) -> Point:
        """Return this point, or the rows for values that are constant along the columns."""
        return self if self.rows.shape.full_key(key) else self.rows.point

    def load(self, access: Access) -> Var:
        """Load the column's number of each row."""
        shape = self.rows.shape
        lies, place = shape.place_of(access)
        argument = self.arguments.input(self.graph, self.region, lies.base)
        return loaded(self.scope, Load(argument, *self.rows.address(place, self.column, lies.offset)))

    def position(self, node: Node) -> tuple[IndexLike, int, None]:
        """Return the positions of the column's numbers, counted from the first record of the stream."""
        index, stride = self.rows.address(self.rows.shape.stored(node.id), self.column)
        return FIRST * node.spec.item_numbers + index, stride, None


class _ShortRows:
    """Phases of a vector of rows, emitted into one straight-line scope."""

    def __init__(self, shape: RowShape, arguments: Arguments, scope: Scope) -> None:
        self.shape = shape
        self.arguments = arguments
        self.scope = scope
        self.point = _RowsPoint(self, scope)
        # The values of a column are computed once and known in all later phases.
        self.columns = [_RowsPoint(self, scope.beside(), column) for column in range(shape.columns)]

    def address(self, place: RowStrides, column: int | None, offset: int = 0) -> tuple[IndexLike, int]:
        """Return the index of a column's number of row `r`, and its stride from row to row."""
        stride = row_stride(self.shape, place)
        assert stride is not None
        if column is not None:
            offset += self._column_offset(place, column)
        return ROW * stride + offset, stride

    def _column_offset(self, place: RowStrides, column: int) -> int:
        sizes = [self.shape.region.domain[axis] for axis in self.shape.column_axes]
        below = [math.prod(sizes[position + 1 :]) for position in range(len(sizes))]
        return sum(
            column // under % size * stride for size, under, stride in zip(sizes, below, place.columns, strict=True)
        )

    def emit(self) -> None:
        """Emit all phases, then the outputs."""
        shape = self.shape
        for phase in range(shape.depth):
            self._reduce(shape.targets(phase))
        for point in self.columns:
            self._store(point, [output for output in shape.region.outputs if shape.full_key(output)])
        self._store(self.point, [output for output in shape.region.outputs if not shape.full_key(output)])

    def _store(self, point: _RowsPoint, outputs: list[int]) -> None:
        for output in outputs:
            point.store(output, *self.address(self.shape.stored(output), point.column))

    # -- reductions ---------------------------------------------------------------------------

    def _reduce(self, nodes: list[int]) -> None:
        """Emit the reductions of one phase together, so that a column's values live shortly."""
        reductions, lanes = (
            [self.shape.reduction(node, self._column_point) for node in nodes],
            row_lanes(self.shape.columns),
        )
        totals = tree_of(
            self.scope, reductions, lambda lane: [self._lane(reduction, lane, lanes) for reduction in reductions], lanes
        )
        for node, parts in zip(nodes, totals, strict=True):
            self.scope.known[node] = parts[-1]

    def _column_point(self, scope: Scope, column: IndexLike, count: IndexLike | None) -> Point:
        del scope, count
        assert isinstance(column, int), "columns are unrolled"
        return self.columns[column]

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


def _emitted(shape: RowShape, arguments: Arguments, names: itertools.count[int]) -> _ShortRows:
    vectors = _ShortRows(shape, arguments, Scope(names, lanes=shape.lanes))
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
