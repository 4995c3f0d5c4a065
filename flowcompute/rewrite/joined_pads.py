"""Rewrite that joins what fills a value part by part, where zeros were added around each part.

The parts of a value, as queries, keys and values of one product, have cotangents that are padded with zeros and added.
Each pad and each sum writes all numbers. `pad(a) + pad(b) + pad(c)` is `concat([a, b, c]) + 0` where the parts lie side
by side and fill the value. Bits stay: a number has had zeros added, which turn -0 into 0 and change no other one.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from flowcompute.elements import Compute, Constant
from flowcompute.elements.axes import PAD, RESHAPE, concat
from flowcompute.elements.math import add
from flowcompute.graph import Graph, Node
from flowcompute.rewrite.rewriter import GraphRewriter
from flowcompute.spec import is_float


class _Part(NamedTuple):
    """A value that a pad surrounds, the axis of items along which it does, and its place there."""

    value: int
    axis: int
    start: int
    stop: int


class _PadJoiner(GraphRewriter):
    def __init__(self, graph: Graph) -> None:
        super().__init__(graph)
        self._users = graph.users()

    def rewrite(self, node: Node) -> int:
        """Add a node; a sum of pads that fill its value becomes what they surround, one part after the other."""
        parts = self._parts(node)
        if parts is None:
            return self.copy_node(node)
        _, axis, _, _ = parts[0]
        values = [self.graph.nodes[part.value].element for part in parts]
        joined = concat(values, axis + node.spec.is_stream)
        made = self.add(self.fresh(f"{node.name}.concat"), joined, tuple(self.new[part.value] for part in parts))
        zero = Constant(np.zeros((), node.spec.dtype))
        summed = Compute(add.op, (joined, zero), joined.spec)
        made = self.add(self.fresh(node.name), summed, (made, self.add(self.fresh(f"{node.name}.zero"), zero, ())))
        return self.add(node.name, Compute(RESHAPE, (summed,), node.spec), (made,))

    def _parts(self, node: Node) -> list[_Part] | None:
        """Return the parts that fill a sum, in their order; None if it is another sum, or one of a larger one."""
        if not self._is_sum(node) or any(self._is_sum(self.graph.nodes[user]) for user in self._users[node.id]):
            return None
        found, todo, shapes = list[_Part](), [*node.inputs], set[tuple[int, ...]]()
        while todo:
            one = self.graph.nodes[todo.pop()]
            if self._is_sum(one) and len(self._users[one.id]) == 1:
                todo.extend(one.inputs)
                continue
            pad = self.graph.nodes[one.inputs[0]] if one.op is RESHAPE else one
            part = self._surrounded(pad)
            if part is None or one.spec != node.spec:
                return None
            found.append(part)
            shapes.add(pad.spec.shape)
        found.sort(key=lambda part: part.start)
        if len(shapes) > 1 or len({part.axis for part in found}) > 1:
            return None
        stops = [0, *(part.stop for part in found)]
        fills = stops[:-1] == [part.start for part in found] and stops[-1] == shapes.pop()[found[0].axis]
        return found if fills else None

    @staticmethod
    def _is_sum(node: Node) -> bool:
        return node.op is add.op and node.spec.is_stream and is_float(node.spec.dtype)

    def _surrounded(self, node: Node) -> _Part | None:
        """Return what a pad surrounds by zeros along one axis; None where the node is no such pad."""
        if node.op is not PAD or node.attrs["mode"] != "constant":
            return None
        # A sum of what -0 surrounds keeps -0.
        if node.attrs["fill"] != 0 or math.copysign(1, node.attrs["fill"]) < 0:
            return None
        padded = [axis for axis, widths in enumerate(node.attrs["widths"]) if any(widths)]
        if len(padded) != 1:
            return None
        (axis,) = padded
        before, behind = node.attrs["widths"][axis]
        return _Part(node.inputs[0], axis, before, node.spec.shape[axis] - behind)


def join_pads(graph: Graph) -> Graph:
    """Return the graph with values that are filled part by part joined at once. Roots keep their order."""
    return _PadJoiner(graph).rewritten()
