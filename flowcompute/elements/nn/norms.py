"""Normalisations: numbers less their mean over some axes, divided by their spread there.

Each is one kernel over item axes. Half formats are computed in float32 and rounded once;
integers as float64 or the float of NumPy's `exp`. The variance is that of differences from the
mean (two sweeps over the row), which does not cancel.
"""

from __future__ import annotations

from typing import Any

from flowcompute.elements.arguments import real, whole
from flowcompute.elements.axes import reshape
from flowcompute.elements.calls import public
from flowcompute.elements.compute import Compute, Operand, as_element, cast
from flowcompute.elements.math import Axis, divide, mean, multiply, sqrt, square, subtract
from flowcompute.elements.nn.floating import as_floats, checked_axes
from flowcompute.elements.site import user_site
from flowcompute.errors import SpecError
from flowcompute.spec import format_shape


@public
def layer_norm(
    x: Operand, axis: Axis = -1, eps: float = 1e-5, weight: Operand | None = None, bias: Operand | None = None
) -> Compute:
    """Return (x - mean) / sqrt(variance + eps) over `axis`, times `weight`, plus `bias`.

    Ba, Kiros and Hinton, "Layer normalization" (2016).

    Args:
        x: any element. A stream may be normalised along axis 0, in several readings.
        axis: one axis or several; mean and variance are over all of them together.
        eps: added to the variance, whose divisor is the count.
        weight: resident, of the sizes of `axis` in their order in `x`; likewise `bias`.

    Returns:
        An element of the shape of `x` in the dtype that `x`, `weight` and `bias` promote to.

    Raises:
        SpecError: for an axis out of range or without numbers, or weights of another shape.
    """
    value, scale, shift, result = _operands("layer_norm", x, weight, bias)
    axes, eps = checked_axes("layer_norm", value, axis), real("layer_norm", "eps", eps)
    normal = _normalised(value, axes, eps)
    return _affine("layer_norm", normal, scale, shift, axes, result)


@public
def rms_norm(x: Operand, axis: Axis = -1, eps: float = 1e-5, weight: Operand | None = None) -> Compute:
    """Return x / sqrt(mean(x^2) + eps) over `axis`, times `weight`; arguments, dtypes and errors as of `layer_norm`.

    Zhang and Sennrich, "Root mean square layer normalization" (2019).
    """
    value, scale, _, result = _operands("rms_norm", x, weight, None)
    axes, eps = checked_axes("rms_norm", value, axis), real("rms_norm", "eps", eps)
    normal = divide(value, sqrt(mean(square(value), axes, keepdims=True) + eps))
    return _affine("rms_norm", normal, scale, None, axes, result)


@public
def instance_norm(x: Operand, eps: float = 1e-5, weight: Operand | None = None, bias: Operand | None = None) -> Compute:
    """Normalise each channel of each item of (N, C, *sizes) on its own, over all sizes.

    Ulyanov, Vedaldi and Lempitsky, "Instance normalization" (2016).

    Args:
        x: a stream of items (C, *sizes), or a resident value (N, C, *sizes).
        eps: added to the variance.
        weight: resident, one number a channel; likewise `bias`.

    Raises:
        SpecError: if `x` has fewer than three axes or no numbers in a channel, or weights are not (C,).
    """
    value, scale, shift, result = _operands("instance_norm", x, weight, bias)
    _check_channels("instance_norm", value, 3)
    eps = real("instance_norm", "eps", eps)
    normal = _normalised(value, checked_axes("instance_norm", value, tuple(range(2, value.ndim))), eps)
    return _affine("instance_norm", normal, scale, shift, (1,), result)


@public
def group_norm(
    x: Operand, groups: int, eps: float = 1e-5, weight: Operand | None = None, bias: Operand | None = None
) -> Compute:
    """Normalise channels of each item of (N, C, *sizes) in `groups` of C / groups neighbours.

    Wu and He, "Group normalization" (2018).

    Args:
        x: a stream of items (C, *sizes), or a resident value (N, C, *sizes).
        groups: a divisor of C.
        eps: added to the variance.
        weight: resident, one number a channel; likewise `bias`.

    Raises:
        SpecError: if `groups` does not divide C, groups are empty, or weights are not (C,).
    """
    value, scale, shift, result = _operands("group_norm", x, weight, bias)
    _check_channels("group_norm", value, 2)
    eps = real("group_norm", "eps", eps)
    channels, sizes = value.shape[1], value.shape[2:]
    count = whole("group_norm", "groups", groups, 1)
    if channels % count:
        raise SpecError(
            "cannot divide the channels into groups",
            element="group_norm",
            site=user_site(),
            expected=f"a divisor of {channels}",
            got=str(groups),
        )
    lead = -1 if value.spec.is_stream else value.shape[0]
    grouped = reshape(value, (lead, count, channels // count, *sizes))
    normal = _normalised(grouped, checked_axes("group_norm", grouped, tuple(range(2, grouped.ndim))), eps)
    parts = [
        None if one is None else reshape(_per_axis("group_norm", one, value, (1,)), (count, channels // count))
        for one in (scale, shift)
    ]
    # Weights join before the groups are flat again: what follows a change of shape is another kernel.
    return reshape(_affine("group_norm", normal, parts[0], parts[1], (1, 2), result), (lead, channels, *sizes))  # type: ignore[no-any-return]


def _operands(name: str, x: Operand, weight: Operand | None, bias: Operand | None) -> tuple[Any, Any, Any, Any]:
    """Return the value, weight and bias in the dtype to compute in (None where not given), and the result's dtype."""
    given = [one for one in (weight, bias) if one is not None]
    elements, result = as_floats(name, x, *given)
    rest = iter(elements[1:])
    return elements[0], *(None if one is None else next(rest) for one in (weight, bias)), result


def _check_channels(name: str, x: Any, least: int) -> None:
    if x.ndim < least:
        raise SpecError(
            "cannot normalise channels of this",
            element=name,
            site=user_site(),
            expected="(N, C, *sizes)" if least == 3 else "(N, C) or (N, C, *sizes)",
            got=str(x.spec),
        )


def _normalised(x: Any, axes: tuple[int, ...], eps: float) -> Any:
    centred = subtract(x, mean(x, axes, keepdims=True))
    return divide(centred, sqrt(mean(square(centred), axes, keepdims=True) + eps))


def _affine(name: str, x: Any, weight: Any, bias: Any, axes: tuple[int, ...], result: Any) -> Compute:
    if weight is not None:
        x = multiply(x, _per_axis(name, weight, x, axes, lined_up=True))
    if bias is not None:
        x = x + _per_axis(name, bias, x, axes, lined_up=True)
    return cast(x, result)  # type: ignore[return-value]


def _per_axis(name: str, weight: Any, x: Any, axes: tuple[int, ...], *, lined_up: bool = False) -> Any:
    """Return a weight for each position along some axes, if wanted so that it lines up with the items.

    Raises:
        SpecError: if it is a stream, or of other sizes.
    """
    element = as_element(weight, name)
    wanted = tuple(x.shape[axis] for axis in axes)
    if element.spec.is_stream or element.spec.shape != wanted or (x.spec.is_stream and 0 in axes):
        along_stream = x.spec.is_stream and 0 in axes
        raise SpecError(
            "cannot weigh the stream axis" if along_stream else "cannot weigh the normalised axes",
            element=name,
            site=user_site(),
            expected="none for an axis 0 that is the stream" if along_stream else f"resident{format_shape(wanted)}",
            got=str(element.spec),
        )
    if not lined_up:
        return element
    first = 1 if x.spec.is_stream else 0
    sizes = tuple(x.shape[axis] if axis in axes else 1 for axis in range(first, x.ndim))
    # Leading axes of size 1 broadcast anyway.
    lead = next((at for at, size in enumerate(sizes) if size != 1), len(sizes))
    return reshape(element, sizes[lead:])
