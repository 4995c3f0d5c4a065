"""Expressions of a run of neighbouring numbers of a block: what each lane of a vector computes of them.

A run of `lanes` numbers begins at a place that is a multiple of `lanes`, and all of them lie in one block. In the
expressions of its lanes `PLACE` is the place of the first one. Arithmetic of places is simplified, so that what lanes
share is the same expression in all of them. So the bytes of neighbouring places are seen to be neighbours.
"""

from __future__ import annotations

from flowcompute.elements.quantized.block_formats import BlockFormat
from flowcompute.elements.quantized.decoding import (
    PLACE,
    AsFloat,
    Byte,
    CodebookEntry,
    Expression,
    Float,
    FromBits,
    OfFloats,
    OfWhole,
    Place,
    Whole,
    WholeChoice,
    WholeNumber,
    WholeOp,
    in_order,
    operands,
)

_FLOAT32_BITS, _FLOAT16_BITS = 24, 11
"""Significant bits of floats."""

RAISED = 1 << 15
"""Power of two that is added to a byte: float32 holds it in the significand's second byte."""

_INT32 = -(1 << 31), (1 << 31) - 1


def lanes_of(
    block_format: BlockFormat, lanes: int, begin: int = 0, span: int | None = None
) -> dict[Expression, tuple[Expression, ...]]:
    """Return what each lane of a run computes, for every expression that a number of a format is made of.

    Args:
        block_format: of the block. Its numbers are a multiple of `lanes`.
        lanes: numbers in a run, a power of two.
        begin: number of the block at which `PLACE` is 0.
        span: what `PLACE` is below, a multiple of `lanes`; the numbers of the block if not given.
    """
    span = block_format.numbers if span is None else span
    runs = [_Lane(begin + lane, lanes, span - lanes) for lane in range(lanes)]
    known: dict[Expression, tuple[Expression, ...]] = {}
    for node in in_order(block_format.value):
        of = [known[one] for one in operands(node)]
        if node != PLACE and all(each[0] is other for each in of for other in each):
            known[node] = (runs[0].simplified(node, [each[0] for each in of]),) * lanes
        else:
            by_lane = zip(*of, strict=True) if of else [()] * lanes
            each = [run.simplified(node, list(own)) for run, own in zip(runs, by_lane, strict=True)]
            first: dict[Expression, Expression] = {}
            known[node] = tuple(first.setdefault(one, one) for one in each)
    return known


class _Lane:
    """One lane of a run: how many numbers it is behind `PLACE`, which is `last` at most."""

    def __init__(self, lane: int, lanes: int, last: int) -> None:
        self.lane = lane
        self.lanes = lanes
        self.last = last

    def simplified(self, node: Expression, parts: list[Expression]) -> Expression:
        """Return an expression in this lane, of operands that are those of this lane."""
        match node, parts:
            case Place(), _:
                return moved(PLACE, self.lane)
            case OfWhole(op), [Whole() as left, Whole() as right]:
                return self._operation(op, left, right)
            case WholeChoice(), [Whole() as condition, Whole() as yes, Whole() as no]:
                return _choice(condition, yes, no)
            case Byte(), [Whole() as at]:
                return Byte(at)
            case CodebookEntry(codebook), [Whole() as at]:
                return CodebookEntry(codebook, at)
            case AsFloat(), [Whole() as of]:
                return AsFloat(of)
            case FromBits(_, half), [Whole() as bits]:
                return FromBits(bits, half)
            case OfFloats(float_op), [Float() as first, Float() as second]:
                return OfFloats(float_op, first, second)
        return node

    def _operation(self, op: WholeOp, left: Whole, right: Whole) -> Whole:
        (a, x), (b, y) = _parts(left), _parts(right)
        if a is None and b is None:
            return WholeNumber(_folded(op, x, y))
        if op == "+" and a is not None and b is not None:
            return moved(OfWhole("+", a, b), x + y)
        if op == "+" and b is not None:
            return moved(b, x + y)
        if a is None or b is not None:
            return OfWhole(op, left, right)
        if op in ("<<", ">>") and y == 0:
            return left
        if isinstance(a, Place) and x >= 0 and (known := self._of_place(op, x, y)) is not None:
            return known
        if op == "+":
            return moved(a, x + y)
        if op == "-":
            return moved(a, x - y)
        if op in ("*", "<<"):
            return moved(OfWhole(op, a, WholeNumber(y)), _folded(op, x, y))
        # The bits of `low` are zeros of `a`, so shifts and masks take both apart.
        step = 1 << trailing_zeros(a, self.lanes)
        low = x % step
        high = moved(a, x - low)
        if op == ">>":
            return moved(OfWhole(">>", high, WholeNumber(y)), low >> y)
        if op == "&":
            return WholeNumber(low & y) if 0 <= y < step else moved(OfWhole("&", high, WholeNumber(y)), low & y)
        if op == "<" and y % step == 0:
            return OfWhole("<", high, WholeNumber(y))
        return OfWhole(op, left, right)

    def _of_place(self, op: WholeOp, x: int, y: int) -> Whole | None:
        """Return an operation on `PLACE + x` and `y` that is the same, or `PLACE` and a number, at all places."""
        if op == "<" and (x >= y or x + self.last < y):
            return WholeNumber(int(x < y))
        if op == ">>" and x >> y == x + self.last >> y:
            return WholeNumber(x >> y)
        if op == "&" and y >= 0 and y & y + 1 == 0 and (x & y) + self.last <= y:
            return moved(PLACE, x & y)
        return None


def trailing_zeros(value: Whole, lanes: int) -> int:
    """Return the number of lowest bits of an expression that are known to be 0, where `PLACE` is that of a run."""
    match value:
        case Place():
            return lanes.bit_length() - 1
        case WholeNumber(number):
            return (number & -number).bit_length() - 1 if number else 31
        case OfWhole("<<", left, WholeNumber(count)):
            return min(trailing_zeros(left, lanes) + count, 31)
        case OfWhole(">>", left, WholeNumber(count)):
            return max(trailing_zeros(left, lanes) - count, 0)
        case OfWhole("*", left, right):
            return min(trailing_zeros(left, lanes) + trailing_zeros(right, lanes), 31)
        case OfWhole("&", left, right):
            return max(trailing_zeros(left, lanes), trailing_zeros(right, lanes))
        case OfWhole("+" | "-" | "|" | "^", left, right) | WholeChoice(_, left, right):
            return min(trailing_zeros(left, lanes), trailing_zeros(right, lanes))
    return 0


def _parts(value: Whole) -> tuple[Whole | None, int]:
    """Return a simplified expression as another one plus a known number; None where it is the number alone."""
    match value:
        case WholeNumber(number):
            return None, number
        case OfWhole("+", left, WholeNumber(number)):
            return left, number
    return value, 0


def moved(value: Whole, number: int) -> Whole:
    """Return a simplified expression plus a number."""
    base, own = _parts(value)
    if base is None:
        return WholeNumber(own + number)
    return OfWhole("+", base, WholeNumber(own + number)) if own + number else base


def _choice(condition: Whole, yes: Whole, no: Whole) -> Whole:
    if isinstance(condition, WholeNumber):
        return yes if condition.value else no
    (a, x), (b, y) = _parts(yes), _parts(no)
    if x == y and a is not None and b is not None:
        return moved(WholeChoice(condition, a, b), x)
    return yes if yes == no else WholeChoice(condition, yes, no)


def _folded(op: WholeOp, x: int, y: int) -> int:
    match op:
        case "+":
            return x + y
        case "-":
            return x - y
        case "*":
            return x * y
        case "<<":
            return x << y
        case ">>":
            return x >> y
        case "&":
            return x & y
        case "|":
            return x | y
        case "^":
            return x ^ y
        case "<":
            return int(x < y)
        case "==":
            return int(x == y)


def offset_between(first: Whole, other: Whole) -> int | None:
    """Return how much one simplified expression is more than another; None if that is not known."""
    (a, x), (b, y) = _parts(first), _parts(other)
    return y - x if a == b else None


def exact_products(block_format: BlockFormat) -> frozenset[Expression]:
    """Return the products of floats of a format that float32 holds without rounding, whatever the bytes."""
    bounds = bounds_of(block_format)
    exact = set[Expression]()
    bits: dict[Expression, int] = {}
    for node in in_order(block_format.value):
        match node:
            case AsFloat(of):
                bits[node] = min(max(map(abs, bounds[of])).bit_length(), _FLOAT32_BITS)
            case FromBits(_, True):
                bits[node] = _FLOAT16_BITS
            case OfFloats("*", left, right):
                bits[node] = bits[left] + bits[right]
                if bits[node] <= _FLOAT32_BITS:
                    exact.add(node)
            case _:
                bits[node] = _FLOAT32_BITS
    return frozenset(exact)


def has_exact_bias(block_format: BlockFormat) -> bool:
    """Check whether a format's numbers are a float16 times a byte less a bias, which one multiply-add computes.

    That is `scale * (RAISED + byte) - scale * (RAISED + bias)`, whose last product float32 holds without rounding.
    """
    match block_format.value:
        case OfFloats("*", FromBits(_, True), AsFloat(OfWhole("-", byte, WholeNumber(bias)))):
            low, high = bounds_of(block_format)[byte]
            odd = (RAISED + bias) // ((RAISED + bias) & -(RAISED + bias))
            return low >= 0 and high <= 255 and odd.bit_length() + _FLOAT16_BITS <= _FLOAT32_BITS
    return False


def bounds_of(block_format: BlockFormat) -> dict[Expression, tuple[int, int]]:
    """Return the least and the greatest value that each whole expression of a format may have."""
    known: dict[Expression, tuple[int, int]] = {}
    for node in in_order(block_format.value):
        if isinstance(node, Whole):
            of = [known[one] for one in operands(node) if one in known]
            low, high = _bounds(node, of, block_format.numbers)
            known[node] = (low, high) if _INT32[0] <= low and high <= _INT32[1] else _INT32
    return known


def _bounds(node: Whole, of: list[tuple[int, int]], numbers: int) -> tuple[int, int]:
    match node:
        case Place():
            return 0, numbers - 1
        case WholeNumber(value):
            return value, value
        case Byte():
            return 0, 255
        case CodebookEntry(codebook):
            return min(codebook.numbers), max(codebook.numbers)
        case WholeChoice():
            return min(of[1][0], of[2][0]), max(of[1][1], of[2][1])
        case OfWhole(op):
            return _bounds_of_operation(op, *of)
    raise AssertionError(f"an expression of another kind: {node}")


def _bounds_of_operation(op: WholeOp, left: tuple[int, int], right: tuple[int, int]) -> tuple[int, int]:
    if op in ("<", "=="):
        return 0, 1
    if op == "-":
        return left[0] - right[1], left[1] - right[0]
    if op in ("&", "|", "^"):
        highest = [max(left[1], 0), max(right[1], 0)]
        if op == "&" and (left[0] >= 0 or right[0] >= 0):
            return 0, min(high for high, low in zip(highest, (left[0], right[0]), strict=True) if low >= 0)
        return (0, (1 << max(highest).bit_length()) - 1) if min(left[0], right[0]) >= 0 else _INT32
    if op in ("<<", ">>") and not 0 <= right[0] <= right[1] < 32:
        return _INT32
    corners = [_folded(op, x, y) for x in left for y in right]
    return min(corners), max(corners)
