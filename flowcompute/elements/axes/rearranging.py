"""Values taken apart along an axis, laid beside copies of themselves, and turned round: `unstack`, `tile`, `roll`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from flowcompute.elements.arguments import whole, wholes
from flowcompute.elements.axes.along import concat_streams, section
from flowcompute.elements.axes.any_axis import MOST_REPEATED
from flowcompute.elements.axes.joining import concat
from flowcompute.elements.axes.shape import reshape
from flowcompute.elements.axes.taking import take
from flowcompute.elements.calls import public
from flowcompute.elements.compute import Operand, as_element
from flowcompute.elements.math import normalise_axes
from flowcompute.elements.op import MOST
from flowcompute.elements.site import user_site
from flowcompute.errors import SpecError

MOST_UNSTACKED = 1024
"""Values that one is taken apart into: each is an element of its own."""

MOST_PLAYED = 64
"""Times that a stream is played: each is a reading of its own."""


@public
def unstack(x: Operand, axis: int = 0) -> tuple[Any, ...]:
    """Take a value apart along an axis of items: the opposite of `stack`.

    Args:
        x: any element.
        axis: of at most 1024 places, not that of the stream; each result is without it.

    Raises:
        SpecError: for an axis out of range or too long, or for the stream.
    """
    element: Any = as_element(x, "unstack")
    (along,) = normalise_axes("unstack", element, whole("unstack", "axis", axis, -MOST))
    if element.spec.is_stream and along == 0:
        raise SpecError(
            "cannot take a stream apart into its records",
            element="unstack",
            site=user_site(),
            expected=f"an axis from 1 to {element.ndim - 1}" if element.ndim > 1 else "items that have axes",
            got="axis 0, the stream",
            hint="x[i] is one record; fc.callback is called with batches of them",
        )
    count = element.shape[along]
    if count > MOST_UNSTACKED:
        raise SpecError(
            "cannot take a value apart into so many",
            element="unstack",
            site=user_site(),
            expected=f"an axis of at most {MOST_UNSTACKED}",
            got=f"{count} along axis {along} of {element.spec}",
            hint="slice it: x[:, start:stop]",
        )
    lead = (slice(None),) * along
    return tuple(element[(*lead, place)] for place in range(count))


@public
def tile(x: Operand, reps: int | Sequence[int]) -> Any:
    """Lay copies of a value one after the other along its axes, as `numpy.tile`.

    Along axis 0 of a stream it is played that many times, which reads it as often.

    Args:
        x: any element.
        reps: copies along each axis, from 0 on; fewer of them are for the last axes. More of them than `x` has axes
            give a resident value new axes in front.

    Raises:
        SpecError: for a count out of range, more of them than a stream has axes, or a stream played more than 64
            times.
    """
    element: Any = as_element(x, "tile")
    counts = wholes("tile", "reps", reps, 0)
    if len(counts) > element.ndim:
        if element.spec.is_stream:
            raise SpecError(
                "cannot insert an axis before the stream",
                element="tile",
                site=user_site(),
                expected=f"at most {element.ndim} counts for {element.spec}",
                got=f"{len(counts)} counts",
            )
        element = reshape(element, ((1,) * (len(counts) - element.ndim)) + element.spec.shape)
    counts = [1] * (element.ndim - len(counts)) + counts
    if element.spec.is_stream:
        element, counts = _played(element, counts[0]), [1, *counts[1:]]
    for axis, count in enumerate(counts):
        size = element.shape[axis]
        if count != 1 and size is not None:
            times = whole("tile", "reps", count, 0, MOST_REPEATED // max(size, 1))
            element = take(element, np.tile(np.arange(size), times), axis=axis)
    return element


def _played(stream: Any, times: int) -> Any:
    """Return a stream that is played so many times, one after the other."""
    times = whole("tile", "reps", times, 0, MOST_PLAYED)
    if times == 0:
        return section(stream, 0, 0, 1)
    return stream if times == 1 else concat_streams([stream] * times)


@public
def roll(x: Operand, shift: int | Sequence[int], axis: int | Sequence[int] | None = None) -> Any:
    """Move numbers along axes of items; those that leave at the end come in at the beginning, as `numpy.roll`.

    Args:
        x: any element.
        shift: places to move by; negative ones move towards the beginning.
        axis: one axis or several, with a shift each or one for all. None flattens a resident value, moves, and
            restores its shape.

    Raises:
        SpecError: for an axis out of range, another number of shifts than axes, or the stream's axis.
    """
    element: Any = as_element(x, "roll")
    shifts = wholes("roll", "shift", shift)
    if axis is None:
        _refuse_stream(element, whole_value=True)
        return reshape(_rolled(reshape(element, (-1,)), sum(shifts), 0), element.spec.shape)
    axes = wholes("roll", "axis", axis, expected="an int, a tuple of ints or None")
    pairs = max(len(shifts), len(axes))
    if not shifts or not axes or {len(shifts), len(axes)} - {1, pairs}:
        raise SpecError(
            "cannot move another number of axes than there are shifts",
            element="roll",
            site=user_site(),
            expected="one of them, or as many of both",
            got=f"{len(shifts)} shifts and {len(axes)} axes",
        )
    for by, one in zip(shifts * (pairs // len(shifts)), axes * (pairs // len(axes)), strict=True):
        (along,) = normalise_axes("roll", element, one)
        if along == 0:
            _refuse_stream(element)
        element = _rolled(element, by, along)
    return element


def _rolled(element: Any, shift: int, axis: int) -> Any:
    size = element.shape[axis]
    by = shift % size if size else 0
    if by == 0 or math.prod(element.spec.shape) == 0:
        return element
    lead = (slice(None),) * axis
    return concat([element[(*lead, slice(size - by, None))], element[(*lead, slice(size - by))]], axis=axis)


def _refuse_stream(element: Any, *, whole_value: bool = False) -> None:
    if element.spec.is_stream:
        raise SpecError(
            "cannot move the last records of a stream before its first",
            element="roll",
            site=user_site(),
            expected="axis= for axes of items",
            got="axis=None, all axes" if whole_value else "axis 0, the stream",
            hint="fc.concat([x[-n:], x[:-n]]) of a stream of known length does so, and reads it twice",
        )
