"""Softmax and its logarithms: rows, or any axes, as shares of their sum.

Nothing overflows: the largest number is subtracted first. Where that cannot be, the answer is PyTorch's. `softmax` and
`log_softmax` are NaN throughout for rows with NaN or plus infinity, and for rows of nothing but minus infinity.
`logsumexp` gives NaN, plus infinity and minus infinity. One kernel each over item axes; over the stream (axis 0) as
many readings as there are folds before the result.
"""

from __future__ import annotations

from typing import Any

from flowcompute.elements.calls import public
from flowcompute.elements.compute import Compute, Operand, cast
from flowcompute.elements.creation import stop_gradient
from flowcompute.elements.math import Axis, divide, exp, isfinite, log, max, subtract, sum, where
from flowcompute.elements.nn.floating import as_floats, checked_axes


@public
def softmax(x: Operand, axis: Axis = -1) -> Compute:
    """Return exp(x) / sum(exp(x)) over `axis`, one or several; other axes apart.

    Computed as e / sum(e) with e = exp(x - max(x)). Of the shape of `x`, in a float dtype:
    half formats are computed in float32, integers in the float of NumPy's `exp`.

    Args:
        x: any element of numbers.
        axis: axes; the stream is axis 0.

    Raises:
        SpecError: for an axis out of range or without numbers.
    """
    (value,), result = as_floats("softmax", x)
    axes = checked_axes("softmax", value, axis)
    e = exp(below_largest(value, axes))
    return cast(divide(e, sum(e, axes, keepdims=True)), result)  # type: ignore[return-value]


def below_largest(value: Any, axes: tuple[int, ...]) -> Compute:
    """Subtract max(x) from x, so that it can be exponentiated without overflow.

    No result depends on what is subtracted, so that no gradient has to flow through it.
    """
    return subtract(value, stop_gradient(max(value, axes, keepdims=True)))


@public
def log_softmax(x: Operand, axis: Axis = -1) -> Compute:
    """Return log(softmax(x)) over `axis`, accurate also for small shares.

    Computed as y - log(sum(exp(y))) with y = x - max(x); shape, dtypes and errors as for `softmax`.
    """
    (value,), result = as_floats("log_softmax", x)
    axes = checked_axes("log_softmax", value, axis)
    y = below_largest(value, axes)
    return cast(subtract(y, log(sum(exp(y), axes, keepdims=True))), result)  # type: ignore[return-value]


@public
def logsumexp(x: Operand, axis: Axis = -1, *, keepdims: bool = False) -> Compute:
    """Return log(sum(exp(x))) over `axis`.

    Computed as m + log(sum(exp(x - m))) with m = max(x), or 0 where that is infinite or NaN.
    Dtypes and errors as for `softmax`.
    """
    (value,), result = as_floats("logsumexp", x)
    axes = checked_axes("logsumexp", value, axis)
    # Kept and dropped axes are two reductions of one sweep, so that what follows fuses in either form.
    total = log(sum(exp(subtract(value, _finite_max(value, axes, True))), axes, keepdims=keepdims))
    return cast(total + _finite_max(value, axes, keepdims), result)  # type: ignore[return-value]


def _finite_max(value: Any, axes: tuple[int, ...], keepdims: bool) -> Compute:
    largest = stop_gradient(max(value, axes, keepdims=keepdims))
    return where(isfinite(largest), largest, 0)
