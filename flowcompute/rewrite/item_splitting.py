"""Rewrite for items larger than the memory budget, which streams them number by number.

Element-wise operations on such items become operations on a stream of their numbers. Reductions of whole items become
folds that restart with each item, in the same canonical order and so with the same bits. Destinations write the items
in parts. An operation that needs a whole item at once (a matrix product, a softmax of its row) prevents the rewrite,
and the plan is rejected.
"""

from __future__ import annotations

import copy

import numpy as np

from flowcompute.elements import ALONG, Compute, Destination, Kind, Source
from flowcompute.elements.math import EACH
from flowcompute.elements.quantized import Dequantize
from flowcompute.graph import Graph, Node
from flowcompute.ir import BLOCK
from flowcompute.rewrite.rewriter import GraphRewriter
from flowcompute.sinks import NumbersSink
from flowcompute.spec import Spec, Stream, is_float


class _WholeItemNeeded(Exception):  # noqa: N818 - a decision, not an error
    """An exception that stops the rewrite: an operation needs a whole large item."""


class _Splitter(GraphRewriter):
    def __init__(self, graph: Graph, limit_bytes: int, *, fused: bool) -> None:
        super().__init__(graph)
        self.limit_bytes = limit_bytes
        self.fused = fused

    def is_large(self, value: int) -> bool:
        """Check whether an item is to be split. Rows of up to a block are not: they are added in another order."""
        spec = self.graph.nodes[value].spec
        return spec.is_stream and spec.item_numbers > BLOCK and spec.item_bytes > self.limit_bytes

    def rewrite(self, node: Node) -> int:
        """Add a node of the old graph to the new one.

        Raises:
            _WholeItemNeeded: if it needs a large item whole.
        """
        large = [i for i in node.inputs if self.is_large(i)]
        if not large and not self.is_large(node.id):
            return self.copy_node(node)
        if isinstance(node.element, Source):
            flat = node.element.flattened()
            if flat is None:
                raise _WholeItemNeeded
            return self.add(node.name, flat, ())
        if isinstance(node.element, Destination):
            return self._written(node, node.element)
        if node.kind is Kind.ELEMENTWISE and isinstance(node.element, Compute) and not isinstance(node.op, Dequantize):
            return self._mapped(node, node.element)
        if node.kind is Kind.REDUCE and isinstance(node.element, Compute):
            return self._reduced(node, node.element)
        raise _WholeItemNeeded

    def _flat(self, spec: Spec) -> Spec:
        length = None if spec.length is None else spec.length * spec.item_numbers
        return Spec(spec.dtype, (), Stream(length))

    def _operand(self, value: int, item: tuple[int, ...]) -> int:
        """Return an operand of a large item as a stream of numbers."""
        node = self.graph.nodes[value]
        spec = node.spec
        if self.is_large(value) and spec.shape == item:
            return self.new[value]
        if spec.is_stream:
            raise _WholeItemNeeded
        if spec.item_numbers == 1:
            return self.new[value] if spec.shape == () else self._repeated(node)
        if spec.shape != item[len(item) - len(spec.shape) :]:
            raise _WholeItemNeeded
        return self._repeated(node)

    def _repeated(self, node: Node) -> int:
        """Add a stream that repeats a resident value along the numbers of items."""
        period = node.spec.item_numbers
        twin = Compute(ALONG, (node.element,), Spec(node.spec.dtype, (), Stream(None)), {"period": period})
        return self.add(f"{node.name} repeated", twin, (self.new[node.id],))

    def _mapped(self, node: Node, element: Compute) -> int:
        inputs = tuple(self._operand(i, node.spec.shape) for i in node.inputs)
        twin = copy.copy(element)
        twin.freeze_fields(spec=self._flat(node.spec))
        return self.add(node.name, twin, inputs)

    def _reduced(self, node: Node, element: Compute) -> int:
        item = np.broadcast_shapes(*(self.graph.nodes[i].spec.shape for i in node.inputs))
        if tuple(node.attrs["axes"]) != tuple(range(len(item))):
            raise _WholeItemNeeded
        inputs = tuple(self._operand(i, item) for i in node.inputs)
        numbers = int(np.prod(item))
        twin = copy.copy(element)
        dot = element.op.name == "vecdot" and is_float(self.graph.nodes[node.inputs[0]].spec.dtype)
        attrs = {"fold": element.op.name, "every": numbers, "correction": 0.0, "fused": dot and self.fused}
        twin.freeze_fields(op=EACH, attrs=attrs)
        return self.add(node.name, twin, inputs)

    def _written(self, node: Node, element: Destination) -> int:
        if not element.takes_numbers:
            raise _WholeItemNeeded
        (value,) = node.inputs
        return self.add(node.name, NumbersSink(element, self._flat(node.spec)), (self.new[value],))


def split_items(graph: Graph, limit_bytes: int, *, fused: bool) -> Graph | None:
    """Return the graph with items of more than `limit_bytes` streamed number by number.

    Args:
        graph: the graph.
        limit_bytes: items up to this size stay whole.
        fused: whether dot products of whole items add each product with a single rounding.

    Returns:
        The new graph; None if no item is larger or the graph cannot be rewritten.
    """
    splitter = _Splitter(graph, limit_bytes, fused=fused)
    if not any(splitter.is_large(node.id) for node in graph.nodes):
        return None
    try:
        return splitter.rewritten()
    except _WholeItemNeeded:
        return None
