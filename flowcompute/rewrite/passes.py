"""Division of a graph into passes, and the streams that one pass stores for a later one."""

from __future__ import annotations

from collections.abc import Iterable

from flowcompute.elements import Destination, Kind, Source
from flowcompute.elements.training import TRAIN
from flowcompute.errors import PlanError
from flowcompute.graph import Graph, Node
from flowcompute.imports import dataclass
from flowcompute.sources import FeedSource


@dataclass(frozen=True)
class PassNodes:
    """The nodes that one pass reads and computes.

    Attributes:
        targets: the folds and stream destinations that the pass computes.
        nodes: ids of its streams and folds, in topological order.
        kept: ids of spools among them that an earlier pass has stored. They are read like sources.
        keeps: ids of spools that this pass stores for later ones.
    """

    targets: tuple[Node, ...]
    nodes: tuple[int, ...]
    kept: frozenset[int]
    keeps: tuple[int, ...]


def levels_of(graph: Graph) -> list[int]:
    """Return for each node how many passes end before it is computed: the depth of folds before it.

    A resident value of element-wise operations that only later ones read is computed with these, so that one kernel
    may do it all. Of a training that is what optimizers make of moments.
    """
    levels: list[int] = []
    for node in graph.nodes:
        levels.append(max([levels[i] + (graph.nodes[i].kind is Kind.FOLD) for i in node.inputs], default=0))
    first_read: dict[int, int] = {}
    for node in reversed(graph.nodes):
        # Single numbers would be computed for each row of a kernel.
        if node.kind is Kind.ELEMENTWISE and not node.spec.is_stream and node.spec.item_numbers > 1:
            levels[node.id] = max(levels[node.id], first_read.get(node.id, 0))
        for i in node.inputs:
            first_read[i] = min(levels[node.id], first_read.get(i, levels[node.id]))
    return levels


def find_passes(graph: Graph, levels: list[int]) -> list[PassNodes]:
    """Divide a graph into the fewest passes, one for all targets of a level.

    Raises:
        PlanError: if a source would be read twice but can be read only once.
    """
    ends = [graph.nodes[i] for i in graph.roots if graph.nodes[i].spec.is_stream]
    ends += [node for node in graph.nodes if node.kind is Kind.FOLD]
    count = max([levels[node.id] for node in ends], default=0) + 1
    targets = [tuple(node for node in ends if levels[node.id] == index) for index in range(count)]
    first: dict[int, int] = {}
    again: set[int] = set()
    found: list[tuple[list[int], set[int]]] = []
    for index in range(count):
        nodes, kept = _streams_of(graph, targets[index], set(first))
        for i in nodes:
            if _is_spool(graph.nodes[i]):
                first.setdefault(i, index)
        again |= kept
        found.append((nodes, kept))
    passes = [
        PassNodes(
            targets[index],
            tuple(nodes),
            frozenset(kept),
            tuple(i for i in nodes if i in again and first.get(i) == index),
        )
        for index, (nodes, kept) in enumerate(found)
    ]
    _check_sources(graph, passes)
    return passes


def _is_spool(node: Node) -> bool:
    return node.op is not None and node.op.name == "spool"


def _streams_of(graph: Graph, targets: Iterable[Node], spools: set[int]) -> tuple[list[int], set[int]]:
    """Return the stream nodes and folds that targets depend on, and the stored spools among them, by id."""
    found: set[int] = set()
    kept: set[int] = set()
    todo = [node.id for node in targets]
    while todo:
        node = graph.nodes[todo.pop()]
        if node.id in found or not (node.spec.is_stream or node.kind is Kind.FOLD):
            continue
        found.add(node.id)
        if node.id in spools:
            kept.add(node.id)
            continue
        # A training reads its sources by itself.
        todo += [i for i in node.inputs if graph.nodes[i].spec.is_stream and node.op is not TRAIN]
    return sorted(i for i in found if not isinstance(graph.nodes[i].element, Destination)), kept


def _check_sources(graph: Graph, passes: list[PassNodes]) -> None:
    readers: dict[int, list[PassNodes]] = {}
    for one in passes:
        for i in one.nodes:
            if isinstance(graph.nodes[i].element, Source):
                readers.setdefault(i, []).append(one)
    for i, mine in readers.items():
        source = graph.nodes[i]
        assert isinstance(source.element, Source)
        if len(mine) > 1 and not source.element.rereadable:
            first, second = (max(one.targets, key=lambda node: node.id) for one in mine[:2])
            fold = _latest_fold(graph, second)
            # A flow sees each record once, even if a spool stores it.
            by_hand = isinstance(source.element, FeedSource)
            raise PlanError(
                f"cannot read a source twice that can be read only once: {second.name} needs {fold.name}, a result "
                f"over the whole stream, for each record ({len(mine)} passes)",
                element=source.name,
                site=source.element.site,
                expected="a source that can be read again, like a file or an array",
                got=f"a source for {first.name} and again for {second.name}",
                hint="resolve the fold first and use its value as fc.constant(value)"
                if by_hand
                else "keep the stream in a temporary file for the later pass: x = fc.spool(x)",
            )


def _latest_fold(graph: Graph, node: Node) -> Node:
    """Return the latest fold that a node depends on."""
    todo, seen = list(node.inputs), set(node.inputs)
    folds = []
    while todo:
        operand = graph.nodes[todo.pop()]
        if operand.kind is Kind.FOLD:
            folds.append(operand)
        todo += [i for i in operand.inputs if i not in seen]
        seen.update(operand.inputs)
    return max(folds, key=lambda fold: fold.id)
