"""Horizontal fusion: regions of equal domain that read a common stream are merged, and resident single numbers."""

from __future__ import annotations

import heapq
from bisect import bisect_right
from collections.abc import Callable, Iterator
from typing import NamedTuple

from flowcompute.fuse.anchors import anchor_name
from flowcompute.fuse.groups import MAX_NODES, MAX_POINTERS, Group, Groups
from flowcompute.fuse.reasons import Reason

NUMBERS = -1
MAX_REFUSED = 64
"""Regions that a region is compared with in vain, with anchors and without. Planning is linear with this bound."""


def merge_horizontally(groups: Groups) -> list[Reason]:
    """Merge regions of equal domain that read a common stream, and those of resident numbers.

    Regions that depend on each other stay apart. Numbers take a launch of their own each for next to no work.

    Returns:
        The reasons for the regions that stay apart.
    """
    merger = _Merger(groups)
    for place in range(len(merger.order)):
        merger.extend(place)
    return merger.reasons


class _Key(NamedTuple):
    """Common key of regions that may be merged: the stream that both read, and all that makes them alike.

    Those of resident numbers need read nothing in common: their stream is -1. What stays from run to run is computed
    once, and not with what changes.
    """

    value: int
    stream: bool
    level: int
    domain: tuple[int, ...]
    anchored: bool
    again: bool
    changes: bool = False


class _Places:
    """Ascending places of regions in the order. Those of regions that are gone are passed over once."""

    def __init__(self) -> None:
        self._places: list[int] = []
        self._next: list[int] = []

    def append(self, place: int) -> None:
        """Append a place."""
        self._places.append(place)
        self._next.append(len(self._places))

    def after(self, place: int, is_gone: Callable[[int], bool]) -> int | None:
        """Return the first place behind `place` whose region is there; None if there is no such place."""
        at, passed = bisect_right(self._places, place), []
        while at < len(self._places) and is_gone(self._places[at]):
            passed.append(at)
            at = self._next[at]
        for i in passed:
            self._next[i] = at
        return self._places[at] if at < len(self._places) else None


class _Merger:
    def __init__(self, groups: Groups) -> None:
        self.groups = groups
        self.reasons: list[Reason] = []
        self.order = sorted(groups.groups.values(), key=lambda group: min(group.nodes + group.folds))
        self.alike: dict[_Key, _Places] = {}
        self.too_large: set[int] = set()
        for place, group in enumerate(self.order):
            for key in self._keys(group, anchored=group.anchor is not None):
                self.alike.setdefault(key, _Places()).append(place)

    def extend(self, place: int) -> None:
        """Merge later regions into the region at a place, in their order."""
        if self._is_gone(place):
            return
        region, latest = self.order[place], place
        found: list[tuple[int, _Key]] = []
        keys: set[_Key] = set()
        refused = {False: 0, True: 0}
        self._look(region, place, keys, found)
        while found:
            at, key = heapq.heappop(found)
            if refused[key.anchored] >= MAX_REFUSED:
                continue
            self._push(key, at, found)
            if at == latest:
                continue
            latest = at
            if self._try_merge(region, self.order[at]):
                self._look(region, at, keys, found)
            else:
                refused[key.anchored] += 1

    def _is_gone(self, place: int) -> bool:
        return self.order[place].id not in self.groups.groups

    def _keys(self, group: Group, *, anchored: bool) -> Iterator[_Key]:
        if group.trivial and not group.stream and not anchored:
            changes = self.groups.changes(group.nodes)
            yield _Key(NUMBERS, group.stream, group.level, (), anchored, group.again, changes)
        for value in sorted(group.pointers):
            if self.groups.graph.nodes[value].spec.is_stream:
                yield _Key(value, group.stream, group.level, group.domain, anchored, group.again)

    def _look(self, region: Group, place: int, keys: set[_Key], found: list[tuple[int, _Key]]) -> None:
        """Find the first region behind a place for each stream that a region reads."""
        for anchored in (False, True):
            for key in self._keys(region, anchored=anchored):
                if key not in keys:
                    keys.add(key)
                    self._push(key, place, found)

    def _push(self, key: _Key, place: int, found: list[tuple[int, _Key]]) -> None:
        places = self.alike.get(key)
        at = None if places is None else places.after(place, self._is_gone)
        if at is not None:
            heapq.heappush(found, (at, key))

    def _try_merge(self, a: Group, b: Group) -> bool:
        """Merge region `b` into `a`, or record why they stay apart."""
        if a.anchor is not None or b.anchor is not None:
            name = anchor_name(self.groups.graph.nodes[(b.anchor if a.anchor is None else a.anchor) or 0])
            if not self._depend(a, b):
                self._tell(b, f"reads the operands of {self._title(a)} again: {name} reads them in another order")
            return False
        text = self._why_apart(a, b)
        if text is not None:
            self._tell(b, text)
            return False
        pointers = len(a.pointers | b.pointers) + len(a.folds) + len(b.folds) + 2
        if pointers > MAX_POINTERS or len(a.nodes) + len(b.nodes) > MAX_NODES:
            if b.id not in self.too_large:
                self.too_large.add(b.id)
                self._tell(b, f"together with {self._title(a)} the kernel would be too large")
            return False
        if self._depend(a, b):
            self._tell(b, f"needs a result of {self._title(a)} through another step")
            return False
        self.groups.unite(a, [a, b], a.domain)
        return True

    def _why_apart(self, a: Group, b: Group) -> str | None:
        """Return why the reductions of two regions do not share a kernel; None if they may."""
        if a.reduced and b.reduced and a.reduced != b.reduced:
            return f"reduces other axes than {self._title(a)}"
        if (a.reduced | b.reduced) and (a.folds or b.folds):
            return self.groups.why_folded_apart(a.domain)
        return None

    def _depend(self, a: Group, b: Group) -> bool:
        """Check whether one of two regions depends on the other."""
        dependencies = self.groups.dependencies
        return dependencies.reaches(dependencies.operands(a.id) | dependencies.operands(b.id), (a.id, b.id))

    def _title(self, group: Group) -> str:
        return self.groups.title(group)

    def _tell(self, group: Group, text: str) -> None:
        self.reasons.append(Reason("cut", self._title(group), text))
