"""Bytes known before anything runs: batch size and depth are chosen to fit the budget, or the plan is refused."""

from __future__ import annotations

from dataclasses import dataclass

from flowcompute.elements import Constant
from flowcompute.errors import PlanError
from flowcompute.graph.graph import Graph
from flowcompute.planner.backend import Traits
from flowcompute.planner.fold import FoldSpec
from flowcompute.planner.plan import MemoryPlan, Pass, SinkStage
from flowcompute.planner.reason import Reason
from flowcompute.planner.steps import NodeStep, RegionStep
from flowcompute.spec import format_shape
from flowcompute.strategy import Config, Strategy

DEFAULT_BATCH_BYTES = {"cpu": 8 << 20, "gpu": 64 << 20, "numpy": 1 << 20}
IN_PLACE_BATCHES = 4
"""How many times the default batch may go by at a time where sources are read in place."""

DEFAULT_DEPTH = 2
FOLD_LEVELS = 40
"""Pending blocks of a fold's binary counter, more than 2^40 blocks need."""


@dataclass
class _Edge:
    """Buffers that grow with the batch."""

    what: str
    item_bytes: int
    count: int


def plan_memory(
    graph: Graph,
    one_pass: Pass,
    folds: dict[int, FoldSpec],
    config: Config,
    strategy: Strategy,
    traits: Traits,
    reasons: list[Reason],
) -> tuple[MemoryPlan, int, int]:
    """Choose records per batch and batches in flight.

    Returns:
        The bytes, the records of a batch and the depth.

    Raises:
        PlanError: if results kept in memory, resident values or the smallest batch do not fit.
    """
    fixed = _results(one_pass, config) + _residents(graph, one_pass, folds)
    fixed_bytes = sum(size for _, size in fixed)
    if fixed_bytes > config.memory_bytes:
        what, size = max(fixed, key=lambda line: line[1])
        raise PlanError(
            f"the memory budget of {config.memory_bytes} bytes is too small for what stays resident",
            element=what,
            expected=f"at least {fixed_bytes} bytes",
            got=f"memory={config.memory_bytes}, and {what} alone takes {size} bytes",
            hint="raise memory=, or make the resident value smaller",
        )
    for source in one_pass.sources:
        why = "asked for by the strategy" if strategy.input == "read" else source.element.must_read()
        if why is not None:
            reasons.append(Reason("input", source.name, f"read into buffers: {why}"))
    reasons += [Reason("knob", name, "accepted, not applied on this device") for name in _unused(strategy, traits)]
    granule = _granule(one_pass)
    depth = strategy.depth or DEFAULT_DEPTH
    room = config.memory_bytes - fixed_bytes
    while True:
        edges = _edges(graph, one_pass, folds, strategy, depth)
        per_record = sum(edge.item_bytes * edge.count for edge in edges)
        if granule * per_record <= room or depth == 1 or strategy.depth is not None:
            break
        depth = 1
        reasons.append(Reason("knob", "depth", "1: two batches on each edge do not fit the memory budget"))
    if granule * per_record > room:
        worst = max(edges, key=lambda edge: edge.item_bytes * edge.count)
        raise PlanError(
            f"the memory budget of {config.memory_bytes} bytes is too small for one batch",
            element=worst.what,
            expected=f"memory of at least {fixed_bytes + granule * per_record} bytes ({granule} records a batch)",
            got=f"memory={config.memory_bytes}",
            hint="raise memory=",
        )
    grows = any(sink.element.in_memory and sink.spec.is_stream and sink.spec.length is None for sink in one_pass.sinks)
    if grows and 2 * granule * per_record <= room:
        # Results of unknown length get the other half.
        room //= 2
    batch_items = _batch_items(
        one_pass, edges, strategy, traits, config.memory_bytes, granule, room // per_record if per_record else 1 << 62
    )
    items = (*fixed, *((f"{edge.what} x {edge.count}", edge.item_bytes * edge.count * batch_items) for edge in edges))
    host_bytes = sum(size for _, size in items)
    device_bytes = 0 if traits.host_memory else host_bytes
    return MemoryPlan(config.memory_bytes, host_bytes, device_bytes, items), batch_items, depth


def _unused(strategy: Strategy, traits: Traits) -> list[str]:
    """Knobs that are set but that the device's code shape does not have."""
    unused = ["unroll", "work_group"] + (["items_per_work_item"] if traits.code_shape != "cpu" else [])
    return [name for name in unused if getattr(strategy, name) is not None]


def _batch_items(
    one_pass: Pass,
    edges: list[_Edge],
    strategy: Strategy,
    traits: Traits,
    budget_bytes: int,
    granule: int,
    most: int,
) -> int:
    """As many records as the knob asks for, the budget allows and the stream has."""
    default = DEFAULT_BATCH_BYTES[traits.code_shape]
    wanted = [(strategy.batch_bytes or default) // max([edge.item_bytes for edge in edges] + [1])]
    # What is read in place takes no buffers, so more of it may go by at a time.
    seen = sum(source.spec.item_bytes for source in one_pass.sources)
    wanted.append((strategy.batch_bytes or min(IN_PLACE_BATCHES * default, budget_bytes // 2)) // max(seen, 1))
    items = max(1, min(*wanted, most))
    if one_pass.length is not None:
        items = min(items, max(1, one_pass.length))
    # Rounded down to the granule, but never below it: folds need whole canonical blocks.
    return max(granule, items // granule * granule)


def _results(one_pass: Pass, config: Config) -> list[tuple[str, int]]:
    """Results that stay in memory.

    Raises:
        PlanError: if one alone is larger than the budget.
    """
    lines = []
    for sink in one_pass.sinks:
        if not sink.element.in_memory or (sink.spec.is_stream and sink.spec.length is None):
            continue
        size = sink.spec.item_bytes * (sink.spec.length if sink.spec.length is not None else 1)
        lines.append((sink.name, size))
        if size > config.memory_bytes:
            raise PlanError(
                f"its result takes {size} bytes, more than the memory budget of {config.memory_bytes}",
                element=sink.name,
                site=sink.element.site,
                got=f"{sink.spec.dtype.name}{format_shape(sink.spec.full_shape)}",
                hint="write it to a file: x >> fc.save(path); or raise memory=",
            )
    return lines


def _residents(graph: Graph, one_pass: Pass, folds: dict[int, FoldSpec]) -> list[tuple[str, int]]:
    lines = []
    for node in graph.nodes:
        spec = node.spec
        if isinstance(node.element, Constant) and spec.item_numbers > 1:
            lines.append((node.name, spec.item_bytes + 16 * spec.dtype.itemsize))
    for step in (*one_pass.before, *one_pass.after):
        values = step.region.outputs if isinstance(step, RegionStep) else (step.node.id,)
        lines += [(graph.nodes[i].name, graph.nodes[i].spec.item_bytes) for i in values]
    for fold, what in folds.items():
        width = sum(max(8, dtype.itemsize) for dtype in what.parts())
        levels = min(FOLD_LEVELS, _levels(one_pass.length, what.block))
        # Beside the counter's levels: the tail of records, and two blocks that a batch cuts through.
        lines.append((f"{graph.nodes[fold].name} (fold)", what.numbers * width * (levels + 4)))
    return lines


def _levels(length: int | None, block: int) -> int:
    return FOLD_LEVELS if length is None else max(1, (length // block).bit_length())


def _granule(one_pass: Pass) -> int:
    """Records that every batch but the last is a multiple of: folds of numbers take whole blocks."""
    blocks = [
        step.kernel.block if step.kernel is not None else 1
        for step in one_pass.steps
        if isinstance(step, RegionStep)
        and step.region.folds
        and step.kernel is not None
        and step.kernel.work == "records"
    ]
    return max(blocks, default=1)


def _edges(graph: Graph, one_pass: Pass, folds: dict[int, FoldSpec], strategy: Strategy, depth: int) -> list[_Edge]:
    read = [source for source in one_pass.sources if strategy.input == "read" or source.element.must_read() is not None]
    edges = [_Edge(f"{source.name} (read)", source.spec.item_bytes, depth) for source in read]
    takers: dict[int, list[SinkStage]] = {}
    for sink in one_pass.sinks:
        if sink.spec.is_stream:
            takers.setdefault(sink.value, []).append(sink)
    for value, sinks in takers.items():
        # A result in memory is written in place.
        in_place = len(sinks) == 1 and sinks[0].element.in_memory and sinks[0].spec.length is not None
        if not in_place:
            edges.append(_Edge(f"{sinks[0].name} (write)", graph.nodes[value].spec.item_bytes, depth))
    for step in one_pass.steps:
        if isinstance(step, RegionStep):
            inner = [i for i in step.region.outputs if i not in takers]
            edges += [
                _Edge(f"{graph.nodes[i].name} (between kernels)", graph.nodes[i].spec.item_bytes, 1) for i in inner
            ]
            for fold in step.region.folds:
                edges.append(_Edge(f"{graph.nodes[fold].name} (blocks)", _partial_bytes(folds[fold]), 1))
        elif isinstance(step, NodeStep) and step.node.spec.is_stream and step.node.id not in takers:
            edges.append(_Edge(f"{step.name} (host)", step.node.spec.item_bytes, 1))
    return edges


def _partial_bytes(spec: FoldSpec) -> int:
    """Bytes of block results for each record, rounded up."""
    width = sum(dtype.itemsize for dtype in spec.parts())
    return -(-spec.numbers * width // spec.block)
