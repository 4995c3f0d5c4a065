"""Folds of columns: the records of one canonical block are added in order, column by column.

The accumulators are the block's partial results in global memory. They stay in the cache. The next batch
continues with the accumulators of an unfinished block.

On CPUs costly values of whole rows, as the exponential of a row's sum, are computed for a tile of records at once: a
lane has a record. Row by row all lanes of a vector would compute one number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from flowcompute.elements import Kind
from flowcompute.fuse import Access, Layout
from flowcompute.imports import dataclass
from flowcompute.ir import (
    BLOCKS,
    FIRST,
    GID,
    GSIZE,
    LID,
    PHASE,
    Argument,
    Array,
    ArrayItem,
    Assign,
    ConstantValue,
    For,
    If,
    IndexLike,
    Integer,
    Load,
    N,
    PutItem,
    SetInteger,
    Splat,
    Stmt,
    Store,
    Var,
    WorkGroupBarrier,
    any_of,
    equal,
    in_lane,
    index_max,
    index_min,
    names,
    register_dtype,
)
from flowcompute.lower.emit import Arguments, Scope, loaded, units_loop
from flowcompute.lower.reduction import Parts, Reduction, assign, moved
from flowcompute.lower.rows.row_shape import RowShape, RowStrides
from flowcompute.lower.rows.row_sweep import (
    COLUMN,
    FROM,
    OUTER,
    PREFETCH_COLUMNS,
    PREFETCH_NUMBERS,
    RECORD,
    ROW_LANES,
    TILL,
    ColumnPoint,
    RowSweep,
)
from flowcompute.spec import BOOL, INT64, is_float

_UNIT, _BLOCK, _NUMBER = names("unit block j")
"""Unit of work, number of its block, and number in a fold's item."""
_LOW, _HIGH = names("lo hi")
"""Records of the block that this batch has."""
_TILE, _WHOLE = names("tile tiled")
"""First record of a tile, and the end of the last whole tile."""

TILED_COST = 16
"""Least cost of a record's row values that are computed for a tile of records at once."""

REGISTER_BYTES = 256
"""Bytes of accumulators that stay in registers while the records of a tile are added: half of those of AVX2."""

_Vector = tuple[IndexLike, IndexLike | None]
"""First column of a vector, and how many columns exist where these are fewer than its lanes."""

_FRESH_BLOCK = any_of(_BLOCK > 0, equal(PHASE, 0))
"""Condition that the block begins in this batch."""


@dataclass(frozen=True)
class _AccumulatorSlot:
    """Index of a fold's accumulators of some columns."""

    index: IndexLike
    stride: int
    each: IndexLike | None
    count: IndexLike | None

    def load(self, argument: Argument) -> Load:
        return Load(argument, self.index, self.stride, self.count, self.each)


class ColumnFolds:
    """Folds of a region that is processed row by row."""

    def __init__(self, shape: RowShape, arguments: Arguments) -> None:
        self.shape = shape
        self.arguments = arguments
        self.folds = shape.region.folds

    def accumulate(self, point: ColumnPoint) -> None:
        """Add the record's columns at this point to the accumulators of every fold."""
        for fold in self.folds:
            self._accumulate(point, fold)

    def body(self, sweep: RowSweep) -> list[Stmt]:
        """Distribute blocks of records over work-items (CPU) or work-groups (GPU), perhaps with tiles of columns."""
        shape = self.shape
        if shape.tiled and not shape.cpu:
            return self._columns(sweep)
        block = shape.folds[self.folds[0]].block
        head = sweep.scope.inner(1)
        self._begin_block(head)
        if not shape.cpu:
            # One work-item initializes a column's accumulator, and another one adds to it.
            head.add(WorkGroupBarrier())
        loops = self._record_loops(sweep)
        unit, tiles = self._unit()
        body = (*unit, *_records(block), *head.statements, *self._shift_sweep(sweep), *loops)
        return units_loop(_UNIT, BLOCKS * tiles, shape.cpu, body)

    def _unit(self) -> tuple[list[Stmt], int]:
        """Return the indices of the block (and columns) of a unit of work, and the number of units in a block."""
        shape = self.shape
        if not shape.tiled:
            return [SetInteger(_BLOCK, _UNIT)], 1
        tiles = -(-shape.columns // shape.tile)
        place: list[Stmt] = [
            SetInteger(_BLOCK, _UNIT // tiles),
            SetInteger(FROM, _UNIT % tiles * shape.tile),
            SetInteger(TILL, index_min(shape.columns, FROM + shape.tile)),
        ]
        return place, tiles

    def _rows(self, sweep: RowSweep) -> tuple[Stmt, ...]:
        """Return the statements of all rows of a record."""
        statements = tuple(sweep.scope.statements)
        return statements if self.shape.rows == 1 else (For(OUTER, 0, self.shape.rows, 1, statements),)

    # -- tiles of records -----------------------------------------------------------------------

    def _record_loops(self, sweep: RowSweep) -> list[Stmt]:
        """Return the loops over a block's records; tiles of them first, where row values are costly."""
        one_by_one = self._rows(sweep)
        passed = self._passed()
        if not passed:
            return [For(RECORD, _LOW, _HIGH, 1, one_by_one)]
        lanes = self.shape.lanes
        tile = For(_TILE, _LOW, _WHOLE, lanes, tuple(self._tile(sweep, passed)))
        whole = SetInteger(_WHOLE, _HIGH - (_HIGH - _LOW) % lanes)
        return [whole, tile, For(RECORD, _WHOLE, _HIGH, 1, one_by_one)]

    def _passed(self) -> list[int]:
        """Return the row values that columns read, or that are stored, where these are computed tile by tile."""
        shape, region = self.shape, self.shape.region
        if not shape.cpu or shape.depth != 1 or shape.rows != 1 or shape.kept or shape.columns >= PREFETCH_COLUMNS:
            return []
        of_rows = [i for i in region.nodes if i not in self.folds and not shape.full_key(i)]
        ops = [shape.graph.nodes[i].op for i in of_rows if shape.kind(i) is Kind.ELEMENTWISE]
        read = {key for i in region.nodes if i in self.folds or shape.full_key(i) for key in region.reads[i]}
        passed = [i for i in of_rows if i in read or i in region.outputs]
        dtypes = {shape.graph.nodes[i].spec.dtype for i in {*passed, *shape.targets(0)}}
        dtypes.update(dtype for fold in self.folds for dtype in shape.folds[fold].parts())
        costly = sum(op.cost for op in ops if op is not None) >= TILED_COST
        return passed if costly and BOOL not in dtypes else []

    def _tile(self, sweep: RowSweep, passed: list[int]) -> Iterator[Stmt]:
        """Yield the statements of a tile: reductions of each row, row values of all, then columns of each row."""
        shape, names, reduced = self.shape, sweep.scope.names, self.shape.targets(0)
        dtypes = {i: register_dtype(shape.graph.nodes[i].spec.dtype) for i in {*reduced, *passed}}
        arrays = {i: f"rows{place}" for place, i in enumerate(sorted(dtypes))}
        yield from (Array(arrays[i], dtypes[i], 1, shape.lanes) for i in sorted(dtypes))
        rows = _EachReduced(shape, self.arguments, Scope(names, lanes=ROW_LANES), None)
        rows.reduce(0)
        for column in range(0, shape.columns, shape.lanes):
            rows.prefetch(rows.scope, column)
        rows.scope.add(*(PutItem(arrays[i], RECORD - _TILE, rows.scope.known[i]) for i in reduced))
        yield For(RECORD, _TILE, _TILE + shape.lanes, 1, tuple(rows.scope.statements))
        lanes = _RecordLanes(shape, self.arguments, Scope(names, lanes=shape.lanes), None)
        for i in reduced:
            lanes.scope.known[i] = lanes.scope.let(ArrayItem(arrays[i], 0, vector=True), dtypes[i])
        made = {i: lanes.row.value(i) for i in passed if i not in reduced}
        lanes.scope.add(*(PutItem(arrays[i], 0, var, vector=True) for i, var in made.items()))
        for output in lanes.row_outputs:
            lanes.row.store(output, *lanes.address_of_row(*lanes.stored(output)))
        yield If(True, (SetInteger(RECORD, _TILE), *lanes.scope.statements))
        held = {i: (arrays[i], dtypes[i]) for i in passed}
        yield from self._vectors_together(lambda vectors: self._tile_columns(sweep, held, vectors))

    def _vectors_together(self, body: Callable[[Sequence[_Vector]], tuple[Stmt, ...]]) -> Iterator[Stmt]:
        """Yield a loop over columns, as many vectors at a time as registers take, and what is left of the columns."""
        shape = self.shape
        lanes, columns = shape.lanes, shape.columns
        held = lanes * sum(dtype.itemsize for fold in self.folds for dtype in shape.folds[fold].parts())
        wide = lanes * max(1, REGISTER_BYTES // held)
        whole = columns - columns % wide
        if whole:
            yield For(COLUMN, 0, whole, wide, body([(COLUMN + at, None) for at in range(0, wide, lanes)]))
        left = [(at, columns - at if columns - at < lanes else None) for at in range(whole, columns, lanes)]
        if left:
            yield If(True, body(left))

    def _tile_columns(
        self, sweep: RowSweep, held: dict[int, tuple[str, np.dtype]], vectors: Sequence[_Vector]
    ) -> tuple[Stmt, ...]:
        """Return the statements of vectors of columns: accumulators stay in registers while records are added.

        Args:
            sweep: over a record's rows.
            held: by row value the array that has it for each record of the tile, and its dtype.
            vectors: what is added at the same time.
        """
        shape = self.shape
        outer, each = sweep.again(), sweep.again()
        for i, (array, dtype) in held.items():
            each.scope.known[i] = each.scope.let(ArrayItem(array, RECORD - _TILE), dtype, 1)
        before, records, after = outer.scope.inner(shape.lanes), each.scope.inner(shape.lanes), list[Stmt]()
        for column, count in vectors:
            around = ColumnPoint(outer.row, before.beside(), column, count, 2 * shape.depth)
            point = ColumnPoint(each.row, records.beside(), column, count, 2 * shape.depth)
            slots = {fold: self._slot(around, fold) for fold in self.folds}
            totals = {i: tuple(loaded(around.scope, slots[i].load(one)) for one in self._parts(i)) for i in slots}
            each.store_at(point)
            for fold, slot in slots.items():
                self._add(point, fold, totals[fold])
                for one, var in zip(self._parts(fold), totals[fold], strict=True):
                    after.append(Store(one, slot.index, var, slot.stride, slot.count, each=slot.each))
        added = For(RECORD, _TILE, _TILE + shape.lanes, 1, (*each.scope.statements, *records.statements))
        return (*outer.scope.statements, *before.statements, added, *after)

    # -- columns of GPUs ------------------------------------------------------------------------

    def _columns(self, sweep: RowSweep) -> list[Stmt]:
        """Distribute columns: each work-item takes a column of a block and keeps its accumulators in registers."""
        shape = self.shape
        size, tiles = shape.folds[self.folds[0]].block, -(-shape.columns // shape.tile)
        unit: list[Stmt] = [
            SetInteger(_BLOCK, _UNIT // tiles),
            SetInteger(COLUMN, _UNIT % tiles * shape.tile + LID),
            *_records(size),
        ]
        outer, inner = sweep.again(), sweep.again()
        totals = {fold: self._begun(outer, fold) for fold in self.folds}
        point = ColumnPoint(inner.row, inner.scope.inner(1), COLUMN, None, 1)
        for fold in self.folds:
            self._add(point, fold, totals[fold])
        inner.store_column(point)
        records = (*inner.scope.statements, *point.scope.statements)
        outer.scope.add(For(RECORD, _LOW, _HIGH, 1, records, unroll=shape.turns))
        for fold in self.folds:
            place = _BLOCK * shape.folds[fold].numbers + self._number(outer, fold)
            # The sum of the only block of a step is its result; see `DeviceMerges`.
            canonical = shape.folds[fold].op == "sum" and is_float(shape.folds[fold].dtype)
            outer.scope.add(
                *(
                    Store(one, place, var, 1, 1, canonical)
                    for one, var in zip(self._parts(fold), totals[fold], strict=True)
                )
            )
        own = If(COLUMN < shape.columns, tuple(outer.scope.statements))
        return [For(_UNIT, GID, BLOCKS * tiles, GSIZE, (*unit, own))]

    def _begun(self, sweep: RowSweep, fold: int) -> Parts:
        """Declare a column's accumulators: the identity, or those of an unfinished block.

        The shift of a variance is the first number of its block.
        """
        spec, scope, reduction = self.shape.folds[fold], sweep.scope, self._reduction(fold)
        totals = tuple(
            scope.let(ConstantValue(reduction.identity(part)), register_dtype(dtype), 1, 1)
            for part, dtype in enumerate(spec.parts())
        )
        number, old, fresh = self._number(sweep, fold), scope.inner(1), sweep.again()
        for part, (total, dtype) in enumerate(zip(totals, spec.parts(), strict=True)):
            carry = self.arguments.get("carry", dtype, fold, part)
            old.add(Assign(total, Splat(loaded(old, Load(carry, number, 1)))))
        if spec.op == "var":
            fresh.scope.add(SetInteger(RECORD, _LOW))
            point = ColumnPoint(fresh.row, fresh.scope.inner(1), COLUMN, None, 1)
            value = point.value(self.shape.region.reads[fold][0])
            fresh.scope.add(*point.scope.statements, Assign(totals[0], Splat(value)))
        scope.add(If(_FRESH_BLOCK, tuple(fresh.scope.statements), tuple(old.statements)))
        return totals

    def _number(self, sweep: RowSweep, fold: int) -> IndexLike:
        """Return the index of column `c` in the fold's item."""
        place = self.shape.place(self._layout(fold), self.shape.folds[fold].item, stream=False)
        index, _, each = sweep.address(sweep.base(f"part{fold}", place), place, COLUMN)
        return sweep.scope.integer(index if each is None else in_lane(each, 0))

    def _add(self, point: ColumnPoint, fold: int, totals: Parts) -> None:
        """Add a record's number to the column's accumulators."""
        values = tuple(point.value(key) for key in self.shape.region.reads[fold])
        new = self._added(point.scope, fold, totals, values)
        assign(point.scope, totals[-len(new) :], new)

    # -- accumulators -------------------------------------------------------------------------

    def _reduction(self, fold: int) -> Reduction:
        spec = self.shape.folds[fold]
        return Reduction(f"f{fold}", spec.op, spec.parts(), lambda *_: ())

    def _added(self, scope: Scope, fold: int, old: Parts, values: Parts) -> Parts:
        """Combine accumulators with a record's numbers; the first part of a variance, its shift, does not change."""
        reduction = self._reduction(fold)
        if reduction.finds:
            values = (values[0], scope.let(Integer(FIRST + RECORD), INT64))
        if reduction.op == "var":
            values, old = moved(scope, values[0], old[0]), old[1:]
        return reduction.combined(scope, old, values, fused=True)

    def _slot(self, point: ColumnPoint, fold: int) -> _AccumulatorSlot:
        spec = self.shape.folds[fold]
        place = self.shape.place(self._layout(fold), spec.item, stream=False)
        sweep = point.sweep
        index, stride, each = sweep.address(sweep.base(f"part{fold}", place), place, point.column)
        offset = _BLOCK * spec.numbers
        return _AccumulatorSlot(offset + index, stride, None if each is None else offset + each, point.count)

    def _layout(self, fold: int) -> Layout:
        """Return the layout of the folded item: that of the operand that runs along most axes."""
        region = self.shape.region
        layouts = [key.layout if isinstance(key, Access) else region.layouts[key] for key in region.reads[fold]]
        widest = max(layouts, key=lambda layout: sum(axis is not None for axis in layout))
        return (None,) * (len(self.shape.folds[fold].item) - len(widest)) + widest

    def _parts(self, fold: int) -> list[Argument]:
        return [
            self.arguments.get("partial", dtype, fold, part)
            for part, dtype in enumerate(self.shape.folds[fold].parts())
        ]

    def _accumulate(self, point: ColumnPoint, fold: int) -> None:
        scope, slot, parts = point.scope, self._slot(point, fold), self._parts(fold)
        values = tuple(point.value(key) for key in self.shape.region.reads[fold])
        old = tuple(loaded(scope, slot.load(argument)) for argument in parts)
        new = self._added(scope, fold, old, values)
        for argument, var in zip(parts[-len(new) :], new, strict=True):
            scope.add(Store(argument, slot.index, var, slot.stride, slot.count, each=slot.each))

    def _begin_block(self, scope: Scope) -> None:
        """Initialize the block's accumulators with the identity, or with those of an unfinished block."""
        shape = self.shape
        for fold in self.folds:
            spec, reduction = shape.folds[fold], self._reduction(fold)
            for part, (target, dtype) in enumerate(zip(self._parts(fold), spec.parts(), strict=True)):
                carry = self.arguments.get("carry", dtype, fold, part)
                fresh, old = scope.inner(1), scope.inner(1)
                start = fresh.let(ConstantValue(reduction.identity(part)), register_dtype(dtype), mask_bytes=1)
                before = loaded(old, Load(carry, _NUMBER, 1))
                for inner, var in ((fresh, start), (old, before)):
                    inner.add(Store(target, _BLOCK * spec.numbers + _NUMBER, var, 1, 1))
                loops = [self._each_number(spec.numbers, tuple(inner.statements)) for inner in (fresh, old)]
                scope.add(If(_FRESH_BLOCK, (loops[0],), (loops[1],)))

    def _each_number(self, numbers: int, body: tuple[Stmt, ...]) -> For:
        shape = self.shape
        start, stop = (FROM, TILL) if shape.tiled else (0, numbers)
        return For(_NUMBER, start if shape.cpu else LID, stop, 1 if shape.cpu else shape.group, body)

    # -- shifts of variances --------------------------------------------------------------------

    def _shift_sweep(self, sweep: RowSweep) -> list[Stmt]:
        """Store the first record of a fresh block as the shift of its variances."""
        shape = self.shape
        shifts = [fold for fold in self.folds if shape.folds[fold].op == "var"]
        if not shifts:
            return []
        first = sweep.again()
        for phase in range(shape.depth):
            first.reduce(phase)
        stores = self._shift_stores(first, shifts)
        if not shape.cpu:
            # Only the stores are conditional, since PoCL miscompiles barriers under a condition.
            first.scope.add(If(_FRESH_BLOCK, stores))
            return [If(True, (SetInteger(RECORD, _LOW), *self._rows(first)))]
        first.scope.add(*stores)
        return [If(_FRESH_BLOCK, (SetInteger(RECORD, _LOW), *self._rows(first)))]

    def _shift_stores(self, sweep: RowSweep, shifts: list[int]) -> tuple[Stmt, ...]:
        shape = self.shape

        def stores(column: IndexLike, count: IndexLike | None) -> tuple[Stmt, ...]:
            point = ColumnPoint(sweep.row, sweep.scope.inner(shape.lanes), column, count, 2 * shape.depth)
            for fold in shifts:
                slot = self._slot(point, fold)
                value = point.value(shape.region.reads[fold][0])
                point.scope.add(Store(self._parts(fold)[0], slot.index, value, slot.stride, slot.count, each=slot.each))
            return tuple(point.scope.statements)

        return sweep.all_columns(stores)


class _EachReduced(RowSweep):
    """Sweeps whose reductions are single numbers."""

    def ahead(self) -> int:
        """Return the rows of the tiles that are loaded while those of this one are computed."""
        return max(1, PREFETCH_NUMBERS // self.shape.columns)

    def of_row(self, node: int, result: Var) -> Var:
        """Return the result of a reduction as it is."""
        del node
        return result


class _RecordLanes(RowSweep):
    """Row values of neighbouring records, one in each lane; there is one row in a record."""

    def address_of_row(self, base: IndexLike, place: RowStrides) -> tuple[IndexLike, int]:
        """Return the index of the first record's number, and its stride from record to record."""
        return base, place.record


def _records(block: int) -> tuple[Stmt, ...]:
    """Declare the range of the records of a block of `block` records that this batch has."""
    begin = SetInteger(_LOW, index_max(0, _BLOCK * block - PHASE))
    return begin, SetInteger(_HIGH, index_min(N, (_BLOCK + 1) * block - PHASE))
