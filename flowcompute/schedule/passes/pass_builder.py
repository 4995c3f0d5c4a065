"""Passes of a plan: the clocks, steps, sources and destinations of each reading of the sources."""

from __future__ import annotations

from flowcompute.elements import Destination, Kind, Source
from flowcompute.elements.training import Training
from flowcompute.files import Scratch
from flowcompute.graph import Graph, Node
from flowcompute.rewrite import ClockNodes, PassNodes, find_clocks
from flowcompute.schedule.passes.step_maker import StepMaker
from flowcompute.schedule.plan import Clock, Pass, SinkStage, SourceStage
from flowcompute.schedule.steps import RESIDENT, RegionStep, Step
from flowcompute.sinks import SpoolSink
from flowcompute.sources import SpoolSource


def build_passes(maker: StepMaker, pass_nodes: list[PassNodes], levels: list[int]) -> tuple[Pass, ...]:
    """Build the passes of a graph, with a temporary file for each stream that one of them stores for a later one.

    Args:
        maker: what builds the steps; its graph is the one of the passes.
        pass_nodes: the nodes of each pass, of `find_passes`.
        levels: for each node how many passes end before it is computed, of `levels_of`.

    Returns:
        The passes in the order in which they run, without sizes of batches and memory.
    """
    scratches = _scratches(maker.graph, pass_nodes)
    return tuple(_pass(maker, levels, pass_nodes, scratches, index) for index in range(len(pass_nodes)))


def _scratches(graph: Graph, pass_nodes: list[PassNodes]) -> dict[int, Scratch]:
    """Create a temporary file for each spool that is stored."""
    spools = [graph.nodes[i] for nodes in pass_nodes for i in nodes.keeps]
    return {node.id: Scratch(node.attrs["folder"], node.attrs["limit"]) for node in spools}


def _pass(
    maker: StepMaker,
    levels: list[int],
    pass_nodes: list[PassNodes],
    scratches: dict[int, Scratch],
    index: int,
) -> Pass:
    graph, nodes = maker.graph, pass_nodes[index]
    last = index == len(pass_nodes) - 1
    targets = nodes.targets
    clocks = find_clocks(graph, nodes.nodes, nodes.kept)
    places = {i: clock.id for clock in clocks for i in clock.nodes}
    residents = {node.id for node in graph.nodes if _is_computed_once(node) and levels[node.id] == index}
    # Streams that destinations and other clocks read, and residents that anything later reads.
    wanted = {node.inputs[0] for node in targets if isinstance(node.element, Destination)}
    ends = set(wanted)
    wanted |= {value for clock in clocks for entry in clock.entries.values() for _, value in entry.inputs}
    wanted |= {i for node in graph.nodes if node.id not in residents for i in node.inputs if i in residents}
    entered = {clock.id: _entered_as_is(clock) for clock in clocks}
    if len(pass_nodes) == 1:
        # Who reads them is known, but for what comes after folds.
        late = {i for node in graph.nodes if levels[node.id] > index for i in node.inputs}
        wanted -= {i for i in residents - ends - late if maker.is_only_seen(graph.nodes[i])}
    steps = maker.steps({**places, **dict.fromkeys(residents, RESIDENT)}, wanted, entered)
    after: list[Step] = []
    if last:
        ended = {node.id for node in graph.nodes if _is_computed_once(node) and levels[node.id] > index}
        used = {i for root in graph.roots for i in graph.nodes[root].inputs}
        after = maker.steps(dict.fromkeys(ended, RESIDENT), used).get(RESIDENT, [])
    spools = [_spool_sink(graph.nodes[i], scratches[i]) for i in nodes.keeps]
    return Pass(
        clocks=tuple(_clock(maker, clock, tuple(steps.get(clock.id, ())), scratches) for clock in clocks),
        before=tuple(steps.get(RESIDENT, ())),
        after=tuple(after),
        sinks=(*_sinks(graph, levels, index, last=last), *spools),
    )


def _spool_sink(node: Node, scratch: Scratch) -> SinkStage:
    name = f"{node.name} (kept)"
    return SinkStage(node.id, name, SpoolSink(scratch, node.element, name), node.spec, SinkStage.NO_ROOT)


def _is_computed_once(node: Node) -> bool:
    return node.kind is not None and node.kind is not Kind.FOLD and not node.spec.is_stream


def _sinks(graph: Graph, levels: list[int], index: int, *, last: bool) -> tuple[SinkStage, ...]:
    """Return the destinations of the pass: its streams, and resident values known at its end."""
    stages = []
    for position, node in enumerate(graph.nodes[root] for root in graph.roots):
        if not isinstance(node.element, Destination):
            continue
        value = node.inputs[0]
        level = levels[node.id]
        # A fold is known at the end of its own pass. Values that depend on it are computed before the next pass.
        ready = level if node.spec.is_stream else max(0, level - (graph.nodes[value].kind is Kind.FOLD))
        if ready == index or (last and ready > index):
            stages.append(SinkStage(value, node.name, node.element, graph.nodes[value].spec, position))
    return tuple(stages)


def _entered_as_is(clock: ClockNodes) -> frozenset[int]:
    """Return the values that a clock reads from other clocks unchanged."""
    return frozenset(value for value, entry in clock.entries.items() if entry.node is None)


def _clock(maker: StepMaker, found: ClockNodes, steps: tuple[Step, ...], scratches: dict[int, Scratch]) -> Clock:
    graph = maker.graph
    # A value that enters unchanged belongs to the clock that it comes from.
    made = found.entries.keys() - _entered_as_is(found)
    values = frozenset((*found.nodes, *found.sources, *made))
    here = values.union(found.entries)
    lengths = {graph.nodes[i].spec.length for i in here if graph.nodes[i].spec.is_stream} - {None}
    blocks = [
        step.kernel.block
        for step in steps
        if isinstance(step, RegionStep) and step.kernel is not None and step.kernel.work == "records"
    ]
    if maker.config.resumable:
        # Granules are those of kernels, since another backend may resume after any batch. What the host folds here, it
        # folds there: which folds are in regions follows from the graph.
        inside = (i for step in steps if isinstance(step, RegionStep) for i in step.region.folds)
        folds = [maker.folds[i] for i in inside]
        blocks += [fold.block for fold in folds if fold.numbers == 1]
    return Clock(
        id=found.id,
        sources=tuple(_source(graph.nodes[i], scratches) for i in found.sources),
        entries=tuple(found.entries.values()),
        steps=steps,
        length=next(iter(lengths), None),
        # Folds of scalars read whole canonical blocks.
        granule=max(blocks, default=1),
        values=values,
        # A step of a training is long, and nothing is kept or shown within a batch.
        most_items=1 if any(isinstance(graph.nodes[i].element, Training) for i in values) else None,
    )


def _source(node: Node, scratches: dict[int, Scratch]) -> SourceStage:
    if isinstance(node.element, Source):
        return SourceStage(node.id, node.name, node.element, node.spec)
    return SourceStage(node.id, node.name, SpoolSource(scratches[node.id], node.spec, node.name), node.spec)
