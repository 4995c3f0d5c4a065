"""A region: nodes that become one kernel, and how they lie on the domain that it walks over.

The **domain** of a region is the item shape its kernel walks over. Each value in it has a
**layout**: for each of its own item axes the domain axis it runs along (None where it has
size 1 and is broadcast). All item reductions of a region reduce the same domain axes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from flowcompute.fuse.weight_tiles import WeightTiles

Layout = tuple[int | None, ...]


@dataclass(frozen=True)
class Access:
    """How a region reads a value it does not compute: the value and its layout on the domain."""

    value: int
    layout: Layout


@dataclass(frozen=True)
class Region:
    """Nodes that become one kernel.

    Attributes:
        name: name of its last node.
        stream: whether it runs on batches; otherwise once, as one item, at `level`.
        domain: item shape that the kernel walks over.
        reduced: domain axes that its item reductions reduce.
        nodes: ids of the nodes computed, operands first; folds come last.
        layouts: layout of each node's value on the domain.
        reads: for each node, its operands: a node of the region or an access.
        outputs: ids of values stored, in order.
        folds: ids of fold nodes whose block results are stored.
        anchor: id of the anchor (a matrix product, attention), if there is one. What follows it runs along the
            domain; what makes an operand of it, where that is loaded, along axes of its own, with views among it.
        entered: values that come from another clock as they are, and so lie in memory of their own.
        weight_tiles: of an operand of the anchor that comes part by part; the kernel is launched for each of them.
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
    anchor: int | None = None
    entered: frozenset[int] = frozenset()
    weight_tiles: WeightTiles | None = None

    @property
    def inputs(self) -> tuple[int, ...]:
        """Ids of the values read, in first-use order."""
        seen: dict[int, None] = {}
        for operands in self.reads.values():
            for operand in operands:
                if isinstance(operand, Access):
                    seen.setdefault(operand.value)
        return tuple(seen)

    @property
    def numbers(self) -> int:
        """Numbers in the domain."""
        return math.prod(self.domain)
