"""Results of kernels that their readers compute again, where that moves fewer bytes and keeps no more.

A kernel stores what later ones read. Often that is made, element by element, of what lies in memory anyway. A layer
norm stores distances from means and normed numbers for its gradient. Both are made of its rows and of two numbers a
row. A product stores quotients in float32 of sums that it has rounded to bfloat16. GPUs compute faster than they load,
so kernels that read such results compute them again. XLA duplicates cheap producers into their consumers likewise.

The operations are the same ones, and so are their bits.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from flowcompute.elements import Constant, Kind
from flowcompute.elements.functions import SourceOp, UserOp
from flowcompute.elements.generated import Generator
from flowcompute.elements.quantized import Dequantize
from flowcompute.fuse.groups import MAX_NODES, MAX_POINTERS
from flowcompute.fuse.nan_bits import exposed_values
from flowcompute.fuse.reasons import Reason
from flowcompute.fuse.region import Access, Layout, Region
from flowcompute.graph import Graph
from flowcompute.ir import views_of

MOST_COST = 4
"""Most instructions for each byte that is not moved: an H200 has seven in the time of one."""

LEAST_PART = 0.9
"""Least of a value's bytes that are not moved. So no more lies in memory, but for numbers of rows."""

_NOT_AGAIN = (Generator, Dequantize, UserOp, SourceOp)
"""Operations that are long, or of which one call gives several results."""


def recompute_outputs(
    graph: Graph, regions: Sequence[Region], wanted: Collection[int]
) -> tuple[list[Region], list[Reason]]:
    """Let readers compute again what is stored for them alone.

    Args:
        graph: the graph.
        regions: of one device, none of which shares a launch.
        wanted: values that are read outside of regions.

    Returns:
        The regions, without those that have no results left, and a reason for each value that is not stored.
    """
    search = _OutputSearch(graph, regions, wanted)
    # What a kernel no longer reads for its results is asked for afterwards.
    for value in sorted((i for one in regions for i in one.outputs), reverse=True):
        search.ask(value)
    return [one for one in search.regions if one.outputs or one.folds], search.reasons


class _OutputSearch:
    def __init__(self, graph: Graph, regions: Sequence[Region], wanted: Collection[int]) -> None:
        self.graph, self.nodes, self.wanted = graph, graph.nodes, wanted
        self.regions = [*regions]
        self.maker = {value: place for place, one in enumerate(regions) for value in one.outputs}
        self.reasons: list[Reason] = []
        self.readers: dict[int, set[int]] = {}
        for place, one in enumerate(regions):
            self._note(place, one)

    def _note(self, place: int, region: Region) -> None:
        for value in region.inputs:
            self.readers.setdefault(views_of(self.graph, value)[0], set()).add(place)

    def ask(self, value: int) -> None:
        """Have a value computed by those who read it, if that is possible and cheaper."""
        place = self.maker[value]
        maker, node = self.regions[place], self.nodes[value]
        readers = sorted(i for i in self.readers.get(value, ()) if self._reads(self.regions[i], value))
        if not readers or value in self.wanted or not self._is_made_again(maker, value):
            return
        formula = self._formula(maker, value)
        made = [] if formula is None else [self._with(self.regions[i], maker, value, formula) for i in readers]
        if not made or None in made:
            return
        after = [one for one in made if one is not None]
        read = {key.value for one in after for key in _accesses(one)}
        after.insert(0, self._storing(maker, {*maker.outputs, *read.intersection(maker.layouts)} - {value}))
        before = [maker, *(self.regions[i] for i in readers)]
        less = sum(map(self._bytes, before)) - sum(map(self._bytes, after))
        cost = sum(op.cost for i in formula or () if (op := self.nodes[i].op) is not None)
        again = cost * node.spec.item_numbers * len(readers)
        if LEAST_PART * node.spec.item_bytes > less or again > MOST_COST * less or not all(map(self._fits, after)):
            return
        for i, one in zip((place, *readers), after, strict=True):
            self.regions[i] = one
            self._note(i, one)
        self.maker |= dict.fromkeys(after[0].outputs, place)
        self._tell(value, before[1:], after[1:], less)

    def _tell(self, value: int, before: Sequence[Region], after: Sequence[Region], less: int) -> None:
        """Give the reason why a value is not stored, and one for each that readers make it of."""
        name, readers = self.nodes[value].name, ", ".join(one.name for one in before)
        self.reasons.append(Reason("again", name, f"{readers} computes it from what it reads: {less} bytes less"))
        new = [one.reads[i] for own, one in zip(before, after, strict=True) for i in one.reads if i not in own.reads]
        read = {views_of(self.graph, key.value)[0] for keys in new for key in keys if isinstance(key, Access)}
        for one in (self.nodes[i] for i in sorted(read) if self.nodes[i].kind is not None):
            text = f"{one.name} is stored: {readers} computes {name} from it"
            self.reasons.append(Reason("cut", one.name, text))

    def _is_made_again(self, maker: Region, value: int) -> bool:
        """Check whether a value is a map of records, in a kernel whose operations are placed on its domain."""
        node = self.nodes[value]
        if node.kind is not Kind.ELEMENTWISE or not maker.stream or not node.spec.item_numbers:
            return False
        return maker.anchor is None or self.nodes[maker.anchor].kind is Kind.CONTRACT

    def _reads(self, region: Region, value: int) -> bool:
        """Check whether a region reads a value, or a view of it, now."""
        return any(views_of(self.graph, i)[0] == value for i in region.inputs)

    def _formula(self, maker: Region, value: int) -> frozenset[int] | None:
        """Return the operations that make a value of what lies in memory, or is of fewer bytes; None if too long."""
        made, todo = {value}, [value]
        while todo:
            one = todo.pop()
            if isinstance(self.nodes[one].op, _NOT_AGAIN):
                return None
            inside = {key for key in maker.reads[one] if isinstance(key, int)} - made
            more = [i for i in inside if not self._is_read(maker, i, value)]
            made.update(more)
            todo += more
        return frozenset(made)

    def _is_read(self, maker: Region, operand: int, value: int) -> bool:
        """Check whether an operand that a kernel computes is read from memory where a value is made again."""
        own, spec = self.nodes[operand].spec, self.nodes[value].spec
        smaller = own.item_numbers < spec.item_numbers or own.dtype.itemsize < spec.dtype.itemsize
        return smaller or operand in maker.outputs or self.nodes[operand].kind is not Kind.ELEMENTWISE

    def _with(self, reader: Region, maker: Region, value: int, formula: Collection[int]) -> Region | None:
        """Return a reader that computes a value; None if it cannot."""
        layouts = {key.layout for key in _accesses(reader) if key.value == value}
        views = any(key.value != value == views_of(self.graph, key.value)[0] for key in _accesses(reader))
        alike = (reader.stream, reader.level) == (maker.stream, maker.level)
        same = self.nodes[reader.nodes[0]].again == self.nodes[value].again
        if not alike or not same or views or len(layouts) != 1 or reader.anchor is not None:
            return None
        if self.nodes[value].spec.item_numbers != reader.numbers:
            return None
        axes = dict(zip(maker.layouts[value], layouts.pop(), strict=True))
        more = {i for i in formula if i not in reader.layouts}
        used = {key.value if isinstance(key, Access) else key: key for i in more for key in maker.reads[i]}
        where = {i: key.layout if isinstance(key, Access) else maker.layouts[i] for i, key in used.items()}
        if any(axis is not None and axis not in axes for layout in where.values() for axis in layout):
            return None
        placed = {i: self._spread(i, [None if axis is None else axes[axis] for axis in where[i]]) for i in used}
        there = reader.layouts.keys() & placed.keys()
        if any(self._spread(i, reader.layouts[i]) != placed[i] for i in there):
            return None

        def key_of(i: int) -> int | Access:
            return i if i in more or i in there else Access(i, placed[i])

        placed[value] = self._spread(value, [*axes.values()])
        own = {
            i: tuple([key.value if isinstance(key, Access) and key.value == value else key for key in keys])
            for i, keys in reader.reads.items()
        }
        new = {
            i: tuple([key_of(key.value if isinstance(key, Access) else key) for key in maker.reads[i]])
            for i in sorted(more)
        }
        nodes = (*sorted({*reader.nodes, *more} - {*reader.folds}), *reader.folds)
        layouts_of = {**{i: placed[i] for i in sorted(more)}, **reader.layouts}
        return self._exposing(replace(reader, nodes=nodes, layouts=layouts_of, reads={**new, **own}))

    def _spread(self, value: int, layout: Sequence[int | None]) -> Layout:
        """Return a layout in which axes of size 1 have no axis of the domain, as accesses have it."""
        shape = self.nodes[value].spec.shape
        return tuple(axis if size != 1 else None for axis, size in zip(layout, shape, strict=True))

    def _storing(self, maker: Region, outputs: Collection[int]) -> Region:
        """Return a region that stores these values, without element-wise operations that nothing needs then."""
        others = {i for i in maker.nodes if self.nodes[i].kind is not Kind.ELEMENTWISE}
        needed, todo = set[int](), [*outputs, *maker.folds, *others]
        while todo:
            one = todo.pop()
            if one not in needed:
                needed.add(one)
                todo += [key for key in maker.reads[one] if isinstance(key, int)]
        nodes = tuple(i for i in maker.nodes if i in needed)
        return self._exposing(
            replace(
                maker,
                name=self.nodes[max(nodes)].name if nodes else maker.name,
                nodes=nodes,
                layouts={i: layout for i, layout in maker.layouts.items() if i in needed},
                reads={i: keys for i, keys in maker.reads.items() if i in needed},
                outputs=tuple(sorted(outputs)),
            )
        )

    def _exposing(self, region: Region) -> Region:
        return replace(region, exposed=exposed_values(self.graph, region.nodes, region.outputs))

    def _bytes(self, region: Region) -> int:
        """Count the bytes of a record that a region reads and stores, each value once."""
        return sum(self.nodes[i].spec.item_bytes for i in (*region.inputs, *region.outputs))

    def _fits(self, region: Region) -> bool:
        """Check whether a kernel takes so many operations and pointers."""
        read = {i for i in region.inputs if not isinstance(self.nodes[i].element, Constant) or self.nodes[i].spec.shape}
        return len(region.nodes) <= MAX_NODES and len(read) + len(region.outputs) + len(region.folds) < MAX_POINTERS


def _accesses(region: Region) -> Iterator[Access]:
    return (key for keys in region.reads.values() for key in keys if isinstance(key, Access))
