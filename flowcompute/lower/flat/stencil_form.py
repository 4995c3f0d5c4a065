"""Stencils: neighbours of each number, with lane-wise indices at the ends of rows only."""

from __future__ import annotations

from functools import partial

from flowcompute.elements import Kind
from flowcompute.elements.axes import INDEX, PAD
from flowcompute.fuse import Reason, Region
from flowcompute.graph import Graph
from flowcompute.imports import dataclass
from flowcompute.ir import (
    LANE,
    Argument,
    Assign,
    Below,
    ConditionLike,
    ConstantValue,
    DeviceCapabilities,
    If,
    IndexLike,
    Kernel,
    Load,
    Select,
    Splat,
    Storage,
    Var,
    all_of,
    c_strides,
    register_dtype,
    storage,
)
from flowcompute.ir.launches import by_numbers_or_rows
from flowcompute.lower.anchor_point import AfterPoint, Anchor, Row
from flowcompute.lower.emit import Scope, loaded
from flowcompute.lower.flat.gather import repeated
from flowcompute.lower.flat.row_loop import in_vectors, lower_rows, row_indices
from flowcompute.lower.form import Form, LoweringTask
from flowcompute.spec import BOOL


@dataclass(frozen=True)
class NeighboursAt:
    """Neighbours at one distance.

    Attributes:
        view: the node.
        argument: parameter from which they are loaded.
        lies: storage of the value.
        shape: shape of its items.
        offsets: distance of the neighbours, by axis.
        mode: border mode beyond the edges.
        fill: number of a constant border.
    """

    view: int
    argument: Argument
    lies: Storage
    shape: tuple[int, ...]
    offsets: tuple[int, ...]
    mode: str
    fill: float


class StencilLowering(Anchor):
    """Lowering of a region of operations that read neighbours."""

    def __init__(self, graph: Graph, region: Region, capabilities: DeviceCapabilities) -> None:
        assert region.anchor is not None
        node = graph.nodes[region.anchor]
        shape = node.spec.shape
        super().__init__(
            graph, region, stack=shape[:-1], height=1, column_axes=1, dtype=register_dtype(node.spec.dtype)
        )
        self.lanes = capabilities.lanes if capabilities.code_shape == "cpu" else 1
        self.columns = shape[-1]
        self.seen = [self._neighbours_at(i) for i in region.nodes if graph.nodes[i].op is INDEX]

    def _neighbours_at(self, view: int) -> NeighboursAt:
        nodes = self.graph.nodes
        pad = nodes[nodes[view].inputs[0]]
        assert pad.op is PAD
        spec, lies = nodes[pad.inputs[0]].spec, storage(self.graph, pad.inputs[0], self.region.entered)
        pairs = zip(nodes[view].attrs["index"], pad.attrs["widths"], strict=True)
        offsets = tuple(start - before for (start, _, _), (before, _) in pairs)
        fill = spec.dtype.type(pad.attrs["fill"]).item()
        argument = self.arguments.get("input", spec.dtype, lies.base)
        return NeighboursAt(view, argument, lies, spec.shape, offsets, pad.attrs["mode"], fill)

    def store_row(self, scope: Scope, row: Row) -> None:
        """Compute all columns of a row, and store."""
        indices = row_indices(self, scope, row)
        for start, stop, inside in self._parts():
            in_vectors(scope, start, stop, partial(self._store, row, indices, inside=inside))

    def store_number(self, scope: Scope, row: Row, column: IndexLike) -> None:
        """Compute one column of a row, and store."""
        self._store(row, row_indices(self, scope, row), scope, column, None, inside=False)

    def _parts(self) -> list[tuple[int, int, bool]]:
        """Return ranges of columns, each with whether all its neighbours are inside the row."""
        before = max(0, *(-seen.offsets[-1] for seen in self.seen))
        after = max(0, *(seen.offsets[-1] for seen in self.seen))
        if self.columns - before - after < self.lanes:
            return [(0, self.columns, before + after == 0)]
        parts = [(0, before, False), (before, self.columns - after, True), (self.columns - after, self.columns, False)]
        return [part for part in parts if part[0] < part[1]]

    def _store(
        self,
        row: Row,
        indices: list[IndexLike],
        scope: Scope,
        column: IndexLike,
        count: IndexLike | None,
        *,
        inside: bool,
    ) -> None:
        """Compute these columns from their neighbours, and store."""
        point = AfterPoint(self, scope.beside(), row, column, count)
        for seen in self.seen:
            point.scope.known[seen.view] = self._neighbours(scope, seen, row, indices, column, count, inside=inside)
        for output in self.region.outputs:
            point.store(output, *point.place(c_strides(self.region.domain), self.node.spec.item_numbers))

    # -- neighbours -----------------------------------------------------------------------------------

    def _neighbours(
        self,
        scope: Scope,
        seen: NeighboursAt,
        row: Row,
        indices: list[IndexLike],
        column: IndexLike,
        count: IndexLike | None,
        *,
        inside: bool,
    ) -> Var:
        """Load the neighbours of these columns, or the border beyond the edges."""
        conditions: list[ConditionLike] = []
        lies, offset, each = seen.lies, seen.offsets[-1], None
        base = lies.offset + row.record * lies.record
        for axis, (index, step) in enumerate(zip(indices, lies.strides[:-1], strict=True)):
            base += self._place(seen, axis, index, conditions) * step
        at, stride = column + offset, lies.strides[-1]
        if self.lanes == 1:
            at = self._place(seen, len(indices), column, conditions)
        elif offset and not inside:
            mode = "edge" if seen.mode == "constant" else seen.mode
            each = base + repeated(column + LANE + offset, seen.shape[-1], mode) * stride
        if each is not None:
            load = Load(seen.argument, base, 1, count, each)
        else:
            load = Load(seen.argument, base + at * stride, stride, count)
        if not conditions:
            return self._bordered(scope, seen, loaded(scope, load), column, lanes=each is not None)
        value = scope.let(ConstantValue(seen.fill), register_dtype(seen.argument.dtype))
        inner = scope.inner()
        there = self._bordered(inner, seen, loaded(inner, load), column, lanes=each is not None)
        inner.add(Assign(value, Splat(there)))
        scope.add(If(all_of(*conditions), tuple(inner.statements)))
        return value

    def _place(self, seen: NeighboursAt, axis: int, index: IndexLike, conditions: list[ConditionLike]) -> IndexLike:
        """Return the index on an axis; a constant border also appends the condition under which the index is valid."""
        offset, size = seen.offsets[axis], seen.shape[axis]
        at = index + offset
        if offset and seen.mode == "constant":
            conditions.append(at >= 0 if offset < 0 else at < size)
            return at
        return repeated(at, size, seen.mode) if offset else at

    def _bordered(self, scope: Scope, seen: NeighboursAt, value: Var, column: IndexLike, *, lanes: bool) -> Var:
        """Replace lanes beyond the row's ends by the number of a constant border."""
        offset = seen.offsets[-1]
        if not lanes or seen.mode != "constant":
            return value
        fill = scope.let(ConstantValue(seen.fill), value.dtype)
        limit = (0 if offset < 0 else seen.shape[-1]) - (column + offset)
        mask = scope.let(Below(limit), BOOL, mask_bytes=value.dtype.itemsize)
        yes, no = (fill, value) if offset < 0 else (value, fill)
        return scope.let(Select(mask, yes, no), value.dtype)


def _why_not(task: LoweringTask) -> Reason | None:
    if task.anchor is not None and task.anchor.kind is Kind.ELEMENTWISE:
        return None
    return task.refuse("its anchor reads no neighbours")


def _lower(task: LoweringTask) -> Kernel:
    one = StencilLowering(task.graph, task.region, task.style.capabilities)
    return lower_rows(task, one, one.store_row, one.store_number)


STENCIL = Form(name="stencil", accepts=_why_not, lower=_lower, geometry=by_numbers_or_rows)
"""Operations that read neighbours."""
