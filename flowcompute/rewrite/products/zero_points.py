"""Rewrite of products of bytes less a zero point, for devices whose tensor cores multiply bytes.

Quantised models multiply `x - z` by `w`, in int32. Tensor cores take bytes as they are stored. Sums of whole numbers
wrap, and so have one value whatever their order:

    (x - z) @ (w - v) = x @ w - z * (sum of w over k) - v * (sum of x - z over k).

The sum of a resident `w` is computed once for all batches, and subtracted by the kernel of the product. The sum of `x`
is a number a row.
"""

from __future__ import annotations

from flowcompute.elements import CAST, Element
from flowcompute.elements.math import MATMUL, astype, matmul, multiply, subtract, sum
from flowcompute.graph import Graph, Node
from flowcompute.imports import dataclass
from flowcompute.rewrite.products.byte_factors import BYTES, suits_groups
from flowcompute.rewrite.rewriter import ComposingRewriter
from flowcompute.spec import INT32


@dataclass(frozen=True)
class _Shifted:
    """A factor: the bytes, and the zero point that is subtracted from them, if there is one."""

    whole: int
    zero: int | None = None


class _ZeroPoints(ComposingRewriter):
    def __init__(self, graph: Graph, products: dict[int, tuple[_Shifted, _Shifted]]) -> None:
        super().__init__(graph)
        self.products = products

    def rewrite(self, node: Node) -> int:
        """Add a node of the old graph to the new one; a product of shifted bytes as that of the bytes."""
        if node.id not in self.products:
            return self.copy_node(node)
        places: dict[int, int] = {}

        def operand(value: int) -> Element:
            made = Element(self.graph.nodes[value].spec)
            held.append(made)
            places[id(made)] = self.new[value]
            return made

        held: list[Element] = []
        (left, right), inner = self.products[node.id], self.graph.nodes[node.inputs[0]].spec.shape[-1]
        x, w = operand(left.whole), operand(right.whole)
        made = matmul(x, w, dtype="int32")
        if left.zero is not None:
            made = subtract(
                made, multiply(operand(left.zero), sum(astype(w, "int32"), axis=-2, keepdims=True, dtype="int32"))
            )
        if right.zero is not None:
            rows = sum(astype(x, "int32"), axis=-1, keepdims=True, dtype="int32")
            if left.zero is not None:
                rows = subtract(rows, multiply(operand(left.zero), inner))
            made = subtract(made, multiply(rows, operand(right.zero)))
        assert made.spec == node.spec
        return self.place(made, places, node)


def _shifted(graph: Graph, value: int, axis: int) -> _Shifted | None:
    """Return a factor as bytes less a zero point that is the same along k; None for other factors.

    Args:
        graph: the graph.
        value: the factor.
        axis: that of k, counted from the end.
    """
    node = graph.nodes[value]
    if node.spec.dtype in BYTES:
        return _Shifted(value)
    if node.op is not subtract.op or node.spec.dtype != INT32:
        return None
    cast, zero = (graph.nodes[i] for i in node.inputs)
    whole = graph.nodes[cast.inputs[0]] if cast.op is CAST else None
    shape = zero.spec.shape
    if whole is None or whole.spec.dtype not in BYTES or whole.spec.shape != node.spec.shape or zero.spec.is_stream:
        return None
    is_alike = zero.spec.item_numbers == 1 or len(shape) < -axis or shape[axis] == 1
    return _Shifted(whole.id, zero.id) if is_alike and len(shape) <= len(node.spec.shape) else None


def _product(graph: Graph, node: Node) -> tuple[_Shifted, _Shifted] | None:
    """Return the factors of a product in int32 of which one is shifted, and groups of sub-groups take the bytes."""
    if node.op is not MATMUL or not node.spec.is_stream or "depth" in node.attrs or node.spec.dtype != INT32:
        return None
    left, right = (_shifted(graph, value, axis) for value, axis in zip(node.inputs, (-1, -2), strict=True))
    if left is None or right is None or (left.zero is None and right.zero is None):
        return None
    return (left, right) if suits_groups(*(graph.nodes[one.whole] for one in (left, right))) else None


def multiply_unshifted(graph: Graph) -> Graph:
    """Return the graph with products of bytes where bytes less zero points are multiplied. Roots keep their order."""
    products = {node.id: one for node in graph.nodes if (one := _product(graph, node)) is not None}
    return _ZeroPoints(graph, products).rewritten() if products else graph
