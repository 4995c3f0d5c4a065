"""Memory plan: the batch size and depth that fit the budget. Jobs that do not fit are rejected before they run."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from flowcompute.elements import Constant, Kind
from flowcompute.elements.training import GivenStream
from flowcompute.errors import PlanError
from flowcompute.fuse import Reason
from flowcompute.graph import Graph
from flowcompute.ir import DeviceCapabilities, FoldSpec, HostFold
from flowcompute.schedule.backend_description import BackendDescription
from flowcompute.schedule.memory.cache_use import request_bytes
from flowcompute.schedule.memory.fold_bytes import fold_state_bytes
from flowcompute.schedule.memory.in_flight import crossing_bytes, pinned, staging_bytes, staging_shares
from flowcompute.schedule.memory.pass_sizer import BudgetError, PassSizer, SizedPass, device_room
from flowcompute.schedule.memory.worker_needs import isolated_placements, shared_name
from flowcompute.schedule.placement import (
    VECTOR_NUMBERS,
    Residents,
    chosen_operands,
    extra_batches,
)
from flowcompute.schedule.plan import NEXT_STEP, STEPS_IN_ONE_LAUNCH, MemoryPlan, Pass
from flowcompute.schedule.run_knobs import (
    default_batch_bytes,
    depth_of_small_batches,
    with_defaults,
)
from flowcompute.schedule.steps import NodeStep, RegionStep, device_folds
from flowcompute.spec import format_shape
from flowcompute.strategy import Config, Strategy

MOST_STEPS = 16
"""Steps in one launch at most: by then the launch itself is a hundredth of them."""

STEPS_BYTES = 64 << 20
"""Bytes that steps in one launch take at most beside the first. Those that read more are long without that."""

TABLE_BYTES = 2 << 10
"""Bytes of a kernel in the tables of a launch, for each step: its arguments, phases and counters, at most."""


def plan_memory(
    graph: Graph,
    passes: tuple[Pass, ...],
    folds: dict[int, FoldSpec],
    host_folds: dict[int, HostFold],
    config: Config,
    strategy: Strategy,
    backend: BackendDescription,
    reasons: list[Reason],
    held: Sequence[tuple[str, int]] = (),
) -> tuple[MemoryPlan, tuple[Pass, ...], int]:
    """Choose the batch size and the number of batches in flight.

    Args:
        graph, passes, folds, host_folds, config, strategy, backend: of the job.
        reasons: more are added.
        held: what else takes memory, with its bytes.

    Returns:
        The bytes, the passes with the batch sizes of their clocks, and the depth.

    Raises:
        PlanError: if results in memory, resident values or the smallest batch do not fit.
    """
    capabilities = backend.capabilities
    # What steps of trainings hand on cannot be written to files instead.
    is_step = any(isinstance(node.element, GivenStream) for node in graph.nodes)
    most = None if is_step else config.memory_bytes
    fixed = [*held, *_held_at_ends(passes), *(line for one in passes for line in _results(one, most))]
    fixed += request_bytes(passes)
    fixed += _residents(graph, passes, {**folds, **host_folds}, config)
    staging = 0
    if (shares := staging_shares(backend)) > 0:
        # What steps move is moved again by each of them.
        crossing = math.inf if is_step else crossing_bytes(passes, sum(size for _, size in fixed))
        staging = staging_bytes(config.memory_bytes // shares, crossing)
        fixed.append(("pinned memory for transfers", shares * pinned(staging)))
    for number, each in isolated_placements(config, backend):
        # A host device streams no weights.
        room = each.memory_bytes if each.host_memory else device_room(config, each)
        parts = (Residents(graph, one.on_placement(number)).within(room) for one in passes)
        fixed += [(shared_name(name), size) for name, size in max(parts, key=lambda one: one.size_bytes).lines]
    fixed_bytes = sum(size for _, size in fixed)
    default_bytes = default_batch_bytes(capabilities, passes)
    sizers = [PassSizer(graph, one, folds, config, strategy, backend, default_bytes) for one in passes]
    if fixed_bytes > config.memory_bytes:
        what, size = max(fixed, key=lambda line: line[1])
        least, told = fixed_bytes + max(sizer.least(1) for sizer in sizers), f"; {what} alone takes {size} bytes"
        raise BudgetError("what is held throughout", config.memory_bytes, least, element=what, note=("", told))
    reasons += _read_into_buffers(passes, strategy, capabilities)
    room = config.memory_bytes - fixed_bytes
    wished = depth = with_defaults(strategy, capabilities).depth or 1
    if strategy.depth is None:
        depth += max(map(extra_batches, passes))
        # Batches are handed over together in passes of one clock, where no checkpoint is cut between them.
        alone = not config.resumable and all(len(one.clocks) == 1 for one in passes)
        more = depth_of_small_batches(strategy, capabilities) if alone else 0
        while more > depth and any(sizer.asked_bytes(more) > room for sizer in sizers):
            more -= 1
        wished = depth = max(depth, more)
        while depth > 1 and any(sizer.least(depth) > room for sizer in sizers):
            depth -= 1
        if depth < wished:
            why = f"{depth}: {wished} batches on each edge do not fit the memory budget"
            reasons.append(Reason("knob", "depth", why))
    sinks = [sink for one in passes for sink in one.sinks if sink.element.in_memory]
    grows = any(sink.spec.is_stream and sink.spec.length is None for sink in sinks)
    sized = [one.choose(depth, room, fixed_bytes, grows=grows) for one in sizers]
    largest = max(sized, key=lambda one: one.size_bytes)
    items, together = (*fixed, *largest.lines), 0
    # NumPy leaves nothing in progress.
    if is_step and capabilities.host_memory and capabilities.code_shape != "numpy":
        items, together = _with_next_steps(graph, passes, largest.planned, depth, items, config.memory_bytes)
    device = max((one.device_lines for one in sized), key=lambda lines: sum(size for _, size in lines))
    reasons += [reason for one in sized for reason in _streamed_operands(graph, one)]
    reasons += _joined(sized)
    host_bytes = sum(size for _, size in items)
    memory = MemoryPlan(config.memory_bytes, host_bytes, items, device, staging, together > 0, max(1, together))
    return memory, tuple(one.planned for one in sized), depth


def _held_at_ends(passes: Sequence[Pass]) -> list[tuple[str, int]]:
    """Return what readers and writers of a pass hold beside their batches, of the pass in which they hold most."""
    lines = []
    for one in passes:
        held = [(source.name, source.element.held_bytes) for source in one.sources]
        held += [(sink.name, sink.element.held_bytes(sink.spec)) for sink in one.sinks]
        lines.append([(f"{name} (chunks)", size) for name, size in held if size])
    return max(lines, key=lambda one: sum(size for _, size in one), default=[])


def _with_next_steps(
    graph: Graph,
    passes: Sequence[Pass],
    largest: Pass,
    depth: int,
    items: tuple[tuple[str, int], ...],
    budget_bytes: int,
) -> tuple[tuple[tuple[str, int], ...], int]:
    """Return what a step takes with those that are on their way beside it, and how many these may be."""
    made = sum(size for one in passes for _, size in _results(one, None))
    left = budget_bytes - sum(size for _, size in items)
    together, lines = room_for_steps(graph, passes, largest, made, depth, left)
    return (*items, *lines), together


def room_for_steps(
    graph: Graph, passes: Sequence[Pass], largest: Pass, results_bytes: int, depth: int, room_bytes: int
) -> tuple[int, list[tuple[str, int]]]:
    """Return how many steps may be on their way beside the one in hand, with the lines of their bytes.

    More than one are launched together: there are two more sets of results, and for each step records, what folds read
    of them, and tables.

    Args:
        graph: of the step.
        passes: of the step.
        largest: the one whose records are held.
        results_bytes: what a step makes.
        depth: batches of records that there is room for.
        room_bytes: that nothing else takes.
    """
    clocks = largest.clocks
    read = sum(clock.batch_items * source.spec.item_bytes for clock in clocks for source in clock.sources)
    one = results_bytes + (read if depth == 1 else 0)
    if one > room_bytes:
        return 0, []
    steps = [(clock.batch_items, step) for clock in clocks for step in clock.steps]
    folds = [(items, step.node) for items, step in steps if isinstance(step, NodeStep) and step.node.kind is Kind.FOLD]
    regions = [step for one in passes for step in (*one.before, *one.steps, *one.after) if isinstance(step, RegionStep)]
    made = {i for step in regions for i in step.region.outputs}
    folded = sum(
        items * graph.nodes[i].spec.item_bytes for items, node in folds for i in made.intersection(node.inputs)
    )
    tables = TABLE_BYTES * sum(1 + len(step.region.folds) for step in regions)

    def bytes_of(count: int) -> int:
        return 2 * results_bytes + max(0, count - depth) * read + count * (folded + tables)

    room_bytes = min(room_bytes, STEPS_BYTES)
    count = next((count for count in range(MOST_STEPS, 1, -1) if bytes_of(count) <= room_bytes), 1)
    return (
        (1, [(NEXT_STEP, one)]) if count == 1 or len(passes) > 1 else (count, [(STEPS_IN_ONE_LAUNCH, bytes_of(count))])
    )


def _streamed_operands(graph: Graph, sized: SizedPass) -> Iterator[Reason]:
    """Yield a reason for each operand that is uploaded with every batch, with its bytes."""
    one, batches = sized.planned, "each batch"
    if one.length is not None:
        count = -(-one.length // one.batch_items)
        batches = f"each of {count} batches" if count > 1 else "the batch"
    chosen = chosen_operands(graph, one)
    for value in sorted(one.streamed):
        weight_tiles, how = one.weight_tiles.get(value), ""
        if weight_tiles is not None:
            beside = f" besides {weight_tiles.kept} that stay" if weight_tiles.kept else ""
            uploaded = weight_tiles.count - weight_tiles.kept
            how = f", in {uploaded} tiles of {weight_tiles.size} {weight_tiles.what}{beside}"
        what = f"{'the chosen matrices of ' if value in chosen else ''}{sized.uploaded_bytes[value]} bytes"
        why = f"{what} are uploaded anew for {batches}{how}: not all operands fit the device"
        yield Reason("device", graph.nodes[value].name, why)


def _joined(sized: Sequence[SizedPass]) -> Iterator[Reason]:
    """Yield a reason for each clock in which several batches are computed as one."""
    for number, one in enumerate(sized, 1):
        for clock in one.planned.clocks:
            if clock.cut_items is not None:
                why = f"batches of {clock.cut_items} records are computed as one of up to {clock.batch_items}"
                yield Reason("knob", "joined_batches", f"pass {number}: {why} if available")


def _read_into_buffers(
    passes: tuple[Pass, ...], strategy: Strategy, capabilities: DeviceCapabilities
) -> Iterator[Reason]:
    """Yield a reason for each source that is read into buffers."""
    mapped = with_defaults(strategy, capabilities).input == "mapped"
    for source in {source.value: source for one in passes for source in one.sources}.values():
        why = source.element.must_read()
        if why is None and source.element.must_read(mapped=mapped) is not None:
            why = "the strategy" if strategy.input else "a discrete device is fastest from pinned memory"
        if why is not None:
            yield Reason("input", source.name, f"read into buffers: {why}")


def _results(one_pass: Pass, most_bytes: int | None) -> list[tuple[str, int]]:
    """Return the names and bytes of results that stay in memory.

    Raises:
        PlanError: if a single one exceeds `most_bytes`, the budget.
    """
    lines = []
    for sink in one_pass.sinks:
        if not sink.element.in_memory or sink.element.lent or (sink.spec.is_stream and sink.spec.length is None):
            continue
        size = sink.spec.item_bytes * (sink.spec.length if sink.spec.length is not None else 1)
        lines.append((sink.name, size))
        if most_bytes is not None and size > most_bytes:
            raise PlanError(
                f"cannot fit its result of {size} bytes into the memory budget of {most_bytes} bytes",
                element=sink.name,
                site=sink.element.site,
                got=f"{sink.spec.dtype.name}{format_shape(sink.spec.full_shape)}",
                hint="write it to a file: x >> fc.save(path); or raise memory=",
            )
    return lines


def _residents(
    graph: Graph, passes: tuple[Pass, ...], folds: Mapping[int, FoldSpec | HostFold], config: Config
) -> list[tuple[str, int]]:
    lines = []
    for node in graph.nodes:
        spec = node.spec
        if isinstance(node.element, Constant) and spec.item_numbers > 1 and node.element.memory_bytes:
            lines.append((node.name, node.element.memory_bytes + VECTOR_NUMBERS * spec.dtype.itemsize))
    for step in (step for one in passes for step in (*one.before, *one.after)):
        values = step.region.outputs if isinstance(step, RegionStep) else (step.node.id,)
        lines += [(graph.nodes[i].name, graph.nodes[i].spec.item_bytes) for i in values]
    on_device = {step.node.id for one in passes for step in device_folds(one.steps)}
    for fold, what in folds.items():
        lengths = [graph.nodes[i].spec.length for i in graph.nodes[fold].inputs if graph.nodes[i].spec.is_stream]
        state_bytes = fold_state_bytes(what, next(iter(lengths), None))
        # Of sums by key the host sorts the keys.
        is_there = fold in on_device and isinstance(what, HostFold) and what.op == "matmul"
        own_bytes = graph.nodes[fold].spec.item_bytes if is_there else state_bytes
        lines.append((f"{graph.nodes[fold].name} (fold)", own_bytes))
        if config.resumable:
            lines.append((f"{graph.nodes[fold].name} (copy for a checkpoint)", state_bytes))
    return lines
