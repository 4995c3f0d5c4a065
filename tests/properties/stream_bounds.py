"""What the oracle says of operations along the stream: their NumPy meaning, and the error that each may make."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from flowcompute.spec import BFLOAT16, BOOL, FLOAT16, FLOAT32, FLOAT64, INT64, UINT64, is_float
from tests.properties import bounds
from tests.properties.bounds import Bound

Pad = str | float | None

ROUNDINGS = 512
"""Between a number and a running sum: 64 in a run, the runs of a tile, and tiles."""


def moved(x: Bound, function: Callable[[np.ndarray], np.ndarray]) -> Bound:
    """What only puts numbers elsewhere, or leaves some out."""
    return Bound(function(x.value), function(x.error), x.dtype)


def joined(parts: list[Bound], dtype: np.dtype, function: Callable[[list[np.ndarray]], np.ndarray]) -> Bound:
    """Values put together in one dtype."""
    wide = [bounds.cast(part, dtype) for part in parts]
    return Bound(function([part.value for part in wide]), function([part.error for part in wide]), dtype)


def known(x: Bound) -> bool:
    """Whether the oracle knows every number exactly."""
    return not np.any(x.error > 0)


def single(dtype: np.dtype) -> np.dtype:
    """Half formats are computed in float32."""
    return FLOAT32 if dtype in (FLOAT16, BFLOAT16) else dtype


def summed(dtype: np.dtype) -> np.dtype:
    """The dtype in which numbers are added and multiplied up."""
    return INT64 if dtype.kind in "bi" else UINT64 if dtype.kind == "u" else single(dtype)


# -- neighbours -------------------------------------------------------------------------------


def windows(x: Bound, size: int, step: int, before: int, after: int, pad: Pad) -> Bound:
    """Neighbouring records; nothing is added to a stream without records."""

    def seen(array: np.ndarray, fill: Any) -> np.ndarray:
        if pad is not None and len(array):
            widths = [(before, after), *[(0, 0)] * (array.ndim - 1)]
            if isinstance(pad, str):
                array = np.pad(array, widths, mode=pad)  # type: ignore[call-overload]
            else:
                array = np.pad(array, widths, constant_values=fill)
        count = max(0, (len(array) - size) // step + 1)
        return array[np.arange(count)[:, None] * step + np.arange(size)]

    return Bound(seen(x.value, pad), seen(x.error, 0), x.dtype)


def runs(x: Bound, every: int, tail: str, fill: Any) -> Bound:
    """A stream in runs, the last one dropped or filled up."""

    def cut(array: np.ndarray, number: Any) -> np.ndarray:
        whole = len(array) // every * every
        rest = array[whole:]
        array = array[:whole]
        if len(rest) and tail == "pad":
            array = np.concatenate([array, rest, np.full((every - len(rest), *rest.shape[1:]), number, array.dtype)])
        return array.reshape(len(array) // every, every, *array.shape[1:])

    return Bound(cut(x.value, fill), cut(x.error, 0), x.dtype)


def differences(x: Bound) -> Bound:
    """Each record less the one before."""
    later, earlier = moved(x, lambda a: a[1:]), moved(x, lambda a: a[:-1])
    if x.dtype == BOOL:
        return bounds.binary("not_equal", np.not_equal, later, earlier, BOOL)
    return bounds.binary("subtract", np.subtract, later, earlier, x.dtype)


def filtered(seen: Bound, backwards: Bound, steps: float) -> Bound:
    """A FIR filter over windows: of numbers a sum of products, of items rounded products that are summed."""
    if seen.value.ndim == 2:
        wide = [bounds.cast(one, single(seen.dtype)) for one in (seen, backwards)]
        return bounds.products(
            *wide, lambda x, y: np.sum(x * y, axis=1, dtype=np.result_type(x, y)), single(seen.dtype), steps
        )
    lined_up = moved(backwards, lambda a: a.reshape(-1, *[1] * (seen.value.ndim - 2)))
    product = bounds.binary("multiply", np.multiply, seen, lined_up, seen.dtype)
    wide_dtype = summed(seen.dtype)
    return bounds.reduced("sum", bounds.cast(product, wide_dtype), (1,), False, wide_dtype, steps)


# -- scans ------------------------------------------------------------------------------------

_EXTREMES = {"cumulative_max": np.maximum, "cumulative_min": np.minimum}


def cumulative(name: str, x: Bound, axis: int) -> Bound:
    """A running result along an axis, in the dtype of `x`."""
    with np.errstate(all="ignore"):
        reach = np.maximum.accumulate(x.error, axis=axis)
        if name in _EXTREMES:
            value = _EXTREMES[name].accumulate(x.value, axis=axis)
            if not is_float(x.dtype):
                return bounds.certain(value, reach > 0, x.dtype)
            return bounds.rounded(value, reach, x.dtype, 0.0)
        running = np.cumsum if name == "cumulative_sum" else np.cumprod
        value = running(x.value, axis=axis, dtype=x.value.dtype)
        if not is_float(x.dtype):
            return bounds.certain(value, reach > 0, x.dtype)
        if name == "cumulative_sum":
            size = np.cumsum(np.abs(x.value), axis=axis)
            error = np.cumsum(x.error, axis=axis)
            return bounds.careful(value, error + 2 * ROUNDINGS * bounds.roundoff(x.dtype) * size, size + error, x.dtype)
        return _products(x, value, axis)


def _products(x: Bound, value: np.ndarray, axis: int) -> Bound:
    size = np.abs(x.value)
    most = np.cumprod(size + x.error, axis=axis)
    count = np.cumsum(np.ones(x.shape), axis=axis)
    error = most - np.abs(value) + most * np.expm1(2 * (count + 2) * bounds.roundoff(x.dtype))
    # Runs and tiles are multiplied apart: in some order all large factors may meet first, or all small ones.
    least = np.cumprod(np.where(size < 1, np.where(size > x.error, size - x.error, 1), 1), axis=axis)
    error = np.where((least < bounds.smallest(x.dtype)) & (value != 0), np.inf, error)
    largest = np.cumprod(np.maximum(size + x.error, 1), axis=axis)
    return bounds.careful(value, error, largest, x.dtype)


def decayed(x: Bound, alpha: float) -> Bound:
    """The moving average, in float64 as documented and then rounded."""
    value, error = x.value.astype(np.float64).copy(), x.error.astype(np.float64).copy()
    with np.errstate(all="ignore"):
        for t in range(1, len(value)):
            value[t] = (1 - alpha) * value[t - 1] + alpha * value[t]
            error[t] = (1 - alpha) * error[t - 1] + alpha * error[t]
        size = np.maximum.accumulate(np.abs(x.value.astype(np.float64)), axis=0)
        error = error + 16 * bounds.roundoff(FLOAT64) / alpha * size
        error = np.where(np.isnan(value) & (np.maximum.accumulate(x.error, axis=0) == 0), 0, error)
    result = x.dtype if is_float(x.dtype) else FLOAT64
    return bounds.rounded(value, np.where(np.isnan(error), np.inf, error), result)


# -- folds ------------------------------------------------------------------------------------


def segments(name: str, x: Bound, keys: np.ndarray, count: int) -> Bound:
    """A reduction of the records of each key."""
    with np.errstate(all="ignore"):
        if name in ("segment_min", "segment_max"):
            return _segment_extremes(name, x, keys, count)
        number = np.bincount(keys, minlength=count).reshape(count, *[1] * (x.value.ndim - 1))
        if not is_float(x.dtype):
            dtype = INT64 if x.dtype.kind in "bi" else UINT64
            total, unsure = _added(x.value.astype(dtype), keys, count), _added(x.error > 0, keys, count) > 0
            if name == "segment_sum":
                return bounds.certain(total, unsure, dtype)
            value = _added(x.value.astype(np.float64), keys, count) / number
            size = _added(np.abs(x.value.astype(np.float64)), keys, count) / number
            error = np.where(unsure, np.inf, len(keys) * bounds.roundoff(FLOAT64) * np.nan_to_num(size, nan=0))
            return bounds.rounded(value, error, FLOAT64)
        total, error = _added(x.value, keys, count), _added(x.error, keys, count)
        size = _added(np.abs(x.value), keys, count)
        error = error + len(keys) * bounds.roundoff(FLOAT64) * size
        if name == "segment_mean":
            total, error = total / number, np.where(number == 0, 0, error / np.maximum(number, 1))
        return bounds.careful(total, error, size + error, x.dtype)


def _added(values: np.ndarray, keys: np.ndarray, count: int) -> np.ndarray:
    total = np.zeros((count, *values.shape[1:]), np.int64 if values.dtype == BOOL else values.dtype)
    np.add.at(total, keys, values)
    return total


def _segment_extremes(name: str, x: Bound, keys: np.ndarray, count: int) -> Bound:
    lowest = name == "segment_max"
    if is_float(x.dtype):
        fill: Any = -np.inf if lowest else np.inf
    elif x.dtype == BOOL:
        fill = not lowest
    else:
        fill = np.iinfo(x.dtype).min if lowest else np.iinfo(x.dtype).max
    value = np.full((count, *x.shape[1:]), fill, x.value.dtype)
    (np.maximum if lowest else np.minimum).at(value, keys, x.value)
    error = np.zeros(value.shape)
    np.maximum.at(error, keys, x.error)
    if not is_float(x.dtype):
        return bounds.certain(value, error > 0, x.dtype)
    return bounds.rounded(value, error, x.dtype, 0.0)


def covariance(x: Bound, correction: float) -> Bound:
    """`np.cov` of columns; nothing is claimed where a number is not finite or the spread is lost in rounding."""
    rows = x.value.astype(np.float64)
    left = max(len(rows) - correction, 0)
    with np.errstate(all="ignore"):
        centred = rows - rows.mean(axis=0) if len(rows) else rows
        value = np.asarray(np.tensordot(centred, centred, (0, 0)) / left if rows.ndim > 1 else centred @ centred / left)
        size = np.max(np.abs(rows), axis=0, initial=0.0)
        pair = np.multiply.outer(size, size)
        off = np.max(x.error, axis=0, initial=0.0)
        error = 64 * (
            pair * bounds.roundoff(FLOAT64) * max(len(rows), 1) + 4 * np.add.outer(off * size.max(initial=0), off)
        )
        error = error * max(len(rows), 1) / left if left else np.full(value.shape, np.inf)
        error = np.where(np.isfinite(value) & np.isfinite(error), error, np.inf)
    return bounds.rounded(value, np.broadcast_to(error, value.shape), FLOAT64)


def largest(x: Bound, k: int) -> tuple[Bound, Bound]:
    """The k largest numbers and where they stand, NaN first, of equal ones the earliest."""
    assert known(x)
    numbers = x.value.tolist()
    order = sorted(range(len(numbers)), key=lambda i: (numbers[i] == numbers[i], -numbers[i]))
    places = np.array(order[:k], np.int64).reshape(k)
    return moved(x, lambda a: a[places]), bounds.exactly(places)
