"""Base class of rewrites of a graph: nodes are rebuilt one by one, and unused ones are dropped."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from typing import Any

from flowcompute.elements import Compute, Constant, Element, Pin
from flowcompute.graph import Graph, Node


class GraphRewriter(ABC):
    """Transformer of a graph into a new one.

    Attributes:
        graph: the old graph.
        nodes: nodes of the new graph, in topological order.
        new: ids in the new graph by ids in the old one.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.nodes: list[Node] = []
        self.new: dict[int, int] = {}
        self._names = {node.name for node in graph.nodes}
        self._pin: Pin | None = None
        self._again = False

    @abstractmethod
    def rewrite(self, node: Node) -> int:
        """Add a node of the old graph to the new one, after its operands, and return its id there."""

    def add(self, name: str, element: Element, inputs: tuple[int, ...]) -> int:
        """Add a node to the new graph and return its id.

        A node that replaces a pinned one is pinned, too, and one that replaces a value computed again is such a value.
        """
        if self._again and isinstance(element, Compute) and not element.again:
            element = copy.copy(element)
            element.freeze_fields(again=True)
        if self._pin is not None and isinstance(element, Compute) and element.pin is None:
            element = copy.copy(element)
            element.freeze_fields(pin=self._pin)
        self.nodes.append(Node(len(self.nodes), name, element, inputs))
        return len(self.nodes) - 1

    def fresh(self, name: str) -> str:
        """Return a name that no node has."""
        number, unique = 2, name
        while unique in self._names:
            unique, number = f"{name}_{number}", number + 1
        self._names.add(unique)
        return unique

    def copy_node(self, node: Node) -> int:
        """Add the node unchanged."""
        inputs = tuple([self.new[i] for i in node.inputs])
        if node.id == len(self.nodes) and inputs == node.inputs and (self._pin, self._again) == (node.pin, node.again):
            self.nodes.append(node)
            return node.id
        return self.add(node.name, node.element, inputs)

    def rewritten(self) -> Graph:
        """Return the new graph. Roots keep their order."""
        for node in self.graph.nodes:
            self._pin, self._again = node.pin, node.again
            self.new[node.id] = self.rewrite(node)
        return _without_unused(self.nodes, [self.new[root] for root in self.graph.roots])


class ComposingRewriter(GraphRewriter):
    """Rewriter that puts compositions of operations in the place of nodes."""

    def __init__(self, graph: Graph) -> None:
        super().__init__(graph)
        self._made: dict[Any, int] = {}

    def place(self, element: Element, places: dict[int, int], node: Node) -> int:
        """Add an element with all that it is made of, and return its id. Elements that are equal are added once.

        Args:
            element: what is composed.
            places: ids in the new graph by Python's ids of elements that stand for operands; more are added.
            node: the node of the old graph that it replaces.
        """
        if id(element) not in places:
            inputs = tuple(self.place(one, places, node) for one in element.inputs)
            key = self._key(element, inputs)
            if key not in self._made:
                element.freeze_fields(site=node.element.site)
                self._made[key] = self.add(self.fresh(f"{node.name}_{element.base_name}"), element, inputs)
            places[id(element)] = self._made[key]
        return places[id(element)]

    def _key(self, element: Element, inputs: tuple[int, ...]) -> Any:
        if isinstance(element, Constant):
            return element.spec, element.value.tobytes()
        assert isinstance(element, Compute)
        return element.op.kept_name, repr(sorted(element.attrs.items())), element.spec, inputs, self._pin, self._again


def _without_unused(nodes: list[Node], roots: list[int]) -> Graph:
    used: set[int] = set(roots)
    for node in reversed(nodes):
        if node.id in used:
            used.update(node.inputs)
    if len(used) == len(nodes):
        return Graph(tuple(nodes), tuple(roots))
    number = {i: position for position, i in enumerate(sorted(used))}
    kept = [nodes[i] for i in sorted(used)]
    renumbered = [Node(number[n.id], n.name, n.element, tuple(number[i] for i in n.inputs)) for n in kept]
    return Graph(tuple(renumbered), tuple(number[root] for root in roots))
