"""Rewrite of reductions of a whole resident value to one number, which become reductions of its blocks.

A GPU reduces a row by one work-group, and one that is longer than its registers by one work-item. A row is reduced in
blocks of 1024 numbers, which are merged in an aligned binary tree (`ir/reduction_order.py`). Here the blocks become
rows, which all work-groups share. A row of up to 512 numbers is added as a tree by halves: a view of numbers in the
order of their reversed bits is added as the aligned tree. No answer changes a bit.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from flowcompute.elements import Element, Kind, cast
from flowcompute.elements.axes import permute_dims, reshape
from flowcompute.elements.math import all as all_of
from flowcompute.elements.math import any as any_of
from flowcompute.elements.math import logical_and, logical_or, maximum, minimum
from flowcompute.elements.math import max as max_of
from flowcompute.elements.math import min as min_of
from flowcompute.elements.math import sum as sum_of
from flowcompute.graph import Graph, Node, postorder
from flowcompute.ir import BLOCK, LANES, row_lanes
from flowcompute.rewrite.rewriter import GraphRewriter
from flowcompute.spec import FLOAT32, FLOAT64

LEAST_NUMBERS = 1 << 16
"""Numbers from which on a value is reduced by blocks: so many are the most that a work-group holds in registers."""

_MERGED_BITS = LANES.bit_length()
"""Binary logarithm of the most numbers of a row that is added as a tree."""

_IN_ANY_ORDER: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "all": (all_of, logical_and),
    "any": (any_of, logical_or),
    "max": (max_of, maximum),
    "min": (min_of, minimum),
}
"""Reductions whose bits do not depend on the order, with their steps."""


class _WholeReductions(GraphRewriter):
    def rewrite(self, node: Node) -> int:
        """Add a node of the old graph to the new one; a reduction of a whole value as those of its blocks."""
        if not _is_whole(self.graph, node):
            return self.copy_node(node)
        assert node.op is not None
        value = self.graph.nodes[node.inputs[0]].element
        made: Any = _by_blocks(node.op.name, value)
        last = reshape(made, node.spec.shape)
        return self._added(last, {id(value): self.new[node.inputs[0]]}, node.name)

    def _added(self, element: Element, known: dict[int, int], name: str) -> int:
        """Add an element after what it is made of, and return its id."""
        made = {*known}
        for one in postorder([element], lambda one: [] if id(one) in made else one.inputs):
            if id(one) not in known:
                inputs = tuple([known[id(operand)] for operand in one.inputs])
                called = name if one is element else self.fresh(f"{name}.blocks")
                known[id(one)] = self.add(called, one, inputs)
        return known[id(element)]


def _by_blocks(op: str, value: Any) -> Any:
    """Return the reduction of all numbers of a resident value, by blocks."""
    numbers = math.prod(value.spec.shape)
    flat, blocks = reshape(value, (numbers,)), numbers // BLOCK
    whole, tail = reshape(flat[: blocks * BLOCK], (blocks, BLOCK)), flat[blocks * BLOCK :]
    is_even = numbers % BLOCK == 0
    if op in _IN_ANY_ORDER:
        reduced, step = _IN_ANY_ORDER[op]
        made = reduced(reduced(whole, axis=1))
        return made if is_even else step(made, reduced(tail))
    merged = cast(sum_of(whole, axis=1), FLOAT64)
    total: Any = None if is_even else cast(sum_of(tail), FLOAT64)
    # Subtrees of powers of two blocks, the last ones of which are merged first.
    while blocks:
        size = blocks & -blocks
        blocks -= size
        subtree = _tree(merged[blocks : blocks + size])
        total = subtree if total is None else subtree + total
    return cast(total, value.dtype)


def _tree(value: Any) -> Any:
    """Add a power of two numbers as an aligned binary tree."""
    bits = value.spec.shape[0].bit_length() - 1
    while bits:
        first = min(bits, _MERGED_BITS)
        bits -= first
        # The axes of bits are reversed: lanes of a row begin with its last bit.
        axes = (0, *range(first, 0, -1))
        rows = permute_dims(reshape(value, (1 << bits, *(2,) * first)), axes)
        value = sum_of(rows, axis=tuple(range(1, first + 1)))
    return reshape(value, ())


def _is_whole(graph: Graph, node: Node) -> bool:
    if node.kind is not Kind.REDUCE or node.op is None or node.spec.is_stream or len(node.inputs) != 1:
        return False
    spec = graph.nodes[node.inputs[0]].spec
    if math.prod(spec.shape) <= LEAST_NUMBERS or math.prod(node.spec.shape) != 1 or spec.dtype != node.spec.dtype:
        return False
    if node.op.name in _IN_ANY_ORDER:
        return True
    # A shorter last block would have other lanes as a row of its own.
    last = math.prod(spec.shape) % BLOCK or BLOCK
    return node.op.name == "sum" and spec.dtype in (FLOAT32, FLOAT64) and row_lanes(last) == LANES


def split_whole_reductions(graph: Graph) -> Graph:
    """Return the graph with reductions of large whole values as those of their blocks. Roots keep their order."""
    if not any(_is_whole(graph, node) for node in graph.nodes):
        return graph
    return _WholeReductions(graph).rewritten()
