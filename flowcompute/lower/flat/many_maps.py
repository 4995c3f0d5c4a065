"""Alike maps in one launch: one body, which takes in each turn a tile of one of them.

A tile is as many numbers as a work-group takes in a launch of one map, and no tile has numbers of two. Tiles of all
maps are numbered in a row. Of the number of its tile a work-group knows the map, and with it pointers and length.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate

from flowcompute.fuse import Region, outline_of
from flowcompute.graph import Graph
from flowcompute.ir import (
    CHUNK,
    GID,
    GSIZE,
    LID,
    WID,
    WSIZE,
    Alias,
    Argument,
    For,
    If,
    IndexLike,
    Kernel,
    N,
    Name,
    SetInteger,
    Stmt,
    choose,
    equal,
    index_min,
)

_TILE, _PART, _BEGIN = Name("tile"), Name("part"), Name("begin")
"""Number of a tile, of the map that it is of, and of the tile's first number in that."""


def joined_maps(kernel: Kernel, graph: Graph, parts: Sequence[Region]) -> Kernel:
    """Return a kernel that does what those of several alike maps do.

    Args:
        kernel: of the first map.
        graph: to which the maps belong.
        parts: their regions, of one outline.
    """
    together = _tile_numbers(kernel)
    sizes = [part.numbers for part in parts]
    ends = [*accumulate(-(-size // together) for size in sizes)]
    firsts = [0, *ends[:-1]]
    arguments, picks = _arguments(kernel, [*_values(graph, parts)])
    own = (
        SetInteger(_PART, _first_above(_TILE, ends)),
        SetInteger(_BEGIN, (_TILE - _of_part(firsts)) * together),
        *picks,
        *_numbers_of_tile(kernel, _of_part(sizes), together),
        If(True, kernel.body),
    )
    return replace(
        kernel,
        arguments=arguments,
        body=(For(_TILE, GID, ends[-1], GSIZE, own),),
        units=ends[-1] * together,
    )


def _tile_numbers(kernel: Kernel) -> int:
    """Return the numbers of a tile: a run of a work-item of a CPU, or what a work-group of a GPU takes in its turns."""
    items = kernel.knobs.items_per_work_item or 1
    if kernel.work_group == 1:
        return max(kernel.lanes, items // kernel.lanes * kernel.lanes)
    return max(kernel.lanes, items) * kernel.work_group


def _numbers_of_tile(kernel: Kernel, size: IndexLike, together: int) -> Iterator[Stmt]:
    """Yield the integers that the body of a map divides its work by, for the numbers of one tile."""
    if kernel.work_group == 1:
        yield SetInteger(N, size)
        yield SetInteger(CHUNK, together)
        yield SetInteger(GID, _BEGIN // together)
        return
    yield SetInteger(N, index_min(size, _BEGIN + together))
    yield SetInteger(WID, _BEGIN // kernel.lanes + LID)
    yield SetInteger(WSIZE, kernel.work_group)


def _values(graph: Graph, parts: Sequence[Region]) -> Iterator[tuple[int, ...]]:
    """Yield what each map reads and stores, in the order of their outline."""
    for part in parts:
        outline = outline_of(graph, part)
        assert outline is not None
        yield (*outline.read, *outline.stored)


def _arguments(kernel: Kernel, values: Sequence[tuple[int, ...]]) -> tuple[tuple[Argument, ...], list[Alias]]:
    """Return the parameters of all maps, and the statements that pick those of one.

    Args:
        kernel: of the first map.
        values: of each map, in one order.
    """
    own: list[Argument] = []
    picks: list[Alias] = []
    place: Mapping[int, int] = {value: i for i, value in enumerate(values[0])}
    for one in kernel.arguments:
        if one.value not in place:
            own.append(one)
            continue
        several = tuple(
            replace(one, name=f"{one.name}_{part}", value=each[place[one.value]]) for part, each in enumerate(values)
        )
        own += several
        picks.append(Alias(one, several, _PART))
    return tuple(own), picks


def _first_above(place: Name, ends: Sequence[int]) -> IndexLike:
    """Return the number of the first end that is above a place."""
    found: IndexLike = len(ends) - 1
    for part in reversed(range(len(ends) - 1)):
        found = choose(place < ends[part], part, found)
    return found


def _of_part(numbers: Sequence[int]) -> IndexLike:
    """Return the number of the part."""
    found: IndexLike = numbers[-1]
    for part in reversed(range(len(numbers) - 1)):
        found = choose(equal(_PART, part), numbers[part], found)
    return found
