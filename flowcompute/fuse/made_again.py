"""Values that their readers make again, where a kernel then stores and reads fewer bytes.

A kernel stores what others read. Where these read other streams of the same records anyway, the operands of an
element-wise value may cost fewer bytes than the value itself. The normed rows of a layer are such: their gradient reads
what was normed, a mean and a deviation. So are several results of one product in float32, of which one was rounded to
half the bytes before.

What is made again has the same operations on the same numbers, and so the same bits.
"""

from __future__ import annotations

from collections.abc import Iterator

from flowcompute.elements import Kind
from flowcompute.elements.generated import Generator
from flowcompute.elements.quantized import Dequantize
from flowcompute.fuse.groups import MAX_NODES, MAX_POINTERS, Group, Groups
from flowcompute.fuse.producers import STORE_COST
from flowcompute.fuse.region import Access, Reason
from flowcompute.imports import dataclass

MOST_COST = 1.5
"""Most instructions for each byte that is saved. On an H200 a kernel of rows takes as long for a division, which counts
8, as for reading two numbers of float32."""

SMALL = 16
"""Values of rows have at most this part of the numbers of a kernel's items."""


@dataclass(frozen=True)
class _Again:
    """What readers make again of a region's results.

    Attributes:
        made: by result the operations that make it, and the values of the region that they read.
        stored: a value that the region stores besides; None where it stores none.
        saved_bytes: bytes of a record that are neither stored nor read any more.
    """

    made: dict[int, tuple[frozenset[int], frozenset[int]]]
    stored: int | None
    saved_bytes: int


def make_again(groups: Groups, wanted: set[int]) -> list[Reason]:
    """Let regions make values again that they read, where that saves bytes; gives the reasons.

    Args:
        groups: the regions.
        wanted: values that sinks and other steps read.
    """
    return _Search(groups, wanted).run()


class _Search:
    def __init__(self, groups: Groups, wanted: set[int]) -> None:
        self.groups, self.graph = groups, groups.graph
        folded = (i for fold in groups.host_folds for i in self.graph.nodes[fold].inputs)
        self.kept = {*wanted, *folded, *(view.base for view in groups.opened.values())}
        self.readers: dict[int, set[int]] = {}
        for group in groups.groups.values():
            for value in groups.external(group):
                self.readers.setdefault(value, set()).add(group.id)
        self.reasons: list[Reason] = []

    def run(self) -> list[Reason]:
        """Look at all regions, the latest first: what a product no longer reads may be made again as well."""
        for group in sorted(self.groups.groups.values(), key=lambda one: -min(one.nodes + one.folds)):
            if group.stream and not group.folds:
                found = [self._found(group, stored) for stored in self._candidates(group)]
                best = max(found, key=lambda one: one.saved_bytes, default=None)
                if best is not None and best.saved_bytes > 0:
                    self._apply(group, best)
        return self.reasons

    # -- what may be made again -----------------------------------------------------------------

    def _bytes(self, value: int) -> int:
        """Return the bytes of a value in a record; what is resident stays in the cache."""
        spec = self.graph.nodes[value].spec
        return spec.item_bytes if spec.is_stream else 0

    def _is_large(self, group: Group, value: int) -> bool:
        return self.graph.nodes[value].spec.shape == group.domain

    def _results(self, group: Group) -> list[int]:
        """Return the results that readers may make again, from the last to the first."""
        return [i for i in reversed(group.nodes) if self._is_large(group, i) and self._is_made_by_readers(group, i)]

    def _is_made_by_readers(self, group: Group, value: int) -> bool:
        if value in self.kept or not self.readers.get(value) or not self._is_plain(value):
            return False
        return all(self._takes(self.groups.groups[i], group, value) for i in self.readers[value])

    def _is_plain(self, value: int) -> bool:
        node = self.graph.nodes[value]
        return node.kind is Kind.ELEMENTWISE and not isinstance(node.op, Generator | Dequantize)

    def _takes(self, reader: Group, group: Group, value: int) -> bool:
        """Check whether a reader goes over the same items as a region, so that it can make a value of it."""
        alike = (reader.stream, reader.level, reader.domain, reader.again)
        if reader.anchor is not None or reader.folds or alike != (group.stream, group.level, group.domain, group.again):
            return False
        layouts = {
            one.layout
            for operands in reader.reads.values()
            for one in operands
            if isinstance(one, Access) and one.value == value
        }
        return layouts == {group.layouts[value]}

    def _candidates(self, group: Group) -> Iterator[int | None]:
        """Yield what the region may store besides, for results to be made of it: first nothing."""
        results = self._results(group)
        if not results:
            return
        yield None
        inside, todo = set[int](), [*results]
        while todo:
            for one in group.reads[todo.pop()]:
                if not isinstance(one, Access) and one not in inside:
                    inside.add(one)
                    todo += [one] if self._is_plain(one) else []
        for one in sorted(inside):
            if self._is_large(group, one) and one not in self.readers and one not in self.kept:
                yield one

    def _found(self, group: Group, stored: int | None) -> _Again:
        """Return the results that are made again where the region stores one more value."""
        groups = self.groups.groups
        left = {i for i in group.nodes if i in self.kept or i in self.readers}
        saved = 0
        if stored is not None:
            left.add(stored)
            saved -= self._bytes(stored)
        made: dict[int, tuple[frozenset[int], frozenset[int]]] = {}
        read = {i: set(groups[i].pointers) for value in self._results(group) for i in self.readers[value]}
        for value in self._results(group):
            made_of = self._made_of(group, value, left - {value})
            if made_of is None:
                continue
            inside, leaves, own, cost = made_of
            fewer = self._bytes(value) - sum(self._bytes(i) for i in own - left)
            for i in self.readers[value]:
                fewer += self._bytes(value) - sum(self._bytes(one) for one in leaves - read[i])
            room = all(self._has_room(groups[i], inside, read[i] | leaves) for i in self.readers[value])
            if cost * self.graph.nodes[value].spec.item_numbers > MOST_COST * fewer or not room:
                continue
            saved += fewer
            left = (left - {value}) | own
            made[value] = inside, own
            for i in self.readers[value]:
                read[i] |= leaves
        saved += sum(map(self._bytes, set(self.groups.external(group)) - self._read_for(group, left)))
        return _Again(made, stored, saved if made else 0)

    def _made_of(
        self, group: Group, value: int, stored: set[int]
    ) -> tuple[frozenset[int], frozenset[int], frozenset[int], int] | None:
        """Return the operations that make a value, what they read, what of that the region makes, and their cost."""
        nodes = self.graph.nodes
        inside, leaves, own, todo, cost = {value}, set[int](), set[int](), [value], 0
        while todo:
            at = todo.pop()
            op = nodes[at].op
            assert op is not None
            cost += op.cost
            for one in group.reads[at]:
                if isinstance(one, Access):
                    leaves.add(one.value)
                elif one in stored or SMALL * nodes[one].spec.item_numbers <= nodes[value].spec.item_numbers:
                    leaves.add(one)
                    own.add(one)
                elif not self._is_plain(one):
                    return None
                elif one not in inside:
                    inside.add(one)
                    todo.append(one)
        return None if cost > STORE_COST else (frozenset(inside), frozenset(leaves), frozenset(own), cost)

    def _has_room(self, reader: Group, inside: frozenset[int], read: set[int]) -> bool:
        pointers = self.groups.pointer_arguments(read)
        return len(pointers) + 1 <= MAX_POINTERS and len(reader.nodes) + len(inside) <= MAX_NODES

    def _read_for(self, group: Group, results: set[int]) -> set[int]:
        """Return what a region reads to make these results."""
        return {one.value for i in _needed(group, results) for one in group.reads[i] if isinstance(one, Access)}

    # -- making it again ------------------------------------------------------------------------

    def _apply(self, group: Group, again: _Again) -> None:
        before = set(self.groups.external(group))
        for value, (inside, own) in again.made.items():
            for i in sorted(self.readers.pop(value)):
                self._move(group, self.groups.groups[i], value, inside, own)
        results = {i for i in group.nodes if i in self.kept or i in self.readers}
        needed = _needed(group, results)
        group.nodes = [i for i in group.nodes if i in needed]
        for table in (group.layouts, group.reads, group.sweeps):
            for i in table.keys() - needed:
                del table[i]
        after = set(self.groups.external(group))
        group.pointers = self.groups.pointer_arguments(after)
        for value in before - after:
            self.readers[value].discard(group.id)
            if not self.readers[value]:
                del self.readers[value]

    def _move(self, group: Group, reader: Group, value: int, inside: frozenset[int], own: frozenset[int]) -> None:
        """Let a reader make a value."""

        def seen(one: int | Access) -> int | Access:
            if isinstance(one, Access) or one not in own:
                return one
            shape = self.graph.nodes[one].spec.shape
            layout = zip(group.layouts[one], shape, strict=True)
            return Access(one, tuple(axis if size != 1 else None for axis, size in layout))

        def inner(one: int | Access) -> int | Access:
            return value if isinstance(one, Access) and one.value == value else one

        reader.reads = {i: tuple(map(inner, operands)) for i, operands in reader.reads.items()}
        for i in inside - {*reader.nodes}:
            reader.layouts[i] = group.layouts[i]
            self.groups.set_reads(reader, i, tuple(map(seen, group.reads[i])))
        reader.nodes = sorted({*reader.nodes, *inside})
        read = self.groups.external(reader)
        reader.pointers = self.groups.pointer_arguments(read)
        for one in read:
            self.readers.setdefault(one, set()).add(reader.id)
        name = self.graph.nodes[value].name
        self.reasons.append(Reason("cut", self.groups.title(reader), f"{name} is made again: that reads fewer bytes"))


def _needed(group: Group, results: set[int]) -> set[int]:
    """Return the operations of a region that make these results."""
    found, todo = set[int](), [*results]
    while todo:
        at = todo.pop()
        if at not in found:
            found.add(at)
            todo += [one for one in group.reads[at] if not isinstance(one, Access)]
    return found
