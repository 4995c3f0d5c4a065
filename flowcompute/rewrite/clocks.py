"""Clocks of the streams of a pass: groups that advance together, and the values that pass between them.

The term is that of synchronous dataflow languages (Caspi, Pilaud, Halbwachs and Plaice, "LUSTRE: a declarative language
for programming synchronous systems", 1987). Maps, scans and folds keep the clock of their operands. A selection, a
window or a change of batching starts a new clock. Operands of different clocks meet in the latest of these clocks,
which the others enter unchanged. Sources that meet are read in step.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable
from dataclasses import field

from flowcompute.elements import HostFunction, Kind, Source
from flowcompute.elements.training import TRAIN
from flowcompute.graph import Graph, Node
from flowcompute.imports import dataclass

RECLOCKING = (Kind.WINDOW, Kind.SELECT, Kind.REBATCH)
"""Kinds of nodes whose value has a clock of its own."""


@dataclass
class ClockNodes:
    """The nodes of a clock.

    Attributes:
        id: position among the clocks of the pass.
        nodes: ids of the streams computed in it and of the folds over it, in topological order.
        sources: ids of its sources.
        entries: values that enter from other clocks, by the id under which steps read them.
        passed_on: whether a value of it enters another clock.
    """

    id: int
    nodes: list[int] = field(default_factory=list)
    sources: list[int] = field(default_factory=list)
    entries: dict[int, Entry] = field(default_factory=dict)
    passed_on: bool = False

    @property
    def free(self) -> bool:
        """Flag that the clock reads nothing, so that its values can be computed in any clock."""
        return not self.sources and not self.entries and not self.passed_on


class _ClockAnalysis:
    def __init__(self, graph: Graph, kept: Collection[int]) -> None:
        self.graph = graph
        self.kept = kept
        self.clocks: dict[int, ClockNodes] = {}
        self.clock_of: dict[int, int] = {}
        self.twins: dict[Hashable, int] = {}

    def add(self, node: Node) -> None:
        """Assign a clock to a stream node or fold."""
        # A training reads its sources by itself.
        streams = [i for i in node.inputs if i in self.clock_of and node.op is not TRAIN]
        read = (node.kind is None and isinstance(node.element, Source)) or node.id in self.kept
        if read or not streams:
            clock = self._new()
            (clock.sources if read else clock.nodes).append(node.id)
        elif node.kind in RECLOCKING:
            if _is_concat(node):
                inputs = tuple((self.clock_of[value], value) for value in streams)
            else:
                origin = self._unify(streams)
                inputs = tuple((origin, value) for value in streams)
            for origin, _ in inputs:
                self.clocks[origin].passed_on = True
            clock = self._reclocked(node, inputs)
            clock.entries[node.id] = Entry(node.id, node, inputs)
        else:
            clock = self.clocks[self._unify(streams)]
            clock.nodes.append(node.id)
        self.clock_of[node.id] = clock.id

    def _reclocked(self, node: Node, inputs: tuple[tuple[int, int], ...]) -> ClockNodes:
        """Return the clock of a node that changes the clock.

        It is a new one, unless an earlier node does the same to another stream of the same clock.
        """
        assert node.op is not None
        # Different functions may drop different records.
        if _is_concat(node) or isinstance(node.element, HostFunction):
            return self._new()
        key = (node.op.name, tuple(sorted(node.attrs.items())), inputs[0][0], tuple(i for _, i in inputs[1:]))
        twin = self.twins.get(key)
        if twin is None:
            self.twins[key] = node.id
            return self._new()
        return self.clocks[self.clock_of[twin]]

    def _new(self) -> ClockNodes:
        number = max(self.clocks, default=-1) + 1
        self.clocks[number] = ClockNodes(number)
        return self.clocks[number]

    def _unify(self, values: list[int]) -> int:
        """Bring operands into one clock and return its id."""
        while len(found := sorted({self.clock_of[value] for value in values})) > 1:
            clocks = [self.clocks[i] for i in found]
            free = next((clock for clock in clocks if clock.free), None)
            derived = [clock for clock in clocks if clock.entries]
            if free is not None:
                self._merge(free, next(clock for clock in reversed(clocks) if clock is not free))
            elif not derived:
                self._merge(clocks[1], clocks[0])
            else:
                # Values go from root and earlier clocks to later ones, which excludes cyclic waits.
                for value in values:
                    self._pass(value, derived[-1])
                return derived[-1].id
        return found[0]

    def _pass(self, value: int, target: ClockNodes) -> None:
        origin = self.clock_of[value]
        if origin != target.id and value not in target.entries:
            self.clocks[origin].passed_on = True
            target.entries[value] = Entry(value, None, ((origin, value),))

    def _merge(self, clock: ClockNodes, into: ClockNodes) -> None:
        """Merge a clock into another."""
        into.nodes = sorted(into.nodes + clock.nodes)
        into.sources = sorted(into.sources + clock.sources)
        into.passed_on = into.passed_on or clock.passed_on
        del self.clocks[clock.id]
        for value, owner in self.clock_of.items():
            if owner == clock.id:
                self.clock_of[value] = into.id
        for other in self.clocks.values():
            for value, entry in other.entries.items():
                moved = tuple((into.id if origin == clock.id else origin, i) for origin, i in entry.inputs)
                other.entries[value] = Entry(entry.value, entry.node, moved)


def _is_concat(node: Node) -> bool:
    return node.op is not None and node.op.name == "concat"


def find_clocks(graph: Graph, nodes: Iterable[int], kept: Collection[int] = ()) -> list[ClockNodes]:
    """Return the clocks of stream nodes, ordered so that values go from earlier to later ones.

    Args:
        graph: the graph.
        nodes: ids of the nodes, in topological order.
        kept: ids of the nodes that an earlier pass has stored, which are read like sources.
    """
    analysis = _ClockAnalysis(graph, kept)
    for i in nodes:
        analysis.add(graph.nodes[i])
    ordered = sorted(analysis.clocks.values(), key=lambda clock: (bool(clock.entries), clock.id))
    number = {clock.id: position for position, clock in enumerate(ordered)}
    for clock in ordered:
        clock.id = number[clock.id]
        clock.entries = {
            value: Entry(value, entry.node, tuple((number[origin], i) for origin, i in entry.inputs))
            for value, entry in clock.entries.items()
        }
    return ordered


@dataclass(frozen=True)
class Entry:
    """A value that enters a clock from others.

    Attributes:
        value: id under which the steps of the clock read it.
        node: the node that computes it from its inputs, such as a selection or a window; None if it is unchanged.
        inputs: (clock, value) of each input. All are of one clock unless the node concatenates streams.
    """

    value: int
    node: Node | None
    inputs: tuple[tuple[int, int], ...]
