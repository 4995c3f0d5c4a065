"""Plans of jobs of which a single record does not fit the memory budget: late readers have values computed again.

Values are kept at borders of segments, and what lies between two of these is computed again from the first one (Chen
and others, "Training deep nets with sublinear memory cost", 2016). What takes no product is tried first.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from itertools import accumulate, pairwise

from flowcompute.elements import Destination, Kind
from flowcompute.fuse import Reason
from flowcompute.graph import Graph, postorder
from flowcompute.imports import dataclass
from flowcompute.ir import is_copied
from flowcompute.metrics import counted
from flowcompute.rewrite import recompute_values
from flowcompute.schedule.explain import Plan
from flowcompute.schedule.memory import RecordTooLargeError
from flowcompute.schedule.plan import Pass
from flowcompute.schedule.steps import RegionStep
from flowcompute.schedule.work_estimate import operations_of

SEGMENTS = (64, 48, 32, 24, 16, 12, 8, 6, 4, 3, 2)
"""Numbers of segments that are tried: the fewer, the more is computed again and the less is kept between them."""

_ALIKE = 1.05
"""Ratio of bytes of a record up to which graphs are tried that take more of them than others: these are estimates."""

_NAMES = 4
"""Names of values that a plan tells."""

Make = Callable[[Graph, bool], Plan]
"""Plans a graph; the flag says whether folds take their records at once."""


@dataclass(frozen=True)
class Recomputation:
    """A graph of which some values are computed again.

    Attributes:
        graph: with twins of these values.
        record_bytes: about what a record takes between kernels.
        operations: of a record, for the twins alone.
    """

    graph: Graph
    record_bytes: int
    operations: float


def plan_recomputing(graph: Graph, make: Make, refused: RecordTooLargeError) -> Plan:
    """Plan a graph of which not even a record fits: folds take records at once, and values are computed again.

    Args:
        graph: the rewritten graph to run.
        make: plans it.
        refused: why its plan was refused: what does not fit the host's memory, or a device's.

    Raises:
        PlanError: if that does not fit either. The error tells the least budget of all that was tried.
    """
    if refused.one_pass is None:
        raise refused
    best = refused
    for one in (Recomputation(graph, 0, 0.0), *recomputations(graph, refused.one_pass)):
        try:
            plan = make(one.graph, True)
        except RecordTooLargeError as error:
            # Bytes of the host and of devices are not alike.
            best = min((best, error) if type(error) is type(best) else (best,), key=lambda each: each.missing_bytes)
        else:
            return replace(plan, reasons=(*plan.reasons, *_told(graph, one, plan)))
    if best is not refused:
        best.hint = f"{best.hint}; so much is needed although values are computed again"
    raise best


def recomputations(graph: Graph, one_pass: Pass) -> list[Recomputation]:
    """Return graphs that take less memory for a record, and more and more operations. Bytes are estimates.

    Args:
        graph: to be planned.
        one_pass: the pass of it that did not fit.
    """
    lives = Lives(graph, set(_stored(graph, one_pass)))
    products = {node.id for node in graph.nodes if node.kind is Kind.CONTRACT}
    chosen = [products, *(lives.kept_between(count) for count in SEGMENTS)]
    made = [recompute_values(graph, kept, lives.early) for kept in chosen]
    found = [_estimated(graph, one, lives.stored) for one in made if one is not None]
    least, better, told = lives.most_bytes / _ALIKE, list[Recomputation](), set[tuple[float, float]]()
    for one in sorted(found, key=lambda one: (one.operations, one.record_bytes)):
        if one.record_bytes < _ALIKE * least and (one.record_bytes, one.operations) not in told:
            least = min(least, one.record_bytes)
            told.add((one.record_bytes, one.operations))
            better.append(one)
    return better


def _estimated(graph: Graph, made: Graph, stored: Collection[int]) -> Recomputation:
    lives = Lives(made, {node.id for node in made.nodes if made.kept_id(node.id) in stored})
    twins = (node for node in made.nodes if node.again and not graph.nodes[made.kept_id(node.id)].again)
    return Recomputation(made, lives.most_bytes, sum(operations_of(made, node) for node in twins))


def _stored(graph: Graph, one_pass: Pass) -> Iterator[int]:
    """Yield the streams of a pass that lie in memory between steps, and that no destination takes."""
    taken = {sink.value for sink in one_pass.sinks}
    for step in one_pass.steps:
        values = step.region.outputs if isinstance(step, RegionStep) else (step.node.id,)
        for value in values:
            node = graph.nodes[value]
            if node.spec.is_stream and value not in taken and (node.kind is not Kind.VIEW or is_copied(graph, value)):
                yield value


def _taken(graph: Graph) -> dict[int, int]:
    """Return places of nodes in the order in which their steps are taken; see `in_order` of `passes/step_order.py`."""
    again: set[int] = set()
    missing: dict[int, set[int]] = {}
    readers: dict[int, list[int]] = {}
    for node in graph.nodes:
        streams = {i for i in node.inputs if graph.nodes[i].spec.is_stream}
        if node.again or (node.spec.is_stream and streams and again.issuperset(streams)):
            again.add(node.id)
        if node.kind is Kind.FOLD:
            missing[node.id] = streams
            for i in streams:
                readers.setdefault(i, []).append(node.id)
    places: dict[int, int] = {}

    def take(value: int) -> None:
        ready = [value]
        while ready:
            for i in postorder((ready.pop(),), lambda one: graph.nodes[one].inputs, places):
                places[i] = len(places)
                for fold in readers.get(i, ()):
                    missing[fold].discard(i)
                    ready += [] if missing[fold] else [fold]

    waiting = again.union(missing)
    for waits in (False, True):
        for node in graph.nodes:
            if (node.id in waiting) == waits:
                take(node.id)
    return places


class Lives:
    """The stretches of steps through which stored values are needed.

    Args:
        graph: the graph.
        stored: values that lie in memory between kernels. Others are computed where they are read.

    Attributes:
        stored: as given.
        most_bytes: of a record that are held at a time.
        early: the nodes until then. What reads their values later is late.
    """

    def __init__(self, graph: Graph, stored: Collection[int]) -> None:
        self.stored = stored
        self._graph = graph
        self._places = places = _taken(graph)
        self._uses: dict[int, list[int]] = {value: [] for value in stored if value in places}
        reads: dict[int, frozenset[int]] = {}
        nothing = frozenset[int]()
        for value in places:
            node = graph.nodes[value]
            read = nothing.union(*(reads[i] for i in node.inputs if graph.nodes[i].spec.is_stream))
            for one in read:
                self._uses[one].append(places[value])
            is_passed_on = node.spec.is_stream and not isinstance(node.element, Destination)
            reads[value] = frozenset((value,)) if value in self._uses else read if is_passed_on else nothing
        held = self._held({value: max(uses) for value, uses in self._uses.items() if uses})
        self.most_bytes = max(held, default=0)
        self._turn = held.index(self.most_bytes) if held else 0
        self.early = {value for value, place in places.items() if place <= self._turn}

    def _held(self, last: dict[int, int]) -> list[int]:
        """Return by place the bytes of a record that are held there, up to the last use of each value."""
        changes = [0] * (len(self._graph.nodes) + 1)
        for value, end in last.items():
            changes[self._places[value]] += self._graph.nodes[value].spec.item_bytes
            changes[end + 1] -= self._graph.nodes[value].spec.item_bytes
        return [*accumulate(changes)][:-1]

    def kept_between(self, count: int) -> set[int]:
        """Return the values that are kept if what lies across the turn is divided into so many segments.

        A segment ends where the values that the next one begins with have the fewest bytes, in the second half of it.
        """
        turn, places = self._turn, self._places
        sizes = {value: self._graph.nodes[value].spec.item_bytes for value in self._uses}
        early = {value: [i for i in uses if i <= turn] for value, uses in self._uses.items()}
        last = {value: max(uses) for value, uses in early.items() if uses and value in self.early}
        border = self._held(last)
        across = [one for one in self._uses if one in self.early and max(self._uses[one], default=0) > turn]
        across.sort(key=places.__getitem__)
        segment_bytes = sum(sizes[value] for value in across) / count
        borders, since_bytes, after_bytes = list[int](), 0, 0
        best: int | None = None
        for value, following in pairwise((*across, None)):
            assert value is not None
            since_bytes += sizes[value]
            after_bytes += sizes[value]
            if since_bytes >= segment_bytes / 2:
                stop = turn if following is None else places[following]
                here = min(
                    range(places[value], max(stop, places[value] + 1)), key=lambda place: (border[place], -place)
                )
                if best is None or border[here] <= border[best]:
                    best, after_bytes = here, 0
            if since_bytes >= segment_bytes and best is not None:
                borders.append(best)
                since_bytes, best = after_bytes, None
        return {value for value, end in last.items() if any(places[value] <= one < end for one in borders)}


def _told(graph: Graph, one: Recomputation, plan: Plan) -> Iterator[Reason]:
    """Yield what is done so that a record fits."""
    if any(one_pass.folds_at_once for one_pass in plan.passes):
        why = "take their records at once, not when a batch is done: a record would not fit"
        yield Reason("recompute", "folds", why)
    again = [node.id for node in one.graph.nodes if node.again]
    first = [graph.nodes[i] for i in dict.fromkeys(map(one.graph.kept_id, again)) if not graph.nodes[i].again]
    if not first:
        return
    every = sum(operations_of(graph, node) for node in graph.nodes if node.spec.is_stream or node.kind is Kind.FOLD)
    names = ", ".join([node.name for node in first[:_NAMES]])
    more = f" and {len(first) - _NAMES} more" if len(first) > _NAMES else ""
    text = f"{names}{more} are computed again where they are read late, since a record would not fit"
    costs = f"that takes {one.operations / max(every, 1.0):.0%} more operations"
    yield Reason("recompute", counted(len(first), "value"), f"{text}; {costs}")
