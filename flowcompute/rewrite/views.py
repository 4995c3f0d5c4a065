"""Rewrite that moves views through element-wise operations, so that only the viewed numbers are computed.

`(x * 2)[:, 0]` becomes `x[:, 0] * 2`, whose view is only another stride in the kernel that reads `x`. Otherwise all of
`x * 2` would be computed and stored. A view moves under two conditions: no other node needs the whole operand, and
the view ends at values that are in memory anyway. It never forces a kernel to store a value.

Before that, a view of a resident value that is broadcast becomes a broadcast view of the small value. What is computed
of one number alone is computed once and broadcast. Thus `(fc.zeros((n, m)) + 1)[0, :4]` takes four numbers,
not `n * m`.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from flowcompute.elements import Constant, Kind, Op
from flowcompute.elements.axes import BROADCAST, INDEX, PERMUTE, RESHAPE
from flowcompute.elements.generated import Generator
from flowcompute.elements.quantized import Dequantize
from flowcompute.graph import Graph, Node
from flowcompute.imports import dataclass
from flowcompute.ir import view_array
from flowcompute.rewrite.rewriter import GraphRewriter

_MOVED = (INDEX, PERMUTE, RESHAPE)
_NEVER_STORED = (Kind.REDUCE, Kind.CONTRACT)
"""Kinds of nodes whose values kernels may compute without storing them."""

MOST_MOVED = 64
"""Views in a row up to which they move through an operation. Each operand is viewed in as many steps."""

_NOT_WHOLE = -1
"""Placeholder id of a value of which the new graph has only views."""


@dataclass(frozen=True)
class _Step:
    """One view in a chain: that of node `like`, with other attributes."""

    op: Op
    like: int
    attrs: tuple[tuple[str, Any], ...]
    shape: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class _Chain:
    """A chain of views: a first step, and the chain behind it. There is one object for each chain of a graph.

    Attributes:
        length: number of its steps.
        reshapes: whether one of them is a reshape.
        shape: item shape behind the last of them.
    """

    step: _Step
    rest: _Chain | None
    length: int
    reshapes: bool
    shape: tuple[int, ...]


_Steps = _Chain | None
"""The views of a value, None for the value itself."""


class _ViewMover(GraphRewriter):
    def __init__(self, graph: Graph) -> None:
        super().__init__(graph)
        self.users = [set(users) for users in graph.users()]
        self.views: dict[Any, int] = {}
        self.named: set[int] = set()
        self.seen: dict[tuple[int, _Steps], int] = {}
        self.chains: dict[Any, _Chain] = {}
        self.moved = [_is_moved(node) for node in graph.nodes]
        self.passed: dict[int, bool] = {}
        self.wanted = self._wanted()

    def rewrite(self, node: Node) -> int:
        """Add the views of a node's value that others need, and the value itself if it is needed."""
        for seen in self.wanted.get(node.id, {None: None}):
            self.seen[node.id, seen] = self._seen_of(node, seen)
        return self.seen.get((node.id, None), _NOT_WHOLE)

    # -- the views of each value ----------------------------------------------------------------

    def _wanted(self) -> dict[int, dict[_Steps, None]]:
        """Return the chains of views of each value that is used only through movable views."""
        movable = {even: self._movable(even=even) for even in (False, True)}
        wanted: dict[int, dict[_Steps, None]] = {}
        for node in reversed(self.graph.nodes):
            every = wanted.get(node.id, {None: None})
            for seen in every:
                steps = self._chain(_own_step(node), seen) if self.moved[node.id] else seen
                for value in node.inputs if steps is not None else ():
                    assert steps is not None
                    operand = self.graph.nodes[value]
                    short = self.moved[operand.id] or steps.length <= MOST_MOVED
                    if short and self._is_passed(operand) and movable[steps.reshapes][value]:
                        wanted.setdefault(value, {})[self._of_operand(node, value, steps)] = None
            if None in every and not self.moved[node.id]:
                for value in wanted.keys() & set(node.inputs):
                    wanted[value][None] = None
        return wanted

    def _chain(self, step: _Step, rest: _Steps) -> _Chain:
        """Return the chain of a step and those behind it."""
        key = (step.op.name, step.like, step.attrs, step.shape, rest)
        if key not in self.chains:
            reshapes, length, shape = step.op is RESHAPE, 1, step.shape
            if rest is not None:
                reshapes, length, shape = reshapes or rest.reshapes, length + rest.length, rest.shape
            self.chains[key] = _Chain(step, rest, length, reshapes, shape)
        return self.chains[key]

    def _of_operand(self, node: Node, value: int, steps: _Steps) -> _Steps:
        """Return the chain of views of an operand that corresponds to a chain of views of a node."""
        shape = self.graph.nodes[value].spec.shape
        if self.moved[node.id] or shape == node.spec.shape:
            return steps
        adapted: _Steps = None
        for step in reversed(_adapted(_steps_of(steps), shape, node.spec.shape)):
            adapted = self._chain(step, adapted)
        return adapted

    def _is_passed(self, node: Node) -> bool:
        """Check whether views of a value can become views of its operands without computing anything twice."""
        found = self.passed.get(node.id)
        if found is None:
            found = self.passed[node.id] = self._lets_pass(node)
        return found

    def _lets_pass(self, node: Node) -> bool:
        if not node.spec.is_stream or not (node.kind is Kind.ELEMENTWISE or self.moved[node.id]):
            return False
        if isinstance(node.op, (Generator, Dequantize)):
            return False
        users = self.users[node.id]
        if len(users) == 1:
            return True
        nodes = self.graph.nodes
        few = sum([nodes[user].spec.item_numbers for user in users]) <= node.spec.item_numbers
        return few and all(self.moved[user] for user in users)

    def _movable(self, *, even: bool) -> list[bool]:
        """Return for each value whether views of it can move to values in memory.

        Args:
            even: whether broadcast operands prevent it.
        """
        memory: list[bool] = []
        found: list[bool] = []
        nodes = self.graph.nodes
        for node in nodes:
            is_stream, moved = node.spec.is_stream, self.moved[node.id]
            if moved or (is_stream and node.op is BROADCAST):
                lies = memory[node.inputs[0]]
            else:
                lies = not is_stream or node.kind not in (Kind.ELEMENTWISE, *_NEVER_STORED)
            memory.append(lies)
            # Most questions are answered before the dearer ones.
            passes = lies or (self._is_passed(node) and all(found[i] for i in node.inputs))
            if passes and even and not lies and not moved:
                passes = all(nodes[i].spec.shape in ((), node.spec.shape) for i in node.inputs)
            found.append(passes)
        return found

    # -- the new graph ----------------------------------------------------------------------------

    def _seen_of(self, node: Node, seen: _Steps) -> int:
        if self.moved[node.id]:
            return self._operand(node.inputs[0], self._chain(_own_step(node), seen))
        if seen is None:
            assert all(self.new[value] != _NOT_WHOLE for value in node.inputs), (
                "needs a value of which only views were kept"
            )
            return self.copy_node(node)
        inputs = tuple(self._operand(value, self._of_operand(node, value, seen)) for value in node.inputs)
        twin = copy.copy(node.element)
        twin.freeze_fields(spec=replace(node.spec, shape=seen.shape))
        return self.add(self._name(node), twin, inputs)

    def _operand(self, value: int, seen: _Steps) -> int:
        return self.seen[value, seen] if value in self.wanted else self._viewed(self.new[value], seen)

    def _name(self, node: Node) -> str:
        """Return the name of a node for the first of its replacements, and fresh names for the others."""
        name = self.fresh(node.name) if node.id in self.named else node.name
        self.named.add(node.id)
        return name

    def _viewed(self, value: int, steps: _Steps) -> int:
        """Add views of a value of the new graph. Equal views are added once."""
        for step in _steps_of(steps):
            key = (value, step.op.name, step.attrs, step.shape)
            if key not in self.views:
                self.views[key] = self._view(value, step)
            value = self.views[key]
        return value

    def _view(self, value: int, step: _Step) -> int:
        like, before = self.graph.nodes[step.like], self.nodes[value]
        twin = copy.copy(like.element)
        twin.freeze_fields(op=step.op, spec=replace(before.spec, shape=step.shape), attrs=dict(step.attrs))
        if isinstance(before.element, Constant):
            seen = view_array(Node(value, like.name, twin, (value,)), [before.element.value], stream=False)
            return self.add(self.fresh(before.name), Constant(seen), ())
        return self.add(self._name(like), twin, (value,))


class _BroadcastCollapser(GraphRewriter):
    def rewrite(self, node: Node) -> int:
        """Add a node; in place of a view or an operation of resident broadcasts a broadcast of one."""
        if type(node.op) is Op and node.kind is Kind.ELEMENTWISE and node.spec.shape and not node.spec.is_stream:
            return self._computed_once(node)
        if node.op not in _MOVED or node.spec.is_stream:
            return self.copy_node(node)
        spread = self.nodes[self.new[node.inputs[0]]]
        base = self.nodes[spread.inputs[0]] if spread.op is BROADCAST else None
        if base is None or (node.op is RESHAPE and base.spec.shape):
            return self.copy_node(node)
        value = base.id
        for step in _adapted([_own_step(node)], base.spec.shape, spread.spec.shape):
            value = self._viewed(value, node, step)
        twin = copy.copy(node.element)
        twin.freeze_fields(op=BROADCAST, attrs={})
        return self.add(node.name, twin, (value,))

    def _computed_once(self, node: Node) -> int:
        """Add an element-wise operation; where all of its operands are one number each, of these numbers."""
        operands = [self.nodes[self.new[value]] for value in node.inputs]
        numbers = [self.nodes[one.inputs[0]] if one.op is BROADCAST else one for one in operands]
        if any(one.spec.shape for one in numbers):
            return self.copy_node(node)
        number, spread = copy.copy(node.element), copy.copy(node.element)
        number.freeze_fields(spec=replace(node.spec, shape=()))
        spread.freeze_fields(op=BROADCAST, attrs={})
        value = self.add(self.fresh(node.name), number, tuple(one.id for one in numbers))
        return self.add(node.name, spread, (value,))

    def _viewed(self, value: int, node: Node, step: _Step) -> int:
        twin = copy.copy(node.element)
        spec = replace(self.nodes[value].spec, shape=step.shape)
        twin.freeze_fields(op=step.op, spec=spec, attrs=dict(step.attrs))
        return self.add(self.fresh(node.name), twin, (value,))


def _is_moved(node: Node) -> bool:
    return node.kind is Kind.VIEW and node.op in _MOVED and node.spec.is_stream and 0 not in node.spec.shape


def _own_step(node: Node) -> _Step:
    assert node.op is not None
    return _Step(node.op, node.id, tuple(sorted(node.attrs.items())), node.spec.shape)


def _steps_of(chain: _Steps) -> Iterator[_Step]:
    """Yield the steps of a chain."""
    while chain is not None:
        yield chain.step
        chain = chain.rest


def _adapted(seen: Iterable[_Step], shape: tuple[int, ...], item: tuple[int, ...]) -> list[_Step]:
    """Convert views of items of one shape to views of an operand that is broadcast to it."""
    steps: list[_Step] = []
    for step in seen if shape else ():
        missing = (None,) * (len(item) - len(shape))
        if step.op is INDEX:
            index = _indexed(dict(step.attrs)["index"], shape, item)
            whole = tuple((0, size, 1) for size in shape)
            shape = tuple(1 if key is None else key[1] for key in index if not isinstance(key, int))
            if index != whole:
                steps.append(_Step(INDEX, step.like, (("index", index),), shape))
        else:
            if missing:
                shape = (*(1 for _ in missing), *shape)
                index = (*missing, *((0, size, 1) for size in shape[len(missing) :]))
                steps.append(_Step(INDEX, step.like, (("index", index),), shape))
            shape = tuple(shape[axis] for axis in dict(step.attrs)["axes"])
            steps.append(_Step(step.op, step.like, step.attrs, shape))
        item = step.shape
    return steps


def _indexed(index: tuple[Any, ...], shape: tuple[int, ...], item: tuple[int, ...]) -> tuple[Any, ...]:
    """Convert an index of items to an index of an operand.

    Axes that the operand lacks have no key. Axes along which it is broadcast have the key of their one element.
    """
    missing, axis = len(item) - len(shape), 0
    made: list[Any] = []
    for key in index:
        if key is None:
            if axis >= missing:
                made.append(None)
            continue
        if axis >= missing:
            spread = shape[axis - missing] == 1 and item[axis] != 1
            made.append(key if not spread else 0 if isinstance(key, int) else (0, 1, 1))
        axis += 1
    return tuple(made)


def move_views(graph: Graph) -> Graph:
    """Return the graph with views moved through element-wise operations towards memory. Roots keep their order."""
    if any(node.op is BROADCAST and not node.spec.is_stream for node in graph.nodes):
        graph = _BroadcastCollapser(graph).rewritten()
    if not any(_is_moved(node) for node in graph.nodes):
        return graph
    return _ViewMover(graph).rewritten()
