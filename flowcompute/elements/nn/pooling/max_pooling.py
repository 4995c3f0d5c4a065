"""Pooling by the largest number of each window, and where it stands."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from flowcompute.elements.arguments import flag
from flowcompute.elements.calls import public
from flowcompute.elements.compute import Operand, as_element
from flowcompute.elements.math import equal, isnan, logical_and, logical_or, max, min, where
from flowcompute.elements.nn.pooling.pool_windows import Edges, pool_axes, pool_windows
from flowcompute.elements.nn.windows import Sizes
from flowcompute.spec import BOOL, is_float


@public
def max_pool1d(
    x: Operand,
    kernel: Sizes,
    stride: Sizes | None = None,
    padding: Edges = 0,
    dilation: Sizes = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """Return the largest number of each window over the last axis, as of (N, C, L); NaN if there is one.

    Along n numbers stand (n + padding - dilation (kernel - 1) - 1) // stride + 1 windows, where padding counts both
    sides. Without padding it is one kernel, which reads windows where they lie; padded items are put together in a
    kernel before it.

    Args:
        x: a stream or a resident value; axes before the last stay as they are.
        kernel: numbers in a window.
        stride: from one window to the next; by default `kernel`.
        padding: numbers below all others, added on both sides, or `[(before, after)]`; less than a window's reach.
        dilation: from one number of a window to its next.
        ceil_mode: the division above rounds up: a last window may reach beyond the padding,
            unless it would begin there.
        return_indices: whether the places of the largest numbers are returned, too.

    Returns:
        An element of the dtype of `x`. With `return_indices` a pair of it and of its places along the axis, int64 from
        0 on. A place is that of the first of the largest, or of the NaNs. Over several axes they count in C order.

    Raises:
        SpecError: if no window fits, the padding is too wide, or windows would run along the stream.
    """
    return _max_pool("max_pool1d", x, 1, return_indices, kernel, stride, padding, dilation, ceil_mode)


@public
def max_pool2d(
    x: Operand,
    kernel: Sizes,
    stride: Sizes | None = None,
    padding: Edges = 0,
    dilation: Sizes = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """Return the largest number of each window over the last two axes, as of (N, C, H, W); see `max_pool1d`.

    Sizes are one number for all of these axes, or one for each.
    """
    return _max_pool("max_pool2d", x, 2, return_indices, kernel, stride, padding, dilation, ceil_mode)


@public
def max_pool3d(
    x: Operand,
    kernel: Sizes,
    stride: Sizes | None = None,
    padding: Edges = 0,
    dilation: Sizes = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """Return the largest number of each window over the last three axes, as of (N, C, D, H, W); see `max_pool1d`.

    Sizes are one number for all of these axes, or one for each.
    """
    return _max_pool("max_pool3d", x, 3, return_indices, kernel, stride, padding, dilation, ceil_mode)


def _max_pool(name: str, x: Operand, dims: int, return_indices: bool, *how: Any) -> Any:
    element = as_element(x, name)
    axes = pool_axes(name, element, dims, *how)
    seen = pool_windows(name, element, axes, _lowest(element.dtype))
    inside = tuple(range(-dims, 0))
    if not flag(name, "return_indices", return_indices):
        return max(seen, inside)
    best = max(seen, inside, keepdims=True)
    here = equal(seen, best)
    if is_float(element.dtype):
        here = logical_or(here, logical_and(isnan(seen), isnan(best)))
    # The place of each number of each window, the axes apart: small constants that a kernel adds up.
    places: Any = None
    known: Any = None
    for at, axis in enumerate(axes):
        step = math.prod(other.size for other in axes[at + 1 :])
        shape = [1] * (2 * dims)
        shape[at], shape[at + dims] = axis.count, axis.kernel
        along = axis.places.reshape(shape)
        in_items = (along >= 0) & (along < axis.size)
        places = along * step if places is None else places + along * step
        known = in_items if known is None else known & in_items
    # Padding is as low as the lowest numbers, and never where they stand.
    nowhere = np.int64(math.prod(axis.size for axis in axes))
    found = min(where(here, np.where(known, places, nowhere), nowhere), inside)
    return max(seen, inside), found


def _lowest(dtype: np.dtype) -> float:
    """Return a number below which there is none."""
    if is_float(dtype):
        return -math.inf
    return 0 if dtype == BOOL else int(np.iinfo(dtype).min)
