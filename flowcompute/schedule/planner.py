"""Planner: turns a graph into passes, steps, kernels and memory sizes. Reads headers only and uses no device."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from flowcompute.elements import Element, Kind
from flowcompute.elements.quantized import BlockFormat, Dequantize
from flowcompute.elements.training import Training
from flowcompute.errors import PlanError
from flowcompute.fuse import Reason
from flowcompute.graph import Graph, Node, build_graph
from flowcompute.imports import LateModule
from flowcompute.ir import CANONICAL_FOLDS, FoldSpec, HostFold, by_kernels, host_fold
from flowcompute.metrics import counted
from flowcompute.rewrite import (
    drop_idle_casts,
    find_passes,
    fold_selected,
    join_pads,
    levels_of,
    move_lookups,
    move_views,
    multiply_all_records,
    multiply_halves,
    replace_idle_reductions,
    replace_small_windows,
    share_repeated_matrices,
    split_whole_reductions,
    store_copied_views,
    view_small_matrices,
)
from flowcompute.schedule.backend_description import BackendDescription
from flowcompute.schedule.explain import Plan, not_applied
from flowcompute.schedule.known_plans import KeptPlans, PlanCache, bound, plan_key
from flowcompute.schedule.memory import (
    BudgetError,
    RecordTooLargeError,
    cache_reasons,
    not_isolated,
    plan_memory,
)
from flowcompute.schedule.placement import (
    all_stay,
    count_early_steps,
    divide_records,
    not_pipelined,
    place_nodes,
    single_placement,
    why_not_shared,
)
from flowcompute.schedule.plan import Pass
from flowcompute.schedule.shaping import Shaping
from flowcompute.schedule.steps import NodeStep, device_folds
from flowcompute.schedule.surroundings import check_surroundings
from flowcompute.schedule.tight_plans import plan_recomputing
from flowcompute.sinks import to_array
from flowcompute.strategy import Config, Strategy

if TYPE_CHECKING:
    from flowcompute.schedule import passes as pass_building
else:
    pass_building = LateModule("flowcompute.schedule.passes")

PLANS = PlanCache()
"""The plans of this process."""

KEPT = KeptPlans()
"""The plans of other processes."""

_STEP_SHARE = 0.75
"""Share of a budget that steps of all trainings may take; the rest is for results and for what else the job does."""


def make_plan(
    graph: Graph,
    config: Config,
    strategy: Strategy,
    backend: BackendDescription,
    *,
    asked: Graph | None = None,
    shaping: Shaping | None = None,
    tight: bool = False,
) -> Plan:
    """Plan a graph whose roots are destinations; one that is equal to an earlier one gets that one's plan.

    Args:
        graph: the rewritten graph to run.
        config, strategy, backend: the fixed settings, the tunable knobs and the devices.
        asked: the graph as composed, if it differs.
        shaping: the decisions that led from `asked` to `graph`.
        tight: whether folds take records as soon as they are there, which saves memory and takes time.

    Raises:
        PlanError: if the job cannot be run as asked; the error names the element.
    """
    shaping = shaping or Shaping(backend.capabilities.float64, fused=backend.capabilities.code_shape != "numpy")
    asked = asked or graph
    key = plan_key(graph, backend, config, strategy, shaping, tight)
    if key is None:
        return _planned(graph, config, strategy, backend, asked, shaping, tight=tight)
    plan = PLANS.get(key, graph, asked)
    if plan is None:
        name = KEPT.digest(key, graph, backend)
        kept = None if name is None else KEPT.get(name, graph, asked, (backend, config, strategy, shaping))
        made = kept or _planned(graph, config, strategy, backend, asked, shaping, tight=tight)
        bare = PLANS.keep(key, made)
        if name is not None and bare is not None:
            KEPT.keep(name, bare)
        if kept is None:
            return made
        plan = bound(kept, graph, asked)
    check_surroundings(graph)
    return plan


def _planned(
    graph: Graph,
    config: Config,
    strategy: Strategy,
    backend: BackendDescription,
    asked: Graph,
    shaping: Shaping,
    *,
    tight: bool,
) -> Plan:
    levels = levels_of(graph)
    every = [node for node in graph.nodes if node.kind is Kind.FOLD]
    folds = {node.id: _fold_spec(graph, node) for node in every if _is_canonical(node)}
    host_folds = {node.id: _host_fold(graph, node) for node in every if not _is_canonical(node)}
    if shaping.product_order > 1 and _are_cpus(backend):
        host_folds = {i: by_kernels(fold) for i, fold in host_folds.items()}
    placements, placed = place_nodes(graph, backend)
    if len(backend.placements) > 1 and (single := single_placement(graph, placements)) is not None:
        backend, placements = backend.placements[single], (0,) * len(placements)
    _check_cuts(graph)
    check_surroundings(graph)
    pass_nodes = find_passes(graph, levels)
    reasons: list[Reason] = []
    room = min(placement.capabilities.memory_bytes for placement in backend.placements)
    stay = all_stay(graph, room, config.device_memory_bytes)
    at_once = tight and _takes_at_once(backend)
    maker = pass_building.StepMaker(
        graph,
        folds,
        backend,
        config,
        strategy,
        reasons,
        placements,
        stay=stay,
        block_terms=shaping.block_terms,
        folds_at_once=at_once,
    )
    passes = pass_building.build_passes(maker, pass_nodes, levels)
    reasons += [
        Reason("device", placement.capabilities.name, placement.capabilities.reason) for placement in backend.placements
    ]
    reasons += _not_on_host(placed, graph, passes)
    reasons += _decoded(graph)
    kernels = [kernel for one in passes for kernel in one.kernels]
    sources = [source.element for one in passes for source in one.sources]
    reasons += not_applied(strategy, kernels, sources, backend.capabilities)
    reasons += not_isolated(graph, passes) if config.isolate else []
    if config.device_memory_bytes is not None and all(
        placement.capabilities.host_memory for placement in backend.placements
    ):
        reasons.append(Reason("device", "device_memory", "accepted, not applied: all is computed in the host's memory"))
    early = (count_early_steps(one, config, backend) for one in passes)
    passes = tuple(replace(one, ahead=ahead, folds_at_once=at_once) for one, ahead in zip(passes, early, strict=True))
    trainings = {node.id: node.element for node in graph.nodes if isinstance(node.element, Training)}
    share = _STEP_SHARE / max(1, len(trainings))
    inner = {
        i: tuple(_planned_step(roots, config, strategy, backend, shaping, share) for roots in _inner_graphs(training))
        for i, training in trainings.items()
    }
    devices = backend.capabilities.devices
    reasons += [one for i, plans in inner.items() for one in _told_steps(graph.nodes[i], plans, devices)]
    held = [(graph.nodes[i].name, max(one.memory.host_bytes for one in plans)) for i, plans in inner.items()]
    if devices > 1 and maker.is_step and any(device_folds(one.steps) for one in passes):
        division = divide_records(graph, passes, folds, host_folds, devices, config.memory_bytes)
        passes = tuple(replace(one, parts=division.starts) for one in passes)
        held += [(f"{graph.nodes[i].name} (parts)", size) for i, size in division.held_bytes.items()]
    memory, passes, depth = plan_memory(graph, passes, folds, host_folds, config, strategy, backend, reasons, held)
    reasons += cache_reasons(passes, config.memory_bytes)
    passes = tuple(maker.with_weight_tiles(one) for one in passes)
    reasons += _unshared_passes(passes, config, backend)
    reasons += not_pipelined(passes, backend)
    return Plan(
        graph=graph,
        passes=passes,
        folds=folds,
        host_folds=host_folds,
        backend=backend,
        config=config,
        strategy=strategy,
        memory=memory,
        depth=depth,
        reasons=tuple(reasons),
        asked=asked,
        shaping=shaping,
        inner=inner,
    )


def _told_steps(node: Node, plans: Sequence[Plan], devices: int) -> Iterator[Reason]:
    """Yield reasons for each size of a training's steps, and for its evaluation: what it takes, and where it runs."""
    assert isinstance(node.element, Training)
    told = [(f"a step of {size} records", size) for size in node.element.schedule.sizes]
    if node.element.evaluation is not None:
        told.append(
            ("its evaluation", max((one.spec.length or 0 for one in node.element.evaluation.sources), default=0))
        )
    for (what, size), plan in zip(told, plans, strict=True):
        batch = min(size, plan.passes[0].batch_items)
        runs = f"{what} runs {counted(len(plan.steps), 'step')} of its own"
        text = f"{runs} in {counted(len(plan.passes), 'pass')}, with at most {batch} records at a time"
        yield Reason("train", node.name, f"{text} in {plan.memory.host_bytes} bytes")
        yield from (
            Reason(one.kind, node.name, f"{what}: {one.element} {one.text}")
            for one in plan.reasons
            if one.kind == "recompute"
        )
        if devices == 1 or not any(device_folds(one.steps) for one in plan.passes):
            continue
        of_step = plan.graph, plan.passes, plan.folds, plan.host_folds
        why = divide_records(*of_step, devices, plan.config.memory_bytes).why
        starts = ", ".join(str(start) for one in plan.passes for start in one.parts)
        parts = f"is divided among {devices} devices, from records {starts} on"
        yield Reason("device", node.name, f"{what} {parts if starts else 'runs on the first device alone'}: {why}")


def _inner_graphs(training: Training) -> Iterator[Sequence[Element]]:
    """Yield the roots of each graph that a training runs by itself."""
    yield from training.steps
    if training.evaluation is not None:
        yield training.evaluation.roots


def _planned_step(
    roots: Sequence[Element],
    config: Config,
    strategy: Strategy,
    backend: BackendDescription,
    shaping: Shaping,
    share: float,
) -> Plan:
    """Plan a step of a training, within its share of the budget."""
    within = replace(config, resumable=False, memory_bytes=max(1, int(config.memory_bytes * share)))
    try:
        return plan_step(roots, within, strategy, backend, shaping)
    except (BudgetError, RecordTooLargeError) as error:
        if isinstance(error, BudgetError):
            error.tell_whole(config.memory_bytes, share)
        if isinstance(error, RecordTooLargeError):
            error.one_pass = None
        raise


def plan_step(
    roots: Sequence[Element], config: Config, strategy: Strategy, backend: BackendDescription, shaping: Shaping
) -> Plan:
    """Plan the graph of a step, whose leaves are given each time.

    Args:
        roots: resident values.
        config, strategy, backend, shaping: as for `make_plan`.

    Raises:
        PlanError: if it cannot be run as asked, or results of it would be streams.
    """
    asked = build_graph([to_array().bind(root) for root in roots])
    # Convolutions of steps keep sums in float32.
    graph = multiply_halves(asked, backend.capabilities, windows=False)
    graph = replace_small_windows(drop_idle_casts(replace_idle_reductions(graph)))
    graph = share_repeated_matrices(graph) if shaping.fused else graph
    # Elsewhere the views between blocks are copied on the host.
    split = shaping.float64 and not backend.capabilities.host_memory
    graph = split_whole_reductions(graph) if split else graph
    graph = join_pads(fold_selected(move_views(move_lookups(graph)), float64=shaping.float64))
    # No state has names of a step's nodes, so devices may differ in them.
    graph = graph if backend.capabilities.host_memory else store_copied_views(graph)
    graph = multiply_all_records(graph) if shaping.product_order > 1 and _are_cpus(backend) else graph
    graph = view_small_matrices(graph) if _are_cpus(backend) else graph

    def made(graph: Graph, tight: bool) -> Plan:
        # No state has names of a step's nodes.
        own = Graph(graph.nodes, graph.roots) if graph.origins else graph
        plan = make_plan(own, config, strategy, backend, asked=asked, shaping=shaping, tight=tight)
        if backend.first is not None and any(
            device_folds(one.steps) and (one.streamed or not one.parts) for one in plan.passes
        ):
            # Alone the first device keeps parameters and moments from step to step, too.
            plan = make_plan(own, config, strategy, backend.first, asked=asked, shaping=shaping, tight=tight)
        return plan

    try:
        plan = made(graph, False)
    except RecordTooLargeError as error:
        plan = plan_recomputing(graph, made, error)
    for sink in (sink for one in plan.passes for sink in one.sinks):
        if sink.spec.is_stream:
            raise PlanError(
                "cannot keep a stream between the passes of a step",
                element=sink.name,
                site=sink.element.site,
                expected="a loss without fc.spool",
            )
    return plan


def _takes_at_once(backend: BackendDescription) -> bool:
    """Check whether folds may take records before a batch is done: one device computes all.

    Several compute later batches before earlier ones are done, of which folds take the records first.
    """
    (first, *more) = backend.placements
    return not more and first.capabilities.devices == 1


def _are_cpus(backend: BackendDescription) -> bool:
    """Check whether kernels of CPUs compute all, in the host's memory."""
    every = [one.capabilities for one in backend.placements]
    return all(one.host_memory and one.code_shape == "cpu" for one in every)


def _not_on_host(placed: Sequence[Reason], graph: Graph, passes: tuple[Pass, ...]) -> Iterator[Reason]:
    """Yield the reasons for the placement of operations on devices.

    An operation that no device computes has another reason, which says why.
    """
    steps = (step for one in passes for step in (*one.before, *one.steps, *one.after))
    on_host = {step.name for step in steps if isinstance(step, NodeStep)}
    pinned = {node.name for node in graph.nodes if node.pin is not None}
    for reason in placed:
        if reason.element not in on_host:
            yield reason
        elif reason.element in pinned:
            yield Reason("device", reason.element, "on the host, wherever it is pinned")


def _decoded(graph: Graph) -> Iterator[Reason]:
    """Yield a reason for each format of blocks, with the number of values that are stored so."""
    counts: dict[str, tuple[BlockFormat, int]] = {}
    for op in (node.op for node in graph.nodes):
        if isinstance(op, Dequantize):
            block_format = op.block_format
            counts[block_format.name] = block_format, counts.get(block_format.name, (block_format, 0))[1] + 1
    for name, (one, count) in counts.items():
        values = "value is" if count == 1 else "values are"
        blocks = f"blocks of {one.block_bytes} bytes for {one.numbers} numbers"
        yield Reason("blocks", name, f"{count} {values} stored in {blocks}, which are decoded where they are loaded")


def _unshared_passes(passes: tuple[Pass, ...], config: Config, backend: BackendDescription) -> Iterator[Reason]:
    """Yield a reason for each pass that only the first of several devices computes."""
    for number, one in enumerate(passes if backend.capabilities.devices > 1 else (), 1):
        why = None if one.parts else why_not_shared(one, by_hand=config.by_hand)
        if why is not None:
            yield Reason("device", f"pass {number}", f"computed on the first device alone: {why}")


def _is_canonical(node: Node) -> bool:
    return node.op is not None and node.op.name in CANONICAL_FOLDS


def _host_fold(graph: Graph, node: Node) -> HostFold:
    assert node.op is not None
    return host_fold(node.op.name, [graph.nodes[i].spec for i in node.inputs], node.attrs, node.spec)


def _fold_spec(graph: Graph, node: Node) -> FoldSpec:
    assert node.op is not None
    operands = [graph.nodes[i].spec for i in node.inputs]
    item = node.spec.shape[1:] if node.attrs["keepdims"] else node.spec.shape
    return FoldSpec(
        node.op.name,
        operands[0].dtype,
        item,
        node.spec.dtype,
        node.spec.shape,
        node.attrs.get("inner", 1),
        node.attrs.get("correction", 0.0),
        inputs=len(operands),
        selected=node.attrs.get("selected", False),
    )


def _check_cuts(graph: Graph) -> None:
    for node in graph.nodes:
        if node.op is not None and node.op.name == "cut" and node.attrs["tail"] == "emit":
            raise PlanError(
                "cannot use runs of which the last may be shorter, except in a reduction of the runs",
                element=node.name,
                site=node.element.site,
                expected="fc.cut(...).sum(axis=1), or another reduction along axis 1",
                hint='use tail="pad" or tail="drop"',
            )
