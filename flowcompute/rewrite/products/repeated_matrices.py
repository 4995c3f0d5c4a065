"""Rewrite of products whose stacks repeat each matrix, as grouped-query attention does keys and values for its heads.

Models repeat by a broadcast and a reshape that merges the new axis: head `h` of `(heads, k, n)` is matrix `h // times`
of `(heads / times, k, n)`. No strides describe that, so each batch would copy all repeats. Here the heads that share a
matrix become rows of one product with it. Element-wise operations in between are computed once a matrix, not once a
head. Each number is the same sum as before, so no answer changes.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from flowcompute.elements import Kind, Op
from flowcompute.elements.axes import BROADCAST, PERMUTE, RESHAPE
from flowcompute.elements.math import MATMUL
from flowcompute.graph import Graph, Node
from flowcompute.imports import dataclass
from flowcompute.rewrite.rewriter import GraphRewriter


@dataclass(frozen=True)
class _Repeats:
    """A value that repeats along one axis of its items.

    Attributes:
        axis: of the items.
        times: how often each entry stands there, one after the other.
    """

    axis: int
    times: int

    def once(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return the item shape without the repeats."""
        return (*shape[: self.axis], shape[self.axis] // self.times, *shape[self.axis + 1 :])


class _RepeatedMatrices(GraphRewriter):
    """The rewrite.

    Args:
        graph: the graph.
        repeated: values that are to be computed without their repeats; only each other and products read them.
    """

    def __init__(self, graph: Graph, repeated: dict[int, _Repeats]) -> None:
        super().__init__(graph)
        self.repeated = repeated

    def rewrite(self, node: Node) -> int:
        """Add a node of the old graph to the new one, without repeats."""
        own = self.repeated.get(node.id)
        if own is not None:
            shape = own.once(node.spec.shape)
            if node.op is RESHAPE:
                return self._once(node, shape)
            return self._twin(node, node.name, shape, tuple(self.new[i] for i in node.inputs))
        if node.op is MATMUL and node.inputs[1] in self.repeated:
            return self._product(node, self.repeated[node.inputs[1]])
        return self.copy_node(node)

    def _once(self, node: Node, shape: tuple[int, ...]) -> int:
        """Add what a reshape of a broadcast repeats."""
        (base,) = self.graph.nodes[node.inputs[0]].inputs
        below = self.graph.nodes[base]
        if below.op is RESHAPE and self.graph.nodes[below.inputs[0]].spec.shape == shape:
            # The axis was put there for the broadcast alone.
            return self.new[below.inputs[0]]
        return self.new[base] if below.spec.shape == shape else self._twin(node, node.name, shape, (self.new[base],))

    def _product(self, node: Node, repeats: _Repeats) -> int:
        """Add a product whose heads are rows beside those that share their matrix."""
        left, matrices = (self.graph.nodes[i] for i in node.inputs)
        *stack, heads, rows, inner = left.spec.shape
        groups, columns = (*stack, heads // repeats.times), node.spec.shape[-1]
        if left.kind is Kind.VIEW and rows > 1:
            # Of a view that permutes heads and rows no strides give the rows of all heads.
            groups, seen = (*groups, repeats.times), (*groups, 1, *matrices.spec.shape[-2:])
            right = self._view(node, matrices, self.new[matrices.id], seen)
        else:
            rows, right = repeats.times * rows, self.new[matrices.id]
        factor = self._view(node, left, self.new[left.id], (*groups, rows, inner))
        product = self._twin(node, self.fresh(node.name), (*groups, rows, columns), (factor, right))
        return self._view(node, node, product, node.spec.shape, name=node.name)

    def _twin(self, node: Node, name: str, shape: tuple[int, ...], inputs: tuple[int, ...]) -> int:
        """Add an operation that is a node's but for the shape of its items."""
        twin: Any = copy.copy(node.element)
        twin.freeze_fields(spec=replace(node.spec, shape=shape))
        return self.add(name, twin, inputs)

    def _view(self, node: Node, of: Node, value: int, shape: tuple[int, ...], name: str | None = None) -> int:
        """Add a reshape of a value of the new graph, which has the dtype and the stream of a node of the old one."""
        twin: Any = copy.copy(node.element)
        twin.freeze_fields(op=RESHAPE, spec=replace(of.spec, shape=shape), attrs={})
        return self.add(self.fresh(node.name) if name is None else name, twin, (value,))


def _repeats_of(graph: Graph, node: Node, found: dict[int, _Repeats]) -> _Repeats | None:
    """Return how the items of a node repeat, if they do."""
    if not node.spec.is_stream:
        return None
    if node.op is RESHAPE:
        return _merged(graph, node)
    if node.op is PERMUTE and node.inputs[0] in found:
        before = found[node.inputs[0]]
        return _Repeats(node.attrs["axes"].index(before.axis), before.times)
    if node.kind is not Kind.ELEMENTWISE or type(node.op) is not Op:
        return None
    rank, repeats = len(node.spec.shape), {found[i] for i in node.inputs if i in found}
    if len(repeats) != 1:
        return None
    (own,) = repeats
    for operand in (graph.nodes[i].spec for i in node.inputs):
        place = own.axis - rank + len(operand.shape)
        if place >= 0 and operand.shape[place] not in (1, node.spec.shape[own.axis]):
            return None
    whole = (i for i in node.inputs if i not in found and _spans(graph.nodes[i], own.axis - rank))
    return None if any(whole) else own


def _spans(node: Node, axis: int) -> bool:
    """Check whether the items of a node have more than one entry along an axis, counted from the end."""
    return len(node.spec.shape) >= -axis and node.spec.shape[axis] != 1


def _merged(graph: Graph, node: Node) -> _Repeats | None:
    """Return the repeats of a reshape that merges one broadcast axis with the one before it."""
    wide = graph.nodes[node.inputs[0]]
    if wide.op is not BROADCAST or not wide.spec.is_stream:
        return None
    base, shape = graph.nodes[wide.inputs[0]].spec, wide.spec.shape
    sizes = (1,) * (len(shape) - len(base.shape)) + base.shape
    spread = [axis for axis, (own, size) in enumerate(zip(sizes, shape, strict=True)) if own != size]
    if len(spread) != 1 or spread[0] == 0 or not base.is_stream or 0 in shape:
        return None
    axis = spread[0] - 1
    merged = (*shape[:axis], shape[axis] * shape[axis + 1], *shape[axis + 2 :])
    return _Repeats(axis, shape[axis + 1]) if node.spec.shape == merged else None


def _is_product(graph: Graph, node: Node, value: int, own: _Repeats) -> bool:
    """Check whether a node multiplies a stack of matrices of its own by matrices that repeat."""
    if node.op is not MATMUL or "depth" in node.attrs or node.inputs[0] == value:
        return False
    left, right = (graph.nodes[i].spec.shape for i in node.inputs)
    return len(left) == len(right) and own.axis == len(right) - 3 and left[:-2] == right[:-2] and 0 not in left


def _repeated(graph: Graph) -> dict[int, _Repeats]:
    """Return the values that are computed without their repeats: those that nothing needs with them."""
    found: dict[int, _Repeats] = {}
    for node in graph.nodes:
        repeats = _repeats_of(graph, node, found)
        if repeats is not None:
            found[node.id] = repeats
    users = graph.users()

    def is_read_once(value: int, readers: Iterable[int]) -> bool:
        return all(one in found or _is_product(graph, graph.nodes[one], value, found[value]) for one in readers)

    while True:
        kept = {
            value: one
            for value, one in found.items()
            if users[value]
            and value not in graph.roots
            and is_read_once(value, users[value])
            and (graph.nodes[value].op is RESHAPE or _read_in(graph, graph.nodes[value], found))
        }
        if len(kept) == len(found):
            return kept
        found = kept


def _read_in(graph: Graph, node: Node, found: dict[int, _Repeats]) -> bool:
    """Check whether all operands of a node that repeat are still computed without their repeats."""
    return _repeats_of(graph, node, found) == found[node.id]


def share_repeated_matrices(graph: Graph) -> Graph:
    """Return the graph with products that read each repeated matrix once. Roots keep their order."""
    if not any(node.op is BROADCAST for node in graph.nodes):
        return graph
    repeated = _repeated(graph)
    return _RepeatedMatrices(graph, repeated).rewritten() if repeated else graph
