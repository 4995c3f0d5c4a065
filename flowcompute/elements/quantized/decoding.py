"""Expressions that decode a number of a block: typed nodes, which backends evaluate or print.

An expression is of whole numbers (32 bits, with a sign) or of floats (float32). Its only inputs are the bytes of one
block and `PLACE`, the number's place in the block. It has no branches and no loops, so all numbers of a block are
decoded alike: NumPy evaluates it for all places at once, and a kernel for the place that a lane asks for.
"""

from __future__ import annotations

from typing import Literal

from flowcompute.elements.quantized.codebooks import Codebook
from flowcompute.imports import dataclass

WholeOp = Literal["+", "-", "*", "<<", ">>", "&", "|", "^", "<", "=="]
FloatOp = Literal["+", "-", "*"]


class Whole:
    """An expression of whole numbers of 32 bits. Sums and products wrap, `>>` keeps the sign."""

    def __add__(self, other: Whole | int) -> Whole:
        return OfWhole("+", self, whole(other))

    def __radd__(self, other: int) -> Whole:
        return OfWhole("+", whole(other), self)

    def __sub__(self, other: Whole | int) -> Whole:
        return OfWhole("-", self, whole(other))

    def __mul__(self, other: Whole | int) -> Whole:
        return OfWhole("*", self, whole(other))

    def __rmul__(self, other: int) -> Whole:
        return OfWhole("*", whole(other), self)

    def __lshift__(self, other: Whole | int) -> Whole:
        return OfWhole("<<", self, whole(other))

    def __rlshift__(self, other: int) -> Whole:
        return OfWhole("<<", whole(other), self)

    def __rshift__(self, other: Whole | int) -> Whole:
        return OfWhole(">>", self, whole(other))

    def __and__(self, other: Whole | int) -> Whole:
        return OfWhole("&", self, whole(other))

    def __or__(self, other: Whole | int) -> Whole:
        return OfWhole("|", self, whole(other))

    def __xor__(self, other: Whole | int) -> Whole:
        return OfWhole("^", self, whole(other))

    def below(self, other: int) -> Whole:
        """Return 1 where it is less than a number, otherwise 0."""
        return OfWhole("<", self, whole(other))

    def equals(self, other: int) -> Whole:
        """Return 1 where it is this number, otherwise 0."""
        return OfWhole("==", self, whole(other))


class Float:
    """An expression of float32. Each operation is rounded once."""

    def __add__(self, other: Float) -> Float:
        return OfFloats("+", self, other)

    def __sub__(self, other: Float) -> Float:
        return OfFloats("-", self, other)

    def __mul__(self, other: Float | Whole) -> Float:
        return OfFloats("*", self, other if isinstance(other, Float) else AsFloat(other))


@dataclass(frozen=True)
class Place(Whole):
    """The place of the number in its block, from 0 on."""


@dataclass(frozen=True)
class WholeNumber(Whole):
    """A whole number that is known."""

    value: int


@dataclass(frozen=True)
class Byte(Whole):
    """The byte of the block at this place, from 0 to 255. The place depends on no byte."""

    at: Whole


@dataclass(frozen=True)
class OfWhole(Whole):
    """An operation on two whole numbers."""

    op: WholeOp
    left: Whole
    right: Whole


@dataclass(frozen=True)
class CodebookEntry(Whole):
    """An entry of a codebook."""

    codebook: Codebook
    at: Whole


@dataclass(frozen=True)
class WholeChoice(Whole):
    """`yes` where the condition is not 0, else `no`. Both are computed."""

    condition: Whole
    yes: Whole
    no: Whole


@dataclass(frozen=True)
class FloatNumber(Float):
    """A float that is known."""

    value: float


@dataclass(frozen=True)
class AsFloat(Float):
    """A whole number as a float."""

    of: Whole


@dataclass(frozen=True)
class FromBits(Float):
    """The float with these bits: float32, or float16 of the lower 16, which float32 holds exactly."""

    bits: Whole
    half: bool = False


@dataclass(frozen=True)
class OfFloats(Float):
    """An operation on two floats."""

    op: FloatOp
    left: Float
    right: Float


Expression = Whole | Float

PLACE = Place()


def whole(number: Whole | int) -> Whole:
    """Return an expression of a number."""
    return WholeNumber(number) if isinstance(number, int) else number


def operands(node: Expression) -> tuple[Expression, ...]:
    """Return the expressions that an expression is made of."""
    match node:
        case OfWhole(_, left, right):
            return left, right
        case OfFloats(_, left, right):
            return left, right
        case WholeChoice(condition, yes, no):
            return condition, yes, no
        case Byte(inner) | CodebookEntry(_, inner) | AsFloat(inner) | FromBits(inner):
            return (inner,)
        case _:
            return ()


def in_order(value: Expression) -> list[Expression]:
    """Return the expressions that a value is made of, each once and after its operands, and itself."""
    found: dict[Expression, None] = {}

    def visit(node: Expression) -> None:
        if node not in found:
            for one in operands(node):
                visit(one)
            found[node] = None

    visit(value)
    return list(found)


# -- what the formats are written in ----------------------------------------------------------------


def byte(at: Whole | int) -> Whole:
    """Return the byte at this place of the block."""
    return Byte(whole(at))


def signed_byte(at: Whole | int) -> Whole:
    """Return the byte at this place as a number from -128 to 127."""
    return (byte(at) ^ 128) - 128


def word16(at: Whole | int) -> Whole:
    """Return the 16 bits from this place on, the lower byte first."""
    return byte(at) | byte(whole(at) + 1) << 8


def word32(at: Whole | int) -> Whole:
    """Return the 32 bits from this place on, the lowest byte first. The highest bit is the sign."""
    return word16(at) | word16(whole(at) + 2) << 16


def half(at: Whole | int) -> Float:
    """Return the float16 at this place."""
    return FromBits(word16(at), half=True)


def bits(word: Whole, first: Whole | int, count: int) -> Whole:
    """Return `count` bits of a word from bit `first` on."""
    return word >> first & ((1 << count) - 1)
