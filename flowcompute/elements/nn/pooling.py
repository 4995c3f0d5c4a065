"""Pooling: the largest number, or the mean, of windows that slide over the last axes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from flowcompute.elements.arguments import flag
from flowcompute.elements.axes import pad
from flowcompute.elements.compute import Compute, Operand, as_element, cast
from flowcompute.elements.math import divide, max, sum
from flowcompute.elements.nn.windows import Sizes, slide, whole_numbers
from flowcompute.elements.site import public, user_site
from flowcompute.errors import SpecError
from flowcompute.spec import BFLOAT16, BOOL, FLOAT16, FLOAT32, FLOAT64, is_float


@dataclass(frozen=True)
class _Axis:
    """The windows along one axis of `size` numbers with `padding` on both sides."""

    size: int
    kernel: int
    stride: int
    padding: int
    dilation: int
    count: int

    @property
    def extra(self) -> int:
        """Numbers by which the last window reaches beyond the padding."""
        reach = (self.count - 1) * self.stride + (self.kernel - 1) * self.dilation + 1
        return reach - self.size - 2 * self.padding if reach > self.size + 2 * self.padding else 0

    def numbers(self, *, with_padding: bool) -> np.ndarray:
        """Count the numbers in each window, padding among them or not."""
        starts = np.arange(self.count)[:, None] * self.stride - self.padding
        places = starts + np.arange(self.kernel) * self.dilation
        edge = self.padding if with_padding else 0
        inside: np.ndarray = (places >= -edge) & (places < self.size + edge)
        return inside @ np.ones(self.kernel, np.int64)


@public
def max_pool1d(
    x: Operand,
    kernel: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    ceil_mode: bool = False,
) -> Compute:
    """Return the largest number of each window over the last axis, as of (N, C, L); NaN if there is one.

    Along n numbers stand (n + 2 padding - dilation (kernel - 1) - 1) // stride + 1 windows.
    Without padding it is one kernel, which reads windows where they lie; padded items are put
    together in a kernel before it.

    Args:
        x: a stream or a resident value; axes before the last stay as they are.
        kernel: numbers in a window.
        stride: from one window to the next; by default `kernel`.
        padding: numbers below all others, added on both sides; at most half of a window's reach.
        dilation: from one number of a window to its next.
        ceil_mode: the division above rounds up: a last window may reach beyond the padding,
            unless it would begin there.

    Returns:
        An element of the dtype of `x`.

    Raises:
        SpecError: if no window fits, the padding is too wide, or windows would run along the stream.
    """
    return _max_pool("max_pool1d", x, 1, kernel, stride, padding, dilation, ceil_mode)


@public
def max_pool2d(
    x: Operand,
    kernel: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    ceil_mode: bool = False,
) -> Compute:
    """Return the largest number of each window over the last two axes, as of (N, C, H, W); see `max_pool1d`.

    Sizes are one number for both axes, or one for each.
    """
    return _max_pool("max_pool2d", x, 2, kernel, stride, padding, dilation, ceil_mode)


@public
def avg_pool1d(
    x: Operand,
    kernel: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Compute:
    """Return the mean of each window over the last axis, as of (N, C, L); see `max_pool1d` for windows and errors.

    Args:
        x: a stream or a resident value; axes before the last stay as they are.
        kernel: numbers in a window.
        stride: from one window to the next; by default `kernel`.
        padding: zeros added on both sides; at most half of a window's reach.
        dilation: from one number of a window to its next.
        ceil_mode: whether a last window may reach beyond the padding.
        count_include_pad: whether the zeros of the padding are counted in the mean; what lies
            beyond the padding never is.

    Returns:
        An element of the dtype of a mean: of integers float64; half formats are computed in float32.
    """
    return _avg_pool("avg_pool1d", x, 1, kernel, stride, padding, dilation, ceil_mode, count_include_pad)


@public
def avg_pool2d(
    x: Operand,
    kernel: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Compute:
    """Return the mean of each window over the last two axes, as of (N, C, H, W); see `avg_pool1d`.

    Sizes are one number for both axes, or one for each.
    """
    return _avg_pool("avg_pool2d", x, 2, kernel, stride, padding, dilation, ceil_mode, count_include_pad)


def _max_pool(name: str, x: Operand, dims: int, *how: Any) -> Compute:
    element = as_element(x, name)
    axes = _axes(name, element, dims, *how)
    return max(_windows(name, element, axes, _lowest(element.dtype)), tuple(range(-dims, 0)))


def _avg_pool(name: str, x: Operand, dims: int, *how: Any) -> Compute:
    *places, with_padding = how
    with_padding = flag(name, "count_include_pad", with_padding)
    element = as_element(x, name)
    result = element.dtype if is_float(element.dtype) else FLOAT64
    wide = cast(element, FLOAT32 if result in (FLOAT16, BFLOAT16) else result)
    axes = _axes(name, wide, dims, *places)
    total = sum(_windows(name, wide, axes, 0), tuple(range(-dims, 0)))
    counts = np.ones((), np.int64)
    for axis in axes:
        counts = counts[..., None] * axis.numbers(with_padding=with_padding)
    if counts.size and counts.min() == counts.max():
        counts = counts.reshape(-1)[0]
    return cast(divide(total, counts.astype(wide.dtype)), result)  # type: ignore[return-value]


def _axes(
    name: str,
    element: Any,
    dims: int,
    kernel: Sizes,
    stride: Sizes | None,
    padding: Sizes,
    dilation: Sizes,
    ceil_mode: bool,
) -> list[_Axis]:
    """Return the windows along each of the last axes."""
    if len(element.spec.shape) < dims:
        raise SpecError(
            "cannot pool these axes",
            element=name,
            site=user_site(),
            expected=f"{dims} of them",
            got=str(element.spec),
            hint="fc.window makes windows along the stream",
        )
    sizes = whole_numbers(name, "kernel", kernel, dims)
    strides = sizes if stride is None else whole_numbers(name, "stride", stride, dims)
    edges = whole_numbers(name, "padding", padding, dims, least=0)
    spreads = whole_numbers(name, "dilation", dilation, dims)
    lasts = element.spec.shape[-dims:]
    return [_axis(name, *one, ceil_mode) for one in zip(lasts, sizes, strides, edges, spreads, strict=True)]


def _axis(name: str, size: int, kernel: int, stride: int, padding: int, dilation: int, ceil_mode: bool) -> _Axis:
    ceil_mode = flag(name, "ceil_mode", ceil_mode)
    reach = (kernel - 1) * dilation + 1
    if 2 * padding > reach:
        raise SpecError(
            "cannot pad by more than half of a window's reach",
            element=name,
            site=user_site(),
            expected=f"at most {reach // 2}",
            got=str(padding),
        )
    room = size + 2 * padding - reach
    count = (-(-room // stride) if ceil_mode else room // stride) + 1
    if ceil_mode and (count - 1) * stride >= size + padding:
        count -= 1
    if count < 1:
        raise SpecError(
            "cannot fit a window",
            element=name,
            site=user_site(),
            expected=f"at least {reach} numbers, padding included",
            got=str(size + 2 * padding),
        )
    return _Axis(size, kernel, stride, padding, dilation, count)


def _windows(name: str, element: Any, axes: Sequence[_Axis], fill: float) -> Any:
    """Return the windows, padded where they reach beyond the items."""
    before = len(element.spec.shape) - len(axes)
    widths = [(0, 0)] * before + [(axis.padding, axis.padding + axis.extra) for axis in axes]
    padded = pad(element, widths, constant_values=fill) if any(map(any, widths)) else element
    return slide(name, padded, tuple((before + at, a.kernel, a.stride, a.dilation) for at, a in enumerate(axes)))


def _lowest(dtype: np.dtype) -> float:
    """Return a number below which there is none."""
    if is_float(dtype):
        return -math.inf
    return 0 if dtype == BOOL else int(np.iinfo(dtype).min)
