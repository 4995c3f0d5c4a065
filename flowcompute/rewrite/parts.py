"""Rewrite that moves sections and cuts into sources and separates the reads of concatenated streams.

Sections and cuts move through maps. Records outside of a section are then never read. Streams with an offset between
them (`x[1:] - x[:-1]`, `x[: n // 2] + x[n // 2 :]`) are read separately, so that no records have to wait. The rewrite
applies to sources that can be read again from any position. For other sources the runtime cuts the stream as it
arrives.
"""

from __future__ import annotations

import copy
import itertools
from collections.abc import Sequence
from dataclasses import replace

from flowcompute.elements import Compute, Kind, Source
from flowcompute.elements.generated import Generator
from flowcompute.errors import PlanError
from flowcompute.graph import Graph, Node, postorder
from flowcompute.imports import dataclass
from flowcompute.rewrite.rewriter import GraphRewriter
from flowcompute.sources import SourceView
from flowcompute.spec import Spec, Stream

_Reading = tuple[int, int]
"""A value, and the number of one of its readings."""

_MAPS = (Kind.ELEMENTWISE, Kind.REDUCE, Kind.CONTRACT, Kind.VIEW)


@dataclass(frozen=True)
class SourcePart:
    """Records of a stream: `length` runs of `every` records, the first at `start`, `step` apart.

    With `every` 0 the runs are single records.
    """

    start: int
    step: int
    every: int
    length: int

    @property
    def text(self) -> str:
        """The part as users write it."""
        runs = f" in runs of {self.every}" if self.every else ""
        return f"[{self.start}:{self.start + self.length * self.step}:{self.step}]{runs}"

    def of(self, source: Source) -> Source:
        """Return this part of a source."""
        return SourceView(source, first=self.start, step=self.step, every=self.every, length=self.length)

    def spec(self, spec: Spec) -> Spec:
        """Return the spec of this part of a stream."""
        shape = (self.every, *spec.shape) if self.every else spec.shape
        return Spec(spec.dtype, shape, Stream(self.length))


class _PartMover(GraphRewriter):
    def __init__(self, graph: Graph) -> None:
        super().__init__(graph)
        self.parts: dict[tuple[int, SourcePart], int] = {}
        self.users = graph.users()
        self.single, self.in_runs = self._divisible(in_runs=False), self._divisible(in_runs=True)
        self.origins = self._origins()

    def rewrite(self, node: Node) -> int:
        """Add a node of the old graph to the new one."""
        part = part_of(node)
        if part is not None and self._is_divided(node):
            return self._part(node.inputs[0], part)
        if _is_concat(node):
            return self.add(node.name, node.element, self._concatenated(node))
        return self.add(node.name, node.element, tuple(self.new[i] for i in node.inputs))

    # -- parts --------------------------------------------------------------------------------

    def _reaches_sources(self, value: int, part: SourcePart) -> bool:
        """Check whether the part can be taken of all streams that the value depends on."""
        return (self.in_runs if part.every else self.single)[value]

    def _divisible(self, *, in_runs: bool) -> list[bool]:
        """Return for each value whether parts, in runs of records or not, can be taken of all that it depends on."""
        found: list[bool] = []
        for node in self.graph.nodes:
            inner = part_of(node)
            if not node.spec.is_stream:
                fits = True
            elif isinstance(node.element, Source):
                fits = node.element.rereadable and node.element.seekable and node.spec.length is not None
            elif inner is not None:
                # Sections of sections are supported here. The runtime handles other parts of parts.
                fits = not in_runs and not inner.every and inner.step == 1
            else:
                fits = node.kind is Kind.ELEMENTWISE or (not in_runs and node.kind in _MAPS)
                fits = fits and not isinstance(node.op, Generator)
            found.append(fits and all(found[i] for i in node.inputs))
        return found

    def _part(self, value: int, part: SourcePart) -> int:
        """Return the part of a value, as a node of the new graph."""
        for key in postorder((self._origin(value, part),), self._operands_of_part, self.parts):
            self.parts[key] = self._make_part(*key)
        return self.parts[self._origin(value, part)]

    def _operands_of_part(self, key: tuple[int, SourcePart]) -> list[tuple[int, SourcePart]]:
        node = self.graph.nodes[key[0]]
        return [self._origin(i, key[1]) for i in node.inputs] if node.spec.is_stream else []

    def _origin(self, value: int, part: SourcePart) -> tuple[int, SourcePart]:
        """Return a part of a section of a value as a part of the value."""
        if not self.graph.nodes[value].spec.is_stream:
            return value, part
        origin, start = self.origins[value]
        return origin, replace(part, start=part.start + start)

    def _origins(self) -> list[tuple[int, int]]:
        """Return for each value the value that it is a section of, and its first record there."""
        found: list[tuple[int, int]] = []
        for node in self.graph.nodes:
            inner = part_of(node)
            if inner is None or inner.every or inner.step != 1:
                found.append((node.id, 0))
            else:
                origin, start = found[node.inputs[0]]
                found.append((origin, start + inner.start))
        return found

    def _make_part(self, value: int, part: SourcePart) -> int:
        node = self.graph.nodes[value]
        if not node.spec.is_stream:
            return self.new[value]
        name = self.fresh(node.name + part.text)
        if isinstance(node.element, Source):
            return self.add(name, part.of(node.element), ())
        inputs = tuple(self.parts[self._origin(i, part)] for i in node.inputs)
        twin = copy.copy(node.element)
        twin.freeze_fields(spec=part.spec(node.spec))
        return self.add(name, twin, inputs)

    # -- concatenation ------------------------------------------------------------------------

    def _concatenated(self, node: Node) -> tuple[int, ...]:
        """Return the inputs of a concatenation. All but the first are read separately if others use their streams."""
        inputs = [self.new[node.inputs[0]]]
        inputs += [
            self._reread(value) if self._is_shared(value, node) else self.new[value] for value in node.inputs[1:]
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

    def _reread(self, value: int) -> int:
        """Add a second reading of a value of the old graph and of all streams that it depends on.

        Raises:
            PlanError: if one of its sources can be read only once.
        """
        made: dict[_Reading, int] = {}
        operands: dict[_Reading, list[_Reading]] = {}
        readings = itertools.count(1)

        def find(key: _Reading) -> list[_Reading]:
            # Inputs of a concatenation are read at different times.
            node = self.graph.nodes[key[0]]
            inputs = () if self._is_divided(node) or not node.spec.is_stream else node.inputs
            operands[key] = [(i, next(readings) if _is_concat(node) else key[1]) for i in inputs]
            return operands[key]

        for key in postorder(((value, 0),), find, made):
            made[key] = self._read_again(self.graph.nodes[key[0]], tuple(made[one] for one in operands[key]))
        return made[value, 0]

    def _is_divided(self, node: Node) -> bool:
        """Check whether a node is a part that is taken of its sources."""
        part = part_of(node)
        return part is not None and self._reaches_sources(node.inputs[0], part)

    def _read_again(self, node: Node, inputs: tuple[int, ...]) -> int:
        """Add a second reading of a value, whose operands are read again."""
        if not node.spec.is_stream:
            return self.new[node.id]
        if isinstance(node.element, Source) and not node.element.rereadable:
            raise PlanError(
                "cannot read a source twice that can be read only once: "
                "it is part of a concatenation and has other uses",
                element=node.name,
                site=node.element.site,
                expected="a source that can be read again, like a file or an array",
                hint="write it to a file first",
            )
        part = part_of(node)
        if part is not None and self._is_divided(node):
            return self._fresh_part(node.inputs[0], part)
        return self.add(self.fresh(f"{node.name} again"), node.element, inputs)

    def _fresh_part(self, value: int, part: SourcePart) -> int:
        """Return a part with readings of its sources that no other node uses."""
        shared, self.parts = self.parts, {}
        try:
            return self._part(value, part)
        finally:
            self.parts = shared


def _is_concat(node: Node) -> bool:
    return node.kind is Kind.REBATCH and node.op is not None and node.op.name == "concat"


def part_of(node: Node) -> SourcePart | None:
    """Return the part that a section or cut of known length takes; None for other nodes."""
    if not isinstance(node.element, Compute) or node.kind is not Kind.REBATCH or node.spec.length is None:
        return None
    attrs = node.attrs
    if node.element.op.name == "section":
        return SourcePart(attrs["start"], attrs["step"], 0, node.spec.length)
    if node.element.op.name == "cut" and attrs["tail"] in ("error", "drop"):
        return SourcePart(0, attrs["every"], attrs["every"], node.spec.length)
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
