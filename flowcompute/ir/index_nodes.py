"""Integer expressions of the kernel IR: indices, bounds and counts, and the conditions on them.

An `Index` is a signed integer of 64 or 32 bits. A `Condition` is true or false. They are two types, so that mypy
refuses one in place of the other. Lowerings write arithmetic on them: `base + column * 4`, `column < size`.

Division and remainder truncate, as in C. Only these simplifications are made: 0 is left out of a sum, and 1 out of a
product, a quotient or a remainder. A product with 0 is 0.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import replace
from typing import Literal

from flowcompute.imports import dataclass

IntegerOp = Literal["+", "-", "*", "/", "%", "&", "^", "<<", ">>", "min", "max"]
ComparisonOp = Literal["<", "<=", ">", ">=", "==", "!="]


class Index:
    """An integer expression. `narrow` tells whether it has 32 bits."""

    __slots__ = ()

    @property
    def narrow(self) -> bool:
        """Flag that the integer has 32 bits."""
        raise NotImplementedError

    def __add__(self, other: IndexLike) -> IndexLike:
        return arithmetic("+", self, other)

    def __radd__(self, other: int) -> IndexLike:
        return arithmetic("+", other, self)

    def __sub__(self, other: IndexLike) -> IndexLike:
        return arithmetic("-", self, other)

    def __rsub__(self, other: int) -> IndexLike:
        return arithmetic("-", other, self)

    def __mul__(self, other: IndexLike) -> IndexLike:
        return arithmetic("*", self, other)

    def __rmul__(self, other: int) -> IndexLike:
        return arithmetic("*", other, self)

    def __floordiv__(self, other: IndexLike) -> IndexLike:
        return arithmetic("/", self, other)

    def __rfloordiv__(self, other: int) -> IndexLike:
        return arithmetic("/", other, self)

    def __mod__(self, other: IndexLike) -> IndexLike:
        return arithmetic("%", self, other)

    def __rmod__(self, other: int) -> IndexLike:
        return arithmetic("%", other, self)

    def __and__(self, other: IndexLike) -> IndexLike:
        return arithmetic("&", self, other)

    def __xor__(self, other: IndexLike) -> IndexLike:
        return arithmetic("^", self, other)

    def __rxor__(self, other: int) -> IndexLike:
        return arithmetic("^", other, self)

    def __lshift__(self, other: IndexLike) -> IndexLike:
        return arithmetic("<<", self, other)

    def __rshift__(self, other: IndexLike) -> IndexLike:
        return arithmetic(">>", self, other)

    def __lt__(self, other: IndexLike) -> Condition:
        return Comparison("<", self, other)

    def __le__(self, other: IndexLike) -> Condition:
        return Comparison("<=", self, other)

    def __gt__(self, other: IndexLike) -> Condition:
        return Comparison(">", self, other)

    def __ge__(self, other: IndexLike) -> Condition:
        return Comparison(">=", self, other)


IndexLike = Index | int
"""An index, or one that is known when the kernel is lowered."""


class Condition:
    """A condition on integers. `&` and `|` evaluate their right side only where the left side leaves it open."""

    __slots__ = ()

    def __bool__(self) -> bool:
        """Refuse to be one of two values while a kernel is lowered.

        Raises:
            TypeError: always.
        """
        raise TypeError(f"cannot decide {self!r}: it is known in the kernel only; use choose() or If")

    def __and__(self, other: ConditionLike) -> ConditionLike:
        return all_of(self, other)

    def __rand__(self, other: bool) -> ConditionLike:
        return all_of(other, self)

    def __or__(self, other: ConditionLike) -> ConditionLike:
        return any_of(self, other)

    def __ror__(self, other: bool) -> ConditionLike:
        return any_of(other, self)


ConditionLike = Condition | bool
"""A condition, or one that is known when the kernel is lowered."""


@dataclass(frozen=True, slots=True)
class Name(Index):
    """A declared integer, or an integer parameter of the kernel."""

    name: str
    narrow: bool = False


@dataclass(frozen=True, slots=True)
class Arithmetic(Index):
    """Two integers joined by an operator. The result is narrow if both are; shifts take the left one's width."""

    op: IntegerOp
    left: IndexLike
    right: IndexLike

    @property
    def narrow(self) -> bool:
        """Flag that the integer has 32 bits."""
        if self.op in ("<<", ">>"):
            return is_narrow(self.left)
        return is_narrow(self.left) and is_narrow(self.right)


@dataclass(frozen=True, slots=True)
class ToWidth(Index):
    """An integer converted to 32 bits if `narrow`, else to 64."""

    operand: IndexLike
    narrow: bool


@dataclass(frozen=True, slots=True)
class Choice(Index):
    """`yes` where a condition holds, otherwise `no`."""

    condition: Condition
    yes: IndexLike
    no: IndexLike

    @property
    def narrow(self) -> bool:
        """Flag that the integer has 32 bits."""
        return is_narrow(self.yes) and is_narrow(self.no)


@dataclass(frozen=True, slots=True)
class Lane(Index):
    """The number of the lane, in an index that each lane of a vector has for itself."""

    @property
    def narrow(self) -> bool:
        """Flag that the integer has 32 bits."""
        return True


@dataclass(frozen=True, slots=True)
class ArrayNumber(Index):
    """An integer of a local array or of a parameter that points to integers; `narrow` if these have 32 bits or less."""

    array: str
    position: IndexLike
    narrow: bool = False


@dataclass(frozen=True, slots=True)
class Comparison(Condition):
    """A comparison of two integers."""

    op: ComparisonOp
    left: IndexLike
    right: IndexLike


@dataclass(frozen=True, slots=True)
class Both(Condition):
    """Both conditions hold."""

    left: Condition
    right: Condition


@dataclass(frozen=True, slots=True)
class Either(Condition):
    """At least one of the conditions holds."""

    left: Condition
    right: Condition


@dataclass(frozen=True, slots=True)
class IsSet(Condition):
    """An integer is not 0: a condition that was declared as an integer."""

    operand: IndexLike


@dataclass(frozen=True, slots=True)
class IsNan(Condition):
    """A float variable of one lane is NaN."""

    variable: str


@dataclass(frozen=True, slots=True)
class IsZero(Condition):
    """A float variable of one lane is 0, with either sign."""

    variable: str


@dataclass(frozen=True, slots=True)
class IsFinite(Condition):
    """A float variable of one lane is neither NaN nor infinite."""

    variable: str


def _quotient(a: int, b: int) -> int:
    return abs(a) // abs(b) * (-1 if (a < 0) != (b < 0) else 1)


_FOLDED: dict[IntegerOp, Callable[[int, int], int]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": _quotient,
    "%": lambda a, b: a - b * _quotient(a, b),
    "&": operator.and_,
    "^": operator.xor,
    "<<": operator.lshift,
    ">>": operator.rshift,
    "min": min,
    "max": max,
}

LANE = Lane()
GID, GSIZE = Name("gid"), Name("gsize")
"""Number of the work-group, and count of work-groups."""
LID, WID, WSIZE = Name("lid"), Name("wid"), Name("wsize")
"""Number of the work-item in its work-group and in the launch, and count of work-items in the launch."""
N, CHUNK, BLOCKS, FIRST, PHASE = map(Name, ("n", "chunk", "blocks", "first", "phase"))
"""The last parameters of each kernel; see `gpu.render`."""


def names(text: str, *, narrow: bool = False) -> tuple[Name, ...]:
    """Return integers of the names in a text, which spaces separate."""
    return tuple(Name(name, narrow) for name in text.split())


def is_narrow(index: IndexLike) -> bool:
    """Return whether an integer has 32 bits; a known one has them if it fits."""
    return -(1 << 31) <= index < 1 << 31 if isinstance(index, int) else index.narrow


def arithmetic(op: IntegerOp, left: IndexLike, right: IndexLike) -> IndexLike:
    """Return two integers joined by an operator, simplified where that is plain."""
    if isinstance(left, int) and isinstance(right, int):
        return _FOLDED[op](left, right)
    if (op == "*" and (left == 0 or right == 0)) or (op == "%" and right == 1):
        return 0
    if (op in "*/" and right == 1) or (op in "+-" and right == 0):
        return left
    if (op == "*" and left == 1) or (op == "+" and left == 0):
        return right
    return Arithmetic(op, left, right)


def index_min(a: IndexLike, b: IndexLike) -> IndexLike:
    """Return the smaller of two integers."""
    return arithmetic("min", a, b)


def index_max(a: IndexLike, b: IndexLike) -> IndexLike:
    """Return the larger of two integers."""
    return arithmetic("max", a, b)


def to_long(index: IndexLike) -> IndexLike:
    """Return an integer in 64 bits."""
    return ToWidth(index, narrow=False) if isinstance(index, Index) and index.narrow else index


def to_int(index: IndexLike) -> IndexLike:
    """Return an integer in 32 bits."""
    return index if is_narrow(index) else ToWidth(index, narrow=True)


def equal(a: IndexLike, b: IndexLike) -> ConditionLike:
    """Return the condition that two integers are equal; `==` compares the expressions themselves."""
    return a == b if isinstance(a, int) and isinstance(b, int) else Comparison("==", a, b)


def unequal(a: IndexLike, b: IndexLike) -> ConditionLike:
    """Return the condition that two integers differ."""
    return a != b if isinstance(a, int) and isinstance(b, int) else Comparison("!=", a, b)


def choose(condition: ConditionLike, yes: IndexLike, no: IndexLike) -> IndexLike:
    """Return `yes` where a condition holds, otherwise `no`."""
    if isinstance(condition, bool):
        return yes if condition else no
    return Choice(condition, yes, no)


def all_of(*conditions: ConditionLike) -> ConditionLike:
    """Return the condition that all of these hold; True without any."""
    return _joined(conditions, Both, neutral=True)


def any_of(*conditions: ConditionLike) -> ConditionLike:
    """Return the condition that one of these holds; False without any."""
    return _joined(conditions, Either, neutral=False)


def in_lane(index: IndexLike, lane: int) -> IndexLike:
    """Return the index of one lane: `LANE` becomes its number."""
    if isinstance(index, int) or index == LANE:
        return lane if index == LANE else index
    match index:
        case Arithmetic(op, left, right):
            return arithmetic(op, in_lane(left, lane), in_lane(right, lane))
        case ToWidth(operand):
            return replace(index, operand=in_lane(operand, lane))
        case ArrayNumber(_, position):
            return replace(index, position=in_lane(position, lane))
        case Choice(condition, yes, no):
            return Choice(_condition_in_lane(condition, lane), in_lane(yes, lane), in_lane(no, lane))
        case _:
            return index


def _condition_in_lane(condition: Condition, lane: int) -> Condition:
    match condition:
        case Comparison(_, left, right):
            return replace(condition, left=in_lane(left, lane), right=in_lane(right, lane))
        case Both(left, right) | Either(left, right):
            return replace(condition, left=_condition_in_lane(left, lane), right=_condition_in_lane(right, lane))
        case _:
            return condition


def _joined(
    conditions: tuple[ConditionLike, ...], join: Callable[[Condition, Condition], Condition], *, neutral: bool
) -> ConditionLike:
    whole: ConditionLike = neutral
    for one in conditions:
        if isinstance(one, bool):
            if one is not neutral:
                return one
        else:
            whole = one if isinstance(whole, bool) else join(whole, one)
    return whole
