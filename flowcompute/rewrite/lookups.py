"""Rewrite that moves lookups through element-wise operations, so that a table is computed for the rows asked for only.

`take(table * 2, ids)` becomes `take(table, ids) * 2`: the product is computed behind the lookup, in its kernel.
Otherwise all of `table * 2` would be computed and stored. A lookup moves through all cheap operations, also where
something else needs their results whole: a product may compute them where it loads them. It moves through a costly one
where the table is large and nothing else needs it. Otherwise that is computed once.
"""

from __future__ import annotations

import copy

from flowcompute.elements import Compute, Constant, Kind
from flowcompute.elements.axes import INDEX, LOOKUP
from flowcompute.graph import Graph, Node, postorder
from flowcompute.ir import view_array
from flowcompute.rewrite.rewriter import GraphRewriter
from flowcompute.spec import Spec

_CHEAP = 8
"""Instructions that a number may cost at each lookup, whoever else needs it."""
_SMALL_BYTES = 64 << 10
"""Tables up to this size stay in cache, and are computed once if their numbers are costly."""

_Asked = tuple[int, int]
"""How lookups take rows of a value: the number of axes behind the axis of rows, and the number of rows."""


class _LookupMover(GraphRewriter):
    def __init__(self, graph: Graph) -> None:
        super().__init__(graph)
        self.moved, self.named = self._find_moved()

    def _find_moved(self) -> tuple[set[int], set[int]]:
        """Return the operations that are computed for the rows asked for, and those that stay beside that."""
        asked: dict[int, set[_Asked]] = {}
        whole = set(self.graph.roots)
        moved: set[int] = set()
        for node in reversed(self.graph.nodes):
            if self._is_moved(node, asked.get(node.id, set()), whole):
                moved.add(node.id)
            for value in node.inputs:
                shape = self.graph.nodes[value].spec.shape
                if node.id in moved:
                    asked.setdefault(value, set()).update(asked[node.id])
                    if node.id in whole or any(_axis_of_rows(shape, one) is None for one in asked[node.id]):
                        whole.add(value)
                elif node.op is LOOKUP and value == node.inputs[0]:
                    asked.setdefault(value, set()).add(_asked(node, shape))
                else:
                    whole.add(value)
        # A lookup that moves leaves its name to what takes its place.
        return moved, {i for i in whole if self.graph.nodes[i].op is not LOOKUP}

    def _is_moved(self, node: Node, asked: set[_Asked], whole: set[int]) -> bool:
        """Check whether rows of a resident value can be computed of rows of its operands, and should be."""
        if not asked or node.kind is not Kind.ELEMENTWISE or node.spec.is_stream or node.pin is not None:
            return False
        assert node.op is not None
        if node.op.cost > _CHEAP and (node.id in whole or node.spec.item_bytes <= _SMALL_BYTES):
            return False
        # Blocks of numbers lie otherwise along the last axis than the numbers do.
        shapes = [self.graph.nodes[i].spec.shape for i in node.inputs]
        return all(_axis_of_rows(shape, one) is not None or _is_beside(shape, one) for shape in shapes for one in asked)

    def rewrite(self, node: Node) -> int:
        """Add a node; in place of a lookup what computes its rows."""
        if node.op is not LOOKUP or node.inputs[0] not in self.moved:
            return self.copy_node(node)
        rows: dict[int, int] = {}
        asked = _asked(node, self.graph.nodes[node.inputs[0]].spec.shape)

        def looked_up(value: int) -> list[int]:
            inputs = self.graph.nodes[value].inputs if value in self.moved else ()
            return [i for i in inputs if _axis_of_rows(self.graph.nodes[i].spec.shape, asked) is not None]

        for value in postorder((node.inputs[0],), looked_up, rows):
            rows[value] = self._rows(node, value, asked, rows)
        return rows[node.inputs[0]]

    def _rows(self, lookup: Node, value: int, asked: _Asked, rows: dict[int, int]) -> int:
        """Add the rows of a value: of operands that were looked up before, or by a lookup of its own."""
        node, indices = self.graph.nodes[value], self.graph.nodes[lookup.inputs[1]]
        axis = _axis_of_rows(node.spec.shape, asked)
        assert axis is not None
        shape = (*node.spec.shape[:axis], *indices.spec.shape, *node.spec.shape[axis + 1 :])
        twin = copy.copy(node.element if value in self.moved else lookup.element)
        twin.freeze_fields(spec=Spec(node.spec.dtype, shape, lookup.spec.stream))
        if value in self.moved:
            inputs = tuple(
                rows[i] if i in rows else self._beside(i, asked, len(indices.spec.shape)) for i in node.inputs
            )
            return self.add(self._name(node), twin, inputs)
        twin.freeze_fields(attrs={"axis": axis})
        return self.add(self._name(lookup), twin, (self.new[value], self.new[indices.id]))

    def _beside(self, value: int, asked: _Asked, axes: int) -> int:
        """Return an operand that is the same for all rows, with as many axes of size 1 as an item of indices has."""
        node = self.graph.nodes[value]
        place = len(node.spec.shape) - 1 - asked[0]
        if place < 0 or axes == 1:
            return self.new[value]
        before, behind = node.spec.shape[:place], node.spec.shape[place + 1 :]
        keys = (*((0, size, 1) for size in before), 0, *[None] * axes, *((0, size, 1) for size in behind))
        spec = Spec(node.spec.dtype, (*before, *[1] * axes, *behind))
        view = Compute(INDEX, (node.element,), spec, {"index": keys})
        name = self.fresh(node.name)
        if isinstance(node.element, Constant):
            seen = view_array(Node(value, name, view, (value,)), [node.element.value], stream=False)
            return self.add(name, Constant(seen), ())
        return self.add(name, view, (self.new[value],))

    def _name(self, node: Node) -> str:
        """Return the name of a node for the first of its replacements, and fresh names for the others."""
        name = self.fresh(node.name) if node.id in self.named else node.name
        self.named.add(node.id)
        return name


def _asked(lookup: Node, shape: tuple[int, ...]) -> _Asked:
    axis: int = lookup.attrs["axis"]
    return len(shape) - 1 - axis, shape[axis]


def _axis_of_rows(shape: tuple[int, ...], asked: _Asked) -> int | None:
    """Return the axis of a value along which it has the rows asked for; None if it has not."""
    axis = len(shape) - 1 - asked[0]
    return axis if axis >= 0 and shape[axis] == asked[1] else None


def _is_beside(shape: tuple[int, ...], asked: _Asked) -> bool:
    """Check whether a value is the same for all rows."""
    axis = len(shape) - 1 - asked[0]
    return axis < 0 or shape[axis] == 1


def move_lookups(graph: Graph) -> Graph:
    """Return the graph with lookups moved through element-wise operations towards memory. Roots keep their order."""
    mover = _LookupMover(graph)
    return mover.rewritten() if mover.moved else graph
