"""Pooling by the mean of each window."""

from __future__ import annotations

from typing import Any

import numpy as np

from flowcompute.elements.arguments import flag
from flowcompute.elements.calls import public
from flowcompute.elements.compute import Compute, Operand, as_element, cast
from flowcompute.elements.math import divide, sum
from flowcompute.elements.nn.pooling.pool_windows import Edges, pool_axes, pool_windows
from flowcompute.elements.nn.windows import Sizes
from flowcompute.spec import BFLOAT16, FLOAT16, FLOAT32, FLOAT64, is_float


@public
def avg_pool1d(
    x: Operand,
    kernel: Sizes,
    stride: Sizes | None = None,
    padding: Edges = 0,
    dilation: Sizes = 1,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Compute:
    """Return the mean of each window over the last axis, as of (N, C, L); see `max_pool1d` for windows and errors.

    Args:
        x: a stream or a resident value; axes before the last stay as they are.
        kernel: numbers in a window.
        stride: from one window to the next; by default `kernel`.
        padding: zeros added on both sides, or `[(before, after)]`; less than a window's reach.
        dilation: from one number of a window to its next.
        ceil_mode: whether a last window may reach beyond the padding.
        count_include_pad: whether the zeros of the padding are counted in the mean; what lies
            beyond the padding never is.

    Returns:
        An element of the dtype of a mean: of integers float64; half formats are computed in float32.
    """
    return _avg_pool("avg_pool1d", x, 1, count_include_pad, kernel, stride, padding, dilation, ceil_mode)


@public
def avg_pool2d(
    x: Operand,
    kernel: Sizes,
    stride: Sizes | None = None,
    padding: Edges = 0,
    dilation: Sizes = 1,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Compute:
    """Return the mean of each window over the last two axes, as of (N, C, H, W); see `avg_pool1d`.

    Sizes are one number for all of these axes, or one for each.
    """
    return _avg_pool("avg_pool2d", x, 2, count_include_pad, kernel, stride, padding, dilation, ceil_mode)


@public
def avg_pool3d(
    x: Operand,
    kernel: Sizes,
    stride: Sizes | None = None,
    padding: Edges = 0,
    dilation: Sizes = 1,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Compute:
    """Return the mean of each window over the last three axes, as of (N, C, D, H, W); see `avg_pool1d`.

    Sizes are one number for all of these axes, or one for each.
    """
    return _avg_pool("avg_pool3d", x, 3, count_include_pad, kernel, stride, padding, dilation, ceil_mode)


def _avg_pool(name: str, x: Operand, dims: int, with_padding: bool, *how: Any) -> Compute:
    with_padding = flag(name, "count_include_pad", with_padding)
    element = as_element(x, name)
    result = element.dtype if is_float(element.dtype) else FLOAT64
    wide = cast(element, FLOAT32 if result in (FLOAT16, BFLOAT16) else result)
    axes = pool_axes(name, wide, dims, *how)
    total = sum(pool_windows(name, wide, axes, 0), tuple(range(-dims, 0)))
    counts = np.ones((), np.int64)
    for axis in axes:
        counts = counts[..., None] * axis.numbers(with_padding=with_padding)
    if counts.size and counts.min() == counts.max():
        counts = counts.reshape(-1)[0]
    return cast(divide(total, counts.astype(wide.dtype)), result)  # type: ignore[return-value]
