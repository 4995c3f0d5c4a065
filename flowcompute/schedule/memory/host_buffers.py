"""Host buffers that grow with the batches of a pass."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from flowcompute.elements import Kind
from flowcompute.graph import Graph
from flowcompute.ir import FoldSpec, is_copied
from flowcompute.schedule.backend_description import BackendDescription
from flowcompute.schedule.memory.attention_memory import attention_state
from flowcompute.schedule.memory.batch_buffers import BatchBuffers
from flowcompute.schedule.memory.buffer_assignment import assign_host_buffers
from flowcompute.schedule.memory.input_bytes import base_item_bytes, extra_items
from flowcompute.schedule.memory.transfer_plan import TransferPlan, never_on_host
from flowcompute.schedule.placement import why_dependent
from flowcompute.schedule.plan import Clock, Pass, SinkStage
from flowcompute.schedule.steps import RegionStep
from flowcompute.strategy import Config


def host_edges(
    graph: Graph,
    one_pass: Pass,
    folds: Mapping[int, FoldSpec],
    config: Config,
    backend: BackendDescription,
    *,
    mapped: bool,
    depth: int,
) -> list[BatchBuffers]:
    """Return the buffers of sources, destinations and intermediate values.

    Args:
        graph, one_pass, folds, config, backend: the plan so far.
        mapped: whether files are memory-mapped if possible.
        depth: batches in flight between two stages.
    """
    shared = backend.capabilities.devices > 1 and why_dependent(one_pass, by_hand=config.by_hand) is None
    between = assign_host_buffers(graph, one_pass, never_on_host(one_pass, config, backend))
    found: list[BatchBuffers] = []
    for clock in one_pass.clocks:
        # Pipelined steps and devices that share a pass compute values before earlier batches are complete.
        early = clock.steps if shared else clock.steps[: one_pass.ahead if depth > 1 else 0]
        early = early if clock.is_root else ()
        stored = {i for step in early if isinstance(step, RegionStep) for i in step.region.outputs}
        found += _stages(graph, one_pass, clock, mapped, depth)
        found += _steps(graph, one_pass, clock, folds, [depth] * len(early) + [1] * (len(clock.steps) - len(early)))
        for one in (one for one in between if one.clock == clock.id):
            held = 1 if stored.isdisjoint(one.values) else depth
            found.append(BatchBuffers(f"{one.name(graph)} (between kernels)", one.item_bytes, held, clock.id, 0))
        if early:
            taken = stored.intersection(_sinks_by_value(one_pass, clock)) - _late(one_pass, config, backend)
            nodes = (graph.nodes[i] for i in sorted(taken))
            found += [
                BatchBuffers(f"{node.name} (computed)", node.spec.item_bytes, depth, clock.id, 0) for node in nodes
            ]
    return found


def _sinks_by_value(one_pass: Pass, clock: Clock) -> dict[int, list[SinkStage]]:
    """Return the destinations of each stream of a clock."""
    sinks_by_value: dict[int, list[SinkStage]] = {}
    for sink in one_pass.sinks:
        if sink.spec.is_stream and sink.value in clock.values:
            sinks_by_value.setdefault(sink.value, []).append(sink)
    return sinks_by_value


def _stages(graph: Graph, one_pass: Pass, clock: Clock, mapped: bool, depth: int) -> list[BatchBuffers]:
    """Return the buffers between stages, and of values that wait to enter a clock."""
    read = [source for source in clock.sources if source.element.must_read(mapped=mapped) is not None]
    edges = [BatchBuffers(f"{source.name} (read)", source.spec.item_bytes, depth, clock.id, 0) for source in read]
    for entry in clock.entries:
        # Records that wait for those of other streams, and the batch that is assembled from them.
        name, item_bytes = graph.nodes[entry.value].name, base_item_bytes(graph, entry)
        edges.append(BatchBuffers(f"{name} (waiting)", item_bytes, 2, clock.id, extra_items(entry) + clock.granule))
    for value, sinks in _sinks_by_value(one_pass, clock).items():
        # A result in memory is written in place.
        in_place = len(sinks) == 1 and sinks[0].element.in_memory and sinks[0].spec.length is not None
        if not (in_place and clock.is_root):
            edges.append(
                BatchBuffers(f"{sinks[0].name} (write)", graph.nodes[value].spec.item_bytes, depth, clock.id, 0)
            )
    return edges


def _steps(
    graph: Graph, one_pass: Pass, clock: Clock, folds: Mapping[int, FoldSpec], counts: Sequence[int]
) -> list[BatchBuffers]:
    """Return the buffers of steps other than the outputs of regions.

    `counts` gives the number of batches that each step holds.
    """
    edges, sinks_by_value = attention_state(graph, clock.steps, clock.id), _sinks_by_value(one_pass, clock)
    for step, held in zip(clock.steps, counts, strict=True):
        if isinstance(step, RegionStep):
            # Both ends of a batch may divide a block, and the rest of the last block is stored.
            open_items = 0 if step.kernel is None else 3 * step.kernel.block
            blocks = {graph.nodes[fold].name: folds[fold].bytes_of_blocks() for fold in step.region.folds}
            edges += [
                BatchBuffers(f"{name} (blocks)", size, held, clock.id, open_items) for name, size in blocks.items()
            ]
        elif step.node.kind is Kind.VIEW:
            # Values for a destination are assembled here first, too.
            if is_copied(graph, step.node.id):
                edges.append(BatchBuffers(f"{step.name} (host copy)", step.node.spec.item_bytes, held, clock.id, 0))
        elif step.node.spec.is_stream and step.node.id not in sinks_by_value:
            edges.append(BatchBuffers(f"{step.name} (host)", step.node.spec.item_bytes, held, clock.id, 0))
    return edges


def _late(one_pass: Pass, config: Config, backend: BackendDescription) -> set[int]:
    """Return the results that stay on a device until their memory on the host is known."""
    across = (number for number, placement in enumerate(backend.placements) if not placement.capabilities.host_memory)
    return {
        i for placement in across for i in TransferPlan.of(one_pass, by_hand=config.by_hand, placement=placement).late
    }
