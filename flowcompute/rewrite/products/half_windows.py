"""Rewrite of convolutions of half formats for devices whose tensor copies bring windows of images to tensor cores.

A convolution is a product of weights and windows. Halves are cast to float32 and padded before it, and its sums are
rounded to halves after it. Here halves are padded with their channels innermost in memory, and multiplied as they are
stored. Sums run over the kernel first and channels last: `(O, *kernel, C)` of weights by `(*kernel, C, *places)` of
windows. A tensor copy then brings a box of pixels of many channels for each place of the kernel. Images of which each
window is one pixel are a matrix `(C, H W)` already, and are multiplied as they are.

Products of halves are exact in float32, but sums are those of tensor cores, in another order. So jobs keep whether
they are rewritten (`Shaping.half_windows`).
"""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from flowcompute.elements import CAST, Kind, Op
from flowcompute.elements.axes import PAD, PERMUTE, RESHAPE
from flowcompute.elements.math import MATMUL, add
from flowcompute.elements.nn import WINDOWS
from flowcompute.graph import Graph, Node
from flowcompute.imports import dataclass
from flowcompute.ir import is_dense, views_of
from flowcompute.rewrite.rewriter import GraphRewriter
from flowcompute.spec import BFLOAT16, FLOAT16, FLOAT32

HALVES = (FLOAT16, BFLOAT16)
ALIGNED = 8
"""Halves of 16 bytes, at multiples of which rows of what tensor copies read begin."""
LEAST = 16
"""Fewest output channels and fewest places; for fewer, tensor cores would multiply mostly zeros."""
LEAST_WHOLE = 128
"""Fewest output channels and pixels of images that a plain product multiplies by groups of sub-groups."""


@dataclass(frozen=True)
class ImageWindows:
    """Windows at step 1 over the last two axes of images, which are in memory; over one axis as over two.

    Attributes:
        image: the stream of images, items (C, H, W) or (C, W).
        channels: C.
        sizes: H and W.
        kernel: rows and columns of a window.
        dilation: from one number of a window to the next, down and across.
        places: rows and columns of the result.
    """

    image: int
    channels: int
    sizes: tuple[int, int]
    kernel: tuple[int, int]
    dilation: tuple[int, int]
    places: tuple[int, int]


def image_windows(graph: Graph, product: int) -> ImageWindows | None:
    """Return the windows that a product of halves multiplies, in the order of this rewrite; None for other products."""
    node = graph.nodes[product]
    found = _windows_of(graph, node)
    if found is None or not all(graph.nodes[i].spec.dtype in HALVES for i in node.inputs):
        return None
    seen, axes = found
    dims = node.attrs["columns"]
    is_ordered = tuple(axes) == _order(dims, channels_last=True)
    return seen if is_ordered else None


def _order(dims: int, *, channels_last: bool) -> tuple[int, ...]:
    """Return how windows `(C, *places, *kernel)` are permuted for a product."""
    places, kernel = range(1, 1 + dims), range(1 + dims, 1 + 2 * dims)
    return (*kernel, 0, *places) if channels_last else (0, *kernel, *places)


def _windows_of(graph: Graph, node: Node) -> tuple[ImageWindows, Sequence[int]] | None:
    """Return the windows that a product multiplies and how they are permuted; None where it is no convolution."""
    nodes, dims = graph.nodes, node.attrs.get("columns", 0)
    if node.op is not MATMUL or dims not in (1, 2) or node.attrs.get("depth") != dims + 1:
        return None
    left, right = (nodes[i] for i in node.inputs)
    if left.spec.is_stream or not right.spec.is_stream or right.op is not PERMUTE or node.spec.dtype != FLOAT32:
        return None
    view = nodes[right.inputs[0]]
    if view.op is not WINDOWS or len(left.spec.shape) != 2:
        return None
    base, windows = nodes[view.inputs[0]], view.attrs["windows"]
    if len(base.spec.shape) != 1 + dims or [one[0] for one in windows] != [1 + axis for axis in range(dims)]:
        return None
    if any(step != 1 for _, _, step, _ in windows) or 0 in node.spec.shape:
        return None
    channels, *sizes = base.spec.shape
    made = ImageWindows(
        base.id,
        channels,
        _two(sizes),
        _two([one[1] for one in windows]),
        _two([one[3] for one in windows]),
        _two(node.spec.shape[-dims:]),
    )
    return made, right.attrs["axes"]


def _two(numbers: Sequence[int]) -> tuple[int, int]:
    """Return the numbers of both axes of images, of which the first may be missing."""
    first, last = numbers if len(numbers) == 2 else (1, *numbers)
    return first, last


@dataclass(frozen=True)
class _Convolution:
    """A convolution of halves, as it is composed.

    Attributes:
        seen: the windows that it multiplies.
        images: the images before they are cast and padded.
        widths: zeros before and after along each of their axes.
        weights: the weights before they are cast.
        whole: whether the windows are single pixels of dense images, so that a plain product multiplies these as they
            are. No channel needs to be turned around.
    """

    seen: ImageWindows
    images: int
    widths: tuple[tuple[int, int], ...]
    weights: int
    whole: bool


class _HalfWindows(GraphRewriter):
    def __init__(self, graph: Graph, found: dict[int, _Convolution]) -> None:
        super().__init__(graph)
        self.found = found
        self.twins: dict[int, int] = {}

    def rewrite(self, node: Node) -> int:
        """Add a node of the old graph to the new one; a convolution of halves as their product."""
        one = self.found.get(node.id)
        if one is None:
            return self.copy_node(node)
        left, right = (self.graph.nodes[i] for i in node.inputs)
        view = self.graph.nodes[right.inputs[0]]
        half = self.graph.nodes[one.images].spec.dtype
        if one.seen.image not in self.twins:
            self.twins[one.seen.image] = self._images(one)
        windows = self._twin(view, half, self.twins[one.seen.image])
        axes = _order(node.attrs["columns"], channels_last=True)
        spec = replace(right.spec, shape=tuple(view.spec.shape[axis] for axis in axes), dtype=half)
        seen = self._view(right, PERMUTE, spec, windows, axes=axes)
        return self.add(node.name, node.element, (self._weights(node, left, one, half), seen))

    def _images(self, one: _Convolution) -> int:
        """Add the padded images, whose channels are innermost in memory; where windows are pixels, no node."""
        if one.whole:
            return self.new[one.images]
        images, padded = (self.graph.nodes[i] for i in (one.images, one.seen.image))
        dims = len(images.spec.shape) - 1
        turned, back = (*range(1, 1 + dims), 0), (dims, *range(dims))
        spec = replace(images.spec, shape=(*images.spec.shape[1:], images.spec.shape[0]))
        value = self._view(padded, PERMUTE, spec, self.new[images.id], axes=turned)
        spec = replace(spec, shape=(*padded.spec.shape[1:], padded.spec.shape[0]))
        widths = (*one.widths[1:], (0, 0))
        value = self._view(padded, PAD, spec, value, widths=widths, mode="constant", fill=0)
        return self._view(padded, PERMUTE, replace(spec, shape=padded.spec.shape), value, axes=back)

    def _weights(self, node: Node, left: Node, one: _Convolution, half: np.dtype) -> int:
        """Add the weights (O, *kernel, C) as a matrix; no strides describe it, so it is stored once."""
        _, views = views_of(self.graph, left.id)
        value = self.new[one.weights]
        for view in reversed(views):
            value = self._twin(self.graph.nodes[view], half, value)
        rows, inner = left.spec.shape
        kernel = one.seen.kernel[-node.attrs["columns"] :]
        spec = replace(left.spec, dtype=half, shape=(rows, one.seen.channels, *kernel))
        value = self._view(left, RESHAPE, spec, value)
        axes = (0, *range(2, 2 + len(kernel)), 1)
        spec = replace(spec, shape=(rows, *kernel, one.seen.channels))
        value = self._view(left, PERMUTE, spec, value, axes=axes)
        return self._view(left, RESHAPE, replace(spec, shape=(rows, inner)), value)

    def _twin(self, node: Node, dtype: np.dtype, value: int) -> int:
        """Add a view that is a node's but for its dtype."""
        twin: Any = copy.copy(node.element)
        twin.freeze_fields(spec=replace(node.spec, dtype=dtype))
        return self.add(self.fresh(node.name), twin, (value,))

    def _view(self, node: Node, op: Op, spec: Any, value: int, **attrs: Any) -> int:
        twin: Any = copy.copy(node.element)
        twin.freeze_fields(op=op, spec=spec, attrs=attrs)
        return self.add(self.fresh(node.name), twin, (value,))


def _convolution(graph: Graph, users: Sequence[Sequence[int]], node: Node) -> _Convolution | None:
    """Return a product of windows as a convolution of halves, if it is one and tensor copies can read its channels."""
    found = _windows_of(graph, node)
    if found is None:
        return None
    seen, axes = found
    dims = node.attrs["columns"]
    base, widths = graph.nodes[seen.image], ((0, 0),) * (1 + dims)
    if (
        base.op is PAD
        and base.attrs["mode"] == "constant"
        and base.attrs["fill"] == 0
        and not any(base.attrs["widths"][0])
    ):
        base, widths = graph.nodes[base.inputs[0]], base.attrs["widths"]
    weights, _ = views_of(graph, node.inputs[0])
    casts = (base, graph.nodes[weights])
    if tuple(axes) != _order(dims, channels_last=False) or any(one.op is not CAST for one in casts):
        return None
    images, matrix = (graph.nodes[one.inputs[0]] for one in casts)
    half = images.spec.dtype
    if half not in HALVES or matrix.spec.dtype != half or not _is_rounded(graph, users, node, half):
        return None
    if min(graph.nodes[node.inputs[0]].spec.shape[0], math.prod(seen.places)) < LEAST or seen.channels % ALIGNED:
        return None
    pixels, outputs = math.prod(seen.places), graph.nodes[node.inputs[0]].spec.shape[0]
    whole = (
        seen.kernel == (1, 1)
        and not any(map(any, widths))
        and min(pixels, outputs) >= LEAST_WHOLE
        and not pixels % ALIGNED
        and is_dense(graph, images.id)
    )
    return _Convolution(seen, images.id, widths, matrix.id, whole)


def _is_rounded(graph: Graph, users: Sequence[Sequence[int]], node: Node, half: np.dtype) -> bool:
    """Check whether all that reads the sums rounds them to halves, at most a bias later."""

    def rounds(reader: int) -> bool:
        return graph.nodes[reader].op is CAST and graph.nodes[reader].spec.dtype == half

    readers = [
        then
        for one in users[node.id]
        for then in (users[one] if graph.nodes[one].op is add.op and one not in graph.roots else [one])
    ]
    return bool(readers) and node.id not in graph.roots and all(map(rounds, readers))


def multiply_half_windows(graph: Graph) -> Graph:
    """Return the graph with convolutions of half formats as products of halves. Roots keep their order."""
    if not any(node.op is WINDOWS for node in graph.nodes):
        return graph
    users = graph.users()
    found = {
        node.id: one
        for node in graph.nodes
        if node.kind is Kind.CONTRACT and (one := _convolution(graph, users, node)) is not None
    }
    return _HalfWindows(graph, found).rewritten() if found else graph
