"""Rows that products make themselves: a norm before quantised products is made in their launch.

A kernel that makes rows of whole rows, as a norm does, takes a launch for very little work where records are few. If
only the products of one launch read its result, that launch makes it. Of few rows each work-group computes those that
it multiplies, in an array of its own. Of more rows a first stage stores them, as a kernel of their own would.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

from flowcompute.elements import Kind
from flowcompute.elements.math import MATMUL
from flowcompute.fuse.producers import ROW_BYTES, STORE_COST
from flowcompute.fuse.reasons import Reason
from flowcompute.fuse.region import Region
from flowcompute.graph import Graph, Node

FEW_ROWS = 8
"""Rows that each work-group computes anew. A row of a norm costs about a thirtieth of a launch."""


def add_row_makers(
    graph: Graph, regions: Sequence[Region], wanted: Collection[int], takes_rows: Callable[[Region], bool]
) -> list[Region]:
    """Let products make the rows of their left factor where nobody else reads these.

    Args:
        graph: the graph.
        regions: of one device, siblings joined.
        wanted: values that are read outside of regions.
        takes_rows: tells whether the kernel of a product may make the rows of its left factor.

    Returns:
        The regions, without those that became row makers. What has one is a region with parts.
    """
    users = graph.users()
    multiplied = {part.anchor: place for place, one in enumerate(regions) for part in one.parts or (one,)}
    taken: dict[int, Region] = {}
    gone = set[int]()
    for place, rows in enumerate(regions):
        value = made_rows(graph, rows)
        if value is None or value in wanted:
            continue
        readers = users[value]
        places = {multiplied.get(i) for i in readers}
        if len(places) != 1 or (reader := places.pop()) is None or reader in taken:
            continue
        region = regions[reader]
        alike = (region.stream, region.level) == (rows.stream, rows.level)
        multiply = all(_multiplies(graph, value, i) for i in readers)
        if alike and multiply and all(takes_rows(part) for part in region.parts or (region,)):
            taken[reader] = _with_rows(region, rows, value)
            gone.add(place)
    return [taken.get(place, region) for place, region in enumerate(regions) if place not in gone]


def told_with_rows(graph: Graph, regions: Sequence[Region], reasons: Sequence[Reason]) -> list[Reason]:
    """Return reasons for operands that are stored, in true words where products make these rows themselves.

    Args:
        graph: the graph.
        regions: of one device, with their row makers.
        reasons: of `find_producers`, which does not know of row makers.
    """
    made = {
        graph.nodes[part.anchor].name: part.row_maker
        for region in regions
        for part in region.parts
        if part.row_maker is not None and part.anchor is not None
    }
    return [_told(graph, made[one.element], one) if one.element in made else one for one in reasons]


def _told(graph: Graph, rows: Region, reason: Reason) -> Reason:
    (value,) = rows.outputs
    name = graph.nodes[value].name
    if not reason.text.startswith(f"{name} is stored: "):
        return reason
    few = FEW_ROWS // math.prod(rows.domain[:-1])
    records = "1 record" if few == 1 else f"{few} records"
    return replace(reason, text=f"a launch of up to {records} makes {name} itself; of more, its first stage stores it")


def made_rows(graph: Graph, region: Region) -> int | None:
    """Return the one result of a region that makes few cheap rows of whole rows, as float32; None for others."""
    if len(region.outputs) != 1 or region.anchor is not None or region.parts or region.folds or not region.stream:
        return None
    (value,) = region.outputs
    node, last = graph.nodes[value], len(region.domain) - 1
    if node.spec.shape != region.domain or region.reduced != {last} or graph.nodes[region.nodes[0]].again:
        return None
    if region.layouts[value] != tuple(range(len(region.domain))) or node.spec.dtype.str != "<f4":
        return None
    short = region.domain[-1] * node.spec.dtype.itemsize <= ROW_BYTES
    cheap = sum(_cost(graph.nodes[i], region.numbers) for i in region.nodes) <= STORE_COST * region.numbers
    return value if 0 < math.prod(region.domain[:-1]) <= FEW_ROWS and short and cheap else None


def _cost(node: Node, numbers: int) -> int:
    """Count the instructions of a node for a record whose rows have so many numbers."""
    return numbers if node.kind is Kind.REDUCE or node.op is None else node.op.cost * node.spec.item_numbers


def _multiplies(graph: Graph, value: int, product: int) -> bool:
    """Check whether a product multiplies the very rows of a value, in their order."""
    node, shape = graph.nodes[product], graph.nodes[value].spec.shape
    return node.op is MATMUL and node.inputs[0] == value != node.inputs[1] and node.spec.shape[:-1] == shape[:-1]


def _with_rows(region: Region, rows: Region, value: int) -> Region:
    """Return the region of products that make their rows."""
    return replace(
        region,
        nodes=tuple(sorted({*region.nodes, *rows.nodes})),
        layouts={**rows.layouts, **region.layouts},
        reads={**rows.reads, **region.reads},
        outputs=tuple(sorted((*region.outputs, value))),
        exposed=region.exposed | rows.exposed,
        anchor=None,
        parts=tuple(replace(part, row_maker=rows) for part in region.parts or (region,)),
    )
