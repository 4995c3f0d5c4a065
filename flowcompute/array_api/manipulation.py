"""Manipulation functions of the standard, by those of elements. A stream stays along axis 0."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod as product
from typing import Any

from flowcompute.array_api.array import LazyArray, element_of, elements_of
from flowcompute.array_api.creation import broadcast_together
from flowcompute.elements import Element, axes, user_site
from flowcompute.elements.arguments import several, wholes
from flowcompute.elements.math import TransposedStream, permuted
from flowcompute.errors import SpecError


def broadcast_arrays(*arrays: LazyArray) -> list[LazyArray]:
    """Broadcast arrays against one another; beside a stream all of them become streams.

    Raises:
        SpecError: if their shapes do not broadcast.
    """
    return broadcast_together("broadcast_arrays", *arrays)


def broadcast_to(x: LazyArray, /, shape: tuple[int, ...]) -> LazyArray:
    """Broadcast `x` to a shape, which begins with -1 or the length for a stream; see `fc.broadcast_to`."""
    return LazyArray(axes.broadcast_to(element_of("broadcast_to", x), shape))


def concat(arrays: Sequence[LazyArray], /, *, axis: int | None = 0) -> LazyArray:
    """Join arrays along an axis, flattened if it is None; see `fc.concat`.

    Raises:
        SpecTypeError: if kinds of dtypes are mixed.
    """
    return LazyArray(axes.concat(_several("concat", arrays), axis))


def stack(arrays: Sequence[LazyArray], /, *, axis: int = 0) -> LazyArray:
    """Stack arrays along a new axis; see `fc.stack`.

    Raises:
        SpecTypeError: if kinds of dtypes are mixed.
    """
    return LazyArray(axes.stack(_several("stack", arrays), axis))


def _several(op: str, arrays: Sequence[LazyArray]) -> list[Any]:
    listed = several(op, "arrays", arrays, "a list or tuple of arrays")
    if not listed:
        raise SpecError("cannot join no arrays", element=op, site=user_site(), expected="at least one array")
    return elements_of(op, *listed)


def expand_dims(x: LazyArray, /, axis: int) -> LazyArray:
    """Insert an axis of size 1, not before the stream; see `fc.expand_dims`."""
    return LazyArray(axes.expand_dims(element_of("expand_dims", x), axis))


def flip(x: LazyArray, /, *, axis: int | tuple[int, ...] | None = None) -> LazyArray:
    """Reverse `x` along axes, but for the stream; see `fc.flip`."""
    return LazyArray(axes.flip(element_of("flip", x), axis))


def moveaxis(x: LazyArray, source: int | tuple[int, ...], destination: int | tuple[int, ...], /) -> LazyArray:
    """Move axes elsewhere, but for the stream; see `fc.moveaxis`."""
    return LazyArray(axes.moveaxis(element_of("moveaxis", x), source, destination))


def permute_dims(x: LazyArray, /, axes: tuple[int, ...]) -> LazyArray:
    """Permute the axes; see `fc.permute_dims`.

    Where the stream is moved the result is a transposed stream, which `matmul`, reductions and `resolve` take.
    """
    element = element_of("permute_dims", x)
    if isinstance(element, TransposedStream):
        return LazyArray(permuted(element.base, tuple(element.axes[one] for one in _order(x, axes))))
    return LazyArray(permuted(element, _order(x, axes)))


def _order(x: LazyArray, axes: tuple[int, ...]) -> tuple[int, ...]:
    """Return an order of all axes, counted from the first one."""
    order = tuple(wholes("permute_dims", "axes", axes))
    if sorted(one + x.ndim * (one < 0) for one in order) != list(range(x.ndim)):
        raise SpecError(
            "cannot take axes=",
            element="permute_dims",
            site=user_site(),
            expected=f"an order of {tuple(range(x.ndim))}",
            got=str(order),
        )
    return tuple(one % x.ndim for one in order)


def repeat(x: LazyArray, repeats: int, /, *, axis: int | None = None) -> LazyArray:
    """Repeat numbers along an axis a number of times in a row; see `fc.repeat`.

    Raises:
        SpecTypeError: if `repeats` is an array, on whose numbers the shape would depend.
    """
    return LazyArray(axes.repeat(element_of("repeat", x), repeats, axis))


def reshape(x: LazyArray, /, shape: tuple[int, ...], *, copy: bool | None = None) -> LazyArray:  # noqa: ARG001
    """Reshape `x`, its numbers in the same order; see `fc.reshape`. `copy` says nothing, since elements never change.

    Of a stream, records of another size are made as `fc.flatten` and `fc.cut` do.

    Raises:
        SpecError: if the numbers do not fit, or a stream's length is given that is unknown yet.
    """
    element = element_of("reshape", x)
    sizes = wholes("reshape", "shape", shape, -1)
    if sizes.count(-1) > 1:
        raise SpecError(
            "cannot infer two sizes", element="reshape", site=user_site(), expected="at most one -1", got=str(shape)
        )
    items = _records_of(element, sizes) if isinstance(element, Element) and element.spec.is_stream else None
    if items is None:
        return LazyArray(axes.reshape(element, sizes))
    numbers = axes.flatten(element)
    return LazyArray(axes.reshape(axes.cut(numbers, product(items)), (-1, *items)) if items else numbers)


def _records_of(stream: Any, sizes: list[int]) -> list[int] | None:
    """Return the item shape of a stream that gets records of another size; None where it is left to `fc.reshape`."""
    size = stream.size
    first, *items = sizes or [0]
    if size is not None and first > 0 and items.count(-1) == 1:
        # What remains for an axis of the items.
        items = [size // (first * -product(items) or 1) if one == -1 else one for one in items]
    every = product(items)
    if -1 in items or every in (0, stream.spec.item_numbers):
        return None
    fits = first == -1 if size is None else size % every == 0 and first in (-1, size // every)
    return items if fits else None


def roll(x: LazyArray, /, shift: int | tuple[int, ...], *, axis: int | tuple[int, ...] | None = None) -> LazyArray:
    """Move numbers along axes, but for the stream; those that leave at the end come in first. See `fc.roll`."""
    return LazyArray(axes.roll(element_of("roll", x), shift, axis))


def squeeze(x: LazyArray, /, axis: int | tuple[int, ...]) -> LazyArray:
    """Remove axes of size 1, but for the stream; see `fc.squeeze`."""
    return LazyArray(axes.squeeze(element_of("squeeze", x), axis))


def tile(x: LazyArray, repetitions: tuple[int, ...], /) -> LazyArray:
    """Lay copies of `x` one after the other along its axes; see `fc.tile`."""
    return LazyArray(axes.tile(element_of("tile", x), repetitions))


def unstack(x: LazyArray, /, *, axis: int = 0) -> tuple[LazyArray, ...]:
    """Take `x` apart along an axis, but for the stream; see `fc.unstack`."""
    return tuple(map(LazyArray, axes.unstack(element_of("unstack", x), axis)))
