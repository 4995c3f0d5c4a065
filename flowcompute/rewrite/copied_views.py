"""Rewrite that lets kernels copy views without strides, where a device would have to bring their operand to the host.

`reshape(permute_dims(x))` has no strides where the axes that it joins do not follow each other in memory. In front of
such a reshape stands an operation that changes nothing: `reshape(+permute_dims(x))`. A kernel reads `x` by strides and
stores it in the order of the view. The reshape itself is free then.
"""

from __future__ import annotations

from flowcompute.elements import Compute, Kind
from flowcompute.elements.axes import RESHAPE
from flowcompute.elements.math import positive
from flowcompute.graph import Graph, Node
from flowcompute.ir import is_copied, views_of
from flowcompute.rewrite.rewriter import GraphRewriter
from flowcompute.spec import BOOL

_COMPUTED = (Kind.ELEMENTWISE, Kind.REDUCE, Kind.CONTRACT)


class _ViewStorer(GraphRewriter):
    def rewrite(self, node: Node) -> int:
        """Add a node; a reshape that would be copied takes its operand from a kernel."""
        if not self._is_copied_by_host(node):
            return self.copy_node(node)
        (operand,) = node.inputs
        seen = self.graph.nodes[operand]
        stored = Compute(positive.op, (seen.element,), seen.spec)
        return self.add(node.name, node.element, (self.add(self.fresh(seen.name), stored, (self.new[operand],)),))

    def _is_copied_by_host(self, node: Node) -> bool:
        """Check whether the host copies a reshape of records that kernels make."""
        if node.op is not RESHAPE or not node.spec.is_stream or node.spec.dtype == BOOL or not node.spec.item_numbers:
            return False
        base, _ = views_of(self.graph, node.id)
        return self.graph.nodes[base].kind in _COMPUTED and is_copied(self.graph, node.id)


def store_copied_views(graph: Graph) -> Graph:
    """Return the graph with reshapes that have no strides behind a copy by a kernel. Roots keep their order."""
    return _ViewStorer(graph).rewritten()
