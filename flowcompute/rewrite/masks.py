"""Rewrite of sums over selected records as sums over all records, in which the others are the identity.

`x[m].sum()` becomes the fold of `where(m, x, identity)`. No record is moved, and mask, selection and fold are one
kernel. The canonical order requires it too, since blocks are counted by the index of a record before the selection.

Some folds still read the selected records themselves. The result of argmax depends on the number of preceding records.
A maximum fails if there are no records. A variance needs the first record of each block.
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from flowcompute.elements import Compute, Constant, Element, Kind, cast
from flowcompute.elements.generated import Generator
from flowcompute.elements.math import SUM_FOLD, WHERE, divide
from flowcompute.graph import Graph, Node, postorder
from flowcompute.ir import identity
from flowcompute.rewrite.rewriter import GraphRewriter
from flowcompute.spec import FLOAT64, INT64, Spec

_MAPS = (Kind.ELEMENTWISE, Kind.REDUCE, Kind.CONTRACT)
_NO_MASK = -1
_FOLDS = ("sum", "prod", "any", "all", "vecdot", "mean")


class _Masker(GraphRewriter):
    def __init__(self, graph: Graph, *, float64: bool) -> None:
        super().__init__(graph)
        self.float64 = float64
        self.whole: dict[int, int] = {}
        self.masks: list[int | None] = []
        for node in graph.nodes:
            self.masks.append(self._mask(node))

    def rewrite(self, node: Node) -> int:
        """Add a node to the new graph, with folds of selected records taken over all records."""
        if node.kind is not Kind.FOLD or node.op is None or node.op.name not in _FOLDS:
            return self.copy_node(node)
        if node.op.name == "mean" and not self.float64:
            return self.copy_node(node)
        masks = {self.masks[i] for i in node.inputs}
        mask = masks.pop()
        if mask is None or mask == _NO_MASK or masks:
            return self.copy_node(node)
        return self._mean(node, mask) if node.op.name == "mean" else self._fold(node, mask)

    def _mask(self, node: Node) -> int | None:
        """Return the mask that selects all streams a value depends on.

        The result is `_NO_MASK` for a value of resident operands, and None if there is no single mask.
        """
        if node.kind is Kind.SELECT and node.op is not None and node.op.name == "select":
            return node.inputs[1]
        if node.kind not in _MAPS or isinstance(node.op, Generator):
            return None
        masks = {self.masks[i] for i in node.inputs if self.graph.nodes[i].spec.is_stream} - {_NO_MASK}
        return None if len(masks) > 1 else next(iter(masks), _NO_MASK)

    def _unselected(self, value: int) -> int:
        """Return the value that a value of selected records has over all records."""
        nodes = self.graph.nodes

        def operands(i: int) -> tuple[int, ...]:
            return nodes[i].inputs if nodes[i].spec.is_stream and nodes[i].kind is not Kind.SELECT else ()

        for node in (nodes[i] for i in postorder((value,), operands, self.whole)):
            if not node.spec.is_stream or node.kind is Kind.SELECT:
                self.whole[node.id] = self.new[node.inputs[0] if node.spec.is_stream else node.id]
                continue
            inputs = tuple(self.whole[i] for i in node.inputs)
            twin = copy.copy(node.element)
            twin.freeze_fields(spec=Spec(node.spec.dtype, node.spec.shape, self._stream(inputs)))
            self.whole[node.id] = self.add(self.fresh(f"{node.name} of all"), twin, inputs)
        return self.whole[value]

    def _stream(self, values: tuple[int, ...]) -> Any:
        return next(self.nodes[i].spec.stream for i in values if self.nodes[i].spec.is_stream)

    def _where(self, mask: int, value: int, otherwise: Any) -> int:
        """Add `where(mask, value, otherwise)`."""
        spec = self.nodes[value].spec
        nothing = Constant(np.asarray(otherwise, spec.dtype))
        inputs = (self.new[mask], value, self.add(self.fresh("nothing"), nothing, ()))
        element = Compute(WHERE, tuple(self.nodes[i].element for i in inputs), spec)
        return self.add(self.fresh("where"), element, inputs)

    def _fold(self, node: Node, mask: int) -> int:
        assert node.op is not None
        values = [self._unselected(i) for i in node.inputs]
        dtype = self.nodes[values[0]].spec.dtype
        # One factor of a product is the identity and the other 1, as the identity times infinity is NaN.
        fills = [identity(node.op.name, dtype), dtype.type(1)]
        inputs = tuple(self._where(mask, value, fill) for value, fill in zip(values, fills, strict=False))
        twin = copy.copy(node.element)
        twin.freeze_fields(attrs={**node.attrs, "selected": True})
        return self.add(node.name, twin, inputs)

    def _mean(self, node: Node, mask: int) -> int:
        """Add the sum divided by the number of records, both in float64."""
        (value,) = node.inputs
        before = self._unselected(value)
        dtype = self.nodes[before].spec.dtype
        attrs, shape = {"keepdims": node.attrs["keepdims"]}, node.spec.shape
        where = self._where(mask, before, identity("sum", dtype))
        total = Compute(SUM_FOLD, (self.nodes[where].element,), Spec(FLOAT64, shape), attrs)
        sum_id = self.add(self.fresh(f"{node.name} total"), total, (where,))
        ones: Element = cast(self.nodes[self.new[mask]].element, INT64)
        ones_id = self.add(self.fresh("selected"), ones, (self.new[mask],))
        count = Compute(SUM_FOLD, (ones,), Spec(INT64, ()), {"keepdims": False})
        count_id = self.add(self.fresh("selected count"), count, (ones_id,))
        wide: Element = cast(count, FLOAT64)
        wide_id = self.add(self.fresh("count"), wide, (count_id,))
        quotient = divide(total, wide)
        quotient_id = self.add(self.fresh(f"{node.name} exact"), quotient, (sum_id, wide_id))
        if node.spec.dtype == FLOAT64:
            return quotient_id
        return self.add(node.name, cast(quotient, node.spec.dtype), (quotient_id,))


def fold_selected(graph: Graph, *, float64: bool) -> Graph:
    """Return the graph with sums over selected records taken over all records.

    Args:
        graph: the graph.
        float64: whether the device supports double precision, which the quotient of a mean needs.
    """
    if not any(node.kind is Kind.SELECT for node in graph.nodes):
        return graph
    return _Masker(graph, float64=float64).rewritten()
