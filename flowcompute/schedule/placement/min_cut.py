"""Minimum cut of a directed graph between a source and a sink.

The algorithm is Dinic's (E. A. Dinic, "Algorithm for solution of a problem of maximum flow in networks with power
estimation", Soviet Math. Doklady 11, 1970). It saturates all shortest augmenting paths of one length at a time. The
vertices that the source still reaches in the residual graph are its side of a minimum cut.
"""

from __future__ import annotations

import math
from collections import deque


class FlowNetwork:
    """A flow network: directed edges with capacities between numbered vertices. 0 is the source, 1 the sink."""

    SOURCE = 0
    SINK = 1

    def __init__(self) -> None:
        # Edge i and its reverse i ^ 1: the head and the residual capacity.
        self._heads: list[int] = []
        self._left: list[float] = []
        self._edges: list[list[int]] = [[], []]

    def add_vertex(self) -> int:
        """Add a vertex and return its number."""
        self._edges.append([])
        return len(self._edges) - 1

    def add_edge(self, tail: int, head: int, capacity: float = math.inf) -> None:
        """Add an edge. An edge of infinite capacity is never cut."""
        for begin, end, left in ((tail, head, capacity), (head, tail, 0.0)):
            self._edges[begin].append(len(self._heads))
            self._heads.append(end)
            self._left.append(left)

    def source_side(self) -> set[int]:
        """Return the smallest set of vertices that is the source's side of a minimum cut.

        At least one edge of each path from source to sink must have a finite capacity.
        """
        while (level := self._levels())[self.SINK] >= 0:
            tried = [0] * len(self._edges)
            while self._fill(level, tried):
                pass
        return {place for place, depth in enumerate(level) if depth >= 0}

    def _levels(self) -> list[int]:
        """Return the distance of each vertex from the source in edges; -1 if it cannot be reached."""
        level = [-1] * len(self._edges)
        level[self.SOURCE] = 0
        todo = deque([self.SOURCE])
        while todo:
            place = todo.popleft()
            for edge in self._edges[place]:
                head = self._heads[edge]
                if self._left[edge] > 0 and level[head] < 0:
                    level[head] = level[place] + 1
                    todo.append(head)
        return level

    def _fill(self, level: list[int], tried: list[int]) -> bool:
        """Send the most possible flow along one shortest path, and return False if none is left.

        Args:
            level: distance of each vertex from the source.
            tried: number of edges of each vertex that lead nowhere.
        """
        path: list[int] = []
        place = self.SOURCE
        while place != self.SINK:
            edges = self._edges[place]
            while tried[place] < len(edges):
                edge = edges[tried[place]]
                if self._left[edge] > 0 and level[self._heads[edge]] == level[place] + 1:
                    break
                tried[place] += 1
            else:
                if not path:
                    return False
                place = self._heads[path.pop() ^ 1]
                tried[place] += 1
                continue
            path.append(edge)
            place = self._heads[edge]
        amount = min(self._left[edge] for edge in path)
        assert math.isfinite(amount), "source and sink cannot be separated"
        for edge in path:
            self._left[edge] -= amount
            self._left[edge ^ 1] += amount
        return True
