"""Statistical functions of the standard, and its tests of all numbers, by the reductions and scans of elements."""

from __future__ import annotations

from collections.abc import Callable
from math import prod as product
from typing import Any

import numpy as np

from flowcompute.array_api.array import LazyArray, binary, element_of, elements_of, reduced
from flowcompute.elements import axes, generated, math, streams
from flowcompute.elements.arguments import flag

Axis = int | tuple[int, ...] | None


def sum(x: LazyArray, /, *, axis: Axis = None, dtype: np.dtype | None = None, keepdims: bool = False) -> LazyArray:
    """Sum over `axis`; see `fc.sum`."""
    return reduced("sum", x, axis, keepdims, dtype=dtype)


def prod(x: LazyArray, /, *, axis: Axis = None, dtype: np.dtype | None = None, keepdims: bool = False) -> LazyArray:
    """Multiply over `axis`; see `fc.prod`."""
    return reduced("prod", x, axis, keepdims, dtype=dtype)


def max(x: LazyArray, /, *, axis: Axis = None, keepdims: bool = False) -> LazyArray:
    """Return the largest number over `axis`; see `fc.max`."""
    return reduced("max", x, axis, keepdims)


def min(x: LazyArray, /, *, axis: Axis = None, keepdims: bool = False) -> LazyArray:
    """Return the smallest number over `axis`; see `fc.min`."""
    return reduced("min", x, axis, keepdims)


def mean(x: LazyArray, /, *, axis: Axis = None, keepdims: bool = False) -> LazyArray:
    """Return the mean over `axis`; see `fc.mean`."""
    return reduced("mean", x, axis, keepdims)


def std(x: LazyArray, /, *, axis: Axis = None, correction: float = 0.0, keepdims: bool = False) -> LazyArray:
    """Return the square root of `var`; see `fc.std`."""
    return _spread("std", x, axis, correction, keepdims)


def var(x: LazyArray, /, *, axis: Axis = None, correction: float = 0.0, keepdims: bool = False) -> LazyArray:
    """Return the variance over `axis`; NaN where there are not more numbers than `correction`. See `fc.var`."""
    return _spread("var", x, axis, correction, keepdims)


def _spread(op: str, x: LazyArray, axis: Axis, correction: float, keepdims: bool) -> LazyArray:
    made = reduced(op, x, axis, keepdims, correction=correction)
    sizes = [x.shape[one] for one in math.normalise_axes(op, x, axis)]
    known = product(size for size in sizes if size is not None)
    if None not in sizes:
        # NumPy, as `fc.var`, divides by 0 for too few numbers, which is infinite.
        return made if known > correction else binary("multiply", made, np.nan)
    if correction <= 0:
        return made
    return LazyArray(math.where(_records(x.element) * known > correction, made.element, np.nan))


def _records(stream: Any) -> Any:
    """Return the number of records of a stream, which is known when it has run."""
    one_of_each = math.any(stream, tuple(range(1, stream.ndim))) if stream.ndim > 1 else math.isnan(stream)
    return streams.count_nonzero(math.logical_or(one_of_each, True))


def all(x: LazyArray, /, *, axis: Axis = None, keepdims: bool = False) -> LazyArray:
    """Test whether all numbers over `axis` are non-zero; see `fc.all`."""
    return reduced("all", x, axis, keepdims)


def any(x: LazyArray, /, *, axis: Axis = None, keepdims: bool = False) -> LazyArray:
    """Test whether any number over `axis` is non-zero; see `fc.any`."""
    return reduced("any", x, axis, keepdims)


def cumulative_sum(
    x: LazyArray, /, *, axis: int | None = None, dtype: np.dtype | None = None, include_initial: bool = False
) -> LazyArray:
    """Return running sums along `axis`, with a 0 before them if `include_initial`; see `fc.cumulative_sum`."""
    return _running("cumulative_sum", streams.cumulative_sum, 0, x, axis, dtype, include_initial)


def cumulative_prod(
    x: LazyArray, /, *, axis: int | None = None, dtype: np.dtype | None = None, include_initial: bool = False
) -> LazyArray:
    """Return running products along `axis`, with a 1 before them if `include_initial`; see `fc.cumulative_prod`."""
    return _running("cumulative_prod", streams.cumulative_prod, 1, x, axis, dtype, include_initial)


def _running(
    op: str,
    scan: Callable[..., Any],
    initial: int,
    x: LazyArray,
    axis: int | None,
    dtype: np.dtype | None,
    include_initial: bool,
) -> LazyArray:
    made = scan(element_of(op, x), axis, dtype=dtype)
    if not flag(op, "include_initial", include_initial):
        return LazyArray(made)
    (along,) = math.normalise_axes(op, made, 0 if axis is None else axis)
    if made.spec.is_stream and along == 0:
        before = math.astype(generated.index(1, made.spec.shape) * 0 + initial, made.dtype)
        return LazyArray(axes.concat([before, made], 0))
    widths = [(0, 0)] * len(made.spec.shape)
    widths[along - made.spec.is_stream] = (1, 0)
    return LazyArray(axes.pad(made, widths, constant_values=initial))


def diff(
    x: LazyArray, /, *, axis: int = -1, n: int = 1, prepend: LazyArray | None = None, append: LazyArray | None = None
) -> LazyArray:
    """Subtract neighbours along `axis`, `n` times; see `fc.diff`.

    Raises:
        SpecTypeError: if kinds of dtypes are mixed.
    """
    before, after = (None if end is None else elements_of("diff", x, end)[1] for end in (prepend, append))
    return LazyArray(axes.diff(element_of("diff", x), n, axis, prepend=before, append=after))
