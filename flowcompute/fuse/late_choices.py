"""Values that a resident number chooses, and what is computed for these alone.

A step of a training with a dynamic loss scale keeps what it has updated where all gradients are finite. A kernel that
reads gradients to find that out could update as well, since it has them at hand. It would store candidates, which
another one reads beside the values before. So what a number chooses is computed once the number is known.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from flowcompute.elements import Kind
from flowcompute.elements.math import WHERE
from flowcompute.graph import Graph, Node


class LateChoices:
    """Element-wise resident values that nothing but choices by one number reads. Single numbers are not worth a wait.

    Args:
        graph: the graph.
        users: of each node.
        wanted: values that are read outside of regions.
    """

    def __init__(self, graph: Graph, users: Sequence[Collection[int]], wanted: Collection[int]) -> None:
        self._graph = graph
        self._choosers: dict[int, int] = {}
        self._made_of: dict[int, set[int]] = {}
        for node in reversed(graph.nodes):
            is_large = not node.spec.is_stream and node.spec.item_numbers > 1
            if is_large and node.kind is Kind.ELEMENTWISE and node.id not in wanted:
                choosers = {self._chooser(graph.nodes[user], node.id) for user in users[node.id]}
                if len(choosers) == 1 and (one := choosers.pop()) is not None:
                    self._choosers[node.id] = one

    def chooser(self, node: int, beside: Collection[int]) -> int | None:
        """Return the number that chooses a value, where it is made of one of others; None if the value need not wait.

        Args:
            node: the value.
            beside: nodes that a kernel computes.
        """
        chooser = self._choosers.get(node)
        if chooser is None or self._ancestors(chooser).isdisjoint(beside):
            return None
        return chooser

    def _chooser(self, user: Node, value: int) -> int | None:
        """Return the number by which a reader of a value chooses it, or that chooses what is made of it."""
        condition = user.inputs[0]
        if user.op is WHERE and condition != value and self._graph.nodes[condition].spec.item_numbers == 1:
            return condition
        return self._choosers.get(user.id)

    def _ancestors(self, value: int) -> set[int]:
        """Return the resident values that a number is made of, up to folds, and the number."""
        found = self._made_of.get(value)
        if found is None:
            found, todo, nodes = set[int](), [value], self._graph.nodes
            while todo:
                one = todo.pop()
                if one not in found and not nodes[one].spec.is_stream:
                    found.add(one)
                    todo += nodes[one].inputs if nodes[one].kind is not Kind.FOLD else ()
            self._made_of[value] = found
        return found
