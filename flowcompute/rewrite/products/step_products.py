"""Rewrite of sums of products of records, in steps of trainings on CPUs: `X.T @ Y` of all records at once.

The gradient of a matrix is such a sum. Folded on the host it is a product by one thread of BLAS, between launches. All
records of a step are one array; a product of two such arrays is a region like any other, which update rules join.

Additions are in version 2 of the order of such sums (`ir.by_kernels`), as in all jobs: records in order, in panels,
each product added with one rounding. Lengths and dtypes alone say which sums have it. So neither budgets nor batches
change a bit.
"""

from __future__ import annotations

import copy
from typing import Any

from flowcompute.elements.axes import PERMUTE, RESHAPE
from flowcompute.elements.math import MATMUL, MATMUL_FOLD
from flowcompute.elements.training import ALL_RECORDS
from flowcompute.graph import Graph, Node
from flowcompute.ir import ProductShape, by_kernels, host_fold
from flowcompute.rewrite.rewriter import GraphRewriter
from flowcompute.spec import Spec


class _StepProducts(GraphRewriter):
    def __init__(self, graph: Graph) -> None:
        super().__init__(graph)
        self._matrices: dict[int, int] = {}

    def rewrite(self, node: Node) -> int:
        """Add a node; a sum of products becomes a product of matrices that have all records' rows."""
        if not self._is_short(node):
            return self.copy_node(node)
        left, right = (self._matrix(node, i) for i in (node.inputs[0], node.inputs[-1]))
        rows, numbers = self.nodes[left].spec.shape
        turned = self._made(PERMUTE, node, Spec(node.spec.dtype, (numbers, rows)), (left,), axes=(1, 0))
        return self._made(MATMUL, node, node.spec, (turned, right), name=node.name)

    def _is_short(self, node: Node) -> bool:
        """Check whether a node is a sum of products of a short stream, in version 2 of the order."""
        if node.op is not MATMUL_FOLD:
            return False
        operands = [self.graph.nodes[i].spec for i in node.inputs]
        fold = by_kernels(host_fold("matmul", operands, node.attrs, node.spec))
        return fold.order == 2 and ProductShape.of(fold).is_short(operands[0].length)

    def _matrix(self, node: Node, stream: int) -> int:
        """Add the rows of all records as a matrix, once for each stream."""
        if stream not in self._matrices:
            spec = self.graph.nodes[stream].spec
            count, width = spec.length or 0, spec.shape[-1]
            made = self._made(ALL_RECORDS, node, Spec(spec.dtype, (count, *spec.shape)), (self.new[stream],))
            if len(spec.shape) > 1:
                rows = Spec(spec.dtype, (count * spec.shape[0], width))
                made = self._made(RESHAPE, node, rows, (made,))
            self._matrices[stream] = made
        return self._matrices[stream]

    def _made(
        self, op: Any, node: Node, spec: Spec, inputs: tuple[int, ...], name: str | None = None, **attrs: Any
    ) -> int:
        """Add an operation that the sum's line answers for."""
        twin: Any = copy.copy(node.element)
        twin.freeze_fields(op=op, spec=spec, attrs=attrs)
        return self.add(self.fresh(node.name) if name is None else name, twin, inputs)


def multiply_all_records(graph: Graph) -> Graph:
    """Return the graph of a step with products of all its records for sums of products. Roots keep their order."""
    return _StepProducts(graph).rewritten()
