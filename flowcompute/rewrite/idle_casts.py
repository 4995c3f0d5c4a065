"""Rewrite that leaves out casts to the dtype that a value has, as of what a half product has rounded already.

Elements keep them, so that a job is the same job whatever version of the program composes it. Behind a view they would
be a kernel of their own, which copies. Values whose NaNs a cast would change keep it; see `fuse.nan_bits`.
"""

from __future__ import annotations

from flowcompute.elements import CAST, Kind
from flowcompute.graph import Graph, Node
from flowcompute.ir import register_dtype, views_of
from flowcompute.rewrite.rewriter import GraphRewriter
from flowcompute.spec import is_float

_COMPUTED = (Kind.ELEMENTWISE, Kind.REDUCE, Kind.CONTRACT)


class _IdleCasts(GraphRewriter):
    def rewrite(self, node: Node) -> int:
        """Add a node of the old graph to the new one; in place of an idle cast its operand."""
        return self.new[node.inputs[0]] if _is_idle(self.graph, node) else self.copy_node(node)


def _is_idle(graph: Graph, node: Node) -> bool:
    """Check whether a cast of a stream changes no bit. Such casts of a pinned value say where it is to be."""
    if node.op is not CAST or not node.spec.is_stream or node.pin is not None:
        return False
    (operand,), dtype = node.inputs, node.spec.dtype
    if graph.nodes[operand].spec.dtype != dtype:
        return False
    base, _ = views_of(graph, operand)
    # Half formats that kernels have stored have the one NaN; those of a source have any.
    rounded = register_dtype(dtype) != dtype and graph.nodes[base].kind in _COMPUTED
    return rounded or not is_float(dtype)


def drop_idle_casts(graph: Graph) -> Graph:
    """Return the graph without casts of streams to the dtype that they have. Roots keep their order."""
    if not any(_is_idle(graph, node) for node in graph.nodes):
        return graph
    return _IdleCasts(graph).rewritten()
