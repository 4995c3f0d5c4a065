"""A smaller graph for people: the steps of a call of a public function are one node, as the user wrote it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from flowcompute.elements import Compute, Constant
from flowcompute.graph.graph import Graph, Node


def fold_calls(graph: Graph, holders: Mapping[int, object] | None = None) -> tuple[Graph, list[int]]:
    """Fold the steps of each call into what the call returned.

    A step that something else uses too, since equal elements are merged, stays a node of its own.

    Args:
        graph: the graph.
        holders: by id, what holds a node: nodes of different holders are not folded into one.

    Returns:
        The smaller graph, with the names, elements and order of the nodes that are left; and by old id the node that
        an old one became.
    """
    users, roots, into = graph.users(), set(graph.roots), list(range(len(graph.nodes)))
    held = holders or {}
    for node in reversed(graph.nodes):
        shown = {into[user] for user in users[node.id]}
        if len(shown) != 1 or node.id in roots or not _is_step(node):
            continue
        (user,) = shown
        mine = node.id if isinstance(node.element, Compute) else user
        if graph.nodes[user].element.call is node.element.call and held.get(mine) == held.get(user):
            into[node.id] = user
    kept = [i for i, one in enumerate(into) if i == one]
    number = {i: position for position, i in enumerate(kept)}
    inputs = _operands(graph, into)
    nodes = tuple(replace(graph.nodes[i], id=number[i], inputs=tuple(number[o] for o in inputs[i])) for i in kept)
    return Graph(nodes, tuple(number[root] for root in graph.roots)), [number[i] for i in into]


def _is_step(node: Node) -> bool:
    """Check whether a node is a step on the way to what a call returned.

    The numbers in an element-wise function are its operands, and so are arrays in any.
    """
    element = node.element
    if isinstance(element, Constant):
        return element.is_step and not node.spec.shape and element.call is not None and not element.call.of_operands
    return isinstance(element, Compute) and element.is_step


def _operands(graph: Graph, into: list[int]) -> list[list[int]]:
    """Return, by id, the nodes that a node and the steps folded into it take from others, nearest first."""
    steps = [0] * len(into)
    for one in into:
        steps[one] += 1
    operands: list[list[int]] = [[] for _ in into]
    for node in graph.nodes:
        if into[node.id] != node.id:
            continue
        if steps[node.id] == 1:
            operands[node.id] = [into[i] for i in node.inputs]
            continue
        found: dict[int, None] = {}
        seen, stack = set(node.inputs), list(reversed(node.inputs))
        while stack:
            i = stack.pop()
            if into[i] != node.id:
                found[into[i]] = None
                continue
            stack.extend(operand for operand in reversed(graph.nodes[i].inputs) if operand not in seen)
            seen.update(graph.nodes[i].inputs)
        operands[node.id] = list(found)
    return operands
