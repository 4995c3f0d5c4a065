"""Order of the steps under construction, kept topological while regions grow and merge.

Whether a region depends on another one is asked for each node that joins a region. A topological order leaves out of
the search all that is before the region. It is kept as by Pearce and Kelly, "A dynamic topological sort algorithm for
directed acyclic graphs" (2006). A new dependency sorts only the steps between its ends anew.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable

from flowcompute.elements import Kind
from flowcompute.graph import Graph, postorder


class Dependencies:
    """The steps of a pass, and the steps whose values each of them reads.

    A step is a region, or a node that no kernel computes. It is named by any of its nodes. Values that depend on no
    region are left out: sources, constants, and results of folds, which an earlier pass has computed.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self._holder: dict[int, int] = {}
        self._known: set[int] = set()
        self._rank: dict[int, int] = {}
        self._before: dict[int, set[int]] = {}
        self._after: dict[int, set[int]] = {}

    def add(self, node: int) -> None:
        """Add a step that is later than all others. It reads nothing yet."""
        self._known.add(node)
        self._holder[node] = node
        self._rank[node] = len(self._rank)
        self._before[node], self._after[node] = set(), set()

    def join(self, step: int, node: int) -> None:
        """Add a node to a step."""
        self._known.add(node)
        self._holder[node] = self._find(step)

    def read(self, step: int, values: Iterable[int]) -> None:
        """Record that a step reads these values. None of them may depend on it."""
        step = self._find(step)
        for before in self._steps(values) - {step}:
            self._link(before, step)

    def merge(self, one: int, other: int) -> None:
        """Merge two steps of which neither depends on the other."""
        kept, gone = self._find(one), self._find(other)
        if len(self._before[kept]) + len(self._after[kept]) < len(self._before[gone]) + len(self._after[gone]):
            kept, gone = gone, kept
        self._holder[gone] = kept
        self._rank[kept] = max(self._rank[kept], self._rank[gone])
        self._before[kept] |= self._before.pop(gone)
        self._after[kept] |= self._after.pop(gone)
        for i in sorted({self._find(i) for i in self._after[kept]}):
            self._sort(kept, i)

    def append(self, one: int, other: int) -> None:
        """Merge a step with another one that reads it, and depends on it in no other way."""
        first, then = self._find(one), self._find(other)
        self._before[then] = {i for i in map(self._find, self._before[then]) if i != first}
        self._after[first] = {i for i in map(self._find, self._after[first]) if i != then}
        self.merge(first, then)

    def reaches(self, values: Iterable[int], targets: Iterable[int]) -> bool:
        """Check whether one of these values is computed by one of the target steps, or depends on one."""
        steps = self._steps(values)
        if not steps:
            return False
        rank, holder = self._rank, self._holder
        wanted = {self._find(i) for i in targets}
        first = min([rank[i] for i in wanted])
        found = {i for i in steps if rank[i] >= first}
        todo = [(rank[i], i) for i in found]
        heapq.heapify(todo)
        # The earliest step first: what skips layers leads to a target by way of few steps.
        while todo and wanted.isdisjoint(found):
            step = heapq.heappop(todo)[1]
            before = {i if holder[i] == i else self._find(i) for i in self._before[step]}
            self._before[step] = before
            for i in before:
                if rank[i] >= first and i not in found:
                    found.add(i)
                    heapq.heappush(todo, (rank[i], i))
        return not wanted.isdisjoint(found)

    def depend(self, one: int, other: int, but: int | None = None) -> bool:
        """Check whether one of two steps depends on the other, in another way than by reading `but`."""
        read = self.operands(one) | self.operands(other)
        return self.reaches(read if but is None else read - {self.name(but)}, (one, other))

    def operands(self, step: int) -> set[int]:
        """Return the steps that a step reads."""
        return {self._find(i) for i in self._before[self._find(step)]}

    def name(self, node: int) -> int:
        """Return the name that `operands` has for a node's step."""
        return self._find(node)

    def _steps(self, values: Iterable[int]) -> set[int]:
        """Return the steps that compute these values. Nodes that no region computes become steps here."""
        values = list(values)
        if not self._known.issuperset(values):
            self._add_single(values)
        holder = self._holder
        return {i if holder[i] == i else self._find(i) for i in values if i in holder}

    def _add_single(self, values: list[int]) -> None:
        """Make a step of each node that these values depend on, that no region computes and that depends on one."""
        nodes = self.graph.nodes
        # Results of folds come from an earlier pass, which computed their operands.
        for i in postorder(values, lambda i: nodes[i].inputs if nodes[i].kind is not Kind.FOLD else (), self._known):
            steps = {self._find(o) for o in nodes[i].inputs if o in self._holder}
            self._known.add(i)
            if steps and nodes[i].kind is not Kind.FOLD:
                self.add(i)
                for step in steps:
                    self._link(step, i)

    def _find(self, node: int) -> int:
        holder = self._holder
        while holder[node] != node:
            holder[node] = holder[holder[node]]
            node = holder[node]
        return node

    def _search(self, starts: Iterable[int], edges: dict[int, set[int]], low: int, high: int) -> set[int]:
        """Return the steps that edges lead to, the starts among them, by way of ranks between `low` and `high`."""
        todo = {i for i in starts if low <= self._rank[i] <= high}
        found = set(todo)
        while todo:
            step = todo.pop()
            edges[step] = {self._find(i) for i in edges[step]}
            new = {i for i in edges[step] if low <= self._rank[i] <= high} - found
            found |= new
            todo |= new
        return found

    def _link(self, before: int, after: int) -> None:
        if before not in self._before[after]:
            self._before[after].add(before)
            self._after[before].add(after)
            self._sort(before, after)

    def _sort(self, before: int, after: int) -> None:
        """Move the steps between the ends of a dependency where it contradicts the order."""
        low, high = self._rank[after], self._rank[before]
        if low > high:
            return
        later = self._search([after], self._after, low, high)
        earlier = self._search([before], self._before, low, high)
        assert later.isdisjoint(earlier), "a step depends on itself"
        moved = [*sorted(earlier, key=self._rank.__getitem__), *sorted(later, key=self._rank.__getitem__)]
        for step, rank in zip(moved, sorted(self._rank[i] for i in moved), strict=True):
            self._rank[step] = rank
