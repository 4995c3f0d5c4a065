"""Rewrite of the gradient of attention in half formats for devices that do not multiply them: in float32.

`ATTENTION_PART` is a kernel of tensor cores. Elsewhere its parts are attention whose weights are gated (`weighed`).
"""

from __future__ import annotations

from typing import Any

from flowcompute.elements import Compute, Constant, Element
from flowcompute.elements.nn import ATTENTION_PART, as_weighed
from flowcompute.graph import Graph, Node
from flowcompute.ir import DeviceCapabilities, part_bytes
from flowcompute.rewrite.rewriter import GraphRewriter


class _InFloat32(GraphRewriter):
    def __init__(self, graph: Graph, parts: set[int]) -> None:
        super().__init__(graph)
        self.parts = parts
        self.made: dict[Any, int] = {}

    def rewrite(self, node: Node) -> int:
        """Add a node of the old graph to the new one; a part as what it is composed of."""
        if node.id not in self.parts:
            return self.copy_node(node)
        operands = [Element(self.graph.nodes[i].spec) for i in node.inputs]
        element = node.element
        assert isinstance(element, Compute)
        composed = as_weighed(Compute(element.op, tuple(operands), element.spec, element.attrs))
        places = {id(one): self.new[i] for one, i in zip(operands, node.inputs, strict=True)}
        return self._place(composed, places, node)

    def _place(self, element: Element, places: dict[int, int], node: Node) -> int:
        """Add an element with all that it is made of. Parts of one gradient share what is equal."""
        if id(element) not in places:
            inputs = tuple(self._place(one, places, node) for one in element.inputs)
            key = self._key(element, inputs)
            if key not in self.made:
                element.freeze_fields(site=node.element.site)
                self.made[key] = self.add(self.fresh(f"{node.name}_{element.base_name}"), element, inputs)
            places[id(element)] = self.made[key]
        return places[id(element)]

    def _key(self, element: Element, inputs: tuple[int, ...]) -> Any:
        if isinstance(element, Constant):
            return element.spec, element.value.tobytes()
        assert isinstance(element, Compute)
        return element.op.kept_name, repr(sorted(element.attrs.items())), element.spec, inputs, self._pin, self._again


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
