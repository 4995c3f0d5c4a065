"""Rewrite that moves shuffled orders into sources, which are then read in that order.

`fc.shuffle(f(x))` becomes f of the shuffled x, for maps f. Sections and cuts on the way move along. What cannot move so
is refused when it is composed.
"""

from __future__ import annotations

import copy

from flowcompute.elements import ALONG, Compute, Constant, Source
from flowcompute.elements.generated import Permutation
from flowcompute.elements.streams import SHUFFLE, order_of
from flowcompute.graph import Graph, Node, postorder
from flowcompute.imports import dataclass
from flowcompute.rewrite.parts import SourcePart, part_of
from flowcompute.rewrite.rewriter import GraphRewriter
from flowcompute.sources import MemorySource, ShuffledSource
from flowcompute.spec import Spec


@dataclass(frozen=True)
class _Order:
    """Records in another order."""

    order: Permutation
    inverse: bool

    def of(self, source: Source) -> Source:
        """Return the records of a source in this order."""
        if isinstance(source, ShuffledSource) and source.orders == (self.order,) and source.inverse != self.inverse:
            return source.inner
        return ShuffledSource(source, self.order, inverse=self.inverse)

    def spec(self, spec: Spec) -> Spec:
        """Return the spec of a stream in this order."""
        return spec


_Steps = tuple[_Order | SourcePart, ...]
"""Operations on a stream, the first one first."""

_Key = tuple[int, _Steps]


class _ShuffleMover(GraphRewriter):
    def __init__(self, graph: Graph) -> None:
        super().__init__(graph)
        self._made: dict[_Key, int] = {}

    def rewrite(self, node: Node) -> int:
        """Add a node of the old graph to the new one."""
        return self._moved((node.id, ())) if node.op is SHUFFLE else self.copy_node(node)

    def _moved(self, asked: _Key) -> int:
        for key in postorder((self._below(asked),), self._operands, self._made):
            self._made[key] = self._make(*key)
        return self._made[self._below(asked)]

    def _below(self, key: _Key) -> _Key:
        """Return the same value as steps of an operand that no step makes."""
        value, steps = key
        while (step := _step_of(self.graph.nodes[value])) is not None:
            value, steps = self.graph.nodes[value].inputs[0], (step, *steps)
        return value, steps

    def _operands(self, key: _Key) -> list[_Key]:
        node = self.graph.nodes[key[0]]
        streams = [] if _source_of(self.graph, node) is not None else node.inputs
        return [self._below((i, key[1])) for i in streams if self.graph.nodes[i].spec.is_stream]

    def _make(self, value: int, steps: _Steps) -> int:
        node = self.graph.nodes[value]
        source = _source_of(self.graph, node)
        name = self.fresh(f"{node.name} shuffled")
        if source is not None:
            for step in steps:
                source = step.of(source)
            return self.add(name, source, ())
        twin = copy.copy(node.element)
        spec = node.spec
        for step in steps:
            spec = step.spec(spec)
        twin.freeze_fields(spec=spec)
        streams = [self.graph.nodes[i].spec.is_stream for i in node.inputs]
        inputs = tuple(
            self._made[self._below((i, steps))] if is_stream else self.new[i]
            for i, is_stream in zip(node.inputs, streams, strict=True)
        )
        return self.add(name, twin, inputs)


def _source_of(graph: Graph, node: Node) -> Source | None:
    """Return the source that a node is, or that reads the rows of a constant."""
    if isinstance(node.element, Source):
        return node.element
    if isinstance(node.element, Compute) and node.op is ALONG:
        constant = graph.nodes[node.inputs[0]].element
        assert isinstance(constant, Constant)
        return MemorySource(constant.value, name=constant.name)
    return None


def _step_of(node: Node) -> _Order | SourcePart | None:
    if isinstance(node.element, Compute) and node.op is SHUFFLE:
        return _Order(order_of(node.element), node.attrs["inverse"])
    return part_of(node)


def move_shuffles_to_sources(graph: Graph) -> Graph:
    """Return the graph without shuffles: its sources are read in their orders. Roots keep their order."""
    if not any(node.op is SHUFFLE for node in graph.nodes):
        return graph
    return _ShuffleMover(graph).rewritten()
