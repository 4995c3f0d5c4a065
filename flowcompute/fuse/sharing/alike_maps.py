"""Alike maps share a launch: maps of resident values that differ in nothing but these values and how many they are.

A step of a training updates each parameter by the same formula, and casts weights by the same one. Each is a map of
its own, since they have other shapes. This is horizontal fusion, which libraries call multi-tensor apply. All take the
one body, with the pointers and the length of the map whose tile it is; see `lower.flat.many_maps`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from flowcompute.elements import Kind
from flowcompute.elements.generated import Generator
from flowcompute.elements.quantized import Dequantize
from flowcompute.fuse.dependencies import Dependencies
from flowcompute.fuse.region import Access, Region, joined
from flowcompute.graph import Graph, UnknownError, exact, operation_key
from flowcompute.imports import dataclass
from flowcompute.ir import has_dense_items, storage

MOST_ARGUMENTS = 112
"""Arguments of a launch, of 8 bytes. OpenCL promises room for 1024 bytes, of which each launch has 40 for itself."""


@dataclass(frozen=True)
class MapOutline:
    """Formula of a map, and the values that it is applied to.

    Attributes:
        formula: equal for maps that have one body. Single numbers that they read are part of it.
        read: values that the map reads, each as long as the map. What a view shows is named in its place.
        stored: its results.
        numbers: how many single numbers it reads.
    """

    formula: object
    read: tuple[int, ...]
    stored: tuple[int, ...]
    numbers: int

    def arguments(self, maps: int) -> int:
        """Return how many arguments a launch of so many maps takes."""
        return maps * (len(self.read) + len(self.stored)) + self.numbers


def outline_of(graph: Graph, region: Region) -> MapOutline | None:
    """Return the outline of a map of resident values; None for regions that share no launch by theirs.

    A map of one number has none: all that it reads is as long as itself.
    """
    if region.stream or region.anchor is not None or region.folds or region.reduced or region.parts:
        return None
    if region.numbers == 1 or any(graph.nodes[i].spec.item_numbers != region.numbers for i in region.outputs):
        return None
    places = {node: place for place, node in enumerate(region.nodes)}
    read: dict[int, int] = {}
    numbers = set[int]()
    formula: list[object] = []
    try:
        for i in region.nodes:
            node = graph.nodes[i]
            if node.kind is not Kind.ELEMENTWISE or node.op is None or isinstance(node.op, Generator | Dequantize):
                return None
            operands: list[object] = []
            for one in region.reads[i]:
                if not isinstance(one, Access):
                    operands.append(places[one])
                    continue
                spec = graph.nodes[one.value].spec
                if spec.item_numbers == 1:
                    numbers.add(one.value)
                    operands.append(("number", one.value))
                elif spec.item_numbers == region.numbers and has_dense_items(graph, one.value):
                    base = storage(graph, one.value).base
                    operands.append(("values", read.setdefault(base, len(read)), spec.dtype))
                else:
                    return None
            known = operation_key(node.op), exact(node.attrs), node.spec.dtype
            formula.append((*known, tuple(operands), i in region.exposed))
    except UnknownError:
        return None
    key = region.level, tuple(formula), tuple(places[i] for i in region.outputs)
    return MapOutline(key, tuple(read), region.outputs, len(numbers))


def join_alike_maps(
    graph: Graph,
    regions: Sequence[Region],
    dependencies: Dependencies,
    changes: Callable[[Iterable[int]], bool],
    joins: Callable[[Region], str | None],
) -> list[Region]:
    """Join maps of one formula that do not depend on each other. What stays from run to run is computed once, apart.

    Args:
        graph: the graph.
        regions: of one device.
        dependencies: of its steps.
        changes: tells whether some of these resident values are others in the next run.
        joins: tells the form of the kernel of a region, if it can share its launch.

    Returns:
        The regions. What is joined stands at the place of its first part.
    """
    sets: dict[object, list[list[Region]]] = {}
    order: list[list[Region]] = []
    for region in regions:
        outline = outline_of(graph, region)
        alike = (
            []
            if outline is None or not joins(region)
            else sets.setdefault((outline.formula, changes(region.nodes)), [])
        )
        for others in alike:
            first, own = others[0].nodes[0], region.nodes[0]
            fits = outline is not None and outline.arguments(len(others) + 1) <= MOST_ARGUMENTS
            if fits and not dependencies.depend(first, own):
                dependencies.merge(first, own)
                others.append(region)
                break
        else:
            order.append([region])
            alike.append(order[-1])
    return [parts[0] if len(parts) == 1 else joined(parts) for parts in order]
