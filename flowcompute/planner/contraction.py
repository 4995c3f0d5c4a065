"""The product of matrices in a region: where its operands and what follows it lie.

The product is C[s, i, j] = sum over k of A[s, i, k] * B[s, k, j], with s over a stack that
either operand may be broadcast along. Of B several axes may stand for k and several for j,
counted as one: windows that slide over items are multiplied where they lie, as in a convolution.

Sums run over k in panels of `PANEL`, in order inside a panel and panel by panel, whatever the
tile: that order belongs to the op. Element-wise operations on the product follow in registers.
"""

from __future__ import annotations

import math

import numpy as np

from flowcompute.graph.graph import Graph
from flowcompute.planner.anchor import Anchor, Row, times
from flowcompute.planner.emit import Scope
from flowcompute.planner.kernel import Number
from flowcompute.planner.region import Region
from flowcompute.planner.storage import c_strides
from flowcompute.spec import is_float

PANEL = 512

_INT32 = np.dtype(np.int32)


def sum_dtype(dtype: np.dtype) -> np.dtype:
    """In what products of this dtype are summed: narrow integers in 32 bits, which end in the same bits."""
    if dtype.kind in "iu" and dtype.itemsize < _INT32.itemsize:
        return _INT32
    return dtype


class Contraction(Anchor):
    """What both code shapes must know of a region with a product.

    Attributes:
        inner, columns: sizes of k and j.
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
        super().__init__(
            graph,
            region,
            stack=node.spec.shape[: len(node.spec.shape) - own],
            height=1 if single else left.shape[-2],
            column_axes=columns,
            dtype=sum_dtype(node.spec.dtype),
        )
        self.inner, self.columns = left.shape[-1], math.prod(right.shape[-columns:])
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

    def zero(self) -> Number:
        """What a sum begins with: the number that changes nothing, so that one product keeps its sign of zero."""
        return Number(-0.0 if is_float(self.dtype) and self.inner else 0)
