"""Rewrite that computes values again for their late readers, so that nothing holds them meanwhile.

It does to a graph what `fc.recompute` does to a gradient: late readers read twins, the same operations on the same
operands. Kernels keep twins apart from what is computed first, and steps with twins are taken when they are needed.
"""

from __future__ import annotations

import copy
from collections.abc import Collection
from typing import Any

from flowcompute.elements import Kind
from flowcompute.elements.creation import is_recomputed
from flowcompute.graph import Graph, Node, postorder
from flowcompute.rewrite.clocks import ClockNodes, find_clocks
from flowcompute.rewrite.passes import find_passes, levels_of
from flowcompute.rewrite.rewriter import GraphRewriter


class _Recomputer(GraphRewriter):
    """Rewriter that gives late readers twins of what they read.

    Args:
        graph: the graph.
        kept: values that are not computed again.
        early: nodes that are no late readers.
        clocks: those of each pass.

    Attributes:
        origins: by name of a node of the new graph the id that it, or what it is a twin of, has in the old one.
    """

    def __init__(
        self, graph: Graph, kept: Collection[int], early: Collection[int], clocks: list[list[ClockNodes]]
    ) -> None:
        super().__init__(graph)
        self.origins = {node.name: node.id for node in graph.nodes}
        self._kept, self._early = kept, early
        self._twins: dict[int, int] = {}
        self._places: list[set[tuple[int, int]]] = [set() for _ in graph.nodes]
        for number, one_pass in enumerate(clocks):
            for clock in one_pass:
                for i in clock.nodes:
                    self._places[i].add((number, clock.id))

    def rewrite(self, node: Node) -> int:
        """Add a node, which reads twins where it is a late reader."""
        if node.id in self._early or not (node.kind is Kind.FOLD or is_recomputed(node.element)):
            return self.copy_node(node)
        inputs = tuple([self._read(i, node.id) for i in node.inputs])
        if inputs == tuple([self.new[i] for i in node.inputs]):
            return self.copy_node(node)
        return self.add(node.name, node.element, inputs)

    def _read(self, value: int, reader: int) -> int:
        """Return what a late reader, or a twin of such, reads in the place of a value."""
        if not self._is_again(value, reader):
            return self.new[value]
        for i in postorder((value,), self._again_below, self._twins):
            self._add_twin(self.graph.nodes[i])
        return self._twins[value]

    def _again_below(self, value: int) -> list[int]:
        return [i for i in self.graph.nodes[value].inputs if self._is_again(i, value)]

    def _is_again(self, value: int, reader: int) -> bool:
        """Check whether a reader reads a twin of a value: a map of records in the reader's clock that is not kept."""
        node = self.graph.nodes[value]
        if value not in self._early or value in self._kept or node.again or not is_recomputed(node.element):
            return False
        return self._places[reader] <= self._places[value]

    def _add_twin(self, node: Node) -> None:
        inputs = tuple([self._twins[i] if self._is_again(i, node.id) else self.new[i] for i in node.inputs])
        element: Any = copy.copy(node.element)
        element.freeze_fields(again=True)
        pin, self._pin = self._pin, node.pin
        name = self.fresh(f"{node.name}_again")
        self._twins[node.id] = self.add(name, element, inputs)
        self.origins[name] = node.id
        self._pin = pin


def recompute_values(graph: Graph, kept: Collection[int], early: Collection[int]) -> Graph | None:
    """Return the graph with values computed again for late readers. Roots keep their order.

    These are all early maps of records that are not kept, as far as late nodes read them.

    Args:
        graph: the graph.
        kept: values that are not computed again.
        early: nodes that are taken before late readers, with all that they read.

    Returns:
        The graph. It knows the ids under which checkpoints keep its state: those of the graph given. None if nothing
        is computed again, or the state would be another one.
    """
    clocks = _clocks_of(graph)
    rewriter = _Recomputer(graph, kept, early, clocks)
    made = rewriter.rewritten()
    made = Graph(made.nodes, made.roots, tuple([rewriter.origins[node.name] for node in made.nodes]))
    if len(rewriter.origins) == len(graph.nodes):
        return None
    return made if _state_of(made, _clocks_of(made)) == _state_of(graph, clocks) else None


def _clocks_of(graph: Graph) -> list[list[ClockNodes]]:
    """Return the clocks of each pass."""
    return [find_clocks(graph, one.nodes, one.kept) for one in find_passes(graph, levels_of(graph))]


def _state_of(graph: Graph, clocks: list[list[ClockNodes]]) -> list[object]:
    """Return what the layout of a state depends on: the values of each clock, and those that enter it."""
    told: list[object] = []
    for clock in (clock for one_pass in clocks for clock in one_pass):
        entries = {
            graph.kept_id(value): tuple((origin, graph.kept_id(i)) for origin, i in entry.inputs)
            for value, entry in clock.entries.items()
        }
        told.append((clock.id, {*map(graph.kept_id, clock.nodes)}, {*map(graph.kept_id, clock.sources)}, entries))
    return told
