"""Anchor of a region, with its producers before and its element-wise epilogue after it.

An **anchor** is a node whose result is matrices, over a stack and through all records: a product of
matrices, or attention. A **row** is a row of these matrices, numbered through all records. The epilogue is
computed in registers, before anything is stored.

An operand may be computed as it is loaded (producer fusion; `fuse` decides). Lowerings load such an operand
like others, as if it were in memory. `Anchor.factor` returns its numbers.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from flowcompute.elements.axes import RESHAPE
from flowcompute.fuse import Access, Region
from flowcompute.graph import Graph, Node
from flowcompute.imports import dataclass
from flowcompute.ir import (
    FIRST,
    LANE,
    Argument,
    Convert,
    IndexLike,
    Load,
    Name,
    Storage,
    Var,
    c_strides,
    seen_as,
    storage,
    views_of,
)
from flowcompute.lower.emit import Arguments, Point, Scope, loaded
from flowcompute.spec import Spec

_INT64 = np.dtype(np.int64)


@dataclass(frozen=True)
class Axes:
    """Axes that are counted as one: sizes and strides in numbers, merged where one stride serves several."""

    sizes: tuple[int, ...]
    strides: tuple[int, ...]

    @classmethod
    def of(cls, sizes: Sequence[int], strides: Sequence[int]) -> Axes:
        """Merge adjacent axes that one stride serves."""
        merged: list[tuple[int, int]] = []
        for size, stride in zip(sizes, strides, strict=True):
            if size == 1:
                continue
            if merged and merged[-1][1] == size * stride:
                size *= merged.pop()[0]
            merged.append((size, stride))
        merged = merged or [(1, 1)]
        return cls(tuple(size for size, _ in merged), tuple(stride for _, stride in merged))

    @property
    def stride(self) -> int:
        """Stride of the last axis."""
        return self.strides[-1]

    @property
    def single(self) -> bool:
        """True if one stride serves all axes."""
        return len(self.sizes) == 1

    def offset(self, index: IndexLike) -> IndexLike:
        """Return the offset of the number at this index of all axes."""
        offset: IndexLike = 0
        for axis, (size, stride) in enumerate(zip(self.sizes, self.strides, strict=True)):
            whole = index // math.prod(self.sizes[axis + 1 :])
            offset += (whole if axis == 0 else whole % size) * stride
        return offset

    def keeps_together(self, run: int) -> bool:
        """Check whether a run that begins at a multiple of its length crosses no end of an axis that it does not fill.

        The offset of its number l is then that of its begin plus that of index l.
        """
        below = (math.prod(self.sizes[axis:]) for axis in range(1, len(self.sizes)))
        return all(size % run == 0 or (size and run % size == 0) for size in below)

    def place(self, index: int) -> int:
        """Return the offset of the number at a known index of all axes."""
        place = 0
        for size, stride in zip(reversed(self.sizes), reversed(self.strides), strict=True):
            place += index % size * stride
            index //= size
        return place

    def outer(self) -> Axes:
        """Return all but the last axis."""
        return Axes(self.sizes[:-1] or (1,), self.strides[:-1] or (0,))


@dataclass(frozen=True)
class Operand:
    """Operand of an anchor: its parameter, its storage, its rows and columns, and the number of stack axes before them.

    An operand that is computed as it is loaded has a storage and a parameter that do not exist in the
    kernel.
    """

    argument: Argument
    spec: Spec
    lies: Storage
    rows: Axes
    columns: Axes
    stack: int


class Anchor:
    """Facts about an anchor and its region that all lowerings need.

    Attributes:
        node: the anchor.
        stack: item axes of the result before its matrices.
        height: rows of one matrix; 1 where a record is a row.
        column_axes: axes that count columns.
        dtype: dtype in which it is computed.
        split_columns: values whose run of columns may extend along several axes.
        first: begin of a weight tile in its operand, if weights are streamed.
        is_aligned: whether vectors of results begin at multiples of their size.
        is_rounded: whether its results are numbers of its own dtype before they are rounded to it.
    """

    is_aligned = is_rounded = False

    def __init__(
        self,
        graph: Graph,
        region: Region,
        *,
        stack: tuple[int, ...],
        height: int,
        column_axes: int,
        dtype: np.dtype,
    ) -> None:
        assert region.anchor is not None
        self.graph = graph
        self.region = region
        self.node = graph.nodes[region.anchor]
        self.stack = stack
        self.height = height
        self.column_axes = column_axes
        self.dtype = dtype
        self.arguments = Arguments(place=region.place)
        self.names = itertools.count()
        self.split_columns: set[int] = set()
        weight_tiles = region.weight_tiles
        self.first: IndexLike = 0
        if weight_tiles is not None:
            self.first = Name(self.arguments.get("integer", _INT64, weight_tiles.value).name)

    def operand(self, value: int, rows: int, columns: int) -> Operand:
        """Describe an operand whose last axes are `rows` axes of rows and `columns` axes of columns."""
        spec, computed = self.part(value), self._computed(value)
        if computed is None:
            lies = self.storage(value)
            argument = self.arguments.get("input", spec.dtype, lies.base)
        else:
            lies, argument = computed
        split, end = len(spec.shape) - columns, len(spec.shape) - columns - rows
        own = Axes.of(spec.shape[end:split], lies.strides[end:split])
        along = Axes.of(spec.shape[split:], lies.strides[split:])
        wide = [size for size in spec.shape[split:] if size > 1]
        if along.sizes[-1] != (wide or [1])[-1] or not divides_only(self.graph, value):
            self.split_columns.add(argument.value)
        return Operand(argument, spec, lies, own, along, end)

    def _computed(self, value: int) -> tuple[Storage, Argument] | None:
        """Return the storage and a stand-in parameter of an operand that is computed here; None for others."""
        if value not in self.region.nodes:
            return None
        root, views = views_of(self.graph, value)
        lies = seen_as(self.graph, root, views)
        assert lies is not None, "operands without strides are stored"
        if self.is_cut(value):
            lies = Storage(root, 0, 0, c_strides(self.part(value).shape))
        return lies, Argument("", "input", self.graph.nodes[root].spec.dtype, root)

    def is_cut(self, value: int) -> bool:
        """Check whether a value is the operand that comes in weight tiles, or is computed from it."""
        weight_tiles = self.region.weight_tiles
        return weight_tiles is not None and value in (weight_tiles.value, self.node.inputs[weight_tiles.axis])

    def part(self, value: int) -> Spec:
        """Return the spec of a value in one launch: that of a weight tile, where it comes in tiles."""
        spec, weight_tiles = self.graph.nodes[value].spec, self.region.weight_tiles
        return spec if weight_tiles is None or not self.is_cut(value) else weight_tiles.part(spec)

    def storage(self, value: int) -> Storage:
        """Return the storage of a value in one launch."""
        if self.is_cut(value):
            return Storage(value, 0, 0, c_strides(self.part(value).shape))
        return storage(self.graph, value, self.region.entered)

    def is_computed(self, operand: Operand) -> bool:
        """Check whether an operand is computed as it is loaded."""
        return operand.argument.value in self.region.nodes

    def begins_at_multiples(self, operand: Operand, run: int, *strides: int) -> bool:
        """Check whether runs of an operand that is computed as it is loaded begin at multiples of `run` numbers.

        Args:
            operand: of the anchor.
            run: numbers of a run, counted in the root of the operand.
            strides: by which runs are apart, beside those of the stack.
        """
        lies = operand.lies
        places = (lies.offset, lies.record, *strides, *lies.strides[: operand.stack])
        return self.is_computed(operand) and all(place % run == 0 for place in places)

    @property
    def units(self) -> int:
        """Rows in one record."""
        return math.prod(self.stack) * self.height

    # -- places of a row --------------------------------------------------------------------------

    def row(self, scope: Scope, r: IndexLike) -> Row:
        """Declare the indices of row `r` as integers in the scope."""
        record = scope.integer(r // self.units)
        within = scope.integer(r % self.units)
        many = math.prod(self.stack) > 1
        matrix = scope.integer(within // self.height) if many else 0
        own = scope.integer(within % self.height) if many else within
        return Row(r, record, matrix, own)

    def matrix_base(self, operand: Operand, record: IndexLike, matrix: IndexLike) -> IndexLike:
        """Return the offset at which a matrix of an operand begins.

        Stacks are broadcast. Where an operand has fewer matrices on an axis, neighbours share one.
        """
        shape = operand.spec.shape[: operand.stack]
        base: IndexLike = operand.lies.offset
        for back in range(1, len(shape) + 1):
            stride = operand.lies.strides[len(shape) - back]
            if shape[-back] != 1 and stride:
                sharing = self.stack[-back] // shape[-back] if shape[-back] else 1
                base += self._stack_index(matrix, back) // sharing * stride
        return base + record * operand.lies.record

    def _stack_index(self, matrix: IndexLike, back: int) -> IndexLike:
        below = math.prod(self.stack[len(self.stack) - back + 1 :])
        return matrix // below % self.stack[-back]

    def stack_indices(self, matrix: IndexLike) -> list[IndexLike]:
        """Return the index on each axis of the stack."""
        return [self._stack_index(matrix, len(self.stack) - axis) for axis in range(len(self.stack))]

    def placed(self, row: Row, column: IndexLike) -> tuple[Row, IndexLike]:
        """Return the row and column in the result of a row and column that the kernel computes."""
        return row, column

    # -- values -----------------------------------------------------------------------------------

    def factor(self, scope: Scope, load: Load) -> Var:
        """Load numbers of an operand in the dtype of the anchor; lanes run along its columns."""
        value = load.argument.value
        if value in self.region.nodes:
            point = BeforePoint(self, scope.beside(), value, load)
            var = point.value_in_memory(value) if value in self.region.exposed else point.value(value)
        else:
            var = loaded(scope, load)
        if var.dtype == self.dtype:
            return var
        return scope.let(Convert(var, var.dtype, self.dtype), self.dtype, var.lanes)

    def store(self, scope: Scope, row: Row, column: IndexLike, count: IndexLike | None, total: Var) -> None:
        """Apply the epilogue to `total`, the result at columns `column` to `column + lanes` of a row, and store."""
        self._finish(AfterPoint(self, scope.beside(), *self.placed(row, column), count), total)

    def store_together(self, scope: Scope, row: Row, totals: Sequence[tuple[IndexLike, Var]]) -> None:
        """Do so for several runs of columns, each given with its first one: all that is loaded comes before all stores.

        Compilers let no load pass a store that a condition guards, so each would wait for memory.
        """
        points = [AfterPoint(self, scope.beside(), *self.placed(row, column), None) for column, _ in totals]
        for point in points:
            for access in point.accesses(self.region.outputs, lambda key: key != self.node.id):
                point.value(access)
        for point, (_, total) in zip(points, totals, strict=True):
            self._finish(point, total)

    def _finish(self, point: AfterPoint, total: Var) -> None:
        made = self.node.spec.dtype
        if made != self.dtype and not self.is_rounded:
            total = point.scope.let(Convert(total, self.dtype, made), made)
        point.scope.known[self.node.id] = total
        for output in self.region.outputs:
            place = point.place(c_strides(self.region.domain), self.node.spec.item_numbers)
            point.store(output, *place, aligned=self.is_aligned)


class Row:
    """Row of the result, as integers in the scope that declared them."""

    def __init__(self, number: IndexLike, record: IndexLike, matrix: IndexLike, own: IndexLike) -> None:
        self.number, self.record, self.matrix, self.own = number, record, matrix, own


class AfterPoint(Point):
    """Point of the epilogue: columns `column` to `column + lanes` of a row of the result, of which `count` exist."""

    def __init__(self, anchor: Anchor, scope: Scope, row: Row, column: IndexLike, count: IndexLike | None) -> None:
        super().__init__(anchor.graph, anchor.region, anchor.arguments, scope)
        self.anchor = anchor
        self.row = row
        self.column = column
        self.count = count

    def load(self, access: Access) -> Var:
        """Load another operand of the epilogue."""
        lies = storage(self.graph, access.value, self.region.entered)
        spec = self.graph.nodes[access.value].spec
        argument = self.arguments.input(self.graph, self.region, lies.base)
        strides = [0] * len(self.region.domain)
        for axis, size, stride in zip(access.layout, spec.shape, lies.strides, strict=True):
            if axis is not None and size != 1:
                strides[axis] = stride
        index, stride, count, each = self.place(strides, lies.record, lies.offset)
        begins = (lies.record, lies.offset, *strides[: len(strides) - self.anchor.column_axes])
        whole = each is None and stride == 1 and not any(number % self.scope.lanes for number in begins)
        aligned = self.anchor.is_aligned and whole
        return loaded(self.scope, Load(argument, index, stride, count if stride or each else None, each, aligned))

    def position(self, node: Node) -> tuple[IndexLike, int, IndexLike | None]:
        """Return the positions of these columns, counted from the first record of the stream."""
        index, stride, _, _ = self.place(c_strides(self.region.domain), node.spec.item_numbers)
        return FIRST * node.spec.item_numbers + index, stride, None

    def place(
        self, strides: Sequence[int], record: int, offset: int = 0
    ) -> tuple[IndexLike, int, IndexLike | None, IndexLike | None]:
        """Return index, stride, count and lane index of these columns in a value with these strides along the domain.

        The lane index is None where one stride serves all lanes.
        """
        one = self.anchor
        rows = one.stack_indices(self.row.matrix)
        rows += [self.row.own] if len(self.region.domain) > len(rows) + one.column_axes else []
        split = len(self.region.domain) - one.column_axes
        base: IndexLike = offset + self.row.record * record
        for index, stride in zip(rows, strides[:split], strict=True):
            base += index * stride
        columns = Axes.of(self.region.domain[split:], strides[split:])
        if columns.single:
            return base + columns.offset(self.column), columns.stride, self.count, None
        return base, 1, self.count, base + columns.offset(self.column + LANE)


class BeforePoint(Point):
    """Point of a producer: the numbers for which a load of the operand asks, as if it were in memory in C order."""

    def __init__(self, anchor: Anchor, scope: Scope, root: int, asked: Load) -> None:
        super().__init__(anchor.graph, anchor.region, anchor.arguments, scope)
        self.anchor = anchor
        self.spec = anchor.part(root)
        weight_tiles = anchor.region.weight_tiles if anchor.is_cut(root) else None
        self.cut = None if weight_tiles is None else len(self.spec.shape) + weight_tiles.axis
        self.straight = root not in anchor.split_columns
        self.asked = asked
        self.count = asked.count

    def load(self, access: Access) -> Var:
        """Load a producer's operand at the same place."""
        lies, spec, asked = self.anchor.storage(access.value), self.anchor.part(access.value), self.asked
        argument = self.arguments.input(self.graph, self.region, lies.base)
        strides = [0] * len(self.spec.shape)
        offsets: list[IndexLike] = [lies.offset]
        for axis, size, stride in zip(access.layout, spec.shape, lies.strides, strict=True):
            if axis is not None and size != 1:
                strides[axis] = stride
                # A value that is not streamed is read from the first column or row of the weight tile on.
                if axis == self.cut and not self.anchor.is_cut(access.value):
                    offsets.append(self.anchor.first * stride)
        # No index is divided by the first of several axes, so any length stands for that of the stream.
        records = [(2, lies.record)] if self.spec.is_stream else []
        pairs = [*records, *zip(self.spec.shape, strides, strict=True)]
        axes = Axes.of([size for size, _ in pairs], [stride for _, stride in pairs])
        if asked.each is not None:
            each = sum(offsets, axes.offset(asked.each))
            return loaded(self.scope, Load(argument, asked.index, 1, asked.count, each))
        # The numbers of blocks lie as those that are asked for do.
        aligned = asked.aligned and argument.blocks is not None
        along, within = (asked.along, 0) if aligned and axes.single else (0, asked.along)
        begin = asked.index + within + (0 if aligned else asked.behind)
        index = begin if axes.single else self.scope.integer(begin)
        index = sum(offsets, axes.offset(index))
        if axes.single or asked.stride == 0 or self.straight:
            stride = axes.stride * asked.stride if axes.single else self._stride(strides)
            numbers = asked.count if stride else None
            load = Load(argument, index, stride, numbers, aligned=aligned)
            if aligned:
                load = replace(load, behind=asked.behind, together=asked.together, along=along)
            return loaded(self.scope, load)
        assert not (aligned and asked.behind), "vectors along k lie on one axis of the blocks"
        if asked.together and asked.stride == 1 and axes.keeps_together(asked.together):
            each = index + axes.offset(LANE)
            return loaded(self.scope, Load(argument, asked.index, 1, asked.count, each))
        each = sum(offsets, axes.offset(begin + asked.stride * LANE))
        return loaded(self.scope, Load(argument, index, 1, asked.count, each))

    def _stride(self, strides: Sequence[int]) -> int:
        """Return the stride from lane to lane; lanes run along the axis whose own stride divides the requested one."""
        own = c_strides(self.spec.shape)
        steps = zip(self.spec.shape, own, strides, strict=True)
        return next((s * (self.asked.stride // o) for n, o, s in steps if n > 1 and o <= abs(self.asked.stride)), 0)


def divides_only(graph: Graph, value: int) -> bool:
    """Check whether each axis of a value extends along one axis of its root: no view merges several axes."""
    _, views = views_of(graph, value)
    for node in (graph.nodes[view] for view in views):
        made, seen = node.spec.shape, graph.nodes[node.inputs[0]].spec.shape
        ends = {math.prod(made[axis:]) for axis in range(len(made) + 1)}
        if node.op is RESHAPE and not all(math.prod(seen[axis:]) in ends for axis in range(len(seen))):
            return False
    return True
