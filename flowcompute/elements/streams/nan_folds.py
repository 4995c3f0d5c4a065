"""Reductions that leave NaN out, made of those that do not."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from flowcompute.elements.arguments import meant, real
from flowcompute.elements.calls import public
from flowcompute.elements.compute import Compute, Operand, as_element, cast
from flowcompute.elements.math import (
    Axis,
    all,
    astype,
    divide,
    isnan,
    logical_not,
    max,
    mean,
    min,
    sqrt,
    square,
    std,
    subtract,
    sum,
    var,
    where,
)
from flowcompute.elements.streams.statistics import count_nonzero
from flowcompute.spec import BFLOAT16, FLOAT16, FLOAT32, is_float


@public
def nansum(x: Operand, axis: Axis = None, *, dtype: npt.DTypeLike | None = None, keepdims: bool = False) -> Compute:
    """Sum over `axis` without NaN; 0 where there is nothing else. Arguments, dtypes and errors are those of `sum`."""
    return sum(_without(as_element(x, "nansum"), 0), axis, dtype=dtype, keepdims=keepdims)


@public
def nanmin(x: Operand, axis: Axis = None, *, keepdims: bool = False) -> Compute:
    """Return the smallest number over `axis` that is no NaN; NaN where there is none. As `min` otherwise."""
    element = as_element(x, "nanmin")
    return _or_nan(element, min(_without(element, math.inf), axis, keepdims=keepdims), axis, keepdims)


@public
def nanmax(x: Operand, axis: Axis = None, *, keepdims: bool = False) -> Compute:
    """Return the largest number over `axis` that is no NaN; NaN where there is none. As `max` otherwise."""
    element = as_element(x, "nanmax")
    return _or_nan(element, max(_without(element, -math.inf), axis, keepdims=keepdims), axis, keepdims)


@public
def nanmean(x: Operand, axis: Axis = None, *, keepdims: bool = False) -> Compute:
    """Return the mean over `axis` without NaN; NaN where there is nothing else.

    Arguments, dtypes and errors are those of `mean`.
    """
    element = as_element(x, "nanmean")
    if not is_float(element.dtype):
        return mean(element, axis, keepdims=keepdims)
    return cast(_nan_mean(_wide(element), axis, keepdims), element.dtype)  # type: ignore[return-value]


@public
@meant(ddof="correction")
def nanvar(x: Operand, axis: Axis = None, *, correction: float = 0, keepdims: bool = False) -> Compute:
    """Return the variance over `axis` without NaN, divided by the count of the others - `correction`.

    NaN where that is not positive. Along the stream `x` is read twice: first for the means.
    Arguments, dtypes and errors are those of `var`.
    """
    element = as_element(x, "nanvar")
    if not is_float(element.dtype):
        return var(element, axis, correction=correction, keepdims=keepdims)
    return cast(_nan_var(element, axis, correction, keepdims), element.dtype)  # type: ignore[return-value]


@public
@meant(ddof="correction")
def nanstd(x: Operand, axis: Axis = None, *, correction: float = 0, keepdims: bool = False) -> Compute:
    """Return the square root of `nanvar`, whose arguments, dtypes and errors it has."""
    element = as_element(x, "nanstd")
    if not is_float(element.dtype):
        return std(element, axis, correction=correction, keepdims=keepdims)
    return cast(sqrt(_nan_var(element, axis, correction, keepdims)), element.dtype)  # type: ignore[return-value]


def _wide(element: Any) -> Any:
    """Return the value in the dtype in which means are computed."""
    return cast(element, FLOAT32) if element.dtype in (FLOAT16, BFLOAT16) else element


def _without(element: Any, number: float) -> Any:
    """Return the value with a number in the place of each NaN."""
    return where(isnan(element), number, element) if is_float(element.dtype) else element


def _or_nan(element: Any, made: Compute, axis: Axis, keepdims: bool) -> Compute:
    if not is_float(element.dtype):
        return made
    return where(all(isnan(element), axis, keepdims=keepdims), math.nan, made)


def _known(element: Any, axis: Axis, keepdims: bool) -> Any:
    """Count the numbers over `axis` that are no NaN, in the dtype of the value."""
    return astype(count_nonzero(logical_not(isnan(element)), axis, keepdims=keepdims), element.dtype)


def _nan_mean(element: Any, axis: Axis, keepdims: bool) -> Any:
    total = sum(_without(element, 0), axis, keepdims=keepdims)
    return divide(total, _known(element, axis, keepdims))


def _nan_var(element: Any, axis: Axis, correction: float, keepdims: bool) -> Any:
    wide = _wide(element)
    # The NaN between an infinity and its mean counts. No NaN is squared, so that gradients have none.
    apart = square(where(isnan(wide), 0, subtract(wide, _nan_mean(wide, axis, True))))
    count = subtract(_known(wide, axis, keepdims), real("nanvar", "correction", correction))
    spread = divide(sum(apart, axis, keepdims=keepdims), count)
    return where(count > 0, spread, np.nan)
