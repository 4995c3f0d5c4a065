"""Rewrite of reductions over no axes, whose results are their operands.

Elements keep them, so that a job is the same job whatever version of the program composes it. Kernels never see them.
"""

from __future__ import annotations

import copy

import numpy as np

from flowcompute.elements import CAST, Compute, Constant, Kind
from flowcompute.graph import Graph, Node
from flowcompute.rewrite.rewriter import GraphRewriter

_SEARCHES = ("argmin", "argmax")


class _IdleReductions(GraphRewriter):
    def rewrite(self, node: Node) -> int:
        """Add a node of the old graph to the new one; an idle reduction as a cast to the dtype that it has."""
        if not _is_idle(node):
            return self.copy_node(node)
        if node.op is not None and node.op.name in _SEARCHES:
            return self.add(node.name, Constant(np.zeros(node.spec.shape, node.spec.dtype)), ())
        twin = copy.copy(node.element)
        twin.freeze_fields(op=CAST, attrs={"dtype": node.spec.dtype})
        return self.add(node.name, twin, (self.new[node.inputs[0]],))


def _is_idle(node: Node) -> bool:
    return node.kind is Kind.REDUCE and isinstance(node.element, Compute) and node.attrs.get("axes") == ()


def replace_idle_reductions(graph: Graph) -> Graph:
    """Return the graph with its reductions over no axes replaced by their operands. Roots keep their order."""
    if not any(_is_idle(node) for node in graph.nodes):
        return graph
    return _IdleReductions(graph).rewritten()
