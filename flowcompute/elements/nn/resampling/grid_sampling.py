"""Items sampled at places that each record says for itself, as spatial transformers do (M. Jaderberg et al., 2015)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from flowcompute.elements.arguments import flag, one_of
from flowcompute.elements.axes import reshape
from flowcompute.elements.calls import public
from flowcompute.elements.compute import Operand, as_element, cast
from flowcompute.elements.math import (
    abs,
    clip,
    floor,
    greater,
    greater_equal,
    isnan,
    less,
    logical_and,
    logical_or,
    minimum,
    remainder,
    round,
    sum,
    where,
)
from flowcompute.elements.search import take_along_axis
from flowcompute.elements.site import user_site
from flowcompute.errors import SpecError
from flowcompute.spec import BFLOAT16, BOOL, FLOAT16, FLOAT32, FLOAT64, INT64, is_float

_TAPS = {"nearest": (0,), "linear": (0, 1), "cubic": (-1, 0, 1, 2)}
"""Numbers along an axis that a result is made of, from the one before its place on."""

_SLOPE = -0.75
"""The parameter of the cubic filter's outer part, as PyTorch and ONNX have it."""


@public
def grid_sample(
    x: Operand, grid: Operand, method: str = "linear", padding: str = "zeros", align_corners: bool = False
) -> Any:
    """Sample items at places of a grid, as PyTorch's `grid_sample` and ONNX's `GridSample`.

    The host looks the numbers up, batch by batch; a kernel weighs and adds them.

    Args:
        x: (N, C, *sizes) of one to three axes, as images (N, C, H, W): a stream or a resident value.
        grid: (N, *places, axes) of floats, a stream or a resident value. The last axis says where along each axis of
            sizes, the last one first, so (x, y) of images. There -1 is one end, and 1 the other.
        method: "nearest" (halves to even), "linear" or "cubic".
        padding: what lies beyond the ends: "zeros", the numbers at the ends ("border"), or a mirror ("reflection").
        align_corners: whether -1 and 1 are the middles of the first and the last number, instead of their outer edges.

    Returns:
        An element (N, C, *places) of the dtype of `x`; integers give float64 but for "nearest". Half formats are
        computed in float32.

    Raises:
        SpecError: for shapes that do not fit each other, a grid of no floats, or other words.
    """
    name = "grid_sample"
    element: Any = as_element(x, name)
    where_at: Any = as_element(grid, name)
    method = one_of(name, "method", method, tuple(_TAPS))
    padding = one_of(name, "padding", padding, ("zeros", "border", "reflection"))
    aligned = flag(name, "align_corners", align_corners)
    axes = element.ndim - 2
    shape = where_at.shape
    fits = 1 <= axes <= 3 and len(shape) >= 2 and shape[-1] == axes and is_float(where_at.dtype)
    if not fits or element.dtype == BOOL or 0 in element.shape[1:]:
        raise SpecError(
            "cannot sample these items at this grid",
            element=name,
            site=user_site(),
            expected="(N, C, *sizes) of numbers, and floats (N, *places, axes)",
            got=f"{element.spec} and {where_at.spec}",
        )
    sizes, places, rows = element.shape[2:], shape[1:-1], element.shape[1]
    result = element.dtype if is_float(element.dtype) or method == "nearest" else FLOAT64
    wide = FLOAT32 if result in (FLOAT16, BFLOAT16) else result
    at = cast(where_at, FLOAT32) if where_at.dtype in (FLOAT16, BFLOAT16) else where_at
    count = math.prod(places)
    at = reshape(at, (_length(at), count, axes))
    index: Any = 0
    weight: Any = None
    for axis, size in enumerate(sizes):
        along, weights = _along(at[..., axes - 1 - axis], size, method, padding, aligned)
        lined_up = (_length(at), count, *(len(_TAPS[method]) if one == axis else 1 for one in range(axes)))
        index = index * size + reshape(along, lined_up)
        weight = reshape(weights, lined_up) if weight is None else weight * reshape(weights, lined_up)
    taps = len(_TAPS[method]) ** axes
    index = reshape(index, (_length(at), 1, count * taps))
    values = cast(element, wide) if method != "nearest" else element
    seen = take_along_axis(reshape(values, (_length(values), rows, math.prod(sizes))), index, axis=2)
    weight = reshape(weight, (_length(at), 1, count, taps))
    seen = reshape(seen, (_length(seen), rows, count, taps))
    if method == "nearest":
        made: Any = where(greater(weight, 0), seen, 0)[..., 0]
    else:
        # What lies outside is no number at all, also where the one that is read in its place is infinite.
        made = sum(where(weight == 0, 0, seen * cast(weight, wide)), 3)
    return cast(reshape(made, (_length(made), rows, *places)), result)


def _length(one: Any) -> int:
    """Return the first size of a shape that keeps axis 0."""
    return -1 if one.spec.is_stream else int(one.shape[0])


def _along(at: Any, size: int, method: str, padding: str, aligned: bool) -> tuple[Any, Any]:
    """Return which numbers of an axis results are made of, int64 from 0 on, and their weights; both (..., taps)."""
    first, last = (0.0, size - 1.0) if aligned else (-0.5, size - 0.5)
    place = (at + 1) / 2 * (size - 1) if aligned else ((at + 1) * size - 1) / 2
    if method == "nearest":
        place = round(place)
    beyond = logical_or(less(place, first), greater(place, last))
    if padding == "border":
        place = where(beyond, clip(place, 0.0, size - 1.0), place)
    elif padding == "reflection":
        place = where(beyond, _reflected(place, first, last), place)
    # Farther than the farthest tap all is outside alike, and NaN is.
    place = where(isnan(place), -4.0, clip(place, -4.0, size + 3.0))
    offsets = np.array(_TAPS[method], dtype=place.dtype)
    begin = floor(place)[..., None]
    taps = begin + offsets
    weights = _weights(method, place[..., None] - begin, offsets)
    if padding == "zeros":
        weights = where(logical_and(greater_equal(taps, 0), less(taps, size)), weights, 0)
    elif padding == "reflection":
        taps = _reflected(taps, first, last)
    return clip(cast(taps, INT64), 0, size - 1), weights


def _reflected(place: Any, first: float, last: float) -> Any:
    """Return a place as it is seen in mirrors at both ends."""
    length = last - first
    if length == 0:
        return place * 0
    beyond = remainder(place - first, 2 * length)
    return minimum(beyond, 2 * length - beyond) + first


def _weights(method: str, part: Any, offsets: np.ndarray) -> Any:
    """Return the weights of taps, `part` of the way from the number before a place to the next."""
    distance = abs(part - offsets)
    if method == "nearest":
        return distance * 0 + 1
    if method == "linear":
        return 1 - distance
    near = ((_SLOPE + 2) * distance - (_SLOPE + 3)) * distance * distance + 1
    far = ((_SLOPE * distance - 5 * _SLOPE) * distance + 8 * _SLOPE) * distance - 4 * _SLOPE
    return where((offsets == 0) | (offsets == 1), near, far)
