"""Values of a pass that are transferred to or from a discrete device, with the time and memory of each transfer."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from itertools import zip_longest

from flowcompute.graph import Graph
from flowcompute.imports import dataclass
from flowcompute.ir import FoldSpec, host_fold
from flowcompute.schedule.backend_description import BackendDescription
from flowcompute.schedule.memory.attention_memory import attention_state
from flowcompute.schedule.memory.batch_buffers import BatchBuffers
from flowcompute.schedule.memory.buffer_assignment import BufferAssignment, assign_device_buffers, by_value
from flowcompute.schedule.memory.fold_bytes import (
    device_fold_bytes,
    device_fold_item_bytes,
    merged_fold_bytes,
    products_bytes,
)
from flowcompute.schedule.memory.input_bytes import base_item_bytes, extra_items
from flowcompute.schedule.memory.worker_needs import isolated_placements
from flowcompute.schedule.placement import direct_inputs, early_inputs, early_outputs, kernels_of
from flowcompute.schedule.plan import Pass
from flowcompute.schedule.steps import NodeStep, RegionStep, Step, device_folds, merged_folds
from flowcompute.strategy import Config


@dataclass(frozen=True)
class TransferPlan:
    """The transfers of a pass between the host and one device.

    Attributes:
        overlap: whether neighbouring batches are uploaded, computed and downloaded at the same time. They may not be
            with several root clocks, where results decide which source is read next, nor in a flow fed by hand. Where
            no value moves, as in the steps of a training, it would only cost.
        on_host: values that destinations, host functions and other clocks read.
        ahead: sources that are uploaded before their batch is computed.
        late: results that are downloaded while later batches are computed.
        handed: outputs of early pipeline stages that are downloaded at the end of their stage, for the host or another
            device.
        received: outputs of early stages of other devices, uploaded once they have been downloaded there.
        kept: outputs of early stages that a later stage of the same device reads.
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
        """Values that exist while other batches are computed: each batch in flight has a buffer for them."""
        return self.ahead | self.late | self.handed | self.received | self.kept

    @classmethod
    def of(cls, one_pass: Pass, *, by_hand: bool, placement: int = 0) -> TransferPlan:
        """Plan the transfers of a pass for one of its devices."""
        roots = [clock for clock in one_pass.clocks if clock.is_root]
        overlap = len(roots) == 1 and not by_hand
        taken, needed = {sink.value for sink in one_pass.sinks}, _needed(one_pass, placement)
        ahead: set[int] = set()
        late: set[int] = set()
        for clock in one_pass.on_placement(placement).clocks if overlap else ():
            if clock.is_root:
                read = [value for kernel in kernels_of(clock.steps) for value in direct_inputs(kernel)]
                read += [i for step in device_folds(clock.steps) for i in step.there]
                ahead |= {stage.value for stage in clock.sources}.intersection(read)
                late |= {i for step in clock.steps for i in stored_by(step) if isinstance(step, RegionStep)}
        handed = {i for i, maker in early_outputs(one_pass).items() if maker == placement} & needed
        moving = frozenset(ahead), frozenset(late & taken - needed), frozenset(handed)
        early = early_inputs(one_pass, placement)
        return cls(overlap and any((*moving, *early)), frozenset(taken | needed), *moving, *early)


def stored_by(step: Step) -> tuple[int, ...]:
    """Return the values that a step stores. Folds are complete at the end of their pass only."""
    return step.region.outputs if isinstance(step, RegionStep) else (step.node.id,)


def _needed(one_pass: Pass, placement: int) -> set[int]:
    """Return the values that host functions, host folds, other clocks and other devices read."""
    needed = {i for clock in one_pass.clocks for entry in clock.entries for _, i in entry.inputs}
    for step in (*one_pass.before, *one_pass.steps, *one_pass.after):
        if isinstance(step, NodeStep):
            needed.update(step.on_host)
        elif step.placement != placement:
            needed.update(step.region.inputs)
    return needed | {i for step in one_pass.before for i in stored_by(step)}


def never_on_host(one_pass: Pass, config: Config, backend: BackendDescription) -> frozenset[int]:
    """Return the values that are never in host memory.

    Kernels on a discrete device or in a worker process compute them, and nobody downloads them.
    """
    found: set[int] = set()
    isolated = dict(isolated_placements(config, backend))
    for number, placement in enumerate(backend.placements):
        if number in isolated or not placement.capabilities.host_memory:
            on_host = TransferPlan.of(one_pass, by_hand=config.by_hand, placement=number).on_host
            mine = (step for step in one_pass.steps if isinstance(step, RegionStep) and step.placement == number)
            found.update(i for step in mine for i in step.region.outputs if i not in on_host)
    return frozenset(found)


def device_buffer_assignment(
    graph: Graph, one_pass: Pass, transfer_plan: TransferPlan
) -> dict[Hashable, BufferAssignment]:
    """Return the device buffer of each value of a pass that shares one."""
    coming, leaving = (
        transfer_plan.ahead | transfer_plan.received,
        transfer_plan.late | transfer_plan.handed | transfer_plan.kept,
    )
    return by_value(assign_device_buffers(graph, one_pass, coming, leaving))


def device_edges(
    graph: Graph, one_pass: Pass, folds: Mapping[int, FoldSpec], transfer_plan: TransferPlan, depth: int
) -> list[BatchBuffers]:
    """Return the device buffers of a pass: those that grow with its batches, and the state of folds."""
    moving: frozenset[int] = transfer_plan.moving
    edges: list[BatchBuffers] = []
    shared: list[int] = []
    for one in dict.fromkeys(device_buffer_assignment(graph, one_pass, transfer_plan).values()):
        count = 1 if moving.isdisjoint(one.values) else depth
        edges.append(BatchBuffers(one.name(graph), one.item_bytes, count, one.clock, 0))
    for clock in one_pass.clocks:
        edges += attention_state(graph, clock.steps, clock.id)
        read: set[int] = set()
        for kernel in kernels_of(clock.steps):
            read.update(direct_inputs(kernel))
            blocks = {one.value for one in kernel.arguments if one.kind == "partial"}
            # Blocks at both ends of a batch may be open. The partial result that the first one continues takes another.
            open_items = 3 * kernel.block
            edges += [
                BatchBuffers(f"{graph.nodes[i].name} (blocks)", folds[i].bytes_of_blocks(), 1, clock.id, open_items)
                for i in blocks
            ]
        for i in sorted(merged_folds(clock.steps)):
            size = merged_fold_bytes(folds[i], clock.length)
            edges.append(BatchBuffers(f"{graph.nodes[i].name} (fold)", size, 1, clock.id, 1, grows=False))
        for node in (step.node for step in device_folds(clock.steps)):
            assert node.op is not None
            fold = host_fold(node.op.name, [graph.nodes[i].spec for i in node.inputs], node.attrs, node.spec)
            size = device_fold_bytes(fold, clock.length, one_pass.parts)
            edges.append(BatchBuffers(f"{node.name} (fold)", size, 1, clock.id, 1, grows=False))
            if fold.op == "matmul":
                # Each buffer is as large as the largest that a fold asks for.
                shared = [*map(max, zip_longest(shared, products_bytes(fold, clock.length), fillvalue=0))]
            if beside := device_fold_item_bytes(fold):
                edges.append(BatchBuffers(f"{node.name} (keys)", beside, 1, clock.id, 0))
        for entry in (entry for entry in clock.entries if entry.value in read):
            # Of windows, only the records in which they overlap are stored.
            name, item_bytes = graph.nodes[entry.value].name, base_item_bytes(graph, entry)
            edges.append(BatchBuffers(name, item_bytes, 1, clock.id, extra_items(entry)))
    if shared:
        edges.append(BatchBuffers("products of blocks", sum(shared), 1, 0, 1, grows=False))
    return edges
