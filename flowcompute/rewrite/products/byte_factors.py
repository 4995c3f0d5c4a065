"""Rewrite of products of whole numbers of a byte where tensor cores take both factors along k.

`x @ w` reads columns of `w`, which lie across its memory. Groups of sub-groups take 16-bit numbers so, but bytes only
along k. Here a kernel turns a resident right factor, once for all batches, and the product reads it through a view:
`x @ permute_dims(+permute_dims(w))`. Whole numbers wrap in any order of summation, so no answer changes.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from flowcompute.elements import Op
from flowcompute.elements.axes import PERMUTE
from flowcompute.elements.math import MATMUL, positive
from flowcompute.graph import Graph, Node
from flowcompute.rewrite.rewriter import GraphRewriter
from flowcompute.spec import INT8, UINT8

LEAST = 128
"""Fewest columns, and rows of items that have several, that groups of sub-groups multiply."""
BYTES = {INT8, UINT8}
ALIGNED = 16
"""Bytes at multiples of which lines along k begin."""


class _ByteFactors(GraphRewriter):
    def __init__(self, graph: Graph, products: set[int]) -> None:
        super().__init__(graph)
        self.products = products
        self.turned: dict[int, int] = {}

    def rewrite(self, node: Node) -> int:
        """Add a node; the right factor of a product is turned, once for all products that read it."""
        if node.id not in self.products:
            return self.copy_node(node)
        left, right = node.inputs
        if right not in self.turned:
            self.turned[right] = self._turned(node, right)
        return self.add(node.name, node.element, (self.new[left], self.turned[right]))

    def _turned(self, node: Node, right: int) -> int:
        """Add a view of a right factor whose columns lie along k in memory."""
        name = self.graph.nodes[right].name
        seen = self._view(node, name, self.new[right])
        stored = self._made(positive.op, node, name, self.nodes[seen].spec, (seen,))
        return self._view(node, name, stored)

    def _view(self, node: Node, name: str, value: int) -> int:
        """Add a view of matrices with rows and columns exchanged, through which kernels read."""
        spec = self.nodes[value].spec
        axes = _swapped(range(len(spec.shape)))
        made = replace(spec, shape=_swapped(spec.shape))
        return self._made(PERMUTE, node, name, made, (value,), axes=axes, is_seen=True)

    def _made(self, op: Op, node: Node, name: str, spec: Any, inputs: tuple[int, ...], **attrs: Any) -> int:
        """Add an operation that the product's line answers for."""
        twin: Any = copy.copy(node.element)
        twin.freeze_fields(op=op, spec=spec, attrs=attrs)
        return self.add(self.fresh(name), twin, inputs)


def _swapped(axes: Sequence[int]) -> tuple[int, ...]:
    """Return the axes of matrices, or their sizes, with rows and columns exchanged."""
    return (*axes[:-2], *axes[:-3:-1])


def suits_groups(left: Node, right: Node) -> bool:
    """Check whether groups of sub-groups would multiply a factor of bytes by a resident one, turned or not."""
    if right.spec.is_stream or len(right.spec.shape) < 2 or not {left.spec.dtype, right.spec.dtype} <= BYTES:
        return False
    inner, columns = right.spec.shape[-2:]
    rows = left.spec.shape[-2] if len(left.spec.shape) > 1 and len(right.spec.shape) > 2 else LEAST
    return inner > 0 and not inner % ALIGNED and min(columns, rows) >= LEAST


def _is_turned(graph: Graph, node: Node) -> bool:
    """Check whether a node is a product by a resident matrix of bytes that groups of sub-groups would take along k."""
    if node.op is not MATMUL or not node.spec.is_stream or "depth" in node.attrs or node.spec.dtype.kind not in "iu":
        return False
    return node.spec.dtype.itemsize <= 4 and suits_groups(*(graph.nodes[i] for i in node.inputs))


def turn_byte_factors(graph: Graph, room_bytes: float) -> Graph:
    """Return the graph with resident right factors of bytes turned along k. Roots keep their order.

    Args:
        graph: the graph.
        room_bytes: for resident operands and for what is turned; without that room nothing is.
    """
    products = {node.id for node in graph.nodes if _is_turned(graph, node)}
    turned = {graph.nodes[i].inputs[1] for i in products}
    given = {node.id for node in graph.nodes if not node.inputs and not node.spec.is_stream}
    needed = sum(graph.nodes[i].spec.item_bytes for one in (given, turned) for i in one)
    return _ByteFactors(graph, products).rewritten() if products and needed <= room_bytes else graph
