"""Layered layout of a directed graph: operands above their users, with lanes for edges that span several layers.

The method is that of Sugiyama, Tagawa and Toda (1981). It finds layers by longest path, an order in each layer by the
mean position of neighbours, and then coordinates. These minimize the squared distances from the mean positions of the
neighbours under the given order (isotonic regression by pooling adjacent violators).
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Sequence

from flowcompute.imports import dataclass

LANE = 10
"""Width kept free in a layer for an edge that crosses it."""

SWEEPS = 4
"""Number of passes that improve order and coordinates, alternately downwards and upwards."""

Point = tuple[float, float]


@dataclass(frozen=True)
class DrawnEdge:
    """An edge from the lower side of a box to the upper side of another, at distances from the boxes' left sides."""

    source: int
    leaves: float
    target: int
    enters: float


@dataclass(frozen=True)
class Layers:
    """The layout that `place` computes.

    Attributes:
        corners: upper left corner of each box.
        routes: points of each edge. Edges that leave a box at the same position share their first part. A later route
            starts where it leaves an earlier one.
        width, height: of the drawing.
    """

    corners: list[Point]
    routes: list[list[Point]]
    width: float
    height: float


@dataclass
class _Vertex:
    """A box, or the position at which a lane crosses a layer."""

    width: float
    layer: int
    x: float = 0.0


def place(
    sizes: Sequence[tuple[float, float]],
    edges: Sequence[DrawnEdge],
    gaps: tuple[float, float],
    *,
    first: Collection[int] = (),
    last: Collection[int] = (),
) -> Layers:
    """Compute the layout of boxes.

    Args:
        sizes: width and height of each box.
        edges: edges without cycles.
        gaps: distances between boxes of a layer and between layers.
        first: boxes of the topmost layer, whatever their users are.
        last: boxes of the lowest layer.
    """
    depths = _depths(len(sizes), edges, first, last)
    vertices = [_Vertex(width, depth) for (width, _), depth in zip(sizes, depths, strict=True)]
    lanes = _lanes(edges, depths, vertices)
    links = _links(edges, depths, lanes)
    layers: list[list[int]] = [[] for _ in range(max(depths, default=-1) + 1)]
    for number, vertex in enumerate(vertices):
        layers[vertex.layer].append(number)
    for layer in layers:
        for before, after in itertools.pairwise(layer):
            vertices[after].x = vertices[before].x + vertices[before].width + gaps[0]
    above, below = _neighbours(links, len(vertices))
    for sweep in range(SWEEPS):
        down = sweep % 2 == 0
        for layer in layers if down else reversed(layers):
            _arrange(layer, vertices, above if down else below, gaps[0])
    left = min((vertex.x for vertex in vertices), default=0.0)
    for vertex in vertices:
        vertex.x -= left
    tops, bottoms = _rows(sizes, depths, len(layers), gaps[1])
    corners = [(vertices[i].x, tops[depth]) for i, depth in enumerate(depths)]
    routes = _routes(sizes, edges, depths, lanes, vertices, tops, bottoms)
    width = max((vertex.x + vertex.width for vertex in vertices), default=0.0)
    return Layers(corners, routes, width, bottoms[-1] if bottoms else 0.0)


def _depths(count: int, edges: Sequence[DrawnEdge], first: Collection[int], last: Collection[int]) -> list[int]:
    """Return the layer of each box: below all operands; a box without operands is directly above its first user."""
    depths, waiting = [0] * count, [0] * count
    users: list[list[int]] = [[] for _ in range(count)]
    for edge in edges:
        users[edge.source].append(edge.target)
        waiting[edge.target] += 1
    given = [not operands for operands in waiting]
    todo = [i for i in range(count) if given[i]]
    for i in todo:
        for user in users[i]:
            depths[user] = max(depths[user], depths[i] + 1)
            waiting[user] -= 1
            if not waiting[user]:
                todo.append(user)
    for i in range(count):
        if given[i] and users[i] and i not in first:
            depths[i] = min(depths[user] for user in users[i]) - 1
    lowest = max(depths, default=0)
    for i in last:
        depths[i] = lowest
    return depths


def _lanes(
    edges: Sequence[DrawnEdge], depths: list[int], vertices: list[_Vertex]
) -> dict[tuple[int, float], list[int]]:
    """Return the vertices of the lane of each point where edges leave a box. They are added to `vertices`."""
    reach: dict[tuple[int, float], int] = {}
    for edge in edges:
        key = edge.source, edge.leaves
        reach[key] = max(reach.get(key, 0), depths[edge.target])
    lanes: dict[tuple[int, float], list[int]] = {}
    for (source, leaves), deepest in reach.items():
        start = len(vertices)
        vertices += [_Vertex(LANE, depth) for depth in range(depths[source] + 1, deepest)]
        lanes[source, leaves] = list(range(start, len(vertices)))
    return lanes


def _links(
    edges: Sequence[DrawnEdge], depths: list[int], lanes: dict[tuple[int, float], list[int]]
) -> dict[tuple[int, float, int, float], None]:
    """Return the edges between adjacent layers: (upper vertex, distance from its left, lower vertex, distance)."""
    links: dict[tuple[int, float, int, float], None] = {}
    for edge in edges:
        lane = lanes[edge.source, edge.leaves]
        passed = depths[edge.target] - depths[edge.source] - 1
        upper = (lane[passed - 1], LANE / 2) if passed else (edge.source, edge.leaves)
        links[*upper, edge.target, edge.enters] = None
    for (source, leaves), lane in lanes.items():
        for upper, lower in zip([(source, leaves), *((i, LANE / 2) for i in lane)], lane, strict=False):
            links[*upper, lower, LANE / 2] = None
    return links


_Neighbours = list[list[tuple[int, float, float]]]


def _neighbours(links: Collection[tuple[int, float, int, float]], count: int) -> tuple[_Neighbours, _Neighbours]:
    """Return the neighbours of each vertex above and below it.

    A neighbour is (vertex, distance from its left, distance from the own left).
    """
    above: _Neighbours = [[] for _ in range(count)]
    below: _Neighbours = [[] for _ in range(count)]
    for upper, leaves, lower, enters in links:
        above[lower].append((upper, leaves, enters))
        below[upper].append((lower, enters, leaves))
    return above, below


def _arrange(layer: list[int], vertices: list[_Vertex], neighbours: _Neighbours, gap: float) -> None:
    """Order a layer by the mean position of neighbours, and move each vertex as near to it as the order allows."""
    wanted: dict[int, float] = {}
    comes: dict[int, float] = {}
    for i in layer:
        vertex, ends = vertices[i], neighbours[i]
        wanted[i], comes[i] = vertex.x, vertex.x + vertex.width / 2
        if ends:
            wanted[i] = sum(vertices[other].x + there - here for other, there, here in ends) / len(ends)
            comes[i] = sum(vertices[other].x + there for other, there, _ in ends) / len(ends)
    layer.sort(key=lambda i: comes[i])
    starts, room = [], 0.0
    for i in layer:
        starts.append(room)
        room += vertices[i].width + gap
    pools: list[tuple[float, int]] = []
    for i, start in zip(layer, starts, strict=True):
        total, count = wanted[i] - start, 1
        while pools and pools[-1][0] / pools[-1][1] >= total / count:
            more, others = pools.pop()
            total, count = total + more, count + others
        pools.append((total, count))
    shifts = [total / count for total, count in pools for _ in range(count)]
    for i, start, shift in zip(layer, starts, shifts, strict=True):
        vertices[i].x = start + shift


def _rows(
    sizes: Sequence[tuple[float, float]], depths: list[int], count: int, gap: float
) -> tuple[list[float], list[float]]:
    """Return the upper and lower side of each layer."""
    heights = [0.0] * count
    for (_, height), depth in zip(sizes, depths, strict=True):
        heights[depth] = max(heights[depth], height)
    tops = [*itertools.accumulate((height + gap for height in heights[:-1]), initial=0.0)][:count]
    return tops, [top + height for top, height in zip(tops, heights, strict=True)]


def _routes(
    sizes: Sequence[tuple[float, float]],
    edges: Sequence[DrawnEdge],
    depths: list[int],
    lanes: dict[tuple[int, float], list[int]],
    vertices: list[_Vertex],
    tops: list[float],
    bottoms: list[float],
) -> list[list[Point]]:
    routes: list[list[Point]] = [[] for _ in edges]
    drawn: dict[tuple[int, float], int] = {}
    for number in sorted(range(len(edges)), key=lambda number: depths[edges[number].target]):
        edge = edges[number]
        key, depth = (edge.source, edge.leaves), depths[edge.source]
        lane, passed = lanes[key], depths[edge.target] - depth - 1
        begun = drawn.get(key, 0)
        if begun:
            x = vertices[lane[begun - 1]].x + LANE / 2
            points = [(x, bottoms[depth + begun])]
        else:
            x = vertices[edge.source].x + edge.leaves
            points = [(x, tops[depth] + sizes[edge.source][1]), (x, bottoms[depth])]
        for step in range(begun, passed):
            x, row = vertices[lane[step]].x + LANE / 2, depth + 1 + step
            points += [(x, tops[row]), (x, bottoms[row])]
        points.append((vertices[edge.target].x + edge.enters, tops[depths[edge.target]]))
        drawn[key] = passed
        routes[number] = points
    return routes
