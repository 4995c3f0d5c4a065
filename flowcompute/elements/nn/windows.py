"""Windows that slide over item axes: other strides over the same memory, no copy."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from flowcompute.elements.arguments import is_whole, wholes
from flowcompute.elements.axes import is_known_view, lazily, make_view
from flowcompute.elements.calls import public
from flowcompute.elements.compute import Constant, Operand, as_element
from flowcompute.elements.math import normalise_axes
from flowcompute.elements.op import MOST, KeptOp, Kind, Op
from flowcompute.elements.site import user_site
from flowcompute.errors import SpecError, short_repr

Sizes = int | Sequence[int]
"""One number for all axes, or one for each."""
Window = tuple[int, int, int, int]
"""Item axis, numbers in a window, step from one window to the next, dilation from one number to the next."""


def _kept(dtype: np.dtype) -> tuple[np.dtype, ...]:
    return dtype, dtype


def windows_of(array: np.ndarray, windows: Iterable[Window], lead: int = 0) -> np.ndarray:
    """Return a view of windows, whose own axes come last; `lead` axes stand before axis 0."""
    sizes, places, sliding = list(array.shape), list(array.strides), []
    for axis, size, step, dilation in windows:
        at = axis + lead
        sizes[at] = (sizes[at] - (size - 1) * dilation - 1) // step + 1
        sliding.append((size, array.strides[at] * dilation))
        places[at] = array.strides[at] * step
    shape = (*sizes, *(size for size, _ in sliding))
    if 0 in shape:
        return np.empty(shape, array.dtype)
    strides = (*places, *(stride for _, stride in sliding))
    return np.lib.stride_tricks.as_strided(array, shape, strides, writeable=False)


@lazily
def _rebuild_windows(kept: KeptOp) -> Any:
    x, windows = kept.one(), kept.attrs.items("windows")
    axes = len(x.spec.shape)
    sound = all(isinstance(one, tuple) and len(one) == 4 and _is_window(*one, axes) for one in windows)
    kept.require(sound and len({one[0] for one in windows}) == len(windows), "windows, one for an axis")
    return slide(kept.op.name, x, tuple(windows))


def _is_window(axis: Any, size: Any, step: Any, dilation: Any, axes: int) -> bool:
    numbers = (size, step, dilation)
    return type(axis) is int and 0 <= axis < axes and all(type(one) is int and 0 < one < MOST for one in numbers)


WINDOWS = Op("windows", 1, Kind.VIEW, windows_of, _kept, arithmetic=False, rebuild=_rebuild_windows)


@public
def unfold(x: Operand, size: Sizes, axis: int | tuple[int, ...], step: Sizes = 1, dilation: Sizes = 1) -> Any:
    """Slide windows along item axes, without a copy: NumPy's `sliding_window_view` with steps.

    Along an axis of n numbers stand (n - dilation * (size - 1) - 1) // step + 1 windows. Window i holds the numbers at
    i * step + dilation * (0, 1, ..., size - 1). Windows along the stream are made by `fc.window`.

    Args:
        x: any element.
        size: numbers in a window, one for all axes or one for each.
        axis: item axes (any of a resident value), in the order in which their windows' axes are wanted.
        step: from one window to the next.
        dilation: from one number of a window to its next.

    Returns:
        An element whose `axis` counts windows, and whose last axes are the numbers in them.

    Raises:
        SpecError: if a window does not fit, `axis` is the stream, or there are not as many numbers as axes.
    """
    element = as_element(x, "unfold")
    axes = tuple(wholes("unfold", "axis", axis, expected="an int or a tuple of ints"))
    normalise_axes("unfold", element, axes)
    lead = int(element.spec.is_stream)
    items = [one % element.ndim - lead for one in axes]
    if -1 in items:
        raise SpecError(
            "cannot slide windows along the stream",
            element="unfold",
            site=user_site(),
            expected="item axes",
            got="axis 0, the stream",
            hint="fc.window",
        )
    per_axis = [whole_numbers("unfold", *what, len(axes)) for what in (("size", size), ("step", step))]
    per_axis.append(whole_numbers("unfold", "dilation", dilation, len(axes)))
    return slide("unfold", element, tuple(zip(items, *per_axis, strict=True)))


def slide(name: str, element: Any, windows: tuple[Window, ...]) -> Any:
    """Slide windows over item axes; their own axes come last.

    Args:
        name: of the operation, for errors.
        element: any element.
        windows: for each axis that slides its item axis, size, step and dilation.

    Raises:
        SpecError: if one does not fit.
    """
    shape = list(element.spec.shape)
    for axis, size, step, dilation in windows:
        room = shape[axis] - (size - 1) * dilation - 1
        if room < 0:
            raise SpecError(
                "cannot fit a window into the axis",
                element=name,
                site=user_site(),
                expected=f"at least {(size - 1) * dilation + 1} numbers along axis {axis + element.spec.is_stream}",
                got=f"{shape[axis]}",
            )
        shape[axis] = room // step + 1
    made = (*shape, *(size for _, size, _, _ in windows))
    if is_known_view(element, made):
        return Constant(windows_of(element.value, windows))
    return make_view(WINDOWS, (element,), made, windows=windows)


def whole_numbers(name: str, what: str, given: Sizes, axes: int, least: int = 1) -> tuple[int, ...]:
    """Return one number for each axis.

    Raises:
        SpecError: if there are others, or one is below `least`.
    """
    try:
        numbers = tuple(wholes(name, what, [given] * axes if is_whole(given) else given))
    except SpecError:
        numbers = ()
    if len(numbers) != axes or min(numbers, default=least) < least:
        raise SpecError(
            f"cannot take {what}=",
            element=name,
            site=user_site(),
            expected=f"{axes} of them, from {least} on",
            got=short_repr(given),
        )
    return numbers
