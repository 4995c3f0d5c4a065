"""Sweeps over one row: reductions phase by phase, then outputs."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

from flowcompute.fuse import Access
from flowcompute.graph import Node
from flowcompute.ir import (
    FIRST,
    LANE,
    LID,
    LINE_BYTES,
    Argument,
    Array,
    ArrayItem,
    ConditionLike,
    For,
    If,
    IndexLike,
    Load,
    Name,
    Prefetch,
    PutItem,
    SetInteger,
    Splat,
    Stmt,
    Var,
    equal,
    names,
    register_dtype,
)
from flowcompute.lower.emit import Arguments, Key, Point, Scope, loaded
from flowcompute.lower.reduction import Parts, Reduction
from flowcompute.lower.rows.item_reduce import VectorBlocks
from flowcompute.lower.rows.row_shape import RowShape, RowStrides
from flowcompute.lower.rows.work_group_blocks import GroupBlocks

ROW_LANES = 4
"""Lanes of row values on CPUs. Library functions then have the bits of their vector form, never the scalar's."""
PREFETCH_COLUMNS = 256
"""Fewest columns of a row for prefetching; hardware prefetchers foresee several shorter rows at a time."""
PREFETCH_NUMBERS = 2048
"""Prefetch distance, in numbers, of kernels that stream through records."""

ROW, RECORD, OUTER = names("r record outer")
"""Number of a row through all records, number of its record, and number of the row in that record."""
COLUMN = Name("c")
FROM, TILL = names("from till")
"""The tile of columns of a work-item, where there is one."""
_WHOLE, _LEFT = names("whole left")
"""End of the tile's whole vectors, and columns behind it."""

Accumulate = Callable[["ColumnPoint"], None]
"""Function that adds a record's columns to the folds of the region."""


class RowPoint(Point):
    """Row values: those that are constant along the columns."""

    def __init__(self, sweep: RowSweep, scope: Scope) -> None:
        super().__init__(sweep.shape.graph, sweep.shape.region, sweep.arguments, scope)
        self.sweep = sweep

    def load(self, access: Access) -> Var:
        """Load the row's one number."""
        argument, base, place = self.sweep.locate(access)
        return loaded(self.scope, Load(argument, *self.sweep.address_of_row(base, place)))

    def position(self, node: Node) -> tuple[IndexLike, int, None]:
        """Return the position of the row's one number."""
        base, place, before = self.sweep.generated(node)
        index, stride = self.sweep.address_of_row(base, place)
        return before + index, stride, None


class ColumnPoint(Point):
    """Columns `column` to `column + lanes` of the row, of which `count` exist.

    `phase` is twice the number of the sweep, plus one once the values that the sweep keeps have been
    stored.
    """

    count: IndexLike | None

    def __init__(self, row: RowPoint, scope: Scope, column: IndexLike, count: IndexLike | None, phase: int) -> None:
        super().__init__(row.graph, row.region, row.arguments, scope)
        self.row = row
        self.sweep = row.sweep
        self.column = column
        self.count = count
        self.phase = phase

    def home(self, key: Key) -> Point:
        """Return the row for values that are constant along it, else this point."""
        return self if self.sweep.shape.full_key(key) else self.row

    def load(self, access: Access) -> Var:
        """Load a vector of the row."""
        return self.sweep.load(self, access)

    def position(self, node: Node) -> tuple[IndexLike, int, IndexLike | None]:
        """Return the positions of the columns."""
        base, place, before = self.sweep.generated(node)
        index, stride, each = self.sweep.address(base, place, self.column)
        return before + index, stride, None if each is None else before + each

    def operands(self, key: Key) -> tuple[Key, ...]:
        """Return what a value is computed of: nothing if an earlier sweep has kept it."""
        kept = self.sweep.kept
        if isinstance(key, Access) or key not in kept:
            return super().operands(key)
        # Arrays are numbered in the order in which their values are asked for.
        self.sweep.kept_array(key)
        return () if 2 * kept[key] < self.phase else super().operands(key)

    def compute(self, key: Key) -> Var:
        """Compute a value; load it if an earlier sweep has kept it, and store it if this sweep keeps it."""
        kept = self.sweep.kept
        if isinstance(key, Access) or key not in kept:
            return super().compute(key)
        shape = self.sweep.shape
        array, slot = self.sweep.kept_array(key), self.column // shape.lanes
        if 2 * kept[key] < self.phase:
            dtype = register_dtype(self.graph.nodes[key].spec.dtype)
            return self.scope.let(ArrayItem(array, slot), dtype, mask_bytes=dtype.itemsize)
        var = super().compute(key)
        self.scope.add(PutItem(array, slot, var))
        return var


class RowSweep:
    """Sweeps over one row.

    Args:
        shape: structure of the row.
        arguments: arguments of the kernel.
        scope: where its statements go.
        folds: adds a record's columns to the folds of the region.
        together: columns that a work-item of a GPU loads before it stores the first of them.

    Attributes:
        first, apart: a work-item's first column on a GPU, and how far its columns lie apart.
        vector: numbers that a work-item of a GPU moves together, at multiples of their size in all arguments.
    """

    def __init__(
        self, shape: RowShape, arguments: Arguments, scope: Scope, folds: Accumulate | None, together: int = 1
    ) -> None:
        self.shape = shape
        self.arguments = arguments
        self.scope = scope
        self.folds = folds
        self.together, self.apart = together, shape.group
        self.first: IndexLike = LID
        self.vector = 1
        self.row = RowPoint(self, scope)
        self.bases: dict[tuple[str, RowStrides, int], IndexLike] = {}
        self.arrays: dict[int, str] = {}
        self.declared: list[Array] = []
        self.kept = shape.kept

    @property
    def lanes(self) -> int:
        """Columns of a vector."""
        return self.shape.lanes if self.shape.cpu else self.vector

    # -- addresses ----------------------------------------------------------------------------

    def locate(self, access: Access) -> tuple[Argument, IndexLike, RowStrides]:
        """Return the argument of an access, the integer with the offset of its row, and its strides."""
        lies, place = self.shape.place_of(access)
        argument = self.arguments.input(self.shape.graph, self.shape.region, lies.base)
        return argument, self.base(argument.name, place, lies.offset), place

    def load(self, point: ColumnPoint, access: Access) -> Var:
        """Emit the load of columns of the row."""
        argument, base, place = self.locate(access)
        index, stride, each = self.address(base, place, point.column)
        return loaded(point.scope, Load(argument, index, stride, point.count, each, self._is_aligned(point)))

    def _is_aligned(self, point: ColumnPoint) -> bool:
        return 1 < self.vector == point.scope.lanes

    def generated(self, node: Node) -> tuple[IndexLike, RowStrides, IndexLike]:
        """Return, for a generated stream, the row's offset in the batch, its strides, and the offset of the batch."""
        place = self.shape.stored(node.id)
        return self.base("position", place), place, FIRST * node.spec.item_numbers

    def base(self, name: str, place: RowStrides, offset: int = 0) -> IndexLike:
        """Return an integer with the offset of the row in an argument."""
        if (name, place, offset) not in self.bases:
            base = offset + RECORD * place.record
            for position, stride in enumerate(place.rows):
                base += self._row_index(position) * stride
            self.bases[name, place, offset] = self.scope.integer(base)
        return self.bases[name, place, offset]

    def _row_index(self, position: int) -> IndexLike:
        sizes = [self.shape.region.domain[axis] for axis in self.shape.row_axes]
        index = OUTER // math.prod(sizes[position + 1 :])
        return index if position == 0 else index % sizes[position]

    def address(self, base: IndexLike, place: RowStrides, column: IndexLike) -> tuple[IndexLike, int, IndexLike | None]:
        """Return index and stride of columns and, where there is no single stride, the index of each lane."""
        axes = [(self.shape.region.domain[axis], place.columns[at]) for at, axis in enumerate(self.shape.column_axes)]
        wide = [(size, stride) for size, stride in axes if size != 1]
        sizes, strides = [size for size, _ in wide], [stride for _, stride in wide]
        if len(wide) == 1:
            return base + column * strides[0], strides[0], None
        below = [math.prod(sizes[position + 1 :]) for position in range(len(sizes))]
        if strides == below:
            return base + column, 1, None
        each = base
        # A vector crosses no end of the last axis.
        lane = LANE if self.vector == 1 else 0
        for size, stride, under in zip(sizes, strides, below, strict=True):
            each += (column + lane) // under % size * stride
        return (base, 1, each) if self.vector == 1 else (each, 1, None)

    def address_of_row(self, base: IndexLike, place: RowStrides) -> tuple[IndexLike, int]:
        """Return index and stride of a number that is constant along the columns: all lanes have that of the row."""
        del place
        return base, 0

    # -- sweeps -------------------------------------------------------------------------------

    def kept_array(self, node: int) -> str:
        """Return the private array that keeps a node's row."""
        if node not in self.arrays:
            shape = self.shape
            name = f"row{len(self.arrays)}"
            dtype = register_dtype(shape.graph.nodes[node].spec.dtype)
            self.arrays[node] = name
            size = -(-shape.columns // shape.lanes)
            self.declared.append(Array(name, dtype, shape.lanes, size, mask_bytes=dtype.itemsize))
        return self.arrays[node]

    def emit(self) -> None:
        """Emit all sweeps, then the row's own outputs."""
        shape = self.shape
        for phase in range(shape.depth):
            self.reduce(phase)
        self._finish(shape.depth)
        for output in self.row_outputs:
            scope = self.scope.inner()
            self.store_of_row(scope, output)
            self.scope.add(*scope.statements if shape.cpu else (If(equal(LID, 0), tuple(scope.statements)),))

    def loop(self, start: IndexLike, stop: IndexLike, step: IndexLike) -> For:
        """Return a loop over rows, numbered through all records."""
        return For(ROW, start, stop, step, self.one_row())

    def one_row(self) -> tuple[Stmt, ...]:
        """Return the indices of row `r` and its sweeps."""
        rows = self.shape.rows
        if rows == 1:
            return (SetInteger(RECORD, ROW), *self.scope.statements)
        place = SetInteger(RECORD, ROW // rows), SetInteger(OUTER, ROW % rows)
        return (*place, *self.scope.statements)

    def reduce(self, phase: int) -> None:
        """Emit the reductions of one sweep; their results are row values from then on."""
        nodes = self.shape.targets(phase)
        self._keep(phase)
        reductions = [self._reduction(node, phase) for node in nodes]
        if self.prefetches(phase) and all(one.commutes or one.finds for one in reductions):
            # Sums read a row in jumps, where prefetching costs as much as it gains.
            reductions[0] = self._prefetching(reductions[0])
        results = self.results(reductions)
        for node, parts in zip(nodes, results, strict=True):
            self.scope.known[node] = self.of_row(node, parts[-1])

    def of_row(self, node: int, result: Var) -> Var:
        """Declare the result of a reduction as a value of the row, in all lanes."""
        dtype = register_dtype(self.shape.graph.nodes[node].spec.dtype)
        return self.scope.let(Splat(result), dtype, mask_bytes=result.mask_bytes)

    def results(self, reductions: list[Reduction]) -> list[Parts]:
        """Compute the reductions of a sweep."""
        shape = self.shape
        scope = self.scope.inner(shape.lanes)
        if shape.cpu:
            results = VectorBlocks(scope, reductions, shape.lanes).row(shape.columns)
        else:
            results = GroupBlocks(scope, reductions, group=shape.group, shuffle=shape.shuffles).row(shape.columns)
        self.scope.add(*scope.statements)
        return results

    def _reduction(self, node: int, phase: int) -> Reduction:
        def point(scope: Scope, column: IndexLike, count: IndexLike | None) -> Point:
            return self.point(scope, column, count, 2 * phase + 1)

        return self.shape.reduction(node, point)

    def point(self, scope: Scope, column: IndexLike, count: IndexLike | None, phase: int) -> ColumnPoint:
        """Return the point at columns of the row, of which `count` exist; `phase` is that of `ColumnPoint`."""
        return ColumnPoint(self.row, scope, column, count, phase)

    def again(self) -> RowSweep:
        """Return another sweep over the rows, which shares the arrays of kept values."""
        sweep = RowSweep(self.shape, self.arguments, Scope(self.scope.names, lanes=self.scope.lanes), None)
        sweep.arrays, sweep.declared = self.arrays, self.declared
        return sweep

    def all_columns(self, body: Callable[[IndexLike, IndexLike | None], tuple[Stmt, ...]]) -> tuple[Stmt, ...]:
        """Return a loop over the row's columns (or their tile), with `body(column, count)` for each vector."""
        shape = self.shape
        lanes, columns = shape.lanes, shape.columns
        if not shape.cpu:
            return (For(COLUMN, self.first, columns, self.apart, body(COLUMN, None)),)
        if shape.tiled:
            return (
                SetInteger(_WHOLE, TILL - (TILL - FROM) % lanes),
                For(COLUMN, FROM, _WHOLE, lanes, body(COLUMN, None), unroll=shape.turns),
                If(_WHOLE < TILL, (SetInteger(_LEFT, TILL - _WHOLE), *body(_WHOLE, _LEFT))),
            )
        whole = columns - columns % lanes
        every = (For(COLUMN, 0, whole, lanes, body(COLUMN, None), unroll=shape.turns),) if whole else ()
        return every if whole == columns else (*every, If(True, body(whole, columns % lanes)))

    def _keep(self, phase: int) -> None:
        """Emit a separate loop for values that this sweep computes and later ones need again."""
        nodes = [node for node, first in self.kept.items() if first == phase]
        if not nodes:
            return

        def keep(column: IndexLike, count: IndexLike | None) -> tuple[Stmt, ...]:
            point = self.point(self.scope.inner(self.shape.lanes), column, count, 2 * phase)
            for node in nodes:
                point.value(node)
            if count is None:
                self.prefetch(point.scope, column)
            return tuple(point.scope.statements)

        self.scope.add(*self.all_columns(keep))

    def prefetches(self, phase: int) -> bool:
        """Check whether a sweep prefetches: it is a CPU's last one over the row, and no sweep keeps anything."""
        depth = self.shape.depth
        last = depth if self.shape.targets(depth) else depth - 1
        return self.shape.cpu and not self.kept and phase == last and (depth > 0 or self.folds is not None)

    def ahead(self) -> int:
        """Return how many rows ahead a sweep prefetches; 0 if it does not."""
        columns = self.shape.columns
        return int(columns >= PREFETCH_COLUMNS) if self.shape.depth else max(1, PREFETCH_NUMBERS // columns)

    def _prefetching(self, reduction: Reduction) -> Reduction:
        """Return a reduction that prefetches the next row at each of its steps."""

        def operands(scope: Scope, column: IndexLike, count: IndexLike | None) -> Parts:
            if count is None:
                self.prefetch(scope, column)
            return reduction.operands(scope, column, count)

        return replace(reduction, operands=operands)

    def prefetch(self, scope: Scope, column: IndexLike) -> None:
        """Prefetch columns of a later row.

        Hardware prefetchers stay within a page and do not foresee the step to another one.
        """
        if not (ahead := self.ahead()):
            return
        region = self.shape.region
        read = dict.fromkeys(one for reads in region.reads.values() for one in reads if isinstance(one, Access))
        places = [(*self.locate(access), False) for access in read if self.shape.full_key(access)]
        for output in filter(self.shape.full_key, region.outputs):
            argument = self.arguments.get("output", self.shape.graph.nodes[output].spec.dtype, output)
            places.append((argument, *self.stored(output), True))
        for argument, base, place, written in places:
            index, stride, each = self.address(base, place, column)
            step = place.rows[-1] if self.shape.rows > 1 else place.record
            size = argument.dtype.itemsize
            if stride == 1 and each is None and step:
                for number in range(0, self.shape.lanes, LINE_BYTES // size):
                    scope.add(Prefetch(argument, index + (step * ahead + number), written))

    def _finish(self, phase: int) -> None:
        """Emit the sweep that stores full-level outputs and accumulates columns."""
        if not self.shape.targets(phase):
            return

        def store(column: IndexLike, count: IndexLike | None) -> tuple[Stmt, ...]:
            point = self.point(self.scope.inner(self.lanes), column, count, 2 * phase)
            self.store_at(point)
            if count is None and self.prefetches(phase):
                self.prefetch(point.scope, column)
            return tuple(point.scope.statements)

        # The body is emitted before the loop is added, so that its row values are declared before the loop.
        if self.together == 1:
            self.scope.add(*self.all_columns(store))
            return
        columns, wide = self.shape.columns, self.apart * self.together
        whole = columns // wide * wide
        if whole:
            self.scope.add(For(COLUMN, self.first, whole, wide, self._stored_together(2 * phase)))
        if whole < columns:
            self.scope.add(For(COLUMN, whole + self.first, columns, self.apart, store(COLUMN, None)))

    def _stored_together(self, phase: int) -> tuple[Stmt, ...]:
        """Return the stores of several columns behind all loads: compilers let no load pass a store, or a division."""
        scope, apart = self.scope.inner(self.lanes), self.apart
        points = [self.point(scope.beside(), COLUMN + turn * apart, None, phase) for turn in range(self.together)]
        for point in points:
            for access in point.accesses(self.shape.region.outputs, self.shape.full_key):
                point.value(access)
        for point in points:
            self.store_at(point)
        return tuple(scope.statements)

    # -- stores -------------------------------------------------------------------------------

    @property
    def row_outputs(self) -> list[int]:
        """Outputs that are constant along the row."""
        return [output for output in self.shape.region.outputs if not self.shape.full_key(output)]

    def store_column(self, point: ColumnPoint) -> None:
        """Store everything at a single column, with the row values at the first one."""
        self.store_at(point)
        point.scope.add(*self.stores_of_row(point.scope, equal(point.column, 0)))

    def stores_of_row(self, scope: Scope, condition: ConditionLike) -> tuple[Stmt, ...]:
        """Return the stores of row values, guarded by the condition."""
        inner = scope.inner(1)
        for output in self.row_outputs:
            self.store_of_row(inner, output)
        return (If(condition, tuple(inner.statements)),) if inner.statements else ()

    def store_of_row(self, scope: Scope, output: int) -> None:
        """Store one output that is constant along the row."""
        base, _ = self.stored(output)
        RowPoint(self, scope).store(output, base, 1, 1)

    def store_at(self, point: ColumnPoint) -> None:
        """Store all full-level outputs at these columns, and accumulate them."""
        for output in self.shape.region.outputs:
            if self.shape.full_key(output):
                index, stride, each = self.address(*self.stored(output), point.column)
                point.store(output, index, stride, point.count, each, aligned=self._is_aligned(point))
        if self.folds is not None:
            self.folds(point)

    def stored(self, output: int) -> tuple[IndexLike, RowStrides]:
        """Return the integer with the row's offset in an output, and the output's strides."""
        place, dtype = self.shape.stored(output), self.shape.graph.nodes[output].spec.dtype
        return self.base(self.arguments.get("output", dtype, output).name, place), place
