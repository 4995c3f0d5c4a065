"""The way of attention's operands into a GPU's local memory, a slab at a time.

Neighbouring work-items bring neighbours in memory, and hold them in registers until the slab
before is done with. There are two slabs of an operand in local memory, one after the other.
"""

from __future__ import annotations

from dataclasses import dataclass

from flowcompute.elements.arithmetic import multiply
from flowcompute.planner.anchor import Operand, times
from flowcompute.planner.attention import KEYS, Attention
from flowcompute.planner.emit import Scope
from flowcompute.planner.kernel import Assign, Below, Load, Number, Put, Select, Splat, Stmt, Var
from flowcompute.planner.tiles import NEAR
from flowcompute.spec import BOOL

TILES = "tiles"
"""The local array of all slabs."""


@dataclass(frozen=True)
class Space:
    """Of two slabs in local memory: where they begin, their depth and width, and numbers from one depth to the next."""

    begin: int
    depth: int
    width: int
    pitch: int

    @property
    def length(self) -> int:
        """From one slab to the other."""
        return self.depth * self.pitch


class Slab:
    """An operand on its way into local memory.

    Queries and keys are rows of a slab's width, and it is as deep as some of their numbers; values
    are rows of its depth. What is not there has the place of what is: numbers behind the end of a
    query or key are 0, others are never seen or stored.
    """

    def __init__(
        self,
        one: Attention,
        scope: Scope,
        operand: Operand,
        origin: str,
        space: Space,
        group: int,
        last: str,
        place: str = "{0}",
        factor: Var | None = None,
    ) -> None:
        """Declare where the work-item's numbers lie.

        Args:
            one: the attention.
            scope: where to.
            operand: what is brought.
            origin: where its first slab begins in memory.
            space: of its slabs in local memory.
            group: work-items in the work-group.
            last: the last index along the width that exists.
            place: of an index along the width, `{0}`, in a line of the slab.
            factor: what numbers are multiplied by, if anything.
        """
        self.one, self.operand, self.origin, self.space, self.factor = one, operand, origin, space, factor
        values = operand is one.v
        row, column = operand.rows.stride, operand.columns.stride
        self.stride, across = (row, column) if values else (column, row)
        exist = one.keys if values else one.size
        ragged = exist % (KEYS if values else space.depth) > 0
        self.end = (f"{exist} - t" if values else f"{exist}L") if ragged else None
        wide = "" if max(abs(row), abs(column)) < NEAR else "(long)"
        self.places: list[str] = []
        self.indices: list[str] = []
        self.depths: list[str] = []
        self.brought: list[Var] = []
        for turn in range(space.depth * space.width // group):
            number = f"(lid + {turn * group})" if turn else "lid"
            run = space.width if values else space.depth
            fast, slow = scope.narrow(f"{number} % {run}"), scope.narrow(f"{number} / {run}")
            deep, inside = (slow, fast) if values else (fast, slow)
            self.depths.append(deep)
            self.places.append(scope.narrow(f"{deep} * {space.pitch} + {place.format(inside)}"))
            index = times(f"{wide}min({inside}, (int)({last}))", across)
            index = index if ragged else f"{index} + {times(wide + deep, self.stride)}"
            self.indices.append(scope.integer(index) if wide else scope.narrow(index))
            self.brought.append(scope.let(Number(0.0), one.dtype, 1))

    def bring(self, scope: Scope, s: str) -> list[Stmt]:
        """Load slab `s` from global memory."""
        one, depth = self.one, self.space.depth
        inner = scope.inner(1)
        padded = self.end is not None and self.operand is not one.v
        zero = inner.let(Number(0.0), one.dtype) if padded else None
        for index, k, var in zip(self.indices, self.depths, self.brought, strict=True):
            if self.end is None:
                deep, at = "", f"{self.origin} + {s} * {depth * self.stride} + {index}"
            else:
                deep = inner.integer(f"{s} * {depth} + {k}")
                at = f"{self.origin} + {times(f'min({deep}, {self.end} - 1)', self.stride)} + {index}"
            number = one.factor(inner, Load(self.operand.argument, at))
            if self.factor is not None:
                number = one.apply(inner, multiply.op, number, self.factor)
            if zero is not None:
                exists = inner.let(Below(f"{self.end} - {deep}"), BOOL, mask_bytes=one.dtype.itemsize)
                number = inner.let(Select(exists, number, zero), one.dtype)
            inner.add(Assign(var, Splat(number)))
        return inner.statements

    def put(self, half: str) -> list[Stmt]:
        """Write what was brought into one of the two slabs in local memory."""
        begin, length = self.space.begin, self.space.length
        return [
            Put(TILES, f"{begin} + ({half}) * {length} + {place}", var)
            for place, var in zip(self.places, self.brought, strict=True)
        ]
