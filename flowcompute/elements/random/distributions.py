"""The distributions of `fc.random`."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import numpy.typing as npt

from flowcompute.elements.compute import Compute, Constant, cast
from flowcompute.elements.element import Element
from flowcompute.elements.generated import KEPT_BITS, NORMAL, SCALED, SCALED_WIDE, UNIFORM, Generator, generated_spec
from flowcompute.elements.items import ItemShape, item_dtype, parse_item_shape
from flowcompute.elements.math import add, floor, multiply, where
from flowcompute.elements.site import user_site
from flowcompute.errors import SpecError, short_repr
from flowcompute.imports import secrets
from flowcompute.spec import BFLOAT16, FLOAT32, FLOAT64, INT64, UINT64, is_float, parse_dtype

SEED_BITS = 64


class Random(Compute):
    """A stream of random numbers. `seed` gives them again."""

    distribution: str
    seed: int

    @classmethod
    def of(cls, value: Element, distribution: str, seed: int) -> Random:
        """Wrap `value` so that it knows where it comes from."""
        assert isinstance(value, Compute)
        random = cls(value.op, value.inputs, value.spec, value.attrs)
        random.freeze_fields(distribution=distribution, seed=seed)
        return random

    @property
    def label(self) -> str:
        """The operation, with the seed where the numbers are drawn."""
        return f"{self.op.name}(seed={self.seed})" if isinstance(self.op, Generator) else self.op.name

    def __repr__(self) -> str:
        return f"<Random {self.name or self.distribution} seed={self.seed}: {self.spec}>"


# -- the functions --------------------------------------------------------------------------------


def uniform(
    length: int,
    *,
    shape: ItemShape = (),
    low: float = 0.0,
    high: float = 1.0,
    dtype: npt.DTypeLike | None = None,
    seed: int | None = None,
) -> Random:
    """Draw random numbers of equal density in [low, high).

    `low + (high - low) * u`, each operation rounded to the dtype. In [0, 1), u is a multiple of 2^-24 in float32, of
    2^-53 in float64, of 2^-11 in float16 and of 2^-8 in bfloat16. What rounding would make `high` is the number next to
    it. Bits are equal on all devices.

    Args:
        length: items in the stream.
        shape: item shape or item type.
        low: smallest number.
        high: bound above, never reached.
        dtype: float32 by default; or float64, float16, bfloat16.
        seed: a whole number from 0 to 2^64 - 1. Without one it is drawn now; `.seed` has it, and
            `repr` and `str` show it.

    Raises:
        SpecError: if there is no number of the dtype in [low, high), or an argument makes no sense.
    """
    result, item, key = _parse("uniform", shape, dtype, FLOAT32, seed)
    inner = FLOAT64 if result == FLOAT64 else FLOAT32
    bounds = [_number("uniform", what, number, result) for what, number in (("low", low), ("high", high))]
    bottom, top = bounds
    with np.errstate(over="ignore"):
        scale = np.asarray(top - bottom, result)
    if not (bottom < top and np.isfinite(scale.astype(FLOAT64))):
        raise SpecError(
            "cannot draw between low and high",
            element="uniform",
            site=user_site(),
            expected="low < high, and a finite difference",
            got=f"low={short_repr(low)}, high={short_repr(high)} in {result.name}",
        )
    unit: Element = _draw(UNIFORM[inner], item, length, inner, key)
    if result != inner:
        steps = 2.0 ** KEPT_BITS[result]
        unit = cast(multiply(floor(multiply(unit, steps)), 1 / steps), result)
    value = unit if scale == 1 else multiply(unit, Constant(scale))
    if bottom != 0:
        value = add(value, Constant(bottom))
    if bottom != 0 or scale < 2 * np.finfo(FLOAT32 if result == BFLOAT16 else result).tiny:
        # With low = 0 and scales that are no subnormals the product alone never rounds up to high.
        value = where(value < Constant(top), value, Constant(np.nextafter(top, bottom)))
    return Random.of(value, "uniform", key)


def normal(
    length: int,
    *,
    shape: ItemShape = (),
    mean: float = 0.0,
    std: float = 1.0,
    dtype: npt.DTypeLike | None = None,
    seed: int | None = None,
) -> Random:
    """Draw random numbers of the normal distribution.

    `mean + std * z`, each operation rounded to the dtype, with z by Box-Muller. It is within 5 units in the last place
    of what its words give exactly. Its size is at most 6.7 in float32 and 8.7 in float64. Bits are equal on all devices
    that divide and take roots correctly rounded.

    Args:
        length: items in the stream.
        shape: item shape or item type.
        mean: mean of the distribution.
        std: its standard deviation, 0 or more.
        dtype: float32 by default; or float64, or float16 or bfloat16 rounded from float32.
        seed: as for `uniform`.

    Raises:
        SpecError: if `mean` or `std` is not finite or `std` below 0, or an argument makes no sense.
    """
    result, item, key = _parse("normal", shape, dtype, FLOAT32, seed)
    inner = FLOAT64 if result == FLOAT64 else FLOAT32
    centre, spread = (_number("normal", what, number, result) for what, number in (("mean", mean), ("std", std)))
    if spread < 0:
        raise SpecError(
            "cannot take a negative std", element="normal", site=user_site(), expected="0 or more", got=short_repr(std)
        )
    value: Element = cast(_draw(NORMAL[inner], item, length, inner, key), result)
    if spread != 1:
        value = multiply(value, Constant(spread))
    if centre != 0:
        value = add(value, Constant(centre))
    return Random.of(value, "normal", key)


def integers(
    length: int,
    *,
    low: int,
    high: int,
    shape: ItemShape = (),
    dtype: npt.DTypeLike | None = None,
    seed: int | None = None,
) -> Random:
    """Draw random whole numbers from `low` to `high` - 1.

    `low + floor(w * (high - low) / 2^64)` for a random word w of 64 bits (of 128 for more than 2^32 different numbers).
    This is Lemire, "Fast random integer generation in an interval" (2019), without its rejections. So the probability
    of each number is off by a factor of at most 1 +- 2^-32 (2^-64). It would take more than 2^64 numbers to see that.
    Where high - low is a power of two it is exact. Bits are equal on all devices.

    Args:
        length: items in the stream.
        low: smallest number.
        high: one more than the largest number.
        shape: item shape or item type.
        dtype: int64 by default; any integer dtype that holds them.
        seed: as for `uniform`.

    Raises:
        SpecError: if there are no numbers from `low` to `high` - 1, or the dtype cannot hold them.
    """
    result, item, key = _parse("integers", shape, dtype, INT64, seed)
    info = np.iinfo(result)
    try:
        least, last = operator.index(low), operator.index(high) - 1
    except TypeError:
        least, last = 0, -1
    if not info.min <= least <= last <= info.max:
        raise SpecError(
            f"cannot draw whole numbers of {result.name} between low and high",
            element="integers",
            site=user_site(),
            expected=f"{info.min} <= low < high <= {info.max + 1}",
            got=f"low={short_repr(low)}, high={short_repr(high)}",
        )
    op = SCALED if last - least < 2**32 else SCALED_WIDE
    drawn = _draw(op, item, length, UINT64, key, last - least)
    wide = UINT64 if result == UINT64 else INT64
    value = cast(drawn, wide)
    if least:
        value = add(value, Constant(least, wide))
    return Random.of(cast(value, result), "integers", key)


# -- arguments ------------------------------------------------------------------------------------


def _draw(op: Generator, shape: tuple[int, ...], length: int, dtype: np.dtype, seed: int, *more: int) -> Random:
    operands = tuple(Constant(number, UINT64) for number in (seed, *more))
    return Random.of(Compute(op, operands, generated_spec(op.name, dtype, shape, length)), op.name, seed)


def _parse(
    op: str, shape: ItemShape, dtype: npt.DTypeLike | None, default: np.dtype, seed: int | None
) -> tuple[np.dtype, tuple[int, ...], int]:
    """Return dtype, item shape and seed."""
    said = item_dtype(shape, dtype, op)
    try:
        parsed = default if said is None else parse_dtype(said)
    except TypeError as error:
        raise SpecError(str(error), element=op, site=user_site()) from error
    if (parsed.kind not in "iu") if default.kind == "i" else not is_float(parsed):
        raise SpecError(
            "cannot draw numbers in this dtype",
            element=op,
            site=user_site(),
            expected="an integer dtype" if default.kind == "i" else "a dtype of floats",
            got=parsed.name,
        )
    return parsed, parse_item_shape(shape, op), _parse_seed(op, seed)


def _parse_seed(op: str, seed: int | None) -> int:
    if seed is None:
        return secrets.randbits(SEED_BITS)
    try:
        parsed = -1 if isinstance(seed, bool | np.bool_) else operator.index(seed)
    except TypeError:
        parsed = -1
    if not 0 <= parsed < 1 << SEED_BITS:
        raise SpecError(
            "cannot take seed=",
            element=op,
            site=user_site(),
            expected="0 to 2**64 - 1, or None to have one drawn",
            got=short_repr(seed),
        )
    return parsed


def _number(op: str, what: str, number: Any, dtype: np.dtype) -> np.ndarray:
    """Return a parameter in the dtype.

    Raises:
        SpecError: if it is no number, or not finite there.
    """
    try:
        with np.errstate(over="ignore"):
            parsed = np.array(float(number)).astype(dtype)
    except (TypeError, ValueError, OverflowError):
        parsed = np.array(np.nan)
    if not np.isfinite(parsed.astype(FLOAT64)):
        raise SpecError(
            f"cannot take {what} in {dtype.name}",
            element=op,
            site=user_site(),
            expected="a finite number",
            got=short_repr(number),
        )
    return parsed
