"""Values that are others where a graph is run again."""

from __future__ import annotations

from flowcompute.elements import Destination, Kind
from flowcompute.elements.training import Given, GivenStream
from flowcompute.graph.graph import Graph


def changing_values(graph: Graph) -> frozenset[int]:
    """Return the resident values that depend on what is given, that are results, or that host functions make.

    There are none where nothing is given to the graph. All others are computed once for all runs.
    """
    nodes = graph.nodes
    if not any(isinstance(node.element, Given | GivenStream) for node in nodes):
        return frozenset()
    # A result may be handed on to the next run, and is not there any more.
    found = {node.inputs[0] for node in nodes if isinstance(node.element, Destination)}
    for node in nodes:
        # Nobody knows what a host function reads.
        is_leaf = node.kind is Kind.HOST or isinstance(node.element, Given | GivenStream)
        if is_leaf or not found.isdisjoint(node.inputs):
            found.add(node.id)
    return frozenset(i for i in found if not nodes[i].spec.is_stream)
