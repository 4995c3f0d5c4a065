"""Element-wise operations that read neighbours of padded items: the border is index arithmetic, not a value.

What `fc.kernel` makes of `x[i - 1]` is a view of padded items for each neighbour. Where nothing else
takes these, padding and views are computed where their numbers are loaded (`lower_stencil.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from flowcompute.elements import Kind
from flowcompute.elements.axes import INDEX, PAD
from flowcompute.graph import Graph, Node
from flowcompute.spec import BOOL


@dataclass(frozen=True)
class Stencil:
    """Operations of equal operands that are computed together.

    Attributes:
        users: the operations: the results of one function.
        inside: padding and views that they alone take, operands first.
    """

    users: tuple[int, ...]
    inside: tuple[int, ...]


def find_stencils(
    graph: Graph, users: Sequence[Sequence[int]], places: Mapping[int, int], wanted: set[int]
) -> list[Stencil]:
    """The stencils of a pass.

    Args:
        users: of each node.
        places: of the nodes of the pass.
        wanted: values that something outside of kernels takes.
    """
    found: list[Stencil] = []
    taken: set[int] = set()
    for node in graph.nodes:
        if node.id in taken or node.id not in places or node.kind is not Kind.ELEMENTWISE or not node.spec.is_stream:
            continue
        twins = tuple(
            twin
            for twin in sorted(set(users[node.inputs[0]]) if node.inputs else ())
            if _is_twin(node, graph.nodes[twin])
        )
        inside: set[int] = set()
        for pad in {graph.nodes[i].inputs[0] for i in node.inputs if graph.nodes[i].op is INDEX}:
            if _is_border(graph, users, places, graph.nodes[pad], twins, wanted):
                inside |= {pad, *users[pad]}
        if inside:
            taken |= set(twins)
            found.append(Stencil(twins, tuple(sorted(inside))))
    return found


def _is_twin(node: Node, other: Node) -> bool:
    """Whether another node is a result of the same function of the same operands."""
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
    """Whether items are padded for nothing but these operations, each of which sees as much of them as there was."""
    if pad.op is not PAD or not pad.spec.is_stream or pad.spec.dtype == BOOL or 0 in pad.spec.shape:
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
