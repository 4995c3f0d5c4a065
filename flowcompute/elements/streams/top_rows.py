"""The largest numbers along item axes: by reductions that one kernel holds, or from a sort.

One sweep finds each, another its place. Of many numbers a sort of the row is faster.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from flowcompute.elements.axes import concat
from flowcompute.elements.compute import Compute
from flowcompute.elements.math import equal, greater, isnan, less, logical_and, logical_or, where
from flowcompute.elements.math import max as max_along
from flowcompute.elements.math import min as min_along
from flowcompute.elements.search import argsort, sort
from flowcompute.elements.site import user_site
from flowcompute.errors import SpecError
from flowcompute.spec import BOOL, is_float

MOST = 16
"""More sweeps over a row than a sort of it would take."""


def top_of_rows(x: Any, k: int, axis: int, *, largest: bool = True) -> tuple[Compute, Compute]:
    """Find the k largest numbers along an item axis (any of a resident value), descending, and their int64 indices.

    Or the k smallest, ascending.

    Raises:
        SpecError: if there are fewer, or so many that their places do not fit into memory.
    """
    count = x.shape[axis]
    if k > count:
        raise SpecError(
            "cannot find so many numbers along an item axis",
            element="top_k",
            site=user_site(),
            expected=f"k <= {count}",
            got=f"k={k}",
        )
    if k > MOST or not largest:
        first = (*(slice(None),) * axis, slice(k))
        return sort(x, axis, descending=largest)[first], argsort(x, axis, descending=largest)[first]
    try:
        places = np.arange(count, dtype=np.int64).reshape(-1, *(1,) * (x.ndim - axis - 1))
    except MemoryError as error:
        raise SpecError(
            "cannot number the values along an axis: there is no memory for it",
            element="top_k",
            site=user_site(),
            expected="an axis whose int64 places fit into memory",
            got=f"{count} values",
        ) from error
    lowest = np.asarray(-math.inf if is_float(x.dtype) else 0 if x.dtype == BOOL else np.iinfo(x.dtype).min, x.dtype)
    values: list[Any] = []
    indices: list[Any] = []
    for _ in range(k):
        behind = _behind(x, places, values[-1], indices[-1]) if values else None
        best = max_along(x if behind is None else where(behind, x, lowest), axis, keepdims=True)
        here = _same(x, best) if behind is None else logical_and(behind, _same(x, best))
        values.append(best)
        indices.append(min_along(where(here, places, np.int64(count)), axis, keepdims=True))
    return concat(values, axis=axis), concat(indices, axis=axis)


def _same(x: Any, y: Any) -> Any:
    """Check whether numbers are equal; NaNs are."""
    return logical_or(equal(x, y), logical_and(isnan(x), isnan(y))) if is_float(x.dtype) else equal(x, y)


def _behind(x: Any, places: np.ndarray, value: Any, index: Any) -> Any:
    """Check which numbers come after one that was found: less, or equal and further on; NaN is the largest."""
    lower = less(x, value)
    if is_float(x.dtype):
        lower = logical_or(lower, logical_and(isnan(value), equal(x, x)))
    return logical_or(lower, logical_and(_same(x, value), greater(places, index)))
