"""Which values of a pass cross the bus of a discrete device, when they do, and what memory they take there."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass

from flowcompute.graph import Graph
from flowcompute.ir import FoldSpec
from flowcompute.schedule.backend_description import BackendDescription
from flowcompute.schedule.memory.batch_buffers import BatchBuffers
from flowcompute.schedule.memory.buffer_assignment import BufferAssignment, by_value, reused_on_device
from flowcompute.schedule.memory.input_bytes import base_item_bytes, extra_items
from flowcompute.schedule.memory.worker_needs import isolated_placements
from flowcompute.schedule.placement import kernels_of, made_ahead, passed_on, read_as_they_are
from flowcompute.schedule.plan import Pass
from flowcompute.schedule.steps import NodeStep, RegionStep, Step
from flowcompute.strategy import Config


@dataclass(frozen=True)
class TransferPlan:
    """What of a pass crosses the bus.

    Attributes:
        overlap: whether neighbouring batches may be uploaded, computed and downloaded at a time. With several
            root clocks what has been computed decides which of them is read next, and a flow is fed by hand.
        on_host: values that destinations, host functions and other clocks read.
        ahead: sources that are uploaded before their batch is computed.
        late: results that are downloaded while later batches are computed.
        handed: what is made ahead and downloaded at the end of its leg, since the host or another seat needs it.
        received: what other seats make ahead, uploaded when it has been downloaded there.
        kept: what is made ahead and read by a later leg.
    """

    overlap: bool
    on_host: frozenset[int]
    ahead: frozenset[int]
    late: frozenset[int]
    handed: frozenset[int] = frozenset()
    received: frozenset[int] = frozenset()
    kept: frozenset[int] = frozenset()

    @property
    def moving(self) -> frozenset[int]:
        """What is there while other batches are computed: each batch in flight has a buffer for it."""
        return self.ahead | self.late | self.handed | self.received | self.kept

    @classmethod
    def of(cls, one_pass: Pass, *, by_hand: bool, placement: int = 0) -> TransferPlan:
        """Those of a pass, for one of its seats."""
        roots = [clock for clock in one_pass.clocks if clock.is_root]
        overlap = len(roots) == 1 and not by_hand
        taken, needed = {sink.value for sink in one_pass.sinks}, _needed(one_pass, placement)
        ahead: set[int] = set()
        late: set[int] = set()
        for clock in one_pass.on_placement(placement).clocks if overlap else ():
            if clock.is_root:
                read = (value for kernel in kernels_of(clock.steps) for value in read_as_they_are(kernel))
                ahead |= {stage.value for stage in clock.sources}.intersection(read)
                late |= {i for step in clock.steps for i in stored_by(step) if isinstance(step, RegionStep)}
        handed = {i for i, maker in made_ahead(one_pass).items() if maker == placement} & needed
        moving = frozenset(ahead), frozenset(late & taken - needed), frozenset(handed)
        return cls(overlap, frozenset(taken | needed), *moving, *passed_on(one_pass, placement))


def stored_by(step: Step) -> tuple[int, ...]:
    """The values that a step stores; folds are given at the end of their pass."""
    return step.region.outputs if isinstance(step, RegionStep) else (step.node.id,)


def _needed(one_pass: Pass, placement: int) -> set[int]:
    """Values that host functions, host folds, other clocks and other seats read."""
    needed = {i for clock in one_pass.clocks for entry in clock.entries for _, i in entry.inputs}
    for step in (*one_pass.before, *one_pass.steps, *one_pass.after):
        if isinstance(step, NodeStep):
            needed.update(step.node.inputs)
        elif step.placement != placement:
            needed.update(step.region.inputs)
    return needed | {i for step in one_pass.before for i in stored_by(step)}


def never_on_host(one_pass: Pass, config: Config, backend: BackendDescription) -> frozenset[int]:
    """What kernels make elsewhere than in host memory (on a device of its own, or in a worker) and nobody fetches."""
    found: set[int] = set()
    isolated = dict(isolated_placements(config, backend))
    for number, placement in enumerate(backend.placements):
        if number in isolated or not placement.capabilities.host_memory:
            on_host = TransferPlan.of(one_pass, by_hand=config.by_hand, placement=number).on_host
            mine = (step for step in one_pass.steps if isinstance(step, RegionStep) and step.placement == number)
            found.update(i for step in mine for i in step.region.outputs if i not in on_host)
    return frozenset(found)


def in_turns(graph: Graph, one_pass: Pass, transfer_plan: TransferPlan) -> dict[Hashable, BufferAssignment]:
    """Which buffers of a device values have in turns, where it computes the regions of a pass."""
    coming, leaving = (
        transfer_plan.ahead | transfer_plan.received,
        transfer_plan.late | transfer_plan.handed | transfer_plan.kept,
    )
    return by_value(reused_on_device(graph, one_pass, coming, leaving))


def device_edges(
    graph: Graph, one_pass: Pass, folds: Mapping[int, FoldSpec], transfer_plan: TransferPlan, depth: int
) -> list[BatchBuffers]:
    """Buffers on the device that grow with the batches of a pass."""
    moving: frozenset[int] = transfer_plan.moving
    edges: list[BatchBuffers] = []
    for one in dict.fromkeys(in_turns(graph, one_pass, transfer_plan).values()):
        count = 1 if moving.isdisjoint(one.values) else depth
        edges.append(BatchBuffers(one.name(graph), one.item_bytes, count, one.clock, 0))
    for clock in one_pass.clocks:
        read: set[int] = set()
        for kernel in kernels_of(clock.steps):
            read.update(read_as_they_are(kernel))
            blocks = {one.value for one in kernel.arguments if one.kind == "partial"}
            # Those at both ends of a batch may be open, and what the first of them goes on from lies beside them.
            open_items = 3 * kernel.block
            edges += [
                BatchBuffers(f"{graph.nodes[i].name} (blocks)", folds[i].bytes_of_blocks(), 1, clock.id, open_items)
                for i in blocks
            ]
        for entry in (entry for entry in clock.entries if entry.value in read):
            # Of windows only the records that they overlap in.
            name, item_bytes = graph.nodes[entry.value].name, base_item_bytes(graph, entry)
            edges.append(BatchBuffers(name, item_bytes, 1, clock.id, extra_items(entry)))
    return edges
