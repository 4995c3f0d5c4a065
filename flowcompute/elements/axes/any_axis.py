"""NumPy's `diff` and `repeat`, along the stream or along axes of items."""

from __future__ import annotations

from typing import Any

import numpy as np

from flowcompute.elements.arguments import whole
from flowcompute.elements.axes.along import flatten, repeat_records, window
from flowcompute.elements.axes.joining import concat
from flowcompute.elements.axes.shape import broadcast_to, reshape
from flowcompute.elements.axes.taking import take
from flowcompute.elements.calls import public
from flowcompute.elements.compute import Compute, Operand, as_element
from flowcompute.elements.element import Element
from flowcompute.elements.generated import index
from flowcompute.elements.math import normalise_axes, where
from flowcompute.elements.op import MOST
from flowcompute.elements.site import user_site
from flowcompute.errors import SpecError
from flowcompute.spec import BOOL

MOST_DIFFERENCES = 64
"""Differences of differences: each along the stream is a window of its own."""

MOST_REPEATED = 1 << 24
"""Numbers along an axis of items that is repeated: their places are in memory."""


@public
def diff(
    x: Operand, n: int = 1, axis: int = -1, *, prepend: Operand | None = None, append: Operand | None = None
) -> Compute | Any:
    """Subtract neighbours along an axis, `n` times, as `numpy.diff`; the result is `n` shorter there than `x`.

    Args:
        x: any element with axes; of bools the result says where neighbours differ.
        n: a count from 0 to 64.
        axis: the last one by default; axis 0 of a stream is the stream, whose neighbours are records.
        prepend, append: what stands before and behind `x` along the axis: a number, or a value of the rank of `x`.

    Raises:
        SpecError: for an axis or a count out of range, or values that do not fit beside `x`.
    """
    element: Any = as_element(x, "diff")
    (along,) = normalise_axes("diff", element, whole("diff", "axis", axis, -MOST))
    times = whole("diff", "n", n, 0, MOST_DIFFERENCES)
    if times and not (prepend is None and append is None):
        ends = [None if end is None else _end(element, end, along) for end in (prepend, append)]
        element = concat([one for one in (ends[0], element, ends[1]) if one is not None], along)
    for _ in range(times):
        later, earlier = _neighbours(element, along)
        element = Element.apply("not_equal" if element.dtype == BOOL else "subtract", later, earlier)
    return element


def _neighbours(element: Any, axis: int) -> tuple[Any, Any]:
    """Return the numbers that have one before them along an axis, and those before them."""
    if element.spec.is_stream and axis == 0:
        pair = window(element, 2)
        return pair[:, 1], pair[:, 0]
    lead = (slice(None),) * axis
    return element[(*lead, slice(1, None))], element[(*lead, slice(None, -1))]


def _end(element: Any, end: Operand, axis: int) -> Any:
    """Return what stands before or behind a value along an axis, as a stream beside a stream."""
    value: Any = as_element(end, "diff")
    if value.ndim == 0:
        items = tuple(1 if at == axis else size for at, size in enumerate(element.shape))
        lead = element.spec.is_stream and axis != 0
        value = broadcast_to(value, items[1:] if lead else items)
    elif value.ndim != element.ndim:
        raise SpecError(
            "cannot put this beside the value",
            element="diff",
            site=user_site(),
            expected=f"a number, or {element.ndim} axes as in {element.spec}",
            got=str(value.spec),
        )
    if not element.spec.is_stream or value.spec.is_stream or axis:
        return value
    return where(index(value.shape[0], value.shape[1:]) >= 0, value, value)


@public
def repeat(x: Operand, repeats: int, axis: int | None = None) -> Any:
    """Repeat numbers along an axis `repeats` times in a row, as `numpy.repeat`; axis 0 of a stream repeats records.

    Args:
        x: any element.
        repeats: a count from 0 on.
        axis: None flattens the value first: of a stream the result is a stream of numbers.

    Raises:
        SpecError: for an axis out of range, or `repeats` that is no count.
    """
    element: Any = as_element(x, "repeat")
    if axis is None:
        element = flatten(element) if element.spec.is_stream else reshape(element, (-1,))
    (along,) = normalise_axes("repeat", element, 0 if axis is None else whole("repeat", "axis", axis, -MOST))
    if element.spec.is_stream and along == 0:
        return repeat_records(element, whole("repeat", "repeats", repeats))
    size = element.shape[along]
    count = whole("repeat", "repeats", repeats, 0, MOST_REPEATED // max(size, 1))
    return take(element, np.repeat(np.arange(size), count), axis=along)
