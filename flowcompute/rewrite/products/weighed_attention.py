"""Rewrite of the gradient of attention in half formats for devices that do not multiply them: in float32.

`ATTENTION_PART` is a kernel of tensor cores. Elsewhere its parts are attention whose weights are gated (`weighed`).
"""

from __future__ import annotations

from flowcompute.elements import Compute, Element
from flowcompute.elements.nn import ATTENTION_PART, as_weighed
from flowcompute.graph import Graph, Node
from flowcompute.ir import DeviceCapabilities, part_bytes
from flowcompute.rewrite.rewriter import ComposingRewriter


class _InFloat32(ComposingRewriter):
    def __init__(self, graph: Graph, parts: set[int]) -> None:
        super().__init__(graph)
        self.parts = parts

    def rewrite(self, node: Node) -> int:
        """Add a node of the old graph to the new one; a part as what it is composed of."""
        if node.id not in self.parts:
            return self.copy_node(node)
        operands = [Element(self.graph.nodes[i].spec) for i in node.inputs]
        element = node.element
        assert isinstance(element, Compute)
        composed = as_weighed(Compute(element.op, tuple(operands), element.spec, element.attrs))
        places = {id(one): self.new[i] for one, i in zip(operands, node.inputs, strict=True)}
        return self.place(composed, places, node)


def weigh_in_float32(graph: Graph, capabilities: DeviceCapabilities) -> Graph:
    """Return the graph with parts of attention's gradient that no tensor cores take in float32. Roots keep their order.

    Args:
        graph: the graph.
        capabilities: of the device that computes it.
    """
    parts = {
        node.id
        for node in graph.nodes
        if node.op is ATTENTION_PART and not _is_taken([graph.nodes[i] for i in node.inputs], capabilities)
    }
    return _InFloat32(graph, parts).rewritten() if parts else graph


def _is_taken(operands: list[Node], capabilities: DeviceCapabilities) -> bool:
    """Check whether the device has tensor cores, and enough local memory."""
    size, columns = operands[0].spec.shape[-1], operands[2 if len(operands) > 2 else 0].spec.shape[-1]
    return capabilities.tensor_cores and part_bytes(size, columns) <= capabilities.local_bytes
