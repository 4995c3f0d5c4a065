"""Rows that follow products in their launch: on GPUs a norm is made by the last work-group of the product before it.

A kernel that makes few short rows, as a norm does, takes a launch for very little work. If all that it reads is made
by the products of one launch, or is there before, it can follow them. Of few rows the last work-group that ends makes
all, where it sees what others have stored. More rows take a second launch of the same kernel, in which all make rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

from flowcompute.elements.math import MATMUL
from flowcompute.fuse.groups import MAX_POINTERS
from flowcompute.fuse.reasons import Reason
from flowcompute.fuse.region import Region
from flowcompute.fuse.sharing.row_makers import FEW_ROWS, made_rows
from flowcompute.graph import Graph
from flowcompute.ir import views_of


def add_row_followers(
    graph: Graph, regions: Sequence[Region], leads: Callable[[Region], bool], *, fences: bool
) -> tuple[list[Region], list[Reason]]:
    """Let rows follow the products that make them.

    Args:
        graph: the graph.
        regions: of one device, siblings joined.
        leads: tells whether others may follow the kernel of a product in its launch.
        fences: whether few rows are made in the same launch.

    Returns:
        The regions, without those that became followers, and a reason for each of these.
    """
    maker = {value: place for place, one in enumerate(regions) for value in one.outputs}
    led: dict[int, Region] = {}
    gone, reasons = set[int](), list[Reason]()
    for place, rows in enumerate(regions):
        value = made_rows(graph, rows)
        if value is None:
            continue
        read = {i for i in (views_of(graph, one)[0] for one in rows.inputs) if graph.nodes[i].spec.is_stream}
        leaders = {maker[i] for i in read if i in maker} - gone
        leader = max(leaders, default=place)
        if leader in led or not _follows(graph, rows, regions[leader], read):
            continue
        if all(leads(part) for part in regions[leader].parts or (regions[leader],)):
            led[leader] = _with_follower(regions[leader], rows, value)
            gone.add(place)
            reasons.append(_told(graph, rows, value, regions[leader], fences=fences))
    return [led.get(place, region) for place, region in enumerate(regions) if place not in gone], reasons


def _follows(graph: Graph, rows: Region, leader: Region, read: Collection[int]) -> bool:
    """Check whether rows can follow products: one row of a product for each, and nothing that comes later is read."""
    parts = leader.parts or (leader,)
    nodes = [None if part.anchor is None else graph.nodes[part.anchor] for part in parts]
    many = math.prod(rows.domain[:-1])
    if any(one is None or one.op is not MATMUL or math.prod(one.spec.shape[:-1]) != many for one in nodes):
        return False
    if any(part.row_maker is not None for part in parts):
        return False
    alike = (leader.stream, leader.level) == (rows.stream, rows.level)
    before = {views_of(graph, i)[0] for i in leader.inputs}
    there = all(i in leader.outputs or i in before for i in read)
    pointers = len({*leader.inputs, *rows.inputs, *leader.outputs, *rows.outputs}) + 1
    return alike and there and pointers <= MAX_POINTERS


def _with_follower(leader: Region, rows: Region, value: int) -> Region:
    """Return the region of products that rows follow; it has the name of these, which come last."""
    parts = leader.parts or (leader,)
    return replace(
        leader,
        name=rows.name,
        nodes=tuple(sorted({*leader.nodes, *rows.nodes})),
        layouts={**leader.layouts, **rows.layouts},
        reads={**leader.reads, **rows.reads},
        outputs=tuple(sorted((*leader.outputs, value))),
        exposed=leader.exposed | rows.exposed,
        anchor=None,
        parts=parts,
        row_follower=replace(rows, place=len(parts)),
    )


def _told(graph: Graph, rows: Region, value: int, leader: Region, *, fences: bool) -> Reason:
    few = FEW_ROWS // math.prod(rows.domain[:-1])
    records = "1 record" if few == 1 else f"{few} records"
    name = graph.nodes[value].name
    text = f"the last work-group of {leader.name} makes it, for up to {records}; more take a second launch"
    if not fences:
        text = f"a second launch of {leader.name} makes it"
    return Reason("launch", name, text)
