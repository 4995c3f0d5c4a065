"""Sibling products: products of one left factor that do not depend on each other share a launch.

Each keeps the loop nest that it has alone, so its bits stay. The work-groups of a launch are shared out among them; see
`lower.joined`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from flowcompute.elements.math import MATMUL
from flowcompute.fuse.dependencies import Dependencies
from flowcompute.fuse.groups import MAX_POINTERS
from flowcompute.fuse.region import Region
from flowcompute.graph import Graph


def join_siblings(
    graph: Graph, regions: Sequence[Region], dependencies: Dependencies, joins: Callable[[Region], bool]
) -> list[Region]:
    """Join regions around products of the same rows with resident factors.

    Args:
        graph: the graph.
        regions: of one device.
        dependencies: of its steps.
        joins: tells whether the kernel of a region can share its launch.

    Returns:
        The regions. What is joined stands at the place of its first part.
    """
    every: dict[object, list[list[Region]]] = {}
    order: list[list[Region]] = []
    for region in regions:
        key = _common(graph, region)
        sets = every.setdefault(key, []) if key is not None and joins(region) else []
        for others in sets:
            if _fit([*others, region]) and not _depend(dependencies, _step(others[0]), _step(region)):
                dependencies.merge(_step(others[0]), _step(region))
                others.append(region)
                break
        else:
            order.append([region])
            sets.append(order[-1])
    return [parts[0] if len(parts) == 1 else _joined(parts) for parts in order]


def _common(graph: Graph, region: Region) -> object:
    """Return what siblings have in common: the left factor, and the rows of a record; None if it is no product."""
    node = None if region.anchor is None else graph.nodes[region.anchor]
    if node is None or node.op is not MATMUL or not region.stream or node.inputs[0] in region.nodes:
        return None
    return node.inputs[0], region.level, node.spec.shape[:-1], node.again


def _step(region: Region) -> int:
    """Return the node that names the region among the steps: producers of its anchor belong to no step."""
    assert region.anchor is not None
    return region.anchor


def _fit(parts: Sequence[Region]) -> bool:
    return sum(len(part.inputs) + len(part.outputs) for part in parts) <= MAX_POINTERS


def _depend(dependencies: Dependencies, a: int, b: int) -> bool:
    """Check whether one of two steps depends on the other."""
    return dependencies.reaches(dependencies.operands(a) | dependencies.operands(b), (a, b))


def _joined(parts: Sequence[Region]) -> Region:
    """Return the region that computes all parts."""
    placed = tuple(replace(part, place=place) for place, part in enumerate(parts))
    return replace(
        parts[-1],
        nodes=tuple(sorted(i for part in parts for i in part.nodes)),
        layouts={i: layout for part in parts for i, layout in part.layouts.items()},
        reads={i: keys for part in parts for i, keys in part.reads.items()},
        outputs=tuple(sorted(i for part in parts for i in part.outputs)),
        exposed=frozenset(i for part in parts for i in part.exposed),
        anchor=None,
        parts=placed,
    )
