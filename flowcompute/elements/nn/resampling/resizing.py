"""Items of another size: resampling along axes, one after the other, by taps and weights known when composed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from flowcompute.elements.arguments import flag, is_whole, one_of, real, several, whole, wholes
from flowcompute.elements.axes import take
from flowcompute.elements.calls import public
from flowcompute.elements.compute import Operand, as_element, cast
from flowcompute.elements.math import multiply, normalise_axes, sum, where
from flowcompute.elements.nn.resampling.resize_taps import COORDINATES, FILTERS, NEAREST, ResizedAxis, taps_of
from flowcompute.elements.site import user_site
from flowcompute.errors import SpecError, short_repr
from flowcompute.spec import BFLOAT16, FLOAT16, FLOAT32, FLOAT64, is_float

MOST_TAPS = 1 << 24
"""Numbers that the results along an axis are made of: their places and weights are in memory."""


@public
def resize(
    x: Operand,
    size: int | Sequence[int] | None = None,
    scale: float | Sequence[float] | None = None,
    axes: int | Sequence[int] | None = None,
    method: str = "linear",
    coordinates: str = "half_pixel",
    *,
    nearest: str = "round_prefer_floor",
    antialias: bool = False,
    cubic_coefficient: float = -0.75,
    exclude_outside: bool = False,
    region: Sequence[Sequence[float]] | None = None,
    fill: float = 0.0,
) -> Any:
    """Resize items along axes by the nearest number, or linear or cubic interpolation, as ONNX's `Resize`.

    Axes are resized one after the other, those that shrink most first. Numbers beyond the ends are those at the ends.

    Args:
        x: any element; half formats are computed in float32.
        size: numbers along each axis then.
        scale: in place of `size` how many for one, of which the whole part stays; over 0.
        axes: which axes; not the stream. By default the last ones, as many as there are sizes or scales. One number is
            for all axes from axis 2 on, as of images (N, C, H, W).
        method: "nearest", "linear" or "cubic".
        coordinates: where results stand in the axis, i being the count of one:
            "half_pixel": (i + 0.5) / scale - 0.5. "half_pixel_symmetric": the same, around the middle of the axis where
            scale times size is no whole number. "pytorch_half_pixel": the same, but a single result is made of the
            first number. "align_corners": i (size - 1) / (scale size - 1). "asymmetric": i / scale.
            "tf_half_pixel_for_nn": (i + 0.5) / scale. "tf_crop_and_resize": evenly spaced over `region`.
        nearest: how a place between two numbers is rounded: "round_prefer_floor", "round_prefer_ceil", "floor", "ceil".
        antialias: whether results that are fewer are made of as many more numbers each.
        cubic_coefficient: the slope of the cubic filter's outer part: -0.75, or -0.5 as in Keys' paper.
        exclude_outside: whether what lies beyond the ends is left out, and weights are scaled up to a sum of 1.
        region: (first, last) for each axis, as parts of it from 0 to 1.
        fill: what stands where a region reaches beyond the axis.

    Returns:
        An element of the dtype of `x`; integers give float64 but for "nearest".

    Raises:
        SpecError: for both or neither of size and scale, an axis that is the stream or empty, or other words.
    """
    element: Any = as_element(x, "resize")
    method = one_of("resize", "method", method, ("nearest", *FILTERS))
    place = COORDINATES[one_of("resize", "coordinates", coordinates, tuple(COORDINATES))]
    rounded = NEAREST[one_of("resize", "nearest", nearest, tuple(NEAREST))]
    how: dict[str, Any] = {
        "coefficient": real("resize", "cubic_coefficient", cubic_coefficient),
        "antialias": flag("resize", "antialias", antialias),
        "exclude_outside": flag("resize", "exclude_outside", exclude_outside),
    }
    outside = real("resize", "fill", fill)
    result = element.dtype if method == "nearest" or is_float(element.dtype) else FLOAT64
    made: Any = element
    if method != "nearest":
        made = cast(element, FLOAT32 if result in (FLOAT16, BFLOAT16) else result)
    cropped = coordinates == "tf_crop_and_resize"
    for along, axis in sorted(_axes(element, size, scale, axes, region), key=lambda one: (one[1].scale, one[0])):
        if axis.scale == 1 and axis.count == axis.size and (axis.begin, axis.end) == (0, 1):
            continue
        if axis.count == 0:
            made = take(made, np.empty(0, np.int64), axis=along)
            continue
        places = place(axis, np.arange(axis.count, dtype=np.float64))
        if method == "nearest":
            made = take(made, np.clip(rounded(places), 0, axis.size - 1).astype(np.int64), axis=along)
        else:
            taps, weights = taps_of(axis, places, method, **how)
            lined_up = weights.astype(made.dtype).reshape(*weights.shape, *(1,) * (made.ndim - along - 1))
            parts = multiply(take(made, taps, axis=along), lined_up)
            # What has no weight is no part of a result, also where it is infinite.
            made = sum(parts if lined_up.all() else where(lined_up == 0, 0, parts), along + 1)
        beyond = (places < 0) | (places > axis.size - 1)
        if cropped and beyond.any():
            made = where(beyond.reshape(-1, *(1,) * (made.ndim - along - 1)), made.dtype.type(outside), made)
    return cast(made, result)


def _axes(
    element: Any,
    size: int | Sequence[int] | None,
    scale: float | Sequence[float] | None,
    axes: int | Sequence[int] | None,
    region: Sequence[Sequence[float]] | None,
) -> list[tuple[int, ResizedAxis]]:
    """Return the axes that are resized, as users count them."""
    if (size is None) == (scale is None):
        raise SpecError(
            "cannot choose a size", element="resize", site=user_site(), expected="size= or scale=, one of them"
        )
    given: Any = scale if size is None else size
    one = is_whole(given) or isinstance(given, float | np.floating)
    chosen: Sequence[int]
    if axes is None:
        chosen = tuple(range(2, element.ndim)) if one else range(element.ndim - _count(given), element.ndim)
    else:
        chosen = wholes("resize", "axes", axes)
    normal = normalise_axes("resize", element, tuple(chosen))
    order = [at % element.ndim for at in chosen]
    wanted = [given] * len(order) if one else several("resize", "size" if scale is None else "scale", given, "numbers")
    parts = [(0.0, 1.0)] * len(order) if region is None else _region(region)
    if not len(wanted) == len(parts) == len(order) or (element.spec.is_stream and 0 in normal):
        raise SpecError(
            "cannot resize these axes",
            element="resize",
            site=user_site(),
            expected="axes of items, and a number for each",
            got=f"axes {tuple(order)} of {element.spec}, {len(wanted)} numbers",
        )
    return [
        (along, _axis(element.shape[along], number, part, by_scale=size is None))
        for along, number, part in zip(order, wanted, parts, strict=True)
    ]


def _axis(size: int, number: Any, part: tuple[float, float], *, by_scale: bool) -> ResizedAxis:
    scale = real("resize", "scale", number) if by_scale else 1.0
    if size == 0 or not 0 < scale < MOST_TAPS:
        raise SpecError(
            "cannot resize an axis so",
            element="resize",
            site=user_site(),
            expected="numbers along it, and a scale over 0",
            got=f"{size} numbers, scale {short_repr(number)}",
        )
    count = math.floor(size * scale) if by_scale else whole("resize", "size", number, 0, MOST_TAPS)
    made = ResizedAxis(size, count, scale if by_scale else count / size, *part)
    if count * max(1.0, 1 / made.scale if count else 1.0) > MOST_TAPS:
        raise SpecError(
            "cannot resize an axis so",
            element="resize",
            site=user_site(),
            expected=f"at most {MOST_TAPS} numbers",
            got=f"{size} numbers become {count}",
        )
    return made


def _count(given: Any) -> int:
    return len(several("resize", "size", given, "numbers"))


def _region(region: Any) -> list[tuple[float, float]]:
    pairs = [several("resize", "region", one, "(first, last)") for one in several("resize", "region", region, "pairs")]
    if any(len(pair) != 2 for pair in pairs):
        raise SpecError(
            "cannot take region=",
            element="resize",
            site=user_site(),
            expected="(first, last) for each axis",
            got=short_repr(region),
        )
    return [(real("resize", "region", first), real("resize", "region", last)) for first, last in pairs]
