"""Gathers: padding, concatenation, stacks, selection by known indices, and rows of tables by streams of indices.

No strides describe their layout, so a kernel computes the indices (`gather_form.py`). It fuses the
producers of its operands and the element-wise epilogue, so a gather is an anchor. Where nothing is computed
beside it, the host copies, since a kernel would do no more.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence

from flowcompute.elements import Constant, Kind
from flowcompute.elements.axes import CONCAT, LOOKUP, PAD, STACK, TAKE
from flowcompute.fuse import Region
from flowcompute.graph import Graph, Node
from flowcompute.imports import dataclass
from flowcompute.ir import (
    CANONICAL_FOLDS,
    ArrayNumber,
    ConditionLike,
    IndexLike,
    all_of,
    choose,
    index_max,
    index_min,
    register_dtype,
    to_long,
    views_of,
)
from flowcompute.lower.anchor_point import Anchor, Operand
from flowcompute.spec import BOOL

TOGETHER = (PAD, TAKE, LOOKUP, STACK, CONCAT)
MOST_OPERANDS = 8
"""Most operands, since a kernel takes few pointers and tests the operands one after the other."""

_COMPUTED = (Kind.ELEMENTWISE, Kind.REDUCE, Kind.CONTRACT, Kind.SCAN)


def is_together(node: Node) -> bool:
    """Check whether a node gathers a stream's items from other values."""
    return node.op in TOGETHER and node.spec.is_stream


def why_copied(graph: Graph, users: Sequence[Sequence[int]], node: Node, here: Collection[int]) -> str | None:
    """Return the reason why the host gathers a value; None where a kernel does.

    Args:
        users: users of each node.
        here: nodes that are computed in the same pass.
    """
    if node.spec.dtype == BOOL:
        return "bools are put together on the host"
    if 0 in node.spec.shape or any(0 in graph.nodes[i].spec.shape for i in node.inputs):
        return "there is nothing to compute"
    if node.op is TAKE and not isinstance(graph.nodes[node.inputs[1]].element, Constant):
        return "its indices are known only when it runs, and are checked on the host"
    if len(node.inputs) > MOST_OPERANDS:
        return f"a kernel puts at most {MOST_OPERANDS} values together"
    if not _is_computed_beside(graph, users, node, here):
        return "nothing is computed beside it: the host copies"
    return None


def _is_computed_beside(graph: Graph, users: Sequence[Sequence[int]], node: Node, here: Collection[int]) -> bool:
    """Check whether a kernel uses the gather, or can fuse a producer of its operands."""
    if any(graph.nodes[views_of(graph, i)[0]].kind is Kind.ELEMENTWISE and i in here for i in node.inputs):
        return True
    later = list(users[node.id])
    while later:
        other = graph.nodes[later.pop()]
        if other.id in here and other.kind is Kind.VIEW:
            later += users[other.id]
        elif other.id in here and (other.kind in _COMPUTED or (other.op and other.op.name in CANONICAL_FOLDS)):
            return True
    return False


@dataclass(frozen=True)
class ColumnRun:
    """Columns from `start` to `stop` of a row that one operand provides, from its column 0 on (None: `fill`).

    Attributes:
        place: returns the operand's column of a column in the run, if they are not consecutive.
    """

    start: int
    stop: int
    operand: int | None
    place: Callable[[IndexLike], IndexLike] | None = None


@dataclass(frozen=True)
class RowChoice:
    """Composition of a row: `runs`, from operands at these indices of the axes before their columns.

    Attributes:
        condition: condition of this choice, if no earlier one applies; None for the last one.
    """

    condition: ConditionLike | None
    indices: tuple[IndexLike, ...]
    runs: tuple[ColumnRun, ...]


class Gather(Anchor):
    """Facts about a gather that the CPU and the GPU form need.

    A row is as long as one index of all axes up to the last one that changes. If that is the last axis of
    all, rows run along it.

    Attributes:
        columns: numbers in a row.
        operands: operands by position; those of `take` without the indices.
        fill: the number that pads.
        table: parameter with the indices of `take`.
        indices: location of a stream of indices.
    """

    is_rounded = True

    def __init__(self, graph: Graph, region: Region) -> None:
        assert region.anchor is not None
        node = graph.nodes[region.anchor]
        shape = node.spec.shape
        columns, across = _columns(graph, node)
        super().__init__(
            graph,
            region,
            stack=shape[: len(shape) - columns],
            height=1,
            column_axes=columns,
            dtype=register_dtype(node.spec.dtype),
        )
        self.columns = math.prod(shape[len(shape) - columns :])
        self.across = across
        own = 0 if node.op is STACK and across else max(1, columns)
        indexed = node.op in (TAKE, LOOKUP)
        inputs = node.inputs[:1] if indexed else node.inputs
        self.operands: list[Operand] = [self.operand(i, 0, own) for i in inputs]
        self.fill = node.spec.dtype.type(node.attrs.get("fill", 0)).item()
        if indexed:
            indices = graph.nodes[node.inputs[1]].spec
            self.asked = self.storage(node.inputs[1])
            self.table = self.arguments.get("input", indices.dtype, self.asked.base)

    def choices(self, indices: list[IndexLike], record: IndexLike) -> list[RowChoice]:
        """Return the possible compositions of a row at these indices of the axes before its columns.

        Args:
            indices: by axis.
            record: number of the row's record in the batch.
        """
        node = self.node
        if node.op is PAD:
            return self._padded(indices)
        if node.op is LOOKUP:
            return [self._looked_up(indices, record)]
        axis = node.attrs["axis"]
        if self.across:
            return [RowChoice(None, tuple(indices), self._runs_across())]
        at = indices[axis]
        if node.op is TAKE:
            size = self.graph.nodes[node.inputs[0]].spec.shape[axis]
            return [
                RowChoice(None, (*indices[:axis], self._table_lookup(at, size), *indices[axis + 1 :]), self._whole(0))
            ]
        made, start = [], 0
        for position, operand in enumerate(self.operands):
            size = 1 if node.op is STACK else operand.spec.shape[axis]
            own = () if node.op is STACK else (at - start,)
            last = position == len(self.operands) - 1
            condition = None if last else at < start + size
            made.append(RowChoice(condition, (*indices[:axis], *own, *indices[axis + 1 :]), self._whole(position)))
            start += size
        return made

    def _whole(self, operand: int) -> tuple[ColumnRun, ...]:
        return (ColumnRun(0, self.columns, operand),)

    def _table_lookup(self, at: IndexLike, size: int) -> IndexLike:
        index = ArrayNumber(self.table.name, at, narrow=self.table.dtype.itemsize < 8)
        return index + choose(index < 0, size, 0)

    def _looked_up(self, indices: list[IndexLike], record: IndexLike) -> RowChoice:
        """Return the composition of a row of a table, or of numbers along its last axis."""
        axis, item = self.node.attrs["axis"], self.asked.strides
        start = self.asked.offset + record * self.asked.record
        for at, stride in zip(indices[axis:], item, strict=False):
            start += at * stride
        if not self.across:
            return RowChoice(None, (*indices[:axis], self._row_of_table(start)), self._whole(0))
        step = item[-1] if item else 0
        run = ColumnRun(0, self.columns, 0, lambda at: self._row_of_table(start + at * step))
        return RowChoice(None, tuple(indices[:axis]), (run,))

    def _row_of_table(self, at: IndexLike) -> IndexLike:
        """Return an index of the stream, in 64 bits where places in the table need them."""
        index = ArrayNumber(self.table.name, at, narrow=self.table.dtype.itemsize < 8)
        return index if self.operands[0].spec.item_numbers < 1 << 31 else to_long(index)

    def _runs_across(self) -> tuple[ColumnRun, ...]:
        """Return the runs along the last axis, where that is the one that changes."""
        if self.node.op is TAKE:
            size = self.graph.nodes[self.node.inputs[0]].spec.shape[-1]
            return (ColumnRun(0, self.columns, 0, lambda at: self._table_lookup(at, size)),)
        runs, start = [], 0
        for position, operand in enumerate(self.operands):
            size = 1 if self.node.op is STACK else operand.spec.shape[-1]
            runs.append(ColumnRun(start, start + size, position))
            start += size
        return tuple(runs)

    # -- padding --------------------------------------------------------------------------------------

    def _padded(self, indices: list[IndexLike]) -> list[RowChoice]:
        widths, mode = self.node.attrs["widths"], self.node.attrs["mode"]
        shape = self.operands[0].spec.shape
        places: list[IndexLike] = []
        conditions: list[ConditionLike] = []
        for at, (before, after), size in zip(indices, widths, shape, strict=False):
            inner = at - before
            if mode == "constant":
                conditions += [inner >= 0] if before else []
                conditions += [inner < size] if after else []
            elif before or after:
                inner = repeated(inner, size, mode)
            places.append(inner)
        runs = self._whole(0)
        if self.across:
            (before, after), size = widths[-1], shape[-1]
            outside = None if mode == "constant" else 0
            every = (
                ColumnRun(0, before, outside, lambda at: repeated(at - before, size, mode)),
                ColumnRun(before, before + size, 0),
                ColumnRun(before + size, before + size + after, outside, lambda at: repeated(at + size, size, mode)),
            )
            runs = tuple(run for run in every if run.start < run.stop)
        if not conditions:
            return [RowChoice(None, tuple(places), runs)]
        nothing = RowChoice(None, tuple(places), (ColumnRun(0, self.columns, None),))
        return [RowChoice(all_of(*conditions), tuple(places), runs), nothing]


def _columns(graph: Graph, node: Node) -> tuple[int, bool]:
    """Return the number of axes that a row of the result has, and whether the layout differs along the last of them.

    A row has the axes behind all along which the layout differs from that of an operand, else the last axis.
    """
    if node.op is LOOKUP:
        behind = len(graph.nodes[node.inputs[0]].spec.shape) - 1 - node.attrs["axis"]
        # With one index for each record, numbers of different rows of the table stand side by side.
        return behind or min(1, len(graph.nodes[node.inputs[1]].spec.shape)), not behind
    if node.op is PAD:
        widths = node.attrs["widths"]
        # Padding of nothing is a copy in another order.
        last = max((axis for axis, pair in enumerate(widths) if any(pair)), default=max(0, len(widths) - 2))
    else:
        last = node.attrs["axis"]
    behind = len(node.spec.shape) - 1 - last
    return max(1, behind), not behind


def repeated(at: IndexLike, size: int, mode: str) -> IndexLike:
    """Return the index of the number that is repeated beyond the edges."""
    if mode == "edge":
        return index_min(index_max(at, 0), size - 1)
    if mode == "wrap":
        return (at % size + size) % size
    period = max(1, 2 * (size - 1))
    # The reflection does not repeat the last number: the indices go up and down periodically.
    within = (at % period + period) % period
    return index_min(within, period - within)
