"""The way of attention's operands into a GPU's local memory, a slab at a time.

They lie there as in memory, in lines. Neighbouring work-items bring neighbouring vectors, and hold them in
registers until the slab before is done with. There are two slabs in local memory, one after the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from flowcompute.elements.math import multiply
from flowcompute.ir import Assign, Below, ConstantValue, For, If, Load, PutItem, Select, Splat, Stmt, Var
from flowcompute.lower.anchor_point import Operand, times
from flowcompute.lower.attention.attention_anchor import AttentionAnchor
from flowcompute.lower.emit import Scope
from flowcompute.lower.matmul import NEAR, copied_together
from flowcompute.spec import BOOL

TILES = "tiles"
"""The local array of all that is brought."""


@dataclass(frozen=True)
class Space:
    """Of a slab in local memory.

    Attributes:
        begin: of the first slab.
        lines: queries, keys or values.
        run: numbers of each, in whole vectors.
        pitch: numbers from one line to the next.
        length: from one slab to the other.
    """

    begin: int
    lines: int
    run: int
    pitch: int
    length: int


@dataclass(frozen=True)
class Origin:
    """Where a slab lies in memory: the first number of its matrix, its first line, and the last line that exists."""

    base: str
    line: str
    last: str | None


@dataclass(frozen=True)
class _Spot:
    """What a work-item brings: the line (`later` behind a name), where in it, and the place in a slab."""

    line: str
    later: int
    at: str
    place: str
    exists: str | None


class Slab:
    """An operand on its way into local memory.

    Slabs of queries and keys are all lines and some of their numbers; slabs of values some lines
    and all numbers. What is not there has the place of what is: numbers behind the end of a query
    or key are 0, others are never seen or stored.
    """

    def __init__(
        self,
        one: AttentionAnchor,
        operand: Operand,
        space: Space,
        group: int,
        vector: int,
        factor: Var | None = None,
        *,
        aligned: bool,
    ) -> None:
        """What is brought, and where to.

        Args:
            one: the attention.
            operand: what is brought.
            space: of its slabs in local memory.
            group: work-items in the work-group.
            vector: numbers that are brought at once.
            factor: what numbers are multiplied by, if anything.
            aligned: whether buffers begin at a multiple of a vector.
        """
        self.one, self.operand, self.space, self.group, self.vector = one, operand, space, group, vector
        self.factor = factor
        self.values = operand is one.v
        self.exist = one.columns if self.values else one.size
        row, column = operand.rows.stride, operand.columns.stride
        self.wide = "" if max(abs(row), abs(column)) < NEAR else "(long)"
        together = 1 if one.is_computed(operand) else copied_together(operand, operand.rows, self.exist)
        self.aligned = aligned and column == 1 and together % vector == 0
        self.per = space.run // vector
        self.many = space.lines * self.per
        self.turns = -(-self.many // group)
        self.spots: list[_Spot] = []

    def declare(self, scope: Scope) -> None:
        """Declare the work-item's places in every slab."""
        together = self.group // self.per if self.group % self.per == 0 else 0
        for turn in range(self.turns):
            if turn and together:
                first, later = self.spots[0], turn * together
                place = f"{first.place} + {later * self.space.pitch}"
                self.spots.append(_Spot(first.line, later, first.at, place, self._exists(turn)))
            else:
                self.spots.append(self._spot(scope, f"(lid + {turn * self.group})" if turn else "lid", turn))

    def _spot(self, scope: Scope, number: str, turn: int) -> _Spot:
        line, at = scope.narrow(f"{number} / {self.per}"), scope.narrow(f"{number} % {self.per} * {self.vector}")
        return _Spot(line, 0, at, scope.narrow(f"{line} * {self.space.pitch} + {at}"), self._exists(turn))

    def _exists(self, turn: int) -> str | None:
        return f"lid < {self.many - turn * self.group}" if (turn + 1) * self.group > self.many else None

    def bring(self, scope: Scope, brought: Sequence[Var], origin: Origin, s: str) -> list[Stmt]:
        """Load slab `s` from memory into registers."""
        inner = scope.inner(self.vector)
        for spot, var in zip(self.spots, brought, strict=False):
            reading = inner.inner()
            reading.add(Assign(var, Splat(self._number(reading, spot, origin, s))))
            inner.add(*_only(spot.exists, reading.statements))
        return inner.statements

    def put(self, brought: Sequence[Var], slot: str) -> list[Stmt]:
        """Write what was brought into one of the two slabs in local memory."""
        begin, length = self.space.begin, self.space.length
        made = []
        for spot, var in zip(self.spots, brought, strict=False):
            made += _only(
                spot.exists, [PutItem(TILES, f"{begin} + {slot} * {length} + {spot.place}", var, vector=True)]
            )
        return made

    def bring_all(self, scope: Scope, origin: Origin) -> Stmt:
        """Bring the only slab there is, with few registers."""
        body = scope.inner(self.vector)
        spot = self._spot(body, f"(lid + u * {self.group})", 0)
        inside = body.inner()
        number = self._number(inside, spot, origin, "0")
        inside.add(PutItem(TILES, f"{self.space.begin} + {spot.place}", number, vector=True))
        whole = self.many % self.group == 0
        body.add(*_only(None if whole else f"lid + u * {self.group} < {self.many}", inside.statements))
        return For("u", "0", str(self.turns), "1", tuple(body.statements), unroll=4)

    def _number(self, scope: Scope, spot: _Spot, origin: Origin, s: str) -> Var:
        """A vector of slab `s`, as it is to be in local memory."""
        one, vector = self.one, self.vector
        index, count = self._index(spot, origin, s)
        if count is not None:
            count = scope.integer(count)
        load = Load(self.operand.argument, index, self.operand.columns.stride, count, aligned=self.aligned)
        number = one.factor(scope, load)
        if self.factor is not None:
            number = one.apply(scope, multiply.op, number, scope.let(Splat(self.factor), one.dtype, vector))
        if count is not None and not self.values:
            exists = scope.let(Below(count), BOOL, vector, one.dtype.itemsize)
            number = scope.let(
                Select(exists, number, scope.let(ConstantValue(0.0), one.dtype, vector)), one.dtype, vector
            )
        return number

    def _index(self, spot: _Spot, origin: Origin, s: str) -> tuple[str, str | None]:
        """Where a vector lies, and how much of it exists if that may not be all."""
        row, column, space = self.operand.rows.stride, self.operand.columns.stride, self.space
        line, at = f"({spot.line} + {spot.later})" if spot.later else spot.line, spot.at
        start = origin.line
        if self.values:
            start = f"{origin.line} + {s} * {space.lines}"
        elif s != "0":
            at = f"({s} * {space.run} + {at})"
        base = f"{origin.base} + {times(f'({start})', row)}"
        if origin.last is not None:
            base, line = origin.base, f"min((long)({start} + {line}), {origin.last})"
        count = None
        if self.exist % self.vector:
            count = f"max(0L, min((long){self.vector}, (long)({self.exist} - {at})))"
        elif self.values and self.exist < space.run:
            at = f"min({at}, {self.exist - self.vector})"
        return f"{base} + {times(self.wide + line, row)} + {times(self.wide + at, column)}", count


def _only(condition: str | None, statements: Sequence[Stmt]) -> list[Stmt]:
    return list(statements) if condition is None else [If(condition, tuple(statements))]
