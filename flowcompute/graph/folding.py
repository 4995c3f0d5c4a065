"""A smaller graph for people: the steps of a call of a public function are one node, as the user wrote it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from flowcompute.elements import Constant
from flowcompute.graph.graph import Graph, Node, is_number


def fold_calls(graph: Graph, holders: Mapping[int, object] | None = None) -> tuple[Graph, list[int]]:
    """Fold the steps of each call into what the call returned.

    A step that something else uses too, since equal elements are merged, stays a node of its own.

    Args:
        graph: the graph.
        holders: by id, what holds a node: nodes of different holders are not folded into one.

    Returns:
        The smaller graph, with the names, elements and order of the nodes that are left. Also the node that each old
        one became, by old id.
    """
    nodes, held = graph.nodes, holders or {}

    def joins(step: int, user: int) -> bool:
        one, other = nodes[step].element, nodes[user].element
        mine = one.is_step and not isinstance(one, Constant) and one.call is other.call
        return mine and held.get(step) == held.get(user)

    def hides(operand: int, user: int) -> bool:
        """Check whether a number is a function's own, or among the arguments that it shows."""
        if not is_number(nodes[operand]):
            return False
        call, made_by = nodes[user].element.call, nodes[operand].element.call
        return made_by is not None and call is not None and not call.of_operands

    into, inputs = fold_steps([node.inputs for node in nodes], graph.roots, joins, hides)
    number = {i: position for position, i in enumerate(inputs)}

    def renumbered(node: Node) -> Node:
        operands = tuple([number[operand] for operand in inputs[node.id]])
        if number[node.id] == node.id and operands == node.inputs:
            return node
        return Node(number[node.id], node.name, node.element, operands)

    kept = tuple([renumbered(nodes[i]) for i in inputs])
    return Graph(kept, tuple(number[root] for root in graph.roots)), [number[i] for i in into]


def fold_groups(graph: Graph, groups: Mapping[str, Sequence[int]]) -> tuple[Graph, dict[str, tuple[int, ...]]]:
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


def fold_steps(
    inputs: Sequence[Sequence[int]],
    roots: Sequence[int],
    joins: Callable[[int, int], bool],
    hides: Callable[[int, int], bool],
) -> tuple[list[int], dict[int, list[int]]]:
    """Fold each node that has one user into it, if the two may be one.

    Args:
        inputs: positions of the operands of each node, all smaller than its own.
        roots: positions of the roots, which stay.
        joins: whether a node may be folded into another one, its only user.
        hides: whether an operand is left out at a user. One that is left out at all of them is folded into the first.

    Returns:
        By old position what a node became; and the operands, nearest first, of the nodes that are left.
    """
    seen = [[operand for operand in own if not hides(operand, user)] for user, own in enumerate(inputs)]
    users: list[dict[int, None]] = [{} for _ in inputs]
    hidden: dict[int, int] = {}
    into, stays, steps = list(range(len(inputs))), set(roots), [1] * len(inputs)
    for i in range(len(inputs) - 1, -1, -1):
        if not users[i] and i in hidden and i not in stays:
            into[i] = hidden[i]
        elif len(users[i]) == 1 and i not in stays:
            (user,) = users[i]
            if joins(i, user):
                into[i] = user
                steps[user] += 1
        hidden.update((operand, into[i]) for operand in inputs[i])
        for operand in seen[i]:
            users[operand][into[i]] = None
    return into, {i: _operands(i, seen, into, alone=steps[i] == 1) for i, one in enumerate(into) if one == i}


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
