"""Kernels of regions that were lowered before: an equal region gets the same body, bound to its own values.

A region is lowered out of the part of the graph that its kernel is made of, with numbers of its own. So equal layers
of a network are lowered once, and a kernel cannot depend on anything else of the graph. Bodies name arguments, never
values: only the arguments of the kernel itself say which values they are.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from flowcompute.elements import Compute, Constant, Element, Kind
from flowcompute.fuse import Access, Region
from flowcompute.graph import Graph, Node, UnknownError, exact, operation_key
from flowcompute.ir import Argument, FoldSpec, Kernel
from flowcompute.lower.forms import lower
from flowcompute.lower.kernel_knobs import KernelStyle

_MOST_KERNELS = 256
"""Kept at most. The body of a large one takes 0.2 MB."""


@dataclass(frozen=True)
class RegionPart:
    """The part of a graph that a region's kernel is made of.

    Attributes:
        graph: nodes of the region, what they read, and what that is a view of. What else there is has no inputs.
        region: in the numbers of that graph.
        values: id in the whole graph of each node.
    """

    graph: Graph
    region: Region
    values: tuple[int, ...]

    @classmethod
    def of(cls, graph: Graph, region: Region) -> RegionPart:
        """Cut the part out of a graph. The order of the nodes stays."""
        own, found = set(region.nodes), set[int]()
        waiting = [*region.nodes, *region.outputs, *region.folds, *region.inputs]
        while waiting:
            value = waiting.pop()
            if value not in found:
                found.add(value)
                if value in own or graph.nodes[value].kind in (Kind.VIEW, Kind.WINDOW):
                    waiting += graph.nodes[value].inputs
                waiting += [key.value if isinstance(key, Access) else key for key in region.reads.get(value, ())]
        if region.weight_tiles is not None:
            found.add(region.weight_tiles.value)
        values = tuple(sorted(found))
        place = {value: i for i, value in enumerate(values)}
        nodes = tuple(
            Node(i, graph.nodes[value].name, graph.nodes[value].element, _within(graph.nodes[value].inputs, place))
            for i, value in enumerate(values)
        )
        return cls(Graph(nodes, ()), _renumbered(region, place), values)

    def key(self) -> object:
        """Return what lowering looks at, hashable.

        Raises:
            UnknownError: if some of it cannot be compared.
        """
        own = {*self.region.nodes}
        return (
            tuple((node.inputs, *_facts(node.element, is_read=node.id not in own)) for node in self.graph.nodes),
            *(_outline(region) for region in (self.region, *self.region.parts)),
        )


class KernelCache:
    """The kernels that were lowered last, by everything that they depend on. May be used from any thread."""

    def __init__(self) -> None:
        self._kernels: OrderedDict[object, Kernel] = OrderedDict()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._kernels)

    def clear(self) -> None:
        """Forget all kernels."""
        with self._lock:
            self._kernels.clear()

    def lower(
        self, graph: Graph, region: Region, style: KernelStyle, folds: Mapping[int, FoldSpec], name: str
    ) -> Kernel:
        """Return the kernel of a region; see `flowcompute.lower.lower`."""
        part = RegionPart.of(graph, region)
        own_folds = {i: folds[value] for i, value in enumerate(part.values) if value in folds}
        try:
            key = part.key(), style, tuple(own_folds.items())
        except UnknownError:
            key = None
        with self._lock:
            kernel = self._kernels.get(key)
            if kernel is not None:
                self._kernels.move_to_end(key)
        if kernel is None:
            kernel = lower(part.graph, part.region, style, own_folds, name)
            if key is not None:
                self._keep(key, kernel)
        few = None if kernel.few is None else replace(kernel.few, arguments=_placed(kernel.few, part.values))
        return replace(kernel, name=name, region=region.name, arguments=_placed(kernel, part.values), few=few)

    def _keep(self, key: object, kernel: Kernel) -> None:
        with self._lock:
            self._kernels[key] = kernel
            if len(self._kernels) > _MOST_KERNELS:
                self._kernels.popitem(last=False)


def _placed(kernel: Kernel, values: tuple[int, ...]) -> tuple[Argument, ...]:
    """Return the arguments of a kernel, whose values are numbered in a part of a graph, as the whole numbers them."""
    return tuple(one if one.value < 0 else replace(one, value=values[one.value]) for one in kernel.arguments)


def _outline(region: Region) -> tuple[object, ...]:
    """Return what lowering asks a region for, hashable."""
    return (
        (region.stream, region.domain, region.reduced, region.nodes, tuple(region.layouts.items())),
        tuple(region.reads.items()),
        (region.outputs, region.folds, region.exposed, region.anchor, region.entered, region.weight_tiles),
        (region.place, region.after),
        None if region.row_maker is None else _outline(region.row_maker),
        None if region.row_follower is None else _outline(region.row_follower),
    )


def _within(inputs: tuple[int, ...], place: Mapping[int, int]) -> tuple[int, ...]:
    """Return the inputs of a node in a part of the graph; none where that leaves one out."""
    return tuple(place[i] for i in inputs) if all(i in place for i in inputs) else ()


def _renumbered(region: Region, place: Mapping[int, int]) -> Region:
    """Return a region in the numbers of a part of its graph."""

    def read(key: int | Access) -> int | Access:
        return Access(place[key.value], key.layout) if isinstance(key, Access) else place[key]

    tiles = region.weight_tiles
    return replace(
        region,
        nodes=tuple(place[i] for i in region.nodes),
        layouts={place[i]: layout for i, layout in region.layouts.items()},
        reads={place[i]: tuple(map(read, keys)) for i, keys in region.reads.items()},
        outputs=tuple(place[i] for i in region.outputs),
        folds=tuple(place[i] for i in region.folds),
        exposed=frozenset(place[i] for i in region.exposed if i in place),
        anchor=None if region.anchor is None else place[region.anchor],
        entered=frozenset(place[i] for i in region.entered if i in place),
        weight_tiles=None if tiles is None else replace(tiles, value=place[tiles.value]),
        parts=tuple(_renumbered(part, place) for part in region.parts),
        row_maker=None if region.row_maker is None else _renumbered(region.row_maker, place),
        row_follower=None if region.row_follower is None else _renumbered(region.row_follower, place),
    )


def _facts(element: Element, *, is_read: bool) -> tuple[Any, ...]:
    """Return what lowering asks an element for. Of arrays it knows single numbers alone; others are loaded.

    Args:
        element: of a node of the part.
        is_read: whether the kernel only reads it.

    Raises:
        UnknownError: if its class is not known.
    """
    spec = exact(element.spec)
    if isinstance(element, Constant):
        return Constant, spec, element.value.tobytes() if element.value.ndim == 0 else None
    if type(element) is Compute:
        operands = tuple(exact(operand.spec) for operand in element.inputs)
        return Compute, spec, operation_key(element.op), exact(element.attrs), operands
    if not is_read:
        raise UnknownError
    return type(element), spec
