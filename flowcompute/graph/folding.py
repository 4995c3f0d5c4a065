"""A smaller graph for people: the steps of a call of a public function are one node, as the user wrote it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from flowcompute.elements import Compute, Constant
from flowcompute.graph.graph import Graph, Node


def fold_calls(graph: Graph, holders: Mapping[int, object] | None = None) -> tuple[Graph, list[int]]:
    """Fold the steps of each call into what the call returned.

    A step that something else uses too, since equal elements are merged, stays a node of its own.

    Args:
        graph: the graph.
        holders: by id, what holds a node: nodes of different holders are not folded into one. Numbers have none.

    Returns:
        The smaller graph, with the names, elements and order of the nodes that are left; and by old id the node that
        an old one became.
    """
    nodes, held = graph.nodes, holders or {}

    def joins(step: int, user: int) -> bool:
        one, other = nodes[step].element, nodes[user].element
        if not _is_step(nodes[step]) or one.call is not other.call:
            return False
        return isinstance(one, Constant) or held.get(step) == held.get(user)

    into, inputs = fold_steps([node.inputs for node in nodes], graph.roots, joins)
    number = {i: position for position, i in enumerate(inputs)}
    kept = (replace(nodes[i], id=number[i], inputs=tuple(number[o] for o in inputs[i])) for i in inputs)
    return Graph(tuple(kept), tuple(number[root] for root in graph.roots)), [number[i] for i in into]


def fold_groups(
    graph: Graph, groups: Mapping[str, Sequence[int]]
) -> tuple[Graph, dict[str, tuple[int, ...]]]:
    """Fold the steps of each call that the same groups hold.

    Args:
        graph: the graph.
        groups: nodes that are drawn together, by name; a node may be in several.

    Returns:
        The smaller graph, and the groups in it.
    """
    holders: dict[int, tuple[str, ...]] = {}
    for name, nodes in groups.items():
        for i in nodes:
            holders[i] = (*holders.get(i, ()), name)
    folded, into = fold_calls(graph, holders)
    return folded, {name: tuple(dict.fromkeys(into[i] for i in nodes)) for name, nodes in groups.items()}


def _is_step(node: Node) -> bool:
    """Check whether a node is a step on the way to what a call returned.

    The numbers in an element-wise function are its operands, and so are arrays in any.
    """
    element = node.element
    if isinstance(element, Constant):
        return element.is_step and not node.spec.shape and element.call is not None and not element.call.of_operands
    return isinstance(element, Compute) and element.is_step


def fold_steps(
    inputs: Sequence[Sequence[int]], roots: Sequence[int], joins: Callable[[int, int], bool]
) -> tuple[list[int], dict[int, list[int]]]:
    """Fold each node that has one user into it, if the two may be one.

    Args:
        inputs: positions of the operands of each node, all smaller than its own.
        roots: positions of the roots, which stay.
        joins: whether a node may be folded into another one, its only user.

    Returns:
        By old position what a node became; and the operands, nearest first, of the nodes that are left.
    """
    users: list[set[int]] = [set() for _ in inputs]
    into, stays, steps = list(range(len(inputs))), set(roots), [1] * len(inputs)
    for i in range(len(inputs) - 1, -1, -1):
        if len(users[i]) == 1 and i not in stays:
            (user,) = users[i]
            if joins(i, user):
                into[i] = user
                steps[user] += 1
        for operand in inputs[i]:
            users[operand].add(into[i])
    return into, {i: _operands(i, inputs, into, alone=steps[i] == 1) for i, one in enumerate(into) if one == i}


def _operands(node: int, inputs: Sequence[Sequence[int]], into: Sequence[int], *, alone: bool) -> list[int]:
    """Return what a node and the steps folded into it take from others, each once; of a node alone its operands."""
    if alone:
        return [into[i] for i in inputs[node]]
    found: dict[int, None] = {}
    seen, stack = set(inputs[node]), list(reversed(inputs[node]))
    while stack:
        i = stack.pop()
        if into[i] != node:
            found[into[i]] = None
            continue
        stack.extend(operand for operand in reversed(inputs[i]) if operand not in seen)
        seen.update(inputs[i])
    return list(found)
