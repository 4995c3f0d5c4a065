"""Streams that are made where they are needed: a number follows from where it stands, so nothing is read."""

from __future__ import annotations

import math
import operator
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from flowcompute.elements.calls import public
from flowcompute.elements.compute import Compute, Constant, cast
from flowcompute.elements.math import add, multiply
from flowcompute.elements.op import KeptOp, Kind, Op
from flowcompute.elements.site import user_site
from flowcompute.errors import SpecError, short_repr
from flowcompute.imports import dataclass
from flowcompute.spec import BOOL, FLOAT32, FLOAT64, INT64, UINT64, Spec, Stream, is_float, parse_dtype

MOST_POSITIONS = 2**63
"""Numbers of a generated stream: their positions are int64."""

Form = Literal["position", "word", "pair", "block"]


@dataclass(frozen=True, repr=False)
class Generator(Op):
    """An element-wise operation whose numbers follow from their positions.

    The number at flat place j of the item in record r has position `r * item numbers + j`.
    `numpy(first, count, dtype, *operands)` gives the numbers at `count` positions from `first` on. Operands are scalars
    known when composed. The first one is the key of those that draw from Philox blocks.

    Attributes:
        form: what the OpenCL text makes a number of. That is its "position", or a "word" `{w}` of the number's own. Or
            it is a "pair" `{x}`, `{y}` of neighbouring words, of which it makes two neighbouring numbers `{even}`,
            `{odd}`. Or it is a whole "block", the words `{low}`, `{high}`.
        bits: of the block of 128 that belong to one number.
        tag: second half of the counter, so that equal seeds give unrelated numbers to
            different operations.
    """

    form: Form = "position"
    bits: int = 0
    tag: int = 0

    @property
    def share(self) -> int:
        """Numbers that one block gives."""
        return 128 // self.bits if self.bits else 1

    @property
    def kept_name(self) -> str:
        """The name of this operation in kept jobs, with its bits where it draws numbers."""
        return f"{super().kept_name}.{self.bits}" if self.bits else super().kept_name


def declared_dtypes(*_: object) -> tuple[np.dtype, ...]:
    """Refuse to be called: generators have no dtype rule, the Spec says it."""
    raise AssertionError("a generated stream is made with its dtype")


def _positions(first: int, count: int, dtype: np.dtype) -> np.ndarray:
    return np.arange(first, first + count, dtype=dtype)


_DTYPES = {"range": INT64, "integers": UINT64}
"""Dtypes of generators that have but one."""


def rebuild_generator(kept: KeptOp) -> Compute:
    """Make numbers again that follow from their positions and from constants."""
    assert isinstance(kept.op, Generator)
    for one in kept.operands(kept.op.arity):
        known = isinstance(one, Constant) or not one.inputs
        kept.require(known and one.spec == Spec(UINT64, ()), "a constant of uint64 as key, or one that is given")
    dtype = _DTYPES.get(kept.op.name, FLOAT32 if kept.op.bits == 32 else FLOAT64)
    spec = generated_spec(kept.op.name, dtype, kept.spec.shape, kept.spec.length or 0)
    return Compute(kept.op, kept.inputs, spec)


INDEX = Generator(
    "range", 0, Kind.ELEMENTWISE, _positions, declared_dtypes, arithmetic=False, doc="The position of each number.",
    rebuild=rebuild_generator,
)  # fmt: skip


def index(length: int, shape: tuple[int, ...] = ()) -> Compute:
    """Return the positions 0, 1, 2, ... of all numbers of a stream of `length` items, as int64."""
    return Compute(INDEX, (), generated_spec("range", INT64, shape, length))


def generated_spec(op: str, dtype: np.dtype, shape: tuple[int, ...], length: int) -> Spec:
    """Return the Spec of a generated stream.

    Raises:
        SpecError: if the length is no count, or there are more numbers than positions.
    """
    try:
        items = -1 if isinstance(length, bool | np.bool_) else operator.index(length)
    except TypeError:
        items = -1
    if items < 0:
        raise SpecError(
            "cannot take length=",
            element=op,
            site=user_site(),
            expected="a whole number from 0 on",
            got=short_repr(length),
            hint="length counts the items of the stream; shape= is that of an item",
        )
    if items * math.prod(shape) >= MOST_POSITIONS:
        raise SpecError(
            "cannot count so many numbers",
            element=op,
            site=user_site(),
            expected="fewer than 2**63 numbers in all",
            got=f"{short_repr(items)} items of {math.prod(shape)} numbers",
        )
    return Spec(dtype, shape, Stream(items))


@public
def range(start: float, stop: float | None = None, step: float = 1, *, dtype: npt.DTypeLike | None = None) -> Compute:
    """Make evenly spaced numbers from `start` up to but without `stop`, as a stream made on the device.

    `range(stop)` starts at 0. Item i is `start + i * step`: exact for integers. For floats it is `start + i * delta`
    with `delta = (start + step) - start`, as in `numpy.arange`. Each operation is rounded to `dtype`. Half formats are
    computed in float32 and rounded once.

    Args:
        start: first number; the length, where it is the only one.
        stop: where the numbers end; it is not among them.
        step: from one number to the next; negative to go down.
        dtype: int64 for whole numbers and float64 otherwise by default.

    Returns:
        A stream of shape `(max(0, ceil((stop - start) / step)),)`.

    Raises:
        SpecError: for a step of 0, NaN or infinite numbers, bool, fractions in an integer dtype,
            or numbers that the dtype cannot hold.
    """
    begin, end = (0, start) if stop is None else (start, stop)
    given = [_parse_number(what, number) for what, number in (("start", begin), ("stop", end), ("step", step))]
    whole = all(isinstance(number, int) for number in given)
    try:
        wanted = (INT64 if whole else FLOAT64) if dtype is None else parse_dtype(dtype)
    except TypeError as error:
        raise SpecError(str(error), element="range", site=user_site()) from error
    if wanted == BOOL:
        raise SpecError(
            "cannot make a range of bools",
            element="range",
            site=user_site(),
            expected="a dtype of numbers",
            hint="compare a range: fc.range(n) > 0",
        )
    if given[2] == 0:
        raise SpecError(
            "cannot go by a step of 0",
            element="range",
            site=user_site(),
            expected="a step other than 0",
            got=f"step={short_repr(step)}",
        )
    if is_float(wanted):
        return _floats(given, wanted)
    if not whole:
        raise SpecError(
            f"cannot hold fractions in {wanted.name}",
            element="range",
            site=user_site(),
            expected="whole numbers, or a dtype of floats",
            got=", ".join(map(short_repr, given)),
            hint="round a range of floats: fc.floor(fc.range(...)).astype(...)",
        )
    return _integers(given, wanted)


arange = range
"""NumPy's name of `range`."""


def _parse_number(what: str, number: Any) -> Any:
    """Return a Python int or float.

    Raises:
        SpecError: if it is neither, or not finite.
    """
    if isinstance(number, np.generic):
        number = number.item()
    whole = isinstance(number, int) and not isinstance(number, bool)
    if not (whole or (isinstance(number, float) and math.isfinite(number))):
        raise SpecError(
            f"cannot take {what}",
            element="range",
            site=user_site(),
            expected="an int or a float",
            got=short_repr(number),
        )
    return number


def _integers(given: list[int], dtype: np.dtype) -> Compute:
    start, stop, step = given
    length = max(0, -((start - stop) // step))
    info = np.iinfo(dtype)
    last = start + (length - 1) * step
    if length and not all(info.min <= number <= info.max for number in (start, last)):
        raise SpecError(
            f"cannot hold the numbers in {dtype.name}",
            element="range",
            site=user_site(),
            expected=f"numbers from {info.min} to {info.max}",
            got=f"{short_repr(start)} to {short_repr(last)}",
        )
    # All arithmetic wraps modulo 2^64, so that what fits at the end is right whatever lay between.
    value = index(length)
    if step != 1:
        value = multiply(value, _wrapped(step))
    if start != 0:
        value = add(value, _wrapped(start))
    return cast(value, dtype)  # type: ignore[return-value]


def _wrapped(number: int) -> Constant:
    return Constant(np.array(number % 2**64, UINT64).astype(INT64))


def _floats(given: list[float], dtype: np.dtype) -> Compute:
    start, stop, step = given
    length = _steps(start, stop, step)
    inner = FLOAT64 if dtype == FLOAT64 else FLOAT32
    with np.errstate(over="ignore", invalid="ignore"):
        # What NumPy makes of the first two numbers is all that its fill functions see.
        first = _rounded(start, dtype, inner)
        delta = _rounded(start + step, dtype, inner) - first
        last = _rounded(first + inner.type(max(0, length - 1)) * delta, dtype, inner)
    if length and not (np.isfinite(first) and np.isfinite(last)):
        raise SpecError(
            f"cannot hold the numbers in {dtype.name}",
            element="range",
            site=user_site(),
            got=f"start={short_repr(start)}, step={short_repr(step)}",
        )
    value = multiply(cast(index(length), inner), Constant(delta))
    if first != 0 or delta < 0:
        # Also added where it is 0: it makes +0 of the -0 that 0 * delta is.
        value = add(value, Constant(first))
    return cast(value, dtype)  # type: ignore[return-value]


def _rounded(number: float, dtype: np.dtype, inner: np.dtype) -> Any:
    """Return a number as `dtype` holds it, in the dtype that it is computed in."""
    try:
        wide = float(number)
    except OverflowError:
        wide = math.inf
    return np.array(wide).astype(dtype).astype(inner)[()]


def _steps(start: float, stop: float, step: float) -> int:
    """Count the steps of floats from start to stop, as NumPy does."""
    try:
        steps = float(stop - start) / float(step)
    except OverflowError:
        steps = math.inf
    if not math.isfinite(steps):
        raise SpecError(
            "cannot count so many numbers",
            element="range",
            site=user_site(),
            expected="fewer than 2**63 numbers in all",
            got=f"from {short_repr(start)} to {short_repr(stop)} by {short_repr(step)}",
        )
    if steps == 0:
        # A quotient too small for a float is still one step on the way.
        return int(stop != start and (stop > start) == (step > 0))
    return max(0, math.ceil(steps))
