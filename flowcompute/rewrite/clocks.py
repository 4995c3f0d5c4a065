"""Clocks: which streams of a pass advance together, and where values go from one clock into another.

The word is that of synchronous dataflow languages (Caspi, Pilaud, Halbwachs and Plaice,
"LUSTRE: a declarative language for programming synchronous systems", 1987). Maps, scans and
folds keep the clock of their operands. A selection, a window or a change of batching begins a
new one. Operands of different clocks meet in the latest of these, which the others enter as
they are; sources that meet are read in step.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable
from dataclasses import dataclass, field

from flowcompute.elements import HostFunction, Kind, Source
from flowcompute.graph import Graph, Node

RECLOCKING = (Kind.WINDOW, Kind.SELECT, Kind.REBATCH)
"""Kinds of nodes whose value has a clock of its own."""


@dataclass
class ClockNodes:
    """A clock as found in the graph.

    Attributes:
        id: position among the clocks of the pass.
        nodes: ids of the streams made in it and of the folds over it, operands first.
        sources: ids of its sources.
        entries: by the id under which they are read.
    """

    id: int
    nodes: list[int] = field(default_factory=list)
    sources: list[int] = field(default_factory=list)
    entries: dict[int, Entry] = field(default_factory=dict)
    passed_on: bool = False

    @property
    def free(self) -> bool:
        """Whether it reads nothing, so that its values can be made in any clock."""
        return not self.sources and not self.entries and not self.passed_on


class _Finder:
    def __init__(self, graph: Graph, kept: Collection[int]) -> None:
        self.graph = graph
        self.kept = kept
        self.clocks: dict[int, ClockNodes] = {}
        self.clock_of: dict[int, int] = {}
        self.twins: dict[Hashable, int] = {}

    def add(self, node: Node) -> None:
        """Give a stream node, or a fold, its clock."""
        streams = [i for i in node.inputs if i in self.clock_of]
        read = isinstance(node.element, Source) or node.id in self.kept
        if read or not streams:
            clock = self._new()
            (clock.sources if read else clock.nodes).append(node.id)
        elif node.kind in RECLOCKING:
            if _joins_ends(node):
                inputs = tuple((self.clock_of[value], value) for value in streams)
            else:
                origin = self._together(streams)
                inputs = tuple((origin, value) for value in streams)
            for origin, _ in inputs:
                self.clocks[origin].passed_on = True
            clock = self._reclocked(node, inputs)
            clock.entries[node.id] = Entry(node.id, node, inputs)
        else:
            clock = self.clocks[self._together(streams)]
            clock.nodes.append(node.id)
        self.clock_of[node.id] = clock.id

    def _reclocked(self, node: Node, inputs: tuple[tuple[int, int], ...]) -> ClockNodes:
        """A new clock, or that of an earlier node which does the same to another stream of the same clock."""
        assert node.op is not None
        # No two functions are known to fail at the same records.
        if _joins_ends(node) or isinstance(node.element, HostFunction):
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

    def _together(self, values: list[int]) -> int:
        """Bring operands into one clock; gives its id."""
        while len(found := sorted({self.clock_of[value] for value in values})) > 1:
            clocks = [self.clocks[i] for i in found]
            free = next((clock for clock in clocks if clock.free), None)
            derived = [clock for clock in clocks if clock.entries]
            if free is not None:
                self._merge(free, next(clock for clock in reversed(clocks) if clock is not free))
            elif not derived:
                self._merge(clocks[1], clocks[0])
            else:
                # Values go from roots and earlier clocks to later ones, so nothing ever waits for itself.
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
        """Make two clocks one."""
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


def _joins_ends(node: Node) -> bool:
    return node.op is not None and node.op.name == "concat"


def find_clocks(graph: Graph, nodes: Iterable[int], kept: Collection[int] = ()) -> list[ClockNodes]:
    """The clocks of these stream nodes, in an order in which values go from earlier to later.

    Args:
        nodes: in topological order.
        kept: those that an earlier pass has kept, and that are read like sources.
    """
    finder = _Finder(graph, kept)
    for i in nodes:
        finder.add(graph.nodes[i])
    ordered = sorted(finder.clocks.values(), key=lambda clock: (bool(clock.entries), clock.id))
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
    """A value that comes into a clock from others.

    Attributes:
        value: id under which the steps of the clock read it.
        node: what makes it of its inputs (a selection, a window, ...); None where it comes as it is.
        inputs: (clock, value) of each input; all of one clock unless the node joins streams end to end.
    """

    value: int
    node: Node | None
    inputs: tuple[tuple[int, int], ...]
