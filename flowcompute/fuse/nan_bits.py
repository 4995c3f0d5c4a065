"""Bits of NaN: which values of a region show theirs, and which operations make NaNs rather than move them.

The NaN that an operation makes in registers depends on the compiler. The one in memory is always the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from flowcompute.elements import Kind
from flowcompute.graph import Graph, Node
from flowcompute.ir import register_dtype
from flowcompute.spec import is_float


def makes_nan(node: Node) -> bool:
    """Check whether NaNs of a value are made where it is computed, and so stored as the one NaN, or there are none."""
    # Conversions between half formats and float32 change a NaN's bits, differently even between lanes.
    dtype = node.spec.dtype
    return not is_float(dtype) or register_dtype(dtype) != dtype or (node.op is not None and node.op.arithmetic)


def exposed_values(graph: Graph, nodes: Sequence[int], outputs: Iterable[int]) -> frozenset[int]:
    """Return the values whose NaNs can be seen.

    These are the ones stored, those whose sign an operation reads, and what such values are moved from.

    Args:
        graph: the graph.
        nodes: ids of a region's nodes, in topological order.
        outputs: ids of the values that the region stores.
    """
    exposed = set(outputs)
    for node in map(graph.nodes.__getitem__, reversed(nodes)):
        if node.op is not None and (node.op.reads_sign or (node.id in exposed and not makes_nan(node))):
            exposed.update(node.inputs)
            # A view that only inserts axes may be read through.
            exposed.update(j for i in node.inputs if graph.nodes[i].kind is Kind.VIEW for j in graph.nodes[i].inputs)
    return frozenset(exposed)
