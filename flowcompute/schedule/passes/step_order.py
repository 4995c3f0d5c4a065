"""Order of the steps of a clock."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from flowcompute.elements import Kind
from flowcompute.graph import Graph, Node
from flowcompute.schedule.steps import NodeStep, RegionStep, Step

FEW_NUMBERS = 8
"""Numbers of a record up to which values that the host makes are made early: they are kept for longer then."""


def inputs_of(step: Step) -> tuple[int, ...]:
    """Return the values that a step reads."""
    return step.region.inputs if isinstance(step, RegionStep) else step.node.inputs


def outputs_of(step: Step) -> tuple[int, ...]:
    """Return the values that a step computes; folds are complete at the end of the pass only."""
    return (*step.region.outputs, *step.region.folds) if isinstance(step, RegionStep) else (step.node.id,)


def in_order(graph: Graph, steps: list[Step], *, folds_at_once: bool = False) -> list[Step]:
    """Sort steps so that each follows the steps that compute its inputs, otherwise in graph order.

    Values that are computed again would be kept as long as the first ones if they came early. So steps that compute
    only with such values are taken when others need them. Folds, of whose operands nothing is left, are taken as soon
    as they can be. What the host makes of few numbers without any kernel comes first: it would wait for kernels that
    were launched before.

    Args:
        graph: the graph.
        steps: of a clock.
        folds_at_once: whether folds free what they read. Then they are taken early without such values, too.
    """
    ordered = _numbers_first(_in_graph_order(steps))
    again = _made_again(graph)
    if not again and not folds_at_once:
        return ordered
    maker = {value: position for position, step in enumerate(ordered) for value in outputs_of(step)}
    needs = [{maker[v] for v in inputs_of(step) if v in maker} - {i} for i, step in enumerate(ordered)]
    late = {i for i, step in enumerate(ordered) if all(value in again for value in _streams_of(graph, step))}
    folds = [i for i, step in enumerate(ordered) if _only_folds(step)]
    return [ordered[i] for i in _by_need(needs, late.union(folds), folds)]


def _by_need(needs: Sequence[Collection[int]], waiting: Collection[int], folds: Sequence[int]) -> Iterable[int]:
    """Return places of steps, of which some wait until they are needed.

    Args:
        needs: the places of the steps that each of them follows.
        waiting: places of those that wait; at last all are there.
        folds: places of those that come as soon as what they need is there.
    """
    done: dict[int, None] = {}
    open_folds = dict.fromkeys(folds)

    def take(place: int) -> None:
        stack = [place]
        while stack:
            missing = [i for i in needs[stack[-1]] if i not in done]
            if stack[-1] not in done and missing:
                stack.extend(sorted(missing, reverse=True))
                continue
            done.setdefault(stack.pop())
            for fold in [i for i in open_folds if all(one in done for one in needs[i])]:
                del open_folds[fold]
                done.setdefault(fold)

    for waits in (False, True):
        for place in range(len(needs)):
            if (place in waiting) == waits:
                take(place)
    return done


def _made_again(graph: Graph) -> set[int]:
    """Return the streams that are computed a second time, and those that are made of nothing else."""
    found: set[int] = set()
    for node in graph.nodes:
        streams = [i for i in node.inputs if graph.nodes[i].spec.is_stream]
        if node.again or (node.spec.is_stream and streams and found.issuperset(streams)):
            found.add(node.id)
    return found


def _streams_of(graph: Graph, step: Step) -> list[int]:
    """Return the streams that a step computes."""
    nodes = (*step.region.nodes, *step.region.folds) if isinstance(step, RegionStep) else (step.node.id,)
    return [i for i in nodes if graph.nodes[i].spec.is_stream or graph.nodes[i].kind is Kind.FOLD]


def _only_folds(step: Step) -> bool:
    """Check whether a step gives nothing but the results of folds."""
    return not step.region.outputs if isinstance(step, RegionStep) else step.node.kind is Kind.FOLD


def _numbers_first(steps: Sequence[Step]) -> list[Step]:
    """Put steps of the host first that make few numbers of each record, and read nothing that others make."""
    early, others = list[Step](), list[Step]()
    late = set[int]()
    for step in steps:
        if isinstance(step, NodeStep) and _is_of_few_numbers(step.node) and late.isdisjoint(step.on_host):
            early.append(step)
        else:
            late.update(outputs_of(step))
            others.append(step)
    return [*early, *others]


def _is_of_few_numbers(node: Node) -> bool:
    is_few = node.spec.is_stream and node.spec.item_numbers <= FEW_NUMBERS
    return is_few and node.kind in (Kind.VIEW, Kind.SCAN, Kind.ELEMENTWISE)


def _in_graph_order(steps: list[Step]) -> list[Step]:
    """Sort steps so that each follows the steps that compute its inputs, otherwise in graph order."""
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
