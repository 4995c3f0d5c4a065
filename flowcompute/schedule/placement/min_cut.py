"""The cheapest cut of a directed graph between a source and a sink.

Dinic's algorithm (E. A. Dinic, "Algorithm for solution of a problem of maximum flow in networks with power
estimation", Soviet Math. Doklady 11, 1970): paths of fewest edges are filled, all of one length at a time. What the
source still reaches when nothing more flows is its side of a smallest cut.
"""

from __future__ import annotations

import math
from collections import deque


class FlowNetwork:
    """Edges with capacities between numbered places, of which 0 is the source and 1 the sink."""

    SOURCE = 0
    SINK = 1

    def __init__(self) -> None:
        # Edge i and its reverse i ^ 1: where it leads, and what it can still take.
        self._heads: list[int] = []
        self._left: list[float] = []
        self._edges: list[list[int]] = [[], []]

    def place(self) -> int:
        """A new place."""
        self._edges.append([])
        return len(self._edges) - 1

    def join(self, tail: int, head: int, capacity: float = math.inf) -> None:
        """An edge; one of infinite capacity is never cut."""
        for begin, end, left in ((tail, head, capacity), (head, tail, 0.0)):
            self._edges[begin].append(len(self._heads))
            self._heads.append(end)
            self._left.append(left)

    def beside_source(self) -> set[int]:
        """The places on the source's side of the smallest cut, as few as there can be.

        Source and sink must not be joined by infinite edges alone.
        """
        while (level := self._levels())[self.SINK] >= 0:
            tried = [0] * len(self._edges)
            while self._fill(level, tried):
                pass
        return {place for place, depth in enumerate(level) if depth >= 0}

    def _levels(self) -> list[int]:
        """How many edges each place is away from the source; -1 where it cannot be reached."""
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
        """Send what fits along one path of fewest edges; False where there is none left.

        Args:
            level: of each place.
            tried: how many edges of each place lead nowhere any more.
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
        assert math.isfinite(amount), "source and sink cannot be parted"
        for edge in path:
            self._left[edge] -= amount
            self._left[edge ^ 1] += amount
        return True
