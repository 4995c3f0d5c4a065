"""Matmul anchor of a region: layout of its operands and of its epilogue.

The product is `C[s, i, j] = sum over k of A[s, i, k] * B[s, k, j]`. There s runs over a stack along which either
operand may be broadcast. Several axes of B may stand for k and several for j; they count as one. A convolution
multiplies sliding windows of its items in place, by such axes. Where each s chooses its matrix B, the number of the
matrix is loaded.

Sums run over k in panels of `PANEL`: in order inside a panel, and panel by panel, for every tile size. That
order belongs to the operation. The element-wise epilogue runs in registers.

A resident operand that does not fit the device comes in weight tiles: columns of B, or rows of A. The
kernel gets one weight tile after the other. It computes the columns or rows of C that belong to the tile,
each number by the same sum.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from flowcompute.elements import Kind
from flowcompute.elements.math import MATMUL
from flowcompute.elements.nn import EXPERTS
from flowcompute.elements.quantized import BlockFormat, Dequantize
from flowcompute.fuse import ATTENDING, Access, Reason, Region
from flowcompute.graph import Graph
from flowcompute.ir import (
    Argument,
    ArrayNumber,
    ConstantValue,
    IndexLike,
    Storage,
    c_strides,
    seen_as,
    to_long,
    views_of,
)
from flowcompute.lower.anchor_point import Anchor, Row
from flowcompute.lower.emit import Scope
from flowcompute.lower.form import LoweringTask
from flowcompute.spec import FLOAT32, is_float

PANEL = 512

_ALONG_K = {MATMUL: -2, EXPERTS: -1}
"""The axis of k in the right factor of each operation."""

_INT32 = np.dtype(np.int32)


def sum_dtype(dtype: np.dtype) -> np.dtype:
    """Return the dtype of sums of products: 32 bits for narrow integers, which end in the same bits."""
    if dtype.kind in "iu" and dtype.itemsize < _INT32.itemsize:
        return _INT32
    return dtype


class MatmulAnchor(Anchor):
    """Facts about a region with a product that all kernel forms need.

    Attributes:
        inner, columns: sizes of k and j; those of a weight tile where weights are streamed.
        shared: whether all rows multiply the same matrix B.
        chosen: place and parameter of the numbers of matrices, where each row of the stack chooses its own.
    """

    def __init__(self, graph: Graph, region: Region) -> None:
        assert region.anchor is not None
        node = graph.nodes[region.anchor]
        left, right = (graph.nodes[i].spec for i in node.inputs[:2])
        self.stream_rows = left.is_stream and left.ndim == 2
        single = left.ndim == 1 or self.stream_rows or node.op is EXPERTS
        depth, columns = node.attrs.get("depth", 1), node.attrs.get("columns", 1)
        own = columns + (0 if single else 1)
        made, weight_tiles = (
            {-2: 1 if single else left.shape[-2], -1: math.prod(node.spec.shape[len(node.spec.shape) - columns :])},
            region.weight_tiles,
        )
        if weight_tiles is not None:
            made[weight_tiles.axis] = weight_tiles.size
        super().__init__(
            graph,
            region,
            stack=node.spec.shape[: len(node.spec.shape) - own],
            height=made[-2],
            column_axes=columns,
            dtype=sum_dtype(node.spec.dtype),
        )
        self.inner, self.columns = left.shape[-1], made[-1]
        self.a = self.operand(node.inputs[0], 0 if single else 1, 1)
        self.b = self.operand(node.inputs[1], depth, columns)
        self.chosen: tuple[Storage, Argument] | None = None
        if node.op is EXPERTS:
            # Its matrices are (out, in), so that no other one is read.
            self.b = replace(self.b, rows=self.b.columns, columns=self.b.rows)
            lies = self.storage(node.inputs[2])
            self.chosen = lies, self.arguments.get("input", graph.nodes[node.inputs[2]].spec.dtype, lies.base)
        alike = math.prod(right.shape[: -depth - columns]) == 1 and node.op is not EXPERTS
        self.shared = self.stream_rows or (not right.is_stream and alike)

    def matrix_of(self, row: Row) -> IndexLike:
        """Return the number of the matrix that a row chooses, in 64 bits where places in the matrices need them."""
        assert self.chosen is not None
        lies, argument = self.chosen
        at = lies.offset + row.record * lies.record + row.matrix * lies.strides[0]
        number = ArrayNumber(argument.name, at, narrow=argument.dtype.itemsize < 8)
        return number if self.b.spec.item_numbers < 1 << 31 else to_long(number)

    @property
    def row_stride(self) -> int | None:
        """Distance from one row of A to the next in the order of the result; None if it varies.

        If the product is not `shared`, the distance holds within one matrix.
        """
        row = self.a.rows.stride
        if not self.shared:
            return row
        if self.units == 1:
            return self.a.lies.record
        many = math.prod(self.stack)
        matrices = self.a.lies.strides[: self.a.stack] == c_strides((*self.stack, self.height * row))[:-1]
        if many > 1 and not matrices:
            return None
        return row if self.a.lies.record in (0, self.units * row) else None

    @property
    def rows_together(self) -> int | None:
        """Rows that multiply one matrix B, from which tiles are cut; None where nobody knows how many there are."""
        if not self.shared:
            return self.height
        return None if self.region.stream else self.units

    def of_a(self, scope: Scope, row: Row) -> IndexLike:
        """Declare the offset of a row in A."""
        within = row.own * self.a.rows.stride if self.height > 1 else 0
        return scope.integer(self.matrix_base(self.a, row.record, row.matrix) + within)

    def of_b(self, scope: Scope, row: Row) -> IndexLike:
        """Declare the offset of the matrix that a row multiplies."""
        if self.chosen is not None:
            return scope.integer(self.b.lies.offset + self.matrix_of(row) * self.b.lies.strides[0])
        return scope.integer(self.matrix_base(self.b, row.record, row.matrix))

    def placed(self, row: Row, column: IndexLike) -> tuple[Row, IndexLike]:
        """Return the row and column in the result; those of a weight tile follow the tiles before it."""
        if self.region.weight_tiles is None:
            return row, column
        if self.region.weight_tiles.axis == -1:
            return row, self.first + column
        return Row(row.number, row.record, row.matrix, self.first + row.own), column

    def zero(self) -> ConstantValue:
        """Return the initial value of a sum: the identity, so that a single product keeps the sign of its zero."""
        return ConstantValue(-0.0 if is_float(self.dtype) and self.inner else 0)


def why_no_product(task: LoweringTask) -> Reason | None:
    """Return why a region is none around a product of matrices."""
    if task.anchor is not None and task.anchor.kind is Kind.CONTRACT and task.anchor.op not in ATTENDING:
        return None
    return task.refuse("its anchor is no product of matrices")


def reads_along_blocks(graph: Graph, product: int) -> bool:
    """Check whether the columns of the right factor are neighbouring numbers of blocks.

    It is a property of the graph: whether the numbers are decoded here or were stored changes no bit.
    """
    node = graph.nodes[product]
    if node.op not in _ALONG_K or node.attrs.get("depth", 1) != 1 or node.attrs.get("columns", 1) != 1:
        return False
    root, views = views_of(graph, node.inputs[1])
    if not isinstance(graph.nodes[root].op, Dequantize) or node.spec.dtype != FLOAT32:
        return False
    lies = seen_as(graph, root, views)
    return lies is not None and len(lies.strides) > 1 and lies.strides[_ALONG_K[node.op]] == 1


def block_format(graph: Graph, factor: int) -> BlockFormat:
    """Return the format of the blocks of a right factor that is read along blocks."""
    root, _ = views_of(graph, factor)
    op = graph.nodes[root].op
    assert isinstance(op, Dequantize)
    return op.block_format


def cut_factor(graph: Graph, region: Region) -> tuple[int, int] | None:
    """Return the operand that may come in weight tiles, and the axis along which these are cut.

    The operand is the resident factor. If the factor is computed as it is loaded, it is the largest input
    of the factor's shape. Return None where no factor is resident, or the kernel reads it in another way as
    well.
    """
    if region.anchor is None or graph.nodes[region.anchor].op is not MATMUL:
        return None
    left, right = graph.nodes[region.anchor].inputs
    for factor, axis in ((right, -1), (left, -2)):
        spec = graph.nodes[factor].spec
        if spec.is_stream or len(spec.shape) < 2:
            continue
        alike = [i for i in _read_for(graph, region, factor) if graph.nodes[i].spec.shape == spec.shape]
        if alike:
            return max(alike, key=lambda i: (graph.nodes[i].spec.item_bytes, -i)), axis
    return None


def chosen_matrices(graph: Graph, region: Region) -> tuple[int, int] | None:
    """Return the resident operand of which a kernel reads chosen matrices alone, and the stream of their numbers.

    If the matrices are computed as they are loaded, it is the largest input that has as many. Return None where no
    matrices are chosen, or the kernel reads them in another way as well.
    """
    if region.anchor is None or graph.nodes[region.anchor].op is not EXPERTS:
        return None
    _, factor, numbers = graph.nodes[region.anchor].inputs
    count = graph.nodes[factor].spec.shape[0]
    specs = {i: graph.nodes[i].spec for i in _read_for(graph, region, factor)}
    alike = [i for i, spec in specs.items() if len(spec.shape) == 3 and spec.shape[0] == count]
    return (max(alike, key=lambda i: (specs[i].item_bytes, -i)), numbers) if alike else None


def _read_for(graph: Graph, region: Region, factor: int) -> set[int]:
    """Return the values in memory that a kernel reads for a factor alone; none where it is seen by other axes."""
    inside, leaves = _producers_of(region, factor)
    if any(graph.nodes[i].kind is Kind.VIEW for i in inside):
        return set()
    beside = {
        one.value
        for node, operands in region.reads.items()
        if node not in inside and node != region.anchor
        for one in operands
        if isinstance(one, Access)
    }
    return leaves - beside


def _producers_of(region: Region, factor: int) -> tuple[set[int], set[int]]:
    """Return the nodes that compute a factor as it is loaded, and the values in memory that they read."""
    if factor not in region.nodes:
        return set(), {factor}
    inside, leaves, todo = {factor}, set[int](), [factor]
    while todo:
        for one in region.reads.get(todo.pop(), ()):
            if isinstance(one, Access):
                leaves.add(one.value)
            elif one not in inside:
                inside.add(one)
                todo.append(one)
    return inside, leaves
