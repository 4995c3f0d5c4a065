"""Rewrite of the extremes of small windows, as in pooling, which become maxima of views.

A window of four numbers leaves most lanes of a reduction idle, and neighbouring windows lie at no even distance. The
largest numbers of all windows are the element-wise maximum of a few views: the first numbers of all windows, the
second ones, and so on. A maximum has the same bits in any order, so no answer changes.
"""

from __future__ import annotations

import copy
import itertools
import math
from dataclasses import replace

from flowcompute.elements import Kind
from flowcompute.elements.axes import INDEX
from flowcompute.elements.math import maximum, minimum
from flowcompute.elements.nn import WINDOWS
from flowcompute.graph import Graph, Node
from flowcompute.rewrite.rewriter import GraphRewriter

MOST_NUMBERS = 16
"""Numbers of a window. Each is a view that the kernel loads, and larger windows fill the lanes of a reduction."""

_PAIRS = {"max": maximum.op, "min": minimum.op}


class _SmallWindows(GraphRewriter):
    def __init__(self, graph: Graph, small: set[int]) -> None:
        super().__init__(graph)
        self.small = small

    def rewrite(self, node: Node) -> int:
        """Add a node of the old graph to the new one; an extreme of small windows as one of views."""
        if node.id not in self.small:
            return self.copy_node(node)
        assert node.op is not None
        windows = self.graph.nodes[node.inputs[0]]
        source = self.new[windows.inputs[0]]
        slides = {axis: (size, step, dilation) for axis, size, step, dilation in windows.attrs["windows"]}
        counts = windows.spec.shape[: -len(slides)]
        offsets = itertools.product(
            *(range(slides[axis][0]) if axis in slides else (0,) for axis in range(len(counts)))
        )
        # The last maximum has the node's name and shape.
        flat = replace(node.spec, shape=counts)
        views = []
        for at in offsets:
            steps = (slides.get(axis, (1, 1, 1)) for axis in range(len(counts)))
            index = tuple(
                (place * dilation, count, step)
                for place, count, (_, step, dilation) in zip(at, counts, steps, strict=True)
            )
            twin = copy.copy(windows.element)
            twin.freeze_fields(op=INDEX, spec=flat, attrs={"index": index})
            views.append(self.add(self.fresh(windows.name), twin, (source,)))
        keepdims = node.spec.shape != counts
        value = views[0]
        for place, view in enumerate(views[1:], 2):
            is_last = place == len(views) and not keepdims
            twin = copy.copy(node.element)
            twin.freeze_fields(op=_PAIRS[node.op.name], spec=flat, attrs={})
            value = self.add(node.name if is_last else self.fresh(node.name), twin, (value, view))
        if keepdims:
            twin = copy.copy(windows.element)
            whole = (*((0, count, 1) for count in counts), *(None for _ in slides))
            twin.freeze_fields(op=INDEX, spec=node.spec, attrs={"index": whole})
            value = self.add(node.name, twin, (value,))
        return value


def _small(graph: Graph) -> set[int]:
    """Return the extremes of whole windows that nothing else reads, and that have few numbers."""
    users = graph.users()
    found = set()
    for node in graph.nodes:
        if node.kind is not Kind.REDUCE or node.op is None or node.op.name not in _PAIRS:
            continue
        windows = graph.nodes[node.inputs[0]]
        if windows.op is not WINDOWS or len(set(users[windows.id])) > 1:
            continue
        rank, slides = len(windows.spec.shape), windows.attrs["windows"]
        numbers = math.prod(size for _, size, _, _ in slides)
        is_whole = tuple(node.attrs["axes"]) == tuple(range(rank - len(slides), rank))
        if is_whole and 2 <= numbers <= MOST_NUMBERS and windows.spec.is_stream:
            found.add(node.id)
    return found


def replace_small_windows(graph: Graph) -> Graph:
    """Return the graph with the extremes of small windows as those of views. Roots keep their order."""
    small = _small(graph)
    return _SmallWindows(graph, small).rewritten() if small else graph
