"""Loads of attention's operands into a GPU's local memory, one slab at a time.

A slab keeps the lines of the operand as they are in global memory. Neighbouring work-items load
neighbouring vectors. They hold the vectors in registers until the previous slab has been consumed. Local
memory holds two slabs, one after the other (double buffering), or a single large one.
"""

from __future__ import annotations

from collections.abc import Sequence

from flowcompute.elements.math import multiply
from flowcompute.imports import dataclass
from flowcompute.ir import (
    LID,
    Assign,
    Below,
    ConditionLike,
    ConstantValue,
    For,
    If,
    IndexLike,
    Load,
    Name,
    PutItem,
    Select,
    Splat,
    Stmt,
    Var,
    index_max,
    index_min,
    to_long,
)
from flowcompute.lower.anchor_point import Operand
from flowcompute.lower.attention.attention_anchor import AttentionAnchor
from flowcompute.lower.emit import Scope
from flowcompute.lower.matmul import NEAR, copied_together
from flowcompute.spec import BOOL

TILES = "tiles"
"""Local array that holds all slabs."""


@dataclass(frozen=True)
class Space:
    """Layout of an operand's slabs in local memory.

    Attributes:
        begin: offset of the first slab.
        lines: lines of a slab: queries, keys or values.
        run: numbers of a line, in whole vectors.
        pitch: numbers from one line to the next.
        length: numbers from one slab to the other.
    """

    begin: int
    lines: int
    run: int
    pitch: int
    length: int


@dataclass(frozen=True)
class Origin:
    """Position of a slab in global memory: offset of its matrix, its first line, and the last line that exists."""

    base: IndexLike
    line: IndexLike
    last: IndexLike | None


@dataclass(frozen=True)
class _Copy:
    """Vector that a work-item copies: its line, its column, and its place in the slab."""

    line: IndexLike
    at: IndexLike
    place: IndexLike
    exists: ConditionLike


class Slab:
    """Operand of which slabs are loaded into local memory.

    A slab of queries or keys holds all lines and some of their numbers. A slab of values holds some lines
    and all their numbers. Numbers behind the end of a query or key are 0. Other places outside the operand
    get numbers from inside it; these are never seen or stored.
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
        """Describe the loads of an operand.

        Args:
            one: the attention.
            operand: operand that is loaded.
            space: layout of its slabs in local memory.
            group: work-items in the work-group.
            vector: numbers of one load.
            factor: factor of the numbers, if there is one.
            aligned: whether buffers begin at a multiple of a vector.
        """
        self.one, self.operand, self.space, self.group, self.vector = one, operand, space, group, vector
        self.factor = factor
        self.values = operand is one.v
        self.exist = one.columns if self.values else one.size
        row, column = operand.rows.stride, operand.columns.stride
        self.near = max(abs(row), abs(column)) < NEAR
        together = 1 if one.is_computed(operand) else copied_together(operand, operand.rows, self.exist)
        self.aligned = aligned and column == 1 and together % vector == 0
        self.per = space.run // vector
        self.many = space.lines * self.per
        self.turns = -(-self.many // group)
        self.copies: list[_Copy] = []

    def declare(self, scope: Scope) -> None:
        """Declare the places of the work-item's vectors, the same in every slab."""
        together = self.group // self.per if self.group % self.per == 0 else 0
        for turn in range(self.turns):
            if turn and together:
                first, later = self.copies[0], turn * together
                place = first.place + later * self.space.pitch
                self.copies.append(_Copy(first.line + later, first.at, place, self._exists(turn)))
            else:
                self.copies.append(self._copy(scope, LID + turn * self.group, turn))

    def _copy(self, scope: Scope, number: IndexLike, turn: int) -> _Copy:
        line, at = scope.narrow(number // self.per), scope.narrow(number % self.per * self.vector)
        return _Copy(line, at, scope.narrow(line * self.space.pitch + at), self._exists(turn))

    def _exists(self, turn: int) -> ConditionLike:
        return (turn + 1) * self.group <= self.many or LID < self.many - turn * self.group

    def bring(self, scope: Scope, brought: Sequence[Var], origin: Origin, s: IndexLike) -> list[Stmt]:
        """Load slab `s` from global memory into registers."""
        inner = scope.inner(self.vector)
        for copy, var in zip(self.copies, brought, strict=False):
            reading = inner.inner()
            reading.add(Assign(var, Splat(self._number(reading, copy, origin, s))))
            inner.add(*_guarded(copy.exists, reading.statements))
        return inner.statements

    def put(self, brought: Sequence[Var], slot: IndexLike) -> list[Stmt]:
        """Store the loaded registers into one of the two slabs in local memory."""
        start = self.space.begin + slot * self.space.length
        made = []
        for copy, var in zip(self.copies, brought, strict=False):
            made += _guarded(copy.exists, [PutItem(TILES, start + copy.place, var, vector=True)])
        return made

    def bring_all(self, scope: Scope, origin: Origin) -> Stmt:
        """Load the only slab straight into local memory, with few registers."""
        body, u = scope.inner(self.vector), Name("u")
        copy = self._copy(body, LID + u * self.group, 0)
        inside = body.inner()
        number = self._number(inside, copy, origin, 0)
        inside.add(PutItem(TILES, self.space.begin + copy.place, number, vector=True))
        exists = self.many % self.group == 0 or LID + u * self.group < self.many
        body.add(*_guarded(exists, inside.statements))
        return For(u, 0, self.turns, 1, tuple(body.statements), unroll=4)

    def _number(self, scope: Scope, copy: _Copy, origin: Origin, s: IndexLike) -> Var:
        """Load a vector of slab `s`, scaled and padded as local memory holds it."""
        one, vector = self.one, self.vector
        index, count = self._index(copy, origin, s)
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

    def _index(self, copy: _Copy, origin: Origin, s: IndexLike) -> tuple[IndexLike, IndexLike | None]:
        """Return the index of a vector, and its length if it may be cut short."""
        row, column, space = self.operand.rows.stride, self.operand.columns.stride, self.space
        start, line, at = origin.line, copy.line, copy.at
        if self.values:
            start += s * space.lines
        else:
            at = s * space.run + at
        base = origin.base + start * row
        if origin.last is not None:
            base, line = origin.base, index_min(to_long(start + line), origin.last)
        count = None
        if self.exist % self.vector:
            count = index_max(0, index_min(self.vector, to_long(self.exist - at)))
        elif self.values and self.exist < space.run:
            at = index_min(at, self.exist - self.vector)
        if not self.near:
            line, at = to_long(line), to_long(at)
        return base + self.operand.rows.offset(line) + at * column, count


def _guarded(condition: ConditionLike, statements: Sequence[Stmt]) -> list[Stmt]:
    return list(statements) if condition is True else [If(condition, tuple(statements))]
