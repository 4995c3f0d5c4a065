"""Kernels of regions that were lowered before: an equal region gets the same body, bound to its own values.

A region is lowered out of the part of the graph that its kernel is made of, with numbers of its own. So equal layers
of a network are lowered once, and a kernel cannot depend on anything else of the graph. Bodies name arguments, never
values: only the arguments of the kernel itself say which values they are.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from flowcompute.elements import Compute, Constant, Element, Kind
from flowcompute.fuse import Access, Region
from flowcompute.graph import Graph, Node, UnknownError, exact, operation_key
from flowcompute.ir import FoldSpec, Kernel
from flowcompute.lower.forms import lower
from flowcompute.lower.kernel_knobs import KernelStyle
from flowcompute.spec import Spec

_MOST_KERNELS = 256
"""Kept at most. The body of a large one takes 0.2 MB."""


class RegionPart:
    """The part of a graph that a region's kernel is made of: what the region holds, reads, and what that is a view of.

    It is cut out where its kernel is lowered, and only compared where there is an equal one already.

    Attributes:
        values: id in the whole graph of each node of the part, ascending.
    """

    def __init__(self, graph: Graph, region: Region) -> None:
        own, found, nodes = set(region.nodes), set[int](), graph.nodes
        waiting = [*region.nodes, *region.outputs, *region.folds, *region.inputs]
        while waiting:
            value = waiting.pop()
            if value not in found:
                found.add(value)
                if value in own or nodes[value].kind in (Kind.VIEW, Kind.WINDOW):
                    waiting += nodes[value].inputs
                waiting += [key.value if isinstance(key, Access) else key for key in region.reads.get(value, ())]
        if region.weight_tiles is not None:
            found.add(region.weight_tiles.value)
        self.values = tuple(sorted(found))
        self._own, self._place = own, {value: i for i, value in enumerate(self.values)}
        self._nodes, self._region = [nodes[value] for value in self.values], region

    def key(self) -> object:
        """Return what lowering looks at, hashable.

        Raises:
            UnknownError: if some of it cannot be compared.
        """
        own, place, region = self._own, self._place, self._region
        return (
            tuple(
                [(_within(one.inputs, place), *_facts(one.element, is_read=one.id not in own)) for one in self._nodes]
            ),
            *[_outline(one, place) for one in (region, *region.parts)],
        )

    def cut(self) -> tuple[Graph, Region]:
        """Return a graph of these nodes alone, and the region in its numbers. What else it reads has no inputs."""
        nodes = [Node(i, one.name, one.element, _within(one.inputs, self._place)) for i, one in enumerate(self._nodes)]
        return Graph(tuple(nodes), ()), _renumbered(self._region, self._place)


class _HashedKey:
    """A key whose hash is computed once: it is asked for by each step of a look-up."""

    __slots__ = ("_hash", "_held")

    def __init__(self, held: object) -> None:
        self._held, self._hash = held, hash(held)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _HashedKey) and (other is self or other._held == self._held)

    def __hash__(self) -> int:
        return self._hash


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
        part = RegionPart(graph, region)
        own_folds = {i: folds[value] for i, value in enumerate(part.values) if value in folds}
        try:
            key = _HashedKey((part.key(), style, tuple(own_folds.items())))
        except UnknownError:
            key = None
        with self._lock:
            kernel = self._kernels.get(key)
            if kernel is not None:
                self._kernels.move_to_end(key)
        if kernel is None:
            kernel = lower(*part.cut(), style, own_folds, name)
            if key is not None:
                self._keep(key, kernel)
        return replace(_placed(kernel, part.values), name=name, region=region.name)

    def _keep(self, key: object, kernel: Kernel) -> None:
        with self._lock:
            self._kernels[key] = kernel
            if len(self._kernels) > _MOST_KERNELS:
                self._kernels.popitem(last=False)


def _placed(kernel: Kernel, values: tuple[int, ...]) -> Kernel:
    """Return a kernel whose arguments, and those of its `few`, are numbered as the whole graph numbers their values."""
    arguments = tuple(one if one.value < 0 else replace(one, value=values[one.value]) for one in kernel.arguments)
    return replace(kernel, arguments=arguments, few=None if kernel.few is None else _placed(kernel.few, values))


def _outline(region: Region, place: Mapping[int, int]) -> tuple[object, ...]:
    """Return what lowering asks a region for, in the numbers of a part of its graph, hashable."""
    anchor, tiles, maker, follower = region.anchor, region.weight_tiles, region.row_maker, region.row_follower
    reads = [
        (place[i], *[(place[key.value], key.layout) if isinstance(key, Access) else place[key] for key in keys])
        for i, keys in region.reads.items()
    ]
    return (
        (region.stream, region.domain, region.reduced, tuple([place[i] for i in region.nodes])),
        tuple([(place[i], layout) for i, layout in region.layouts.items()]),
        tuple(reads),
        (tuple([place[i] for i in region.outputs]), tuple([place[i] for i in region.folds])),
        frozenset([place[i] for i in region.exposed if i in place]),
        frozenset([place[i] for i in region.entered if i in place]),
        (None if anchor is None else place[anchor], region.place, region.after),
        None if tiles is None else replace(tiles, value=place[tiles.value]),
        None if maker is None else _outline(maker, place),
        None if follower is None else _outline(follower, place),
    )


def _within(inputs: tuple[int, ...], place: Mapping[int, int]) -> tuple[int, ...]:
    """Return the inputs of a node in a part of the graph; none where that leaves one out."""
    own = [place[i] for i in inputs if i in place]
    return tuple(own) if len(own) == len(inputs) else ()


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
    spec = _outer(element.spec)
    if isinstance(element, Constant):
        return Constant, spec, element.value.tobytes() if element.value.ndim == 0 else None
    if type(element) is Compute:
        operands = tuple([_outer(operand.spec) for operand in element.inputs])
        return Compute, spec, operation_key(element.op), exact(element.attrs), operands
    if not is_read:
        raise UnknownError
    return type(element), spec


def _outer(spec: Spec) -> tuple[object, ...]:
    """Return what `exact` gives for a spec, which is asked for most."""
    return spec.dtype, spec.shape, spec.stream
