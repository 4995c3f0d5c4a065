"""Pooling by the p-norm of each window."""

from __future__ import annotations

import math
from typing import Any

from flowcompute.elements.arguments import real
from flowcompute.elements.calls import public
from flowcompute.elements.compute import Compute, Operand, cast
from flowcompute.elements.math import abs, pow, sqrt, square, sum
from flowcompute.elements.nn.floating import as_floats
from flowcompute.elements.nn.pooling.pool_windows import Edges, pool_axes, pool_windows
from flowcompute.elements.nn.windows import Sizes
from flowcompute.elements.site import user_site
from flowcompute.errors import SpecError, short_repr


@public
def lp_pool1d(
    x: Operand,
    p: float,
    kernel: Sizes,
    stride: Sizes | None = None,
    padding: Edges = 0,
    dilation: Sizes = 1,
    ceil_mode: bool = False,
) -> Compute:
    """Return the p-norm of each window over the last axis, as of (N, C, L); see `max_pool1d` for windows and errors.

    Args:
        x: a stream or a resident value; axes before the last stay as they are.
        p: of the norm sum(|x|^p)^(1/p), over 0.
        kernel: numbers in a window.
        stride: from one window to the next; by default `kernel`.
        padding: zeros added on both sides, or `[(before, after)]`; less than a window's reach.
        dilation: from one number of a window to its next.
        ceil_mode: whether a last window may reach beyond the padding.

    Returns:
        An element of the dtype of `x`; of integers the float that NumPy's `exp` has. Half formats are computed in
        float32.

    Raises:
        SpecError: for another p, too, or one that is not finite.
    """
    return _lp_pool("lp_pool1d", x, p, 1, kernel, stride, padding, dilation, ceil_mode)


@public
def lp_pool2d(
    x: Operand,
    p: float,
    kernel: Sizes,
    stride: Sizes | None = None,
    padding: Edges = 0,
    dilation: Sizes = 1,
    ceil_mode: bool = False,
) -> Compute:
    """Return the p-norm of each window over the last two axes, as of (N, C, H, W); see `lp_pool1d`.

    Sizes are one number for all of these axes, or one for each.
    """
    return _lp_pool("lp_pool2d", x, p, 2, kernel, stride, padding, dilation, ceil_mode)


@public
def lp_pool3d(
    x: Operand,
    p: float,
    kernel: Sizes,
    stride: Sizes | None = None,
    padding: Edges = 0,
    dilation: Sizes = 1,
    ceil_mode: bool = False,
) -> Compute:
    """Return the p-norm of each window over the last three axes, as of (N, C, D, H, W); see `lp_pool1d`.

    Sizes are one number for all of these axes, or one for each.
    """
    return _lp_pool("lp_pool3d", x, p, 3, kernel, stride, padding, dilation, ceil_mode)


def _lp_pool(name: str, x: Operand, p: float, dims: int, *how: Any) -> Compute:
    power = real(name, "p", p)
    if not 0 < power < math.inf:
        raise SpecError("cannot take p=", element=name, site=user_site(), expected="over 0", got=short_repr(p))
    (wide,), result = as_floats(name, x)
    axes = pool_axes(name, wide, dims, *how)
    # Numbers become powers where windows are read, not one by one in memory; zeros of the padding stay zeros.
    sizes = abs(pool_windows(name, wide, axes, 0))
    inside = tuple(range(-dims, 0))
    if power == 1:
        made = sum(sizes, inside)
    elif power == 2:
        made = sqrt(sum(square(sizes), inside))
    else:
        made = pow(sum(pow(sizes, power), inside), 1 / power)
    return cast(made, result)  # type: ignore[return-value]
