"""Quantiles: of a stream from a sketch of its records, of items from their numbers in order."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from flowcompute.elements.arguments import array_of, flag, whole
from flowcompute.elements.axes import expand_dims, flatten, reshape, stack
from flowcompute.elements.calls import public
from flowcompute.elements.compute import Compute, Operand, as_element, cast
from flowcompute.elements.elementwise_functions import is_weak
from flowcompute.elements.math import equal, isnan, normalise_axes, where
from flowcompute.elements.op import MOST, KeptOp
from flowcompute.elements.search import sort
from flowcompute.elements.site import user_site
from flowcompute.elements.streams.statistics import MOST_BINS, fold_op, make_fold
from flowcompute.errors import SpecError, short_repr
from flowcompute.spec import BFLOAT16, FLOAT16, FLOAT32, FLOAT64, is_float

MOST_OF_ITEMS = 64
"""Quantiles of items at once: each is a value of its own."""


def _rebuild_quantile(kept: KeptOp) -> Compute:
    x, wanted = kept.stream(), kept.attrs.items("q", 1 << 20)
    shape, item = kept.spec.shape, x.spec.shape
    lead = shape[: len(shape) - len(item)]
    sound = all(type(one) is float for one in wanted) and math.prod(lead) == len(wanted) and (*lead, *item) == shape
    kept.require(sound, "as many floats as the result has numbers, for each number of an item")
    # What was asked for says its dtype, which is not kept.
    floats = [_quantile_dtype(x.dtype, other) for other in (None, FLOAT16, FLOAT32, FLOAT64)]
    kept.require(kept.spec.dtype in floats, f"a float dtype for {x.dtype.name}")
    places, _ = _places("quantile", np.array(wanted, FLOAT64).reshape(lead), x.dtype)
    return _sketched(x, places, kept.spec.dtype)


QUANTILE = fold_op("quantile", np.quantile, _rebuild_quantile)


@public
def quantile(x: Operand, q: npt.ArrayLike, axis: int | None = None, *, keepdims: bool = False) -> Any:
    """Return quantiles over an axis, by linear interpolation as NumPy's; NaN where a number is NaN, or without any.

    Of a stream up to 8192 records they are NumPy's. Beyond, they come from a sketch
    of sorted blocks of 8192 (Manku, Rajagopalan, Lindsay, 1998; made without chance). What is given for `q` stands, in
    the sorted records, at most `N * ceil(L / 2) / 16384` places from `q * (N - 1)`, where `L = floor(log2(N / 8192))`.
    That is 0.02 % of the records for a million and 0.05 % for a thousand million.

    The same records give the same bits, whatever the batches. The dtype is NumPy's, except that quantiles of integers
    are always floats.

    Args:
        x: any element.
        q: from 0 to 1.
        axis: 0 gives those of each column of a stream, from a sketch for each; another one those inside of items, whose
            numbers are sorted. None takes all numbers together.
        keepdims: whether the axis stays, with size 1.

    Returns:
        An element whose first axes are those of `q`.

    Raises:
        SpecError: for a `q` outside 0 to 1 or an axis out of range. Also for several `q` inside of the items of a
            stream, which would stand before its axis.
    """
    return _quantile("quantile", x, q, axis, keepdims)


@public
def median(x: Operand, axis: int | None = None, *, keepdims: bool = False) -> Any:
    """Return the median over an axis: `quantile(x, 0.5)`, whose arguments, errors and stated bound it has."""
    return _quantile("median", x, 0.5, axis, keepdims)


@public
def percentile(x: Operand, q: npt.ArrayLike, axis: int | None = None, *, keepdims: bool = False) -> Any:
    """Return percentiles over an axis: `quantile(x, q / 100)`, whose arguments, errors and stated bound it has.

    Args:
        x: any element.
        q: from 0 to 100.
        axis, keepdims: as of `quantile`.
    """
    wanted = array_of("percentile", "q", q, "numbers from 0 to 100", FLOAT64)
    return _quantile("percentile", x, float(wanted) / 100 if wanted.ndim == 0 else wanted / 100, axis, keepdims)


def _quantile(op: str, x: Operand, q: npt.ArrayLike, axis: int | None, keepdims: bool) -> Any:
    element: Any = as_element(x, op)
    kept = flag(op, "keepdims", keepdims)
    wanted, dtype = _places(op, q, element.dtype)
    if axis is None:
        flat = flatten(element) if element.spec.is_stream else reshape(element, (-1,))
        made = _over(op, flat, wanted, dtype, 0)
        return reshape(made, (*wanted.shape, *(1,) * element.ndim)) if kept else made
    (along,) = normalise_axes(op, element, whole(op, "axis", axis, -MOST))
    made = _over(op, element, wanted, dtype, along)
    return expand_dims(made, along + wanted.ndim) if kept else made


def _places(op: str, q: npt.ArrayLike, dtype: np.dtype) -> tuple[np.ndarray, np.dtype]:
    """Return the quantiles that are asked for, and the dtype that they have of numbers of `dtype`."""
    try:
        wanted = array_of(op, "q", q, "numbers from 0 to 1", FLOAT64, MOST_BINS)
        sound = wanted.size <= MOST_BINS and bool(((wanted >= 0) & (wanted <= 1)).all())
    except (TypeError, ValueError, OverflowError):
        sound = False
    if not sound:
        raise SpecError(
            "cannot take q=", element=op, site=user_site(), expected="numbers from 0 to 1", got=short_repr(q)
        )
    strong = not is_weak(q) and np.asarray(q).dtype.kind == "f"
    return wanted, _quantile_dtype(dtype, np.asarray(q).dtype if strong else None)


def _over(op: str, element: Any, wanted: np.ndarray, dtype: np.dtype, axis: int) -> Any:
    """Return quantiles over one axis."""
    if element.spec.is_stream and axis == 0:
        return _sketched(element, wanted, dtype)
    if wanted.ndim and (element.spec.is_stream or wanted.size > MOST_OF_ITEMS):
        raise SpecError(
            "cannot put quantiles before the stream" if element.spec.is_stream else "cannot take so many quantiles",
            element=op,
            site=user_site(),
            expected="one number for q=" if element.spec.is_stream else f"at most {MOST_OF_ITEMS} numbers for q=",
            got=short_repr(wanted),
            hint=f"fc.stack([fc.{op}(x, one, axis={axis}) for one in q], axis=1) puts them behind it",
        )
    if not element.shape[axis]:
        raise SpecError(
            "cannot find quantiles of an empty axis",
            element=op,
            site=user_site(),
            expected="an axis that holds numbers",
            got=f"axis {axis} of {element.spec}",
        )
    ascending = sort(element, axis)
    made = [cast(_between(ascending, float(one), axis, dtype), dtype) for one in wanted.reshape(-1)]
    return made[0] if wanted.ndim == 0 else reshape(stack(made), (*wanted.shape, *made[0].spec.shape))


def _sketched(element: Any, wanted: np.ndarray, dtype: np.dtype) -> Compute:
    numbers = tuple(float(one) for one in wanted.reshape(-1))
    return make_fold(QUANTILE, (element,), (*wanted.shape, *element.spec.shape), dtype, q=numbers)


def _between(ascending: Any, q: float, axis: int, dtype: np.dtype) -> Any:
    """Interpolate between two numbers of an axis in order, in the order of NumPy's operations."""
    lead = (slice(None),) * axis
    last = ascending.shape[axis] - 1
    below = math.floor(q * last)
    weight = q * last - below
    inner = FLOAT32 if dtype in (FLOAT16, BFLOAT16) else dtype
    low, high = (cast(ascending[(*lead, place)], inner) for place in (below, min(below + 1, last)))
    gap = high - low
    between = low + gap * weight if weight < 0.5 else high - gap * (1 - weight)
    made = where(equal(low, high), low, between) if weight else low
    # NaN is the last of all numbers.
    return where(isnan(end), math.nan, made) if is_float((end := ascending[(*lead, last)]).dtype) else made


def _quantile_dtype(dtype: np.dtype, asked: np.dtype | None) -> np.dtype:
    """Return the dtype of quantiles of numbers of `dtype`; `asked` is the float dtype of `q`, if it has one."""
    if asked is None:
        return dtype if is_float(dtype) else FLOAT64
    return np.result_type(FLOAT32 if dtype == BFLOAT16 else dtype, asked)
