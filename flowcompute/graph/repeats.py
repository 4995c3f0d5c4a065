"""Equal blocks of a deep graph, one after the other, as one block: what a picture shows of 48 equal layers."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace

from flowcompute.elements import Compute
from flowcompute.graph.draw import details
from flowcompute.graph.graph import Graph, Node, is_number
from flowcompute.imports import dataclass

LEAST_BLOCKS = 3
"""Equal blocks from which on one is shown for all."""

MOST_UNITS = 200
"""Units of a block."""


@dataclass(frozen=True)
class Block:
    """Equal runs of units, each as the one before it.

    Attributes:
        start: the first unit of the first run.
        units: units of a run.
        count: number of runs.
    """

    start: int
    units: int
    count: int


@dataclass(frozen=True)
class _Unit:
    """Nodes that are drawn together: a kernel, or a node outside of all.

    Attributes:
        group: the kernel's name; None of a node alone.
        nodes: ids of its nodes, in order.
        key: what it is, but for where its operands come from.
        reads: unit and position there of each operand from outside.
    """

    group: str | None
    nodes: tuple[int, ...]
    key: Hashable
    reads: tuple[tuple[int, int], ...]


def fold_repeats(
    graph: Graph, groups: Mapping[str, Sequence[int]]
) -> tuple[Graph, dict[str, tuple[int, ...]], dict[int, int]]:
    """Draw equal blocks that follow each other as one.

    Args:
        graph: the graph.
        groups: nodes that are drawn together, by name.

    Returns:
        The smaller graph and its groups. Also how often each of its nodes stands for an equal one, by id, where that is
        more than once.
    """
    units = _units(graph, groups)
    became = list(range(len(graph.nodes)))
    counts: dict[int, int] = {}
    for block in find_blocks([unit.key for unit in units], [unit.reads for unit in units]):
        for unit in range(block.start, block.start + block.units * block.count):
            first = units[block.start + (unit - block.start) % block.units]
            for node, shown in zip(units[unit].nodes, first.nodes, strict=True):
                became[node] = shown
                counts[shown] = block.count
    # A number belongs to whoever uses it, and goes with the last of its users.
    left = [node for node in graph.nodes if became[node.id] == node.id]
    used = {operand for node in left for operand in node.inputs}.union(graph.roots)
    kept = [node for node in left if node.id in used or not is_number(node)]
    number = {node.id: position for position, node in enumerate(kept)}
    nodes = tuple(replace(one, id=i, inputs=tuple(number[became[o]] for o in one.inputs)) for i, one in enumerate(kept))
    held = {name: tuple(number[i] for i in own if became[i] == i) for name, own in groups.items()}
    made = Graph(nodes, tuple(number[became[root]] for root in graph.roots))
    return made, {name: own for name, own in held.items() if own}, {number[i]: n for i, n in counts.items()}


def find_blocks(keys: Sequence[Hashable], reads: Sequence[Sequence[tuple[int, int]]]) -> list[Block]:
    """Find equal blocks of units that follow each other.

    Units are equal if their keys are, and if each operand is the same, or comes from the same place of the block
    before. What stands outside may read the last block only, so that one may stand for all.

    Args:
        keys: what each unit is.
        reads: unit and position there of each operand of each unit.
    """
    users: list[set[int]] = [set() for _ in keys]
    for unit, operands in enumerate(reads):
        for operand, _ in operands:
            users[operand].add(unit)

    def equal(unit: int, apart: int) -> bool:
        one, other = reads[unit], reads[unit + apart]
        return (
            keys[unit] == keys[unit + apart]
            and len(one) == len(other)
            and all(a[1] == b[1] and b[0] - a[0] in (0, apart) for a, b in zip(one, other, strict=True))
        )

    def closed(block: Block) -> bool:
        last = block.start + block.units * (block.count - 1)
        end = last + block.units
        return all(block.start <= user < end for unit in range(block.start, last) for user in users[unit])

    blocks: list[Block] = []
    start = 0
    while start < len(keys):
        best: Block | None = None
        for size in range(1, min(MOST_UNITS, (len(keys) - start) // LEAST_BLOCKS) + 1):
            same = 0
            while start + same + size < len(keys) and equal(start + same, size):
                same += 1
            block = Block(start, size, same // size + 1)
            covered = size * block.count
            if block.count >= LEAST_BLOCKS and closed(block) and (best is None or covered > best.units * best.count):
                best = block
        if best is not None:
            blocks.append(best)
        start += 1 if best is None else best.units * best.count
    return blocks


def _units(graph: Graph, groups: Mapping[str, Sequence[int]]) -> list[_Unit]:
    """Return what is drawn together, in the order of its last nodes."""
    held = {i for nodes in groups.values() for i in nodes}
    alone = ((None, (node.id,)) for node in graph.nodes if node.id not in held and not is_number(node))
    drawn = sorted(
        [*((name, tuple(nodes)) for name, nodes in groups.items() if nodes), *alone], key=lambda u: max(u[1])
    )
    places: dict[int, tuple[int, int]] = {}
    for unit, (_, nodes) in enumerate(drawn):
        for position, i in enumerate(nodes):
            places.setdefault(i, (unit, position))
    return [_unit(graph, name, nodes, places) for name, nodes in drawn]


def _unit(graph: Graph, group: str | None, nodes: tuple[int, ...], places: Mapping[int, tuple[int, int]]) -> _Unit:
    own = {i: position for position, i in enumerate(nodes)}
    keys: list[Hashable] = []
    reads: list[tuple[int, int]] = []
    for i in nodes:
        node = graph.nodes[i]
        inside: list[Hashable] = []
        for operand in node.inputs:
            if operand in own:
                inside.append(own[operand])
            elif operand in places:
                inside.append("outside")
                reads.append(places[operand])
            else:
                inside.append(repr(graph.nodes[operand].element))
        keys.append((_what(node), str(node.spec), tuple(inside)))
    return _Unit(group, nodes, (group is None, tuple(keys)), tuple(reads))


def _what(node: Node) -> Hashable:
    element = node.element
    if isinstance(element, Compute):
        return (element.call.name if element.call is not None and node.returned else element.op.name, details(node))
    return type(element).__name__
