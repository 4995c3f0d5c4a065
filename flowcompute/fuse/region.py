"""Regions: nodes that share a kernel, and the layouts of their values.

The **domain** of a region is the item shape over which its kernel iterates. Each value has a **layout**. It gives the
domain axis of each of the value's item axes, or None for axes of size 1 that are broadcast. All item reductions of a
region reduce the same domain axes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from flowcompute.fuse.weight_tiles import WeightTiles
from flowcompute.imports import dataclass

Layout = tuple[int | None, ...]


@dataclass(frozen=True)
class Access:
    """An access of a region to a value that it does not compute, with the value's layout on the domain."""

    value: int
    layout: Layout


@dataclass(frozen=True)
class Region:
    """Nodes that share a kernel.

    Attributes:
        name: name of its last node.
        stream: whether it runs on batches; otherwise it runs once, as one item, at `level`.
        level: the number of passes that must end before it.
        domain: item shape over which the kernel iterates.
        reduced: domain axes that its item reductions reduce.
        nodes: ids of the nodes computed, in topological order; folds come last.
        layouts: layout of each node's value on the domain.
        reads: operands of each node: a node of the region or an access.
        outputs: ids of the values stored, in order.
        folds: ids of fold nodes whose block results are stored.
        exposed: ids of the values whose NaNs can be seen; see `nan_bits`.
        anchor: id of the anchor (a matrix product, attention, a scan), if there is one. Operations after it have the
            axes of the domain. Producers of its operands have axes of their own and may include views.
        entered: values that come unchanged from another clock, and so have memory of their own.
        parts: regions that share its launch: sibling products, or alike maps; see `sharing`. It has their nodes, and no
            anchor.
        place: of a part among them.
        after: of a part, the place of the one that it follows in the same work-groups; it reads its results.
        row_maker: of a part, the region that makes the rows of its left factor; see `sharing.row_makers`.
        row_follower: of a region with parts, the region of rows that follows them in their launch; see
            `sharing.row_followers`.
        weight_tiles: the tiles of an operand of the anchor that is streamed. The kernel is launched for each tile.
    """

    name: str
    stream: bool
    level: int
    domain: tuple[int, ...]
    reduced: frozenset[int]
    nodes: tuple[int, ...]
    layouts: dict[int, Layout]
    reads: dict[int, tuple[int | Access, ...]]
    outputs: tuple[int, ...]
    folds: tuple[int, ...]
    exposed: frozenset[int]
    anchor: int | None = None
    entered: frozenset[int] = frozenset()
    weight_tiles: WeightTiles | None = None
    parts: tuple[Region, ...] = ()
    place: int = 0
    after: int | None = None
    row_maker: Region | None = None
    row_follower: Region | None = None

    @property
    def inputs(self) -> tuple[int, ...]:
        """Ids of the values read, in order of first use; what parts make for each other is left out."""
        seen: dict[int, None] = {}
        for operands in self.reads.values():
            for operand in operands:
                if isinstance(operand, Access):
                    seen.setdefault(operand.value)
        made = set(self.nodes) if self.parts else set[int]()
        return tuple(i for i in seen if i not in made)

    def within(self, entered: frozenset[int]) -> Region:
        """Return the region in a clock that these values come to from another one."""
        if entered == self.entered:
            # Its parts are told together with it.
            return self
        return replace(
            self,
            entered=entered,
            parts=tuple(part.within(entered) for part in self.parts),
            row_maker=None if self.row_maker is None else self.row_maker.within(entered),
            row_follower=None if self.row_follower is None else self.row_follower.within(entered),
        )

    @property
    def numbers(self) -> int:
        """Numbers in the domain."""
        return math.prod(self.domain)


def joined(parts: Sequence[Region]) -> Region:
    """Return the region of parts that share a launch. It has the name of the last one."""
    return replace(
        parts[-1],
        nodes=tuple(sorted(i for part in parts for i in part.nodes)),
        layouts={i: layout for part in parts for i, layout in part.layouts.items()},
        reads={i: keys for part in parts for i, keys in part.reads.items()},
        outputs=tuple(sorted(i for part in parts for i in part.outputs)),
        exposed=frozenset(i for part in parts for i in part.exposed),
        anchor=None,
        parts=tuple(replace(part, place=place) for place, part in enumerate(parts)),
    )
