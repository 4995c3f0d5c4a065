"""The product of matrices in a region: where its operands and what follows it lie.

The product is C[s, i, j] = sum over k of A[s, i, k] * B[s, k, j], with s over a stack that
either operand may be broadcast along. Of B several axes may stand for k and several for j,
counted as one: windows that slide over items are multiplied where they lie, as in a convolution.

Sums run over k in panels of `PANEL`, in order inside a panel and panel by panel, whatever the
tile: that order belongs to the op. Element-wise operations on the product follow in registers.

Of a resident operand that does not fit the device the kernel is given one panel after the other:
columns of B, or rows of A. It makes the columns or rows of C that belong to a panel, each number by
the same sum.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from flowcompute.elements import Kind
from flowcompute.elements.math import MATMUL
from flowcompute.elements.nn import ATTENTION
from flowcompute.fuse import Access, Reason, Region
from flowcompute.graph import Graph
from flowcompute.ir import ConstantValue, c_strides
from flowcompute.lower.anchor_point import Anchor, Row, times
from flowcompute.lower.emit import Scope
from flowcompute.lower.form import LoweringTask
from flowcompute.spec import is_float

PANEL = 512

_INT32 = np.dtype(np.int32)


def sum_dtype(dtype: np.dtype) -> np.dtype:
    """In what products of this dtype are summed: narrow integers in 32 bits, which end in the same bits."""
    if dtype.kind in "iu" and dtype.itemsize < _INT32.itemsize:
        return _INT32
    return dtype


class MatmulAnchor(Anchor):
    """What both code shapes must know of a region with a product.

    Attributes:
        inner, columns: sizes of k and j; of a panel where operands come in panels.
        shared: whether all rows multiply the same matrix B.
    """

    def __init__(self, graph: Graph, region: Region) -> None:
        assert region.anchor is not None
        node = graph.nodes[region.anchor]
        left, right = (graph.nodes[i].spec for i in node.inputs)
        self.stream_rows = left.is_stream and left.ndim == 2
        single = left.ndim == 1 or self.stream_rows
        depth, columns = node.attrs.get("depth", 1), node.attrs.get("columns", 1)
        own = columns + (0 if single else 1)
        made, weight_tiles = (
            {-2: 1 if single else left.shape[-2], -1: math.prod(right.shape[-columns:])},
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
        alike = math.prod(right.shape[: -depth - columns]) == 1
        self.shared = self.stream_rows or (not right.is_stream and alike)

    @property
    def row_stride(self) -> int | None:
        """From one row of A to the next as the result counts them; None if it varies. In one matrix if not `shared`."""
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

    def of_a(self, scope: Scope, row: Row) -> str:
        """Offset of a row in A."""
        terms = self.matrix_base(self.a, row.record, row.matrix)
        if self.height > 1:
            terms.append(times(row.own, self.a.rows.stride))
        return scope.integer(" + ".join(terms) or "0")

    def of_b(self, scope: Scope, row: Row) -> str:
        """Offset of the matrix that a row multiplies."""
        return scope.integer(" + ".join(self.matrix_base(self.b, row.record, row.matrix)) or "0")

    def placed(self, row: Row, column: str) -> tuple[Row, str]:
        """In the result a panel's rows or columns stand behind those of the panels before it."""
        if self.region.weight_tiles is None:
            return row, column
        if self.region.weight_tiles.axis == -1:
            return row, f"{self.first} + {column}"
        return replace(row, own=f"({self.first} + {row.own})"), column

    def zero(self) -> ConstantValue:
        """What a sum begins with: the number that changes nothing, so that one product keeps its sign of zero."""
        return ConstantValue(-0.0 if is_float(self.dtype) and self.inner else 0)


def why_no_product(task: LoweringTask) -> Reason | None:
    """Return why a region is none around a product of matrices."""
    if task.anchor is not None and task.anchor.kind is Kind.CONTRACT and task.anchor.op is not ATTENTION:
        return None
    return task.refuse("its anchor is no product of matrices")


def cut_factor(graph: Graph, region: Region) -> tuple[int, int] | None:
    """What may come in panels of a region's product, and the axis along which these are cut.

    It is the resident factor, or the largest of its shape that this is computed from where it is loaded. None where no
    factor is resident, or the kernel reads it in another way as well.
    """
    if region.anchor is None or graph.nodes[region.anchor].op is not MATMUL:
        return None
    left, right = graph.nodes[region.anchor].inputs
    for factor, axis in ((right, -1), (left, -2)):
        spec = graph.nodes[factor].spec
        if spec.is_stream or len(spec.shape) < 2:
            continue
        inside, leaves = _made_of(region, factor)
        beside = {
            one.value
            for node, operands in region.reads.items()
            if node not in inside and node != region.anchor
            for one in operands
            if isinstance(one, Access)
        }
        alike = [i for i in leaves - beside if graph.nodes[i].spec.shape == spec.shape]
        if alike and not any(graph.nodes[i].kind is Kind.VIEW for i in inside):
            return max(alike, key=lambda i: (graph.nodes[i].spec.item_bytes, -i)), axis
    return None


def _made_of(region: Region, factor: int) -> tuple[set[int], set[int]]:
    """The nodes that compute a factor where it is loaded, and what lies in memory that it is made of."""
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
