"""Rewrite that moves sections and cuts into sources and separates the reads of concatenated streams.

Sections and cuts move through maps. Records outside of a section are then never read. Streams with an offset between
them (`x[1:] - x[:-1]`, `x[: n // 2] + x[n // 2 :]`) are read separately, so that no records have to wait. The rewrite
applies to sources that can be read again from any position. For other sources the runtime cuts the stream as it
arrives.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass

from flowcompute.elements import Compute, Kind, Source
from flowcompute.elements.generated import Generator
from flowcompute.errors import PlanError
from flowcompute.graph import Graph, Node
from flowcompute.rewrite.rewriter import GraphRewriter
from flowcompute.sources import SourceView
from flowcompute.spec import Spec, Stream

_MAPS = (Kind.ELEMENTWISE, Kind.REDUCE, Kind.CONTRACT, Kind.VIEW)


@dataclass(frozen=True)
class _Part:
    """Records of a stream: `length` runs of `every` records, the first at `start`, `step` apart.

    With `every` 0 the runs are single records.
    """

    start: int
    step: int
    every: int
    length: int

    @property
    def text(self) -> str:
        runs = f" in runs of {self.every}" if self.every else ""
        return f"[{self.start}:{self.start + self.length * self.step}:{self.step}]{runs}"

    def spec(self, spec: Spec) -> Spec:
        shape = (self.every, *spec.shape) if self.every else spec.shape
        return Spec(spec.dtype, shape, Stream(self.length))


class _PartMover(GraphRewriter):
    def __init__(self, graph: Graph) -> None:
        super().__init__(graph)
        self.parts: dict[tuple[int, _Part], int] = {}
        self.users = graph.users()

    def rewrite(self, node: Node) -> int:
        """Add a node of the old graph to the new one."""
        part = _part_of(node)
        if part is not None and self._reaches_sources(node.inputs[0], part):
            return self._part(node.inputs[0], part)
        if _is_concat(node):
            return self.add(node.name, node.element, self._concatenated(node))
        return self.add(node.name, node.element, tuple(self.new[i] for i in node.inputs))

    # -- parts --------------------------------------------------------------------------------

    def _reaches_sources(self, value: int, part: _Part) -> bool:
        """Check whether the part can be taken of all streams that the value depends on."""
        todo, seen = [value], {value}
        while todo:
            node = self.graph.nodes[todo.pop()]
            if not node.spec.is_stream:
                continue
            inner = _part_of(node)
            if isinstance(node.element, Source):
                if not (node.element.rereadable and node.element.seekable) or node.spec.length is None:
                    return False
                continue
            if inner is not None:
                # Sections of sections are supported here. The runtime handles other parts of parts.
                if inner.every or part.every or inner.step != 1:
                    return False
            elif (
                node.kind not in _MAPS
                or isinstance(node.op, Generator)
                or (part.every and node.kind is not Kind.ELEMENTWISE)
            ):
                return False
            todo += [i for i in node.inputs if i not in seen]
            seen.update(node.inputs)
        return True

    def _part(self, value: int, part: _Part) -> int:
        """Return the part of a value, as a node of the new graph."""
        node = self.graph.nodes[value]
        if not node.spec.is_stream:
            return self.new[value]
        key = (value, part)
        if key not in self.parts:
            self.parts[key] = self._make_part(node, part)
        return self.parts[key]

    def _make_part(self, node: Node, part: _Part) -> int:
        inner = _part_of(node)
        if inner is not None:
            moved = _Part(part.start + inner.start, part.step, part.every, part.length)
            return self._part(node.inputs[0], moved)
        name = self.fresh(node.name + part.text)
        if isinstance(node.element, Source):
            view = SourceView(node.element, first=part.start, step=part.step, every=part.every, length=part.length)
            return self.add(name, view, ())
        inputs = tuple(self._part(i, part) for i in node.inputs)
        twin = copy.copy(node.element)
        twin.freeze_fields(spec=part.spec(node.spec))
        return self.add(name, twin, inputs)

    # -- concatenation ------------------------------------------------------------------------

    def _concatenated(self, node: Node) -> tuple[int, ...]:
        """Return the inputs of a concatenation. All but the first are read separately if others use their streams."""
        inputs = [self.new[node.inputs[0]]]
        inputs += [
            self._reread(value, {}) if self._is_shared(value, node) else self.new[value] for value in node.inputs[1:]
        ]
        return tuple(inputs)

    def _is_shared(self, value: int, concat: Node) -> bool:
        """Check whether a stream that a value depends on is used outside of this input of the concatenation."""
        nodes = self.graph.nodes
        mine = _ancestors(nodes, value)
        if concat.inputs.count(value) > 1:
            return True
        users = {i: set(self.users[i]) - mine for i in mine}
        return users.pop(value) != {concat.id} or any(users.values())

    def _reread(self, value: int, made: dict[int, int]) -> int:
        """Add a second reading of a value of the old graph and of all streams that it depends on.

        Raises:
            PlanError: if one of its sources can be read only once.
        """
        node = self.graph.nodes[value]
        if not node.spec.is_stream:
            return self.new[value]
        if isinstance(node.element, Source) and not node.element.rereadable:
            raise PlanError(
                "cannot read a source twice that can be read only once: "
                "it is part of a concatenation and has other uses",
                element=node.name,
                site=node.element.site,
                expected="a source that can be read again, like a file or an array",
                hint="write it to a file first",
            )
        if value not in made:
            part = _part_of(node)
            if part is not None and self._reaches_sources(node.inputs[0], part):
                again = self._fresh_part(node.inputs[0], part)
            else:
                # Inputs of a concatenation are read at different times.
                apart = _is_concat(node)
                inputs = tuple(self._reread(i, {} if apart else made) for i in node.inputs)
                again = self.add(self.fresh(f"{node.name} again"), node.element, inputs)
            made[value] = again
        return made[value]

    def _fresh_part(self, value: int, part: _Part) -> int:
        """Return a part with readings of its sources that no other node uses."""
        shared, self.parts = self.parts, {}
        try:
            return self._part(value, part)
        finally:
            self.parts = shared


def _is_concat(node: Node) -> bool:
    return node.kind is Kind.REBATCH and node.op is not None and node.op.name == "concat"


def _part_of(node: Node) -> _Part | None:
    """Return the part that a section or cut of known length takes; None for other nodes."""
    if not isinstance(node.element, Compute) or node.kind is not Kind.REBATCH or node.spec.length is None:
        return None
    attrs = node.attrs
    if node.element.op.name == "section":
        return _Part(attrs["start"], attrs["step"], 0, node.spec.length)
    if node.element.op.name == "cut" and attrs["tail"] in ("error", "drop"):
        return _Part(0, attrs["every"], attrs["every"], node.spec.length)
    return None


def _ancestors(nodes: Sequence[Node], value: int) -> set[int]:
    """Return the ids of the stream nodes that a value depends on, including its own."""
    found, todo = {value}, [value]
    while todo:
        for i in nodes[todo.pop()].inputs:
            if i not in found and nodes[i].spec.is_stream:
                found.add(i)
                todo.append(i)
    return found


def move_parts_to_sources(graph: Graph) -> Graph:
    """Return the graph with sections and cuts moved into the sources if possible. Roots keep their order."""
    if not any(node.kind is Kind.REBATCH for node in graph.nodes):
        return graph
    return _PartMover(graph).rewritten()
