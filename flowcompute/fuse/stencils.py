"""Stencils: element-wise operations on neighbours in padded items, whose border is index arithmetic.

`fc.kernel` turns `x[i - 1]` into a view of padded items for each neighbour. If nothing else reads the padded items,
padding and views are computed where their numbers are loaded (`lower/flat/stencil_form.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from flowcompute.elements import Kind
from flowcompute.elements.axes import INDEX, PAD
from flowcompute.graph import Graph, Node
from flowcompute.imports import dataclass
from flowcompute.spec import BOOL


@dataclass(frozen=True)
class Stencil:
    """Operations on equal operands that are computed together.

    Attributes:
        users: the operations, which are the results of one function.
        inside: padding and views that only they read, in topological order.
    """

    users: tuple[int, ...]
    inside: tuple[int, ...]


def find_stencils(
    graph: Graph, users: Sequence[Sequence[int]], places: Mapping[int, int], wanted: set[int]
) -> list[Stencil]:
    """Find the stencils of a pass.

    Args:
        graph: the graph.
        users: the users of each node.
        places: the clock of each node of the pass.
        wanted: values that are read outside of kernels.
    """
    found: list[Stencil] = []
    taken: set[int] = set()
    for node in graph.nodes:
        if node.id in taken or node.id not in places or node.kind is not Kind.ELEMENTWISE or not node.spec.is_stream:
            continue
        seen = {graph.nodes[i].inputs[0] for i in node.inputs if graph.nodes[i].op is INDEX}
        pads = [i for i in seen if graph.nodes[i].op is PAD]
        if not pads:
            continue
        twins = tuple(twin for twin in sorted(set(users[node.inputs[0]])) if _is_twin(node, graph.nodes[twin]))
        inside: set[int] = set()
        for pad in pads:
            if _is_border(graph, users, places, graph.nodes[pad], twins, wanted):
                inside |= {pad, *users[pad]}
        if inside:
            taken |= set(twins)
            found.append(Stencil(twins, tuple(sorted(inside))))
    return found


def _is_twin(node: Node, other: Node) -> bool:
    """Check whether another node is a result of the same function of the same operands."""
    same = other.inputs == node.inputs and other.spec.shape == node.spec.shape
    return other.id == node.id or (same and other.kind is Kind.ELEMENTWISE)


def _is_border(
    graph: Graph,
    users: Sequence[Sequence[int]],
    places: Mapping[int, int],
    pad: Node,
    twins: tuple[int, ...],
    wanted: set[int],
) -> bool:
    """Check whether only these operations read padded items, each through views of the original shape."""
    if not pad.spec.is_stream or pad.spec.dtype == BOOL or 0 in pad.spec.shape:
        return False
    shape, place = graph.nodes[pad.inputs[0]].spec.shape, places.get(pad.id)
    views = [graph.nodes[i] for i in users[pad.id]]
    return (
        place is not None
        and not {pad.id, *users[pad.id]} & wanted
        and all(view.op is INDEX and view.spec.shape == shape and places.get(view.id) == place for view in views)
        and all(_is_shift(view) for view in views)
        and all(user in twins for view in views for user in users[view.id])
        and all(places.get(twin) == place and graph.nodes[twin].spec.shape == shape for twin in twins)
    )


def _is_shift(view: Node) -> bool:
    return all(isinstance(key, tuple) and key[2] == 1 for key in view.attrs["index"])
