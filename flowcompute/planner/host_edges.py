"""Buffers on the host that grow with the batches of a pass."""

from __future__ import annotations

from collections.abc import Mapping

from flowcompute.elements.op import Kind
from flowcompute.graph.graph import Graph
from flowcompute.planner.backend import Backend
from flowcompute.planner.crossing import Crossing, never_on_host
from flowcompute.planner.edge import Edge
from flowcompute.planner.fold import FoldSpec
from flowcompute.planner.inlets import base_item_bytes, extra_items
from flowcompute.planner.plan import Clock, Pass, SinkStage
from flowcompute.planner.reuse import reused_on_host
from flowcompute.planner.sharing import why_dependent
from flowcompute.planner.steps import RegionStep
from flowcompute.planner.storage import is_copied
from flowcompute.strategy import Config


def host_edges(
    graph: Graph,
    one_pass: Pass,
    folds: Mapping[int, FoldSpec],
    config: Config,
    backend: Backend,
    *,
    mapped: bool,
    depth: int,
) -> list[Edge]:
    """Buffers of sources, destinations and all that lies between steps.

    Args:
        graph, one_pass, folds, config, backend: what is planned.
        mapped: whether files are mapped where they can be.
        depth: batches in flight between two stages.
    """
    shared = backend.traits.devices > 1 and why_dependent(one_pass, by_hand=config.by_hand) is None
    between = reused_on_host(graph, one_pass, never_on_host(one_pass, config, backend))
    found: list[Edge] = []
    for clock in one_pass.clocks:
        # Devices that share a pass compute several batches before the first of them is settled.
        held = depth if shared and clock.is_root else 1
        found += _stages(graph, one_pass, clock, mapped, depth)
        found += _steps(graph, one_pass, clock, folds, held)
        mine = (one for one in between if one.clock == clock.id)
        found += [Edge(f"{one.name(graph)} (between kernels)", one.item_bytes, held, clock.id, 0) for one in mine]
        if shared and clock.is_root:
            found += _before_destinations(graph, one_pass, clock, config, backend, depth)
    return found


def _takers(one_pass: Pass, clock: Clock) -> dict[int, list[SinkStage]]:
    """The destinations of each stream of a clock."""
    takers: dict[int, list[SinkStage]] = {}
    for sink in one_pass.sinks:
        if sink.spec.is_stream and sink.value in clock.values:
            takers.setdefault(sink.value, []).append(sink)
    return takers


def _stages(graph: Graph, one_pass: Pass, clock: Clock, mapped: bool, depth: int) -> list[Edge]:
    """What goes from stage to stage, and what waits where it enters a clock."""
    read = [source for source in clock.sources if source.element.must_read(mapped=mapped) is not None]
    edges = [Edge(f"{source.name} (read)", source.spec.item_bytes, depth, clock.id, 0) for source in read]
    for entry in clock.entries:
        # What waits for its partners, and what is put together of it.
        name, item_bytes = graph.nodes[entry.value].name, base_item_bytes(graph, entry)
        edges.append(Edge(f"{name} (waiting)", item_bytes, 2, clock.id, extra_items(entry) + clock.granule))
    for value, sinks in _takers(one_pass, clock).items():
        # A result in memory is written in place.
        in_place = len(sinks) == 1 and sinks[0].element.in_memory and sinks[0].spec.length is not None
        if not (in_place and clock.is_root):
            edges.append(Edge(f"{sinks[0].name} (write)", graph.nodes[value].spec.item_bytes, depth, clock.id, 0))
    return edges


def _steps(graph: Graph, one_pass: Pass, clock: Clock, folds: Mapping[int, FoldSpec], held: int) -> list[Edge]:
    """What steps make beside what regions pass on."""
    edges, takers = [], _takers(one_pass, clock)
    for step in clock.steps:
        if isinstance(step, RegionStep):
            # A batch may cut through two blocks, and what is left of the last one is kept.
            open_items = 0 if step.kernel is None else 3 * step.kernel.block
            blocks = {graph.nodes[fold].name: folds[fold].bytes_of_blocks() for fold in step.region.folds}
            edges += [Edge(f"{name} (blocks)", size, held, clock.id, open_items) for name, size in blocks.items()]
        elif step.node.kind is Kind.VIEW:
            # Also what a destination takes is put together here first.
            if is_copied(graph, step.node.id):
                edges.append(Edge(f"{step.name} (host copy)", step.node.spec.item_bytes, held, clock.id, 0))
        elif step.node.spec.is_stream and step.node.id not in takers:
            edges.append(Edge(f"{step.name} (host)", step.node.spec.item_bytes, held, clock.id, 0))
    return edges


def _before_destinations(
    graph: Graph, one_pass: Pass, clock: Clock, config: Config, backend: Backend, depth: int
) -> list[Edge]:
    """Results that a device has computed before the memory is known that they go to."""
    late = frozenset() if backend.traits.host_memory else Crossing.of(one_pass, by_hand=config.by_hand).late
    stored = {i for step in clock.steps if isinstance(step, RegionStep) for i in step.region.outputs}
    nodes = [graph.nodes[i] for i in _takers(one_pass, clock) if i in stored and i not in late]
    return [Edge(f"{node.name} (computed)", node.spec.item_bytes, depth, clock.id, 0) for node in nodes]
