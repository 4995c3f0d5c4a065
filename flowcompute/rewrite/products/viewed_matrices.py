"""Rewrite that lets kernels read through views of small matrices that steps of trainings hand on.

The host copies a view of a whole value, such as a transposed matrix. For that it waits until the step before has made
it, and cannot launch the next one meanwhile. Strides of a matrix in the cache cost a kernel less. Windows of weights
of convolutions cost more.
"""

from __future__ import annotations

from flowcompute.elements.training import Given
from flowcompute.graph import Graph, Node
from flowcompute.rewrite.rewriter import GraphRewriter

MOST_BYTES = 1 << 13
"""Bytes of a matrix that leaves room for all else in the first cache of a core."""


class _ViewRewriter(GraphRewriter):
    def rewrite(self, node: Node) -> int:
        """Add a node; a small matrix that is handed on is read through views."""
        element, is_small = node.element, len(node.spec.shape) == 2 and node.spec.item_bytes <= MOST_BYTES
        if not isinstance(element, Given) or not element.is_carried or not is_small:
            return self.copy_node(node)
        return self.add(node.name, element.viewed(), ())


def view_small_matrices(graph: Graph) -> Graph:
    """Return the graph of a step whose kernels read small matrices through views. Roots keep their order."""
    return _ViewRewriter(graph).rewritten()
