"""An oracle apart from the project: whole arrays in float64 with a bound of the error that any backend may make.

A `Bound` is the value that exact arithmetic gives and, for each number, how far a result may
lie from it. A number whose value hangs on a rounding (a comparison of close numbers, a cast
at the edge of an integer) has an infinite error: nothing is claimed of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import ml_dtypes
import numpy as np

from flowcompute.spec import BFLOAT16, BOOL, FLOAT16, is_float

# Largest number, unit roundoff and smallest subnormal of each float dtype.
_FORMATS = {
    "float16": (65504.0, 2.0**-11, 2.0**-24),
    "bfloat16": (float(ml_dtypes.finfo(BFLOAT16).max), 2.0**-8, 2.0**-133),
    "float32": (float(np.finfo("f4").max), 2.0**-24, 2.0**-149),
    # The oracle itself rounds in float64, so what it says of float64 is twice as uncertain.
    "float64": (float(np.finfo("f8").max), 2.0**-52, 2.0**-1074),
}


def roundoff(dtype: np.dtype) -> float:
    """The relative error that one rounding to a dtype may make, as the oracle counts it."""
    return _FORMATS[dtype.name][1]


def smallest(dtype: np.dtype) -> float:
    """Below this a number of the dtype has lost digits."""
    _, unit, tiny = _FORMATS[dtype.name]
    return tiny / unit


@dataclass(frozen=True)
class Bound:
    """Values (float64 for floats, their own dtype for integers and bools) and bounds of their error."""

    value: np.ndarray
    error: np.ndarray
    dtype: np.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        return self.value.shape

    @property
    def low(self) -> np.ndarray:
        return self.value - self.error

    @property
    def high(self) -> np.ndarray:
        return self.value + self.error

    def holds(self, result: np.ndarray) -> np.ndarray:
        """For each number of a result whether it may be right."""
        unknown = np.isinf(self.error)
        if not is_float(self.dtype):
            return unknown | (result == self.value)
        wide = result.astype(np.float64)
        with np.errstate(all="ignore"):
            near = np.abs(wide - self.value) <= self.error
        return unknown | near | (wide == self.value) | (np.isnan(wide) & np.isnan(self.value))


def exactly(array: np.ndarray) -> Bound:
    """The numbers of an array, without error."""
    value = array.astype(np.float64) if is_float(array.dtype) else array
    return Bound(value, np.zeros(array.shape), array.dtype)


def rounded(value: np.ndarray, error: np.ndarray, dtype: np.dtype, ulps: float = 1.0) -> Bound:
    """A float result known to `error` before it is rounded to `dtype` with `ulps` units in the last place."""
    largest, unit, tiny = _FORMATS[dtype.name]
    with np.errstate(all="ignore"):
        size = np.abs(value)
        total = error + 2 * ulps * (unit * np.where(np.isfinite(size), size, 0) + tiny)
        total = np.where(np.isnan(total), np.inf, total)
        # Exact infinities and NaNs come from exact operands; near the largest number either side is right.
        surely = size - total > largest * (1 + unit)
        maybe = size + total > largest
        total = np.where(
            np.isfinite(value), np.where(surely, 0, np.where(maybe, np.inf, total)), np.where(error > 0, np.inf, 0)
        )
        value = np.where(surely & np.isfinite(value), np.copysign(np.inf, value), value)
    return Bound(np.asarray(value, np.float64), np.asarray(total), dtype)


def certain(value: np.ndarray, unknown: np.ndarray, dtype: np.dtype) -> Bound:
    """An integer or bool result, nothing being claimed where `unknown`."""
    value, unknown = np.broadcast_arrays(np.asarray(value), unknown)
    return Bound(value.astype(dtype), np.where(unknown, np.inf, 0.0), dtype)


def _unsure(*operands: Bound) -> np.ndarray:
    """Where any operand is not exact."""
    return np.asarray(np.any(np.broadcast_arrays(*(operand.error > 0 for operand in operands)), axis=0))


# -- element-wise -----------------------------------------------------------------------------


def cast(x: Bound, dtype: np.dtype) -> Bound:
    """Casts saturate from floats to integers, and NaN gives 0."""
    if x.dtype == dtype:
        return x
    if is_float(dtype):
        return rounded(x.value.astype(np.float64), x.error, dtype)
    if dtype == BOOL:
        with np.errstate(invalid="ignore"):
            return certain(x.value != 0, (x.error > 0) & ~(np.abs(x.value) > x.error), dtype)
    if not is_float(x.dtype):
        return certain(x.value.astype(dtype), x.error > 0, dtype)
    with np.errstate(all="ignore"):
        low, middle, high = (saturated(side, dtype) for side in (x.low, x.value, x.high))
    return certain(middle, (x.error > 0) & (low != high), dtype)


def saturated(value: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Floats towards zero, limited to the integers there are; NaN is 0."""
    info = np.iinfo(dtype)

    def one(number: float) -> int:
        if math.isnan(number):
            return 0
        if math.isinf(number):
            return int(info.max) if number > 0 else int(info.min)
        return min(max(int(number), int(info.min)), int(info.max))

    flat = [one(float(number)) for number in value.reshape(-1)]
    return np.asarray(flat, dtype).reshape(value.shape)


def unary(name: str, function: Callable[[np.ndarray], np.ndarray], x: Bound, result: np.dtype, ulps: float) -> Bound:
    """A function of one number: continuous ones widen by their slope, others are unsure where the operand is."""
    if name in _STEPS or not is_float(x.dtype):
        return _stepping(function, x, result)
    with np.errstate(all="ignore"):
        value = function(x.value)
        sides = [function(x.value + step * x.error) for step in (-1.0, -0.5, 0.5, 1.0)]
        spread = np.max([np.abs(side - value) for side in sides], axis=0)
        spread = np.where(x.error > 0, np.where(np.isfinite(spread), spread, np.inf), 0)
        if name in ("sin", "cos"):
            spread = np.where(x.error > 0, np.minimum(np.where(np.isnan(x.error), np.inf, x.error), 2), 0)
        # sinh(1e-8) and its like: what is close to the operand keeps its relative error.
    return rounded(value, 2 * spread, result, max(ulps, 1.0) if name not in _EXACT else 0.0)


_STEPS = {"sign", "floor", "ceil", "round", "trunc", "isnan", "isinf", "isfinite", "signbit", "logical_not"}
_EXACT = {"negative", "abs", "positive"}


def _stepping(function: Callable[[np.ndarray], np.ndarray], x: Bound, result: np.dtype) -> Bound:
    with np.errstate(all="ignore"):
        value = np.asarray(function(x.value))
    unknown = x.error > 0
    if is_float(result):
        return Bound(value.astype(np.float64), np.where(unknown, np.inf, 0.0), result)
    return certain(value, unknown, result)


def binary(name: str, function: Callable[..., np.ndarray], a: Bound, b: Bound, result: np.dtype) -> Bound:
    """Arithmetic and comparisons of two numbers of one dtype."""
    with np.errstate(all="ignore"):
        if not is_float(a.dtype):
            return (
                certain(function(a.value, b.value), _unsure(a, b), result)
                if not is_float(result)
                else rounded(
                    function(a.value.astype(np.float64), b.value.astype(np.float64)),
                    np.where(_unsure(a, b), np.inf, 0.0),
                    result,
                )
            )
        value = np.asarray(function(a.value, b.value))
        if name in _COMPARE:
            gap = np.abs(a.value - b.value) <= a.error + b.error
            return certain(value, _unsure(a, b) & (gap | ~np.isfinite(a.value - b.value)), result)
        error = _spread(name, a, b, value)
    return rounded(value, error, result, 0.0 if name in ("maximum", "minimum") else 1.0)


_COMPARE = {"less", "less_equal", "greater", "greater_equal", "equal", "not_equal"}


def _spread(name: str, a: Bound, b: Bound, value: np.ndarray) -> np.ndarray:
    sure = ~_unsure(a, b)
    if name in ("add", "subtract", "maximum", "minimum"):
        error = a.error + b.error
    elif name == "multiply":
        error = np.abs(a.value) * b.error + np.abs(b.value) * a.error + a.error * b.error
    elif name == "divide":
        room = np.abs(b.value) - b.error
        error = np.where(room > 0, (a.error + np.abs(value) * b.error) / np.where(room > 0, room, 1), np.inf)
    else:
        error = np.full(np.shape(value), np.inf)
    return np.asarray(np.where(sure, 0.0, np.where(np.isnan(error), np.inf, error)))


def choose(condition: Bound, yes: Bound, no: Bound) -> Bound:
    """`where`."""
    value = np.where(condition.value, yes.value, no.value)
    error = np.where(condition.error > 0, np.inf, np.where(condition.value, yes.error, no.error))
    return Bound(value, error, yes.dtype)


# -- reductions -------------------------------------------------------------------------------


def reduced(
    name: str, x: Bound, axes: tuple[int, ...], keepdims: bool, result: np.dtype, steps: float, correction: float = 0
) -> Bound:
    """A reduction in which at most `steps` roundings lie between a number and the result."""
    if name in ("argmin", "argmax"):
        return _arg(name, x, axes, keepdims)
    if name in ("any", "all"):
        value = getattr(np, name)(x.value, axis=axes, keepdims=keepdims)
        return certain(value, np.any(x.error > 0, axis=axes, keepdims=keepdims), result)
    with np.errstate(all="ignore"):
        return _arithmetic(name, x, axes, keepdims, result, steps, correction)


def _arithmetic(
    name: str, x: Bound, axes: tuple[int, ...], keepdims: bool, result: np.dtype, steps: float, correction: float
) -> Bound:
    over = {"axis": axes, "keepdims": keepdims}
    unsure = np.any(x.error > 0, **over)
    if not is_float(x.dtype):
        value = getattr(np, name)(x.value.astype(result) if name in ("sum", "prod") else x.value, **over)
        return certain(value, unsure, result)
    unit = _FORMATS[x.dtype.name][1]
    count = math.prod(x.shape[axis] for axis in axes)
    if name in ("min", "max"):
        return rounded(getattr(np, name)(x.value, **over), np.where(unsure, np.max(x.error, **over), 0), result, 0.0)
    if name == "prod":
        value = np.prod(x.value, **over)
        size = np.abs(x.value)
        most = np.prod(size + x.error, **over)
        error = most - np.abs(value) + most * np.expm1((count + 2) * 2 * unit)
        # In some order the product of all large factors may come first, or that of all small ones.
        least = np.prod(np.where(size < 1, np.where(size > x.error, size - x.error, 1), 1), **over)
        error = np.where((least < _FORMATS[x.dtype.name][2] / unit) & (value != 0), np.inf, error)
        return careful(value, error, np.prod(np.maximum(size + x.error, 1), **over), result)
    error = np.sum(x.error, **over)
    size = np.sum(np.abs(x.value), **over)
    if name == "sum":
        return careful(np.sum(x.value, **over), error + 2 * steps * unit * size, size + error, result)
    if name == "mean":
        value = np.sum(x.value, **over) / count if count else np.full(np.shape(size), np.nan)
        return careful(value, (error + 2 * steps * unit * size) / max(count, 1), size + error, result)
    assert name == "var"
    value = np.var(x.value, **over) * count / max(count - correction, 0) if count else np.full(np.shape(size), np.nan)
    if count - correction <= 0:
        return Bound(np.asarray(value), np.full(np.shape(value), np.inf), result)
    reach = (np.max(x.value, **over) - np.min(x.value, **over)) if count else np.zeros(np.shape(size))
    largest = np.max(np.abs(x.value), **over) if count else reach
    farthest = np.max(x.error, **over) if count else reach
    off = farthest + 2 * steps * unit * largest
    error = (steps * 4 * unit * reach * reach + 4 * reach * off + 4 * off * off) * count / (count - correction)
    return careful(value, error, size + reach * reach * count, result)


def careful(value: np.ndarray, error: np.ndarray, partial: np.ndarray, result: np.dtype) -> Bound:
    """A float result; nothing is claimed where a partial one may overflow, or infinities meet in an order of their own."""
    largest = _FORMATS["float32" if result in (FLOAT16, BFLOAT16) else result.name][0]
    error = np.where((np.abs(partial) < largest) | np.isnan(value), np.nan_to_num(error, nan=np.inf), np.inf)
    error = np.where(np.isnan(value), 0, error)
    return rounded(value, error, result)


def _arg(name: str, x: Bound, axes: tuple[int, ...], keepdims: bool) -> Bound:
    kept = [axis for axis in range(x.value.ndim) if axis not in axes]
    lead = tuple(x.shape[axis] for axis in kept)
    row = math.prod(x.shape[axis] for axis in axes)
    value, error = (part.transpose(*kept, *axes).reshape(*lead, row) for part in (x.value, x.error))
    index = getattr(np, name)(value, axis=-1)
    chosen = np.take_along_axis(value, index[..., None], -1)
    unknown = np.any(error > 0, axis=-1)
    if is_float(x.dtype) and unknown.any():
        reach = error + np.take_along_axis(error, index[..., None], -1)
        with np.errstate(all="ignore"):
            close = (np.abs(value - chosen) <= reach) | (value == chosen) | ~np.isfinite(value)
        rivals = close & (np.arange(value.shape[-1]) != index[..., None])
        unknown &= np.any(rivals, axis=-1)
    if keepdims:
        index, unknown = (np.expand_dims(part, tuple(axes)) for part in (index, unknown))
    return certain(index, unknown, np.dtype(np.int64))


def products(
    a: Bound, b: Bound, contract: Callable[[np.ndarray, np.ndarray], np.ndarray], result: np.dtype, steps: float
) -> Bound:
    """A sum of products, `contract` being linear in both operands."""
    if not is_float(a.dtype):
        unsure = contract((a.error > 0).astype(np.float64), np.ones(b.shape)) + contract(
            np.ones(a.shape), (b.error > 0).astype(np.float64)
        )
        return certain(contract(a.value, b.value), unsure > 0, result)
    unit = _FORMATS[a.dtype.name][1]
    with np.errstate(all="ignore"):
        value = contract(a.value, b.value)
        size = contract(np.abs(a.value), np.abs(b.value))
        error = contract(np.abs(a.value), b.error) + contract(a.error, np.abs(b.value)) + contract(a.error, b.error)
        exact = contract((a.error > 0).astype(np.float64), np.ones(b.shape)) + contract(
            np.ones(a.shape), (b.error > 0).astype(np.float64)
        )
        error = np.where(exact > 0, error, 0)
        return careful(value, np.where(np.isnan(error), np.inf, error) + 2 * steps * unit * size, size + error, result)
