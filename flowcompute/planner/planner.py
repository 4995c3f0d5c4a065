"""From a graph to a plan: passes, steps, kernels, bytes. Reads headers only and touches no device."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from flowcompute.elements import Destination, Source
from flowcompute.elements.op import Kind
from flowcompute.errors import PlanError
from flowcompute.graph.graph import Graph, Node
from flowcompute.planner.backend import Backend
from flowcompute.planner.fold import FoldSpec
from flowcompute.planner.lower import lower
from flowcompute.planner.memory import plan_memory
from flowcompute.planner.plan import Pass, Plan, SinkStage, SourceStage
from flowcompute.planner.reason import Reason
from flowcompute.planner.regions import Access, Region, build_regions
from flowcompute.planner.steps import NodeStep, RegionStep, Step
from flowcompute.strategy import Config, Strategy

FUSED = (Kind.ELEMENTWISE, Kind.REDUCE, Kind.FOLD)


def make_plan(graph: Graph, config: Config, strategy: Strategy, backend: Backend) -> Plan:
    """Plan a graph whose roots are destinations.

    Raises:
        PlanError: naming the element, if the job cannot be run as asked.
    """
    levels = _levels(graph)
    folds = {node.id: _fold_spec(graph, node) for node in graph.nodes if node.kind is Kind.FOLD}
    fused = [node.id for node in graph.nodes if node.kind in FUSED]
    regions, host_folds, reasons = build_regions(graph, levels, fused, _taken(graph))
    regions += [_single(graph, node, levels) for node in graph.nodes if node.kind is Kind.CONTRACT]
    _check_dtypes(graph, backend)
    steps = _ordered(_steps(graph, regions, host_folds, folds, backend, config))
    one_pass = _pass(graph, steps, levels)
    reasons.append(Reason("device", backend.traits.name, backend.traits.reason))
    memory, batch_items, depth = plan_memory(graph, one_pass, folds, config, strategy, backend.traits, reasons)
    return Plan(
        graph=graph,
        passes=(one_pass,),
        folds=folds,
        backend=backend,
        config=config,
        strategy=strategy,
        memory=memory,
        batch_items=batch_items,
        depth=depth,
        reasons=tuple(reasons),
    )


def _levels(graph: Graph) -> list[int]:
    """For each node in which pass it runs; resident nodes: after how many passes.

    Raises:
        PlanError: when a stream needs the result of a fold, that is a second pass.
    """
    levels: list[int] = []
    for node in graph.nodes:
        inputs = [levels[i] + (graph.nodes[i].kind is Kind.FOLD) for i in node.inputs]
        level = max(inputs, default=0)
        streams = node.spec.is_stream or node.kind is Kind.FOLD
        if streams and level > 0:
            source = _fold_behind(graph, node)
            raise PlanError(
                f"needs {source.name}, a result over the whole stream, for each of its records: "
                "that is two passes, not supported yet",
                element=node.name,
                site=node.element.site,
                hint=f"resolve {source.name} first and use it as fc.constant(value)",
            )
        levels.append(level)
    return levels


def _fold_behind(graph: Graph, node: Node) -> Node:
    """The latest fold that a node depends on."""
    todo, seen = list(node.inputs), set(node.inputs)
    folds = []
    while todo:
        operand = graph.nodes[todo.pop()]
        if operand.kind is Kind.FOLD:
            folds.append(operand)
        todo += [i for i in operand.inputs if i not in seen]
        seen.update(operand.inputs)
    return max(folds, key=lambda fold: fold.id)


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
    )


def _taken(graph: Graph) -> set[int]:
    """Values that something outside regions takes: destinations and steps of their own."""
    taken: set[int] = set()
    for node in graph.nodes:
        if isinstance(node.element, Destination) or node.kind in (Kind.CONTRACT, Kind.HOST, Kind.ALONG):
            taken.update(node.inputs)
    return taken


def _single(graph: Graph, node: Node, levels: list[int]) -> Region:
    """A region of one node that keeps its own kernel."""
    accesses = tuple(Access(i, tuple(range(len(graph.nodes[i].spec.shape)))) for i in node.inputs)
    layout = tuple(range(len(node.spec.shape)))
    return Region(
        node.name,
        node.spec.is_stream,
        levels[node.id],
        node.spec.shape,
        frozenset(),
        (node.id,),
        {node.id: layout},
        {node.id: accesses},
        (node.id,),
        (),
    )


def _check_dtypes(graph: Graph, backend: Backend) -> None:
    if backend.traits.float64:
        return
    for node in graph.nodes:
        if node.spec.dtype.name == "float64" and node.kind in FUSED:
            raise PlanError(
                f"is float64, which {backend.traits.name} does not have",
                element=node.name,
                site=node.element.site,
                hint='cast with .astype("float32"), or choose another device=',
            )


def _steps(
    graph: Graph,
    regions: list[Region],
    host_folds: list[int],
    folds: dict[int, FoldSpec],
    backend: Backend,
    config: Config,
) -> list[Step]:
    steps: list[Step] = []
    for number, region in enumerate(regions):
        kernel = None
        if backend.traits.code_shape != "numpy" and not _launches_nothing(graph, region):
            kernel = lower(graph, region, backend.traits, folds, f"k{number}")
            kernel = replace(kernel, contract=config.precision == "fast")
        steps.append(RegionStep(region.name, region, kernel))
    alone = [graph.nodes[i] for i in host_folds]
    alone += [node for node in graph.nodes if node.kind in (Kind.HOST, Kind.ALONG)]
    return steps + [NodeStep(node.name, node) for node in alone]


def _launches_nothing(graph: Graph, region: Region) -> bool:
    """Whether everything a region makes is empty whatever the batch."""
    made = [graph.nodes[i].spec.item_numbers for i in (*region.outputs, *region.folds)]
    return not any(made)


def inputs_of(step: Step) -> tuple[int, ...]:
    """Values a step reads."""
    return step.region.inputs if isinstance(step, RegionStep) else step.node.inputs


def outputs_of(step: Step) -> tuple[int, ...]:
    """Values a step makes (folds only at the end of the pass)."""
    return (*step.region.outputs, *step.region.folds) if isinstance(step, RegionStep) else (step.node.id,)


def _ordered(steps: list[Step]) -> list[Step]:
    """Steps so that each comes after those that make what it reads; otherwise as the graph runs."""
    maker = {value: position for position, step in enumerate(steps) for value in outputs_of(step)}
    first = [min(outputs_of(step)) for step in steps]
    done: set[int] = set()
    order: list[Step] = []
    for root in sorted(range(len(steps)), key=lambda position: first[position]):
        stack = [root]
        while stack:
            position = stack[-1]
            needs = {maker[v] for v in inputs_of(steps[position]) if v in maker} - done - {position}
            if position in done:
                stack.pop()
            elif needs:
                stack.extend(sorted(needs))
            else:
                done.add(stack.pop())
                order.append(steps[position])
    return order


def _streams(step: Step) -> bool:
    if isinstance(step, RegionStep):
        return step.region.stream
    return step.node.spec.is_stream or step.node.kind is Kind.FOLD


def _level(step: Step, levels: list[int]) -> int:
    return step.region.level if isinstance(step, RegionStep) else levels[step.node.id]


def _pass(graph: Graph, steps: list[Step], levels: list[int]) -> Pass:
    sources = [node for node in graph.nodes if isinstance(node.element, Source)]
    sinks = [
        SinkStage(node.inputs[0], node.name, node.element, graph.nodes[node.inputs[0]].spec, position)
        for position, node in enumerate(graph.nodes[root] for root in graph.roots)
        if isinstance(node.element, Destination)
    ]
    lengths = {node.spec.length for node in graph.nodes if node.spec.is_stream} - {None}
    if len(lengths) > 1:
        _refuse_lengths(sources)
    return Pass(
        sources=tuple(SourceStage(n.id, n.name, n.element, n.spec) for n in sources if isinstance(n.element, Source)),
        before=tuple(s for s in steps if not _streams(s) and _level(s, levels) == 0),
        steps=tuple(s for s in steps if _streams(s)),
        after=tuple(s for s in steps if not _streams(s) and _level(s, levels) > 0),
        sinks=tuple(sinks),
        length=next(iter(lengths), None),
    )


def _refuse_lengths(sources: Iterable[Node]) -> None:
    lines = ", ".join(f"{node.name}: {node.spec.length}" for node in sources)
    raise PlanError(
        "the roots read streams of different length, which cannot advance together",
        element="plan",
        got=lines,
        hint="resolve them one after the other",
    )
