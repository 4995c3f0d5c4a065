"""Sibling products: products of one left factor that do not depend on each other share a launch.

Each keeps the loop nest that it has alone, so its bits stay. The work-groups of a launch are shared out among them; see
`lower.joined`. On GPUs one that unites its result with that of a sibling of its shape follows this one: each work-group
computes the same places of both, one after the other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from flowcompute.elements.math import MATMUL
from flowcompute.elements.quantized import Dequantize
from flowcompute.fuse.dependencies import Dependencies
from flowcompute.fuse.groups import MAX_POINTERS
from flowcompute.fuse.region import Access, Region, joined
from flowcompute.graph import Graph
from flowcompute.ir import views_of


def join_siblings(
    graph: Graph,
    regions: Sequence[Region],
    dependencies: Dependencies,
    joins: Callable[[Region], str | None],
    *,
    follow: bool = False,
) -> list[Region]:
    """Join regions around products of the same rows with resident factors.

    Args:
        graph: the graph.
        regions: of one device.
        dependencies: of its steps.
        joins: tells the form of the kernel of a region, if it can share its launch with others of that form.
        follow: whether one may follow another one in the same work-groups.

    Returns:
        The regions. What is joined stands at the place of its first part.
    """
    every: dict[object, list[list[Region]]] = {}
    order: list[list[Region]] = []
    for region in regions:
        key = _common(graph, region)
        form = None if key is None else joins(region)
        sets = [] if form is None else every.setdefault((key, form), [])
        for others in sets:
            first, own = _step(others[0]), _step(region)
            if not _fit([*others, region]):
                continue
            if not dependencies.depend(first, own):
                dependencies.merge(first, own)
                others.append(region)
                break
            after = _followed(graph, others, region) if follow else None
            if after is not None and not dependencies.depend(first, own, but=first):
                dependencies.append(first, own)
                others.append(replace(region, after=after))
                break
        else:
            order.append([region])
            sets.append(order[-1])
    return [parts[0] if len(parts) == 1 else joined(parts) for parts in order]


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


def _followed(graph: Graph, parts: Sequence[Region], region: Region) -> int | None:
    """Return the place of the part that a product can follow: it reads its results, at its own places alone."""
    read = {one for reads in region.reads.values() for one in reads if isinstance(one, Access)}
    roots = {one: views_of(graph, one.value)[0] for one in read}
    places = {place for place, part in enumerate(parts) if not set(part.outputs).isdisjoint(roots.values())}
    if len(places) != 1:
        return None
    (place,) = places
    part = parts[place]
    if part.after is not None or any(one.after == place for one in parts) or not _alike(graph, part, region):
        return None
    own = tuple(range(len(region.domain)))
    for access, root in roots.items():
        if root in part.outputs and (access.value != root or access.layout != own or part.layouts[root] != own):
            return None
    return place


def _alike(graph: Graph, one: Region, other: Region) -> bool:
    """Check whether two products have equal tiles: their results have one shape, their right factors one format."""
    assert one.anchor is not None
    assert other.anchor is not None
    a, b = graph.nodes[one.anchor], graph.nodes[other.anchor]
    formats = [graph.nodes[views_of(graph, node.inputs[1])[0]].op for node in (a, b)]
    decoded = all(isinstance(op, Dequantize) for op in formats)
    return decoded and one.domain == other.domain and a.spec == b.spec and formats[0] == formats[1]
