"""Manipulation functions of the standard, by those of elements. A stream stays along axis 0."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flowcompute.array_api.array import Array, element_of, elements_of
from flowcompute.array_api.creation import broadcast_together
from flowcompute.elements import axes, user_site
from flowcompute.elements.arguments import several
from flowcompute.elements.axes import permute_dims as permute
from flowcompute.errors import SpecError


def broadcast_arrays(*arrays: Array) -> list[Array]:
    """Broadcast arrays against one another; beside a stream all of them become streams.

    Raises:
        SpecError: if their shapes do not broadcast.
    """
    return broadcast_together("broadcast_arrays", *arrays)


def broadcast_to(x: Array, /, shape: tuple[int, ...]) -> Array:
    """Broadcast `x` to a shape, which begins with -1 or the length for a stream; see `fc.broadcast_to`."""
    return Array(axes.broadcast_to(element_of("broadcast_to", x), shape))


def concat(arrays: Sequence[Array], /, *, axis: int | None = 0) -> Array:
    """Join arrays along an axis, flattened if it is None; see `fc.concat`.

    Raises:
        SpecTypeError: if kinds of dtypes are mixed.
    """
    return Array(axes.concat(_several("concat", arrays), axis))


def stack(arrays: Sequence[Array], /, *, axis: int = 0) -> Array:
    """Stack arrays along a new axis; see `fc.stack`.

    Raises:
        SpecTypeError: if kinds of dtypes are mixed.
    """
    return Array(axes.stack(_several("stack", arrays), axis))


def _several(op: str, arrays: Sequence[Array]) -> list[Any]:
    listed = several(op, "arrays", arrays, "a list or tuple of arrays")
    if not listed:
        raise SpecError("cannot join no arrays", element=op, site=user_site(), expected="at least one array")
    return elements_of(op, *listed)


def expand_dims(x: Array, /, axis: int) -> Array:
    """Insert an axis of size 1, not before the stream; see `fc.expand_dims`."""
    return Array(axes.expand_dims(element_of("expand_dims", x), axis))


def flip(x: Array, /, *, axis: int | tuple[int, ...] | None = None) -> Array:
    """Reverse `x` along axes, but for the stream; see `fc.flip`."""
    return Array(axes.flip(element_of("flip", x), axis))


def moveaxis(x: Array, source: int | tuple[int, ...], destination: int | tuple[int, ...], /) -> Array:
    """Move axes elsewhere, but for the stream; see `fc.moveaxis`."""
    return Array(axes.moveaxis(element_of("moveaxis", x), source, destination))


def permute_dims(x: Array, /, axes: tuple[int, ...]) -> Array:
    """Permute the axes, but for the stream; see `fc.permute_dims`."""
    return Array(permute(element_of("permute_dims", x), axes))


def repeat(x: Array, repeats: int, /, *, axis: int | None = None) -> Array:
    """Repeat numbers along an axis a number of times in a row; see `fc.repeat`.

    Raises:
        SpecTypeError: if `repeats` is an array, on whose numbers the shape would depend.
    """
    return Array(axes.repeat(element_of("repeat", x), repeats, axis))


def reshape(x: Array, /, shape: tuple[int, ...], *, copy: bool | None = None) -> Array:  # noqa: ARG001
    """Reshape `x`, of a stream its items; see `fc.reshape`. Arrays are immutable, so `copy` says nothing."""
    return Array(axes.reshape(element_of("reshape", x), shape))


def roll(x: Array, /, shift: int | tuple[int, ...], *, axis: int | tuple[int, ...] | None = None) -> Array:
    """Move numbers along axes, but for the stream; those that leave at the end come in first. See `fc.roll`."""
    return Array(axes.roll(element_of("roll", x), shift, axis))


def squeeze(x: Array, /, axis: int | tuple[int, ...]) -> Array:
    """Remove axes of size 1, but for the stream; see `fc.squeeze`."""
    return Array(axes.squeeze(element_of("squeeze", x), axis))


def tile(x: Array, repetitions: tuple[int, ...], /) -> Array:
    """Lay copies of `x` one after the other along its axes; see `fc.tile`."""
    return Array(axes.tile(element_of("tile", x), repetitions))


def unstack(x: Array, /, *, axis: int = 0) -> tuple[Array, ...]:
    """Take `x` apart along an axis, but for the stream; see `fc.unstack`."""
    return tuple(map(Array, axes.unstack(element_of("unstack", x), axis)))
