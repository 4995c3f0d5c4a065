"""The windows that pooling slides over the last axes: how many there are, and which numbers are in them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from flowcompute.elements.arguments import flag, is_whole, several
from flowcompute.elements.axes import pad
from flowcompute.elements.nn.windows import Sizes, slide, whole_numbers
from flowcompute.elements.site import user_site
from flowcompute.errors import SpecError, short_repr
from flowcompute.imports import dataclass

Edges = int | Sequence[int | Sequence[int]]
"""Numbers added on both sides of all axes, of each, or (before, after) of each."""


@dataclass(frozen=True)
class PoolAxis:
    """The windows along one axis of `size` numbers, with `before` and `after` added to it."""

    size: int
    kernel: int
    stride: int
    before: int
    after: int
    dilation: int
    count: int

    @property
    def extra(self) -> int:
        """Numbers by which the last window reaches beyond the padding."""
        reach = (self.count - 1) * self.stride + (self.kernel - 1) * self.dilation + 1
        return max(0, reach - self.size - self.before - self.after)

    @property
    def places(self) -> np.ndarray:
        """Places of each window's numbers along the axis; negative ones and those from `size` on are padding."""
        starts = np.arange(self.count)[:, None] * self.stride - self.before
        return np.asarray(starts + np.arange(self.kernel) * self.dilation)

    def numbers(self, *, with_padding: bool) -> np.ndarray:
        """Count the numbers in each window, padding among them or not."""
        least, most = (-self.before, self.size + self.after) if with_padding else (0, self.size)
        inside: np.ndarray = (self.places >= least) & (self.places < most)
        return inside @ np.ones(self.kernel, np.int64)


def pool_axes(
    name: str,
    element: Any,
    dims: int,
    kernel: Sizes,
    stride: Sizes | None,
    padding: Edges,
    dilation: Sizes,
    ceil_mode: bool,
) -> list[PoolAxis]:
    """Return the windows along each of the last axes.

    Raises:
        SpecError: if there are too few axes, no window fits, or one would hold nothing but padding.
    """
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
    edges = _edges(name, padding, dims)
    spreads = whole_numbers(name, "dilation", dilation, dims)
    lasts = element.spec.shape[-dims:]
    return [_axis(name, *one, ceil_mode) for one in zip(lasts, sizes, strides, edges, spreads, strict=True)]


def _edges(name: str, padding: Edges, dims: int) -> list[tuple[int, int]]:
    """Return the numbers that are added before and after each axis."""
    each: list[Any] = [padding] * dims
    if not is_whole(padding):
        each = several(name, "padding", padding, "numbers or pairs")
    if len(each) != dims:
        raise SpecError(
            "cannot take padding=",
            element=name,
            site=user_site(),
            expected=f"one number, or {dims} numbers or pairs",
            got=short_repr(padding),
        )
    both = (whole_numbers(name, "padding", one, 2, least=0) for one in each)
    return [(before, after) for before, after in both]


def _axis(
    name: str, size: int, kernel: int, stride: int, padding: tuple[int, int], dilation: int, ceil_mode: bool
) -> PoolAxis:
    ceil_mode = flag(name, "ceil_mode", ceil_mode)
    reach, (before, after) = (kernel - 1) * dilation + 1, padding
    if max(padding) >= reach:
        raise SpecError(
            "cannot pad so much that a window holds nothing else",
            element=name,
            site=user_site(),
            expected=f"less than {reach}, which a window reaches, on each side",
            got=f"{before} and {after}",
        )
    room = size + before + after - reach
    count = (-(-room // stride) if ceil_mode else room // stride) + 1
    if ceil_mode and (count - 1) * stride >= size + before:
        count -= 1
    if count < 1:
        raise SpecError(
            "cannot fit a window",
            element=name,
            site=user_site(),
            expected=f"at least {reach} numbers, padding included",
            got=str(size + before + after),
        )
    return PoolAxis(size, kernel, stride, before, after, dilation, count)


def pool_windows(name: str, element: Any, axes: Sequence[PoolAxis], fill: float) -> Any:
    """Return the windows, padded where they reach beyond the items; their own axes come last."""
    lead = len(element.spec.shape) - len(axes)
    widths = [(0, 0)] * lead + [(axis.before, axis.after + axis.extra) for axis in axes]
    padded = pad(element, widths, constant_values=fill) if any(map(any, widths)) else element
    return slide(name, padded, tuple((lead + at, a.kernel, a.stride, a.dilation) for at, a in enumerate(axes)))
