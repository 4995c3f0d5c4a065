"""Item axes seen in another way: reshaped, permuted, turned around.

Most of these are index arithmetic inside kernels: nothing is copied. Axes are counted as
everywhere, the stream being axis 0, which stays where it is; shapes begin with its length, or -1.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeGuard

import numpy as np

from flowcompute.elements.arguments import whole, wholes
from flowcompute.elements.calls import public
from flowcompute.elements.compute import Compute, Constant, Operand, as_element, compute_again
from flowcompute.elements.element import Element
from flowcompute.elements.math import normalise_axes
from flowcompute.elements.op import MOST, PARAMETER, KeptOp, Kind, Op, Rebuild
from flowcompute.elements.site import user_site
from flowcompute.errors import SpecError, SpecIndexError, short_repr
from flowcompute.spec import Spec, format_shape

Index = tuple[int | tuple[int, int, int] | None, ...]
"""For each item axis a position, or (first, count, step); None for a new axis."""

_MOST_KNOWN_BYTES = 64 << 20
"""Bytes of a constant's view that is made when it is composed. A larger one is made in a job, whose plan counts it."""


def _kept(dtype: np.dtype) -> tuple[np.dtype, ...]:
    return dtype, dtype


def lazily(rebuild: Rebuild) -> Rebuild:
    """Return a function that makes a view again, of constants too.

    Views of constants are computed when composed, those of parameters are not. A graph holds what a parameter has, so
    that a kept view of a constant is one of a parameter. Nothing is computed for it, of whatever size it says to be.
    """

    def made_again(kept: KeptOp) -> Any:
        known = [isinstance(one, Constant) for one in kept.inputs]
        if not any(known):
            return rebuild(kept)
        hidden = [
            Compute(PARAMETER, (one,), one.spec) if is_known else one
            for one, is_known in zip(kept.inputs, known, strict=True)
        ]
        made = rebuild(replace(kept, inputs=tuple(hidden)))
        same = isinstance(made, Compute) and len(made.inputs) == len(hidden)
        if same and all(one is other for one, other in zip(made.inputs, hidden, strict=True)):
            made.freeze_fields(inputs=kept.inputs)
        return made

    return made_again


def _rebuild_index(kept: KeptOp) -> Compute:
    x, index = kept.one(), kept.attrs.items("index", 2 * 64)
    sizes = list(x.spec.shape)
    kept.require(sum(key is not None for key in index) == len(sizes), "a key for each axis")
    shape = []
    for key in index:
        if key is None:
            shape.append(1)
            continue
        size = sizes.pop(0)
        if isinstance(key, tuple):
            kept.require(_is_range(key, size), f"places among {size}")
            shape.append(key[1])
        else:
            kept.require(type(key) is int and 0 <= key < size, f"a place among {size}")
    return compute_again(kept, x.dtype, tuple(shape), x.spec.stream, {"index": tuple(index)})


def _is_range(key: tuple[Any, ...], size: int) -> bool:
    """Check whether (first, count, step) names places of an axis."""
    if len(key) != 3 or not all(type(one) is int for one in key):
        return False
    first, count, step = key
    if not (-1 <= first <= size and 0 <= count <= size and 0 < abs(step) < MOST):
        return False
    return count == 0 or bool(0 <= first < size and 0 <= first + (count - 1) * step < size)


@lazily
def _rebuild_permute(kept: KeptOp) -> Any:
    x = kept.one()
    axes = tuple(kept.public_axis(axis) for axis in kept.attrs.wholes("axes", most=63))
    return permute_dims(x, ((0,) if x.spec.is_stream else ()) + axes)


@lazily
def _rebuild_reshape(kept: KeptOp) -> Any:
    x = kept.one()
    return reshape(x, ((-1,) if x.spec.is_stream else ()) + kept.spec.shape)


def _rebuild_broadcast(kept: KeptOp) -> Any:
    x = kept.one()
    return broadcast_to(x, ((-1,) if x.spec.is_stream else ()) + kept.spec.shape)


def view_op(name: str, numpy: Callable[..., Any], rebuild: Rebuild, arity: int = 1) -> Op:
    """Return the record of a view of items."""
    return Op(name, arity, Kind.VIEW, numpy, _kept, arithmetic=False, rebuild=rebuild)


INDEX = view_op("index", np.asarray, _rebuild_index)
PERMUTE = view_op("permute_dims", np.permute_dims, _rebuild_permute)
RESHAPE = view_op("reshape", np.reshape, _rebuild_reshape)
BROADCAST = view_op("broadcast_to", np.broadcast_to, _rebuild_broadcast)


def make_view(op: Op, inputs: tuple[Element, ...], shape: tuple[int, ...], **attrs: Any) -> Compute:
    """Return a view of this item shape (of the whole value when resident)."""
    first_input = inputs[0]
    return Compute(op, inputs, Spec(first_input.dtype, shape, first_input.spec.stream), attrs)


def is_known_view(element: Element, shape: tuple[int, ...]) -> TypeGuard[Constant]:
    """Check whether a view of this shape is a constant: that of one, and not so large that a plan has to count it."""
    return isinstance(element, Constant) and math.prod(shape) * element.dtype.itemsize <= _MOST_KNOWN_BYTES


def item_axis(op: str, element: Any, axis: int) -> int:
    """Return an axis of the items (of the whole value when resident).

    Raises:
        SpecError: if it is the stream.
    """
    (normal,) = normalise_axes(op, element, whole(op, "axis", axis, -MOST))
    if not element.spec.is_stream:
        return normal
    if normal == 0:
        raise SpecError(
            "cannot change the order of the stream, which comes record by record",
            element=op,
            site=user_site(),
            expected=f"an axis from 1 to {element.ndim - 1}" if element.ndim > 1 else "items that have axes",
            got="axis 0, the stream",
        )
    return normal - 1


def _item_shape(element: Any, op: str, shape: Any) -> list[int]:
    """Return the item part of a shape that begins with the stream.

    Raises:
        SpecError: if it begins with another length.
    """
    wanted = wholes(op, "shape", shape)
    if not element.spec.is_stream:
        return wanted
    length = element.spec.length
    if not wanted or wanted[0] not in (-1, length):
        raise SpecError(
            "cannot reshape the stream",
            element=op,
            site=user_site(),
            expected=f"a shape that begins with -1{'' if length is None else f' or {length}'}",
            got=format_shape(tuple(wanted)),
            hint="fc.cut and fc.flatten reshape the stream",
        )
    return wanted[1:]


def _of_stream(numbers: int, wanted: Sequence[int]) -> str:
    """Return what reshapes the stream itself to items of a shape that has other numbers than its items."""
    records, rest = divmod(math.prod(wanted), max(1, numbers))
    if wanted and min(wanted) > 0 and records > 1 and not rest:
        return f"fc.cut(x, {records}) joins {records} records to an item"
    return "fc.flatten(x) makes a stream of all numbers, fc.cut(x, n) makes items of n records"


@public
def reshape(x: Operand, shape: int | Sequence[int]) -> Any:
    """Reshape the value, its numbers in the same order.

    Args:
        x: any element.
        shape: sizes, one of them perhaps -1: what remains. Of a stream the first size is its
            length, or -1, and says nothing; the others are the item's.

    Raises:
        SpecError: if the numbers do not fit, or the stream would be reshaped.
    """
    element = as_element(x, "reshape")
    wanted = _item_shape(element, "reshape", shape)
    try:
        made = np.broadcast_to(np.empty(()), element.spec.shape).reshape(wanted).shape
    except (OverflowError, TypeError, ValueError):  # also of more than 64 axes, and of sizes beyond 64 bits
        raise SpecError(
            "cannot fit the numbers into the shape",
            element="reshape",
            site=user_site(),
            expected=f"{element.spec.item_numbers} numbers as in {format_shape(element.spec.shape)}",
            got=format_shape(tuple(wanted)),
            hint=_of_stream(element.spec.item_numbers, wanted) if element.spec.is_stream else None,
        ) from None
    if made == element.spec.shape:
        return element
    return (
        Constant(element.value.reshape(made)) if isinstance(element, Constant) else make_view(RESHAPE, (element,), made)
    )


@public
def permute_dims(x: Operand, axes: Sequence[int]) -> Any:
    """Permute the axes of the value; the stream stays axis 0.

    Args:
        x: any element.
        axes: for each axis of the result the axis of `x`.

    Raises:
        SpecError: if `axes` names not each axis once, or moves the stream.
    """
    element = as_element(x, "permute_dims")
    order = wholes("permute_dims", "axes", axes)
    normal = [axis + element.ndim if axis < 0 else axis for axis in order]
    if sorted(normal) != list(range(element.ndim)):
        raise SpecError(
            "cannot take axes=",
            element="permute_dims",
            site=user_site(),
            expected=f"an order of {tuple(range(element.ndim))}",
            got=str(tuple(order)),
        )
    if element.spec.is_stream:
        if normal[0] != 0:
            raise SpecError(
                "cannot move the stream away from axis 0",
                element="permute_dims",
                site=user_site(),
                expected="axis 0 first",
                got=str(tuple(order)),
                hint="x.T @ y is a fold over the stream",
            )
        normal = [axis - 1 for axis in normal[1:]]
    if normal == sorted(normal):
        return element
    if isinstance(element, Constant):
        return Constant(element.value.transpose(normal))
    return make_view(PERMUTE, (element,), tuple(element.spec.shape[axis] for axis in normal), axes=tuple(normal))


@public
def moveaxis(x: Operand, source: int | tuple[int, ...], destination: int | tuple[int, ...]) -> Any:
    """Move some axes elsewhere, the others in their order; see `permute_dims`.

    Args:
        x: any element.
        source: axes of `x`.
        destination: their places in the result.

    Raises:
        SpecError: if there are not as many places as axes, or the stream would move.
    """
    element = as_element(x, "moveaxis")
    old, new = wholes("moveaxis", "source", source), wholes("moveaxis", "destination", destination)
    if len(old) != len(new):
        raise SpecError(
            "cannot move axes to another number of places",
            element="moveaxis",
            site=user_site(),
            expected=f"{len(old)} places for {source}",
            got=str(destination),
        )
    for places in (old, new):
        normalise_axes("moveaxis", element, tuple(places))
    moved = [axis % element.ndim for axis in old]
    order = [axis for axis in range(element.ndim) if axis not in moved]
    for place, axis in sorted(zip((place % element.ndim for place in new), moved, strict=True)):
        order.insert(place, axis)
    return permute_dims(element, order)


@public
def flip(x: Operand, axis: int | tuple[int, ...] | None = None) -> Any:
    """Reverse the value along some axes; None means all of them, for a resident value only.

    Args:
        x: any element.
        axis: one axis or several.

    Raises:
        SpecError: if that would turn the stream around.
    """
    element = as_element(x, "flip")
    turned = {item_axis("flip", element, one) for one in normalise_axes("flip", element, axis)}
    lead = [slice(None)] * element.spec.is_stream
    keys = [slice(None, None, -1) if item in turned else slice(None) for item in range(len(element.spec.shape))]
    return Element.apply("index", element, (*lead, *keys))


@public
def expand_dims(x: Operand, axis: int | tuple[int, ...] = 0) -> Any:
    """Insert new axes of size 1 at `axis` of the result; not before the stream.

    Args:
        x: any element.
        axis: one place or several, counted in the result.

    Raises:
        SpecError: for a place out of range or named twice, or before the stream.
    """
    element = as_element(x, "expand_dims")
    places = wholes("expand_dims", "axis", axis, expected="an int or a tuple of ints")
    ndim = element.ndim + len(places)
    for place in places:
        if not -ndim <= place < ndim:
            raise SpecIndexError(
                f"cannot insert an axis at {place}",
                element="expand_dims",
                site=user_site(),
                expected=f"{-ndim} to {ndim - 1}",
                got=str(element.spec),
            )
    new = {place % ndim for place in places}
    if len(new) != len(places):
        raise SpecError(
            "cannot insert two axes at one place",
            element="expand_dims",
            site=user_site(),
            expected="each place once",
            got=short_repr(axis),
        )
    return Element.apply("index", element, tuple(None if place in new else slice(None) for place in range(ndim)))


@public
def squeeze(x: Operand, axis: int | tuple[int, ...] | None = None) -> Any:
    """Remove axes of size 1.

    Args:
        x: any element.
        axis: one axis or several, each of size 1. None is all of the items' axes (all axes of a resident value) whose
            size is 1.

    Raises:
        SpecError: if such an axis is longer, or the stream.
    """
    element = as_element(x, "squeeze")
    if axis is None and element.spec.length == 1:
        raise SpecError(
            "cannot remove the stream axis, whose size is 1",
            element="squeeze",
            site=user_site(),
            expected="axis= for what is to be removed",
            got=str(element.spec),
            hint="x[0] is the only record of a stream",
        )
    alone = [one for one, size in enumerate(element.spec.shape) if size == 1]
    named = () if axis is None else wholes("squeeze", "axis", axis, expected="an int, a tuple of ints or None")
    dropped = set(alone) if axis is None else {item_axis("squeeze", element, one) for one in named}
    for one in dropped:
        if element.spec.shape[one] != 1:
            raise SpecError(
                "cannot remove an axis whose size is not 1",
                element="squeeze",
                site=user_site(),
                expected="axes of size 1",
                got=str(element.spec),
            )
    keys: list[Any] = [0 if item in dropped else slice(None) for item in range(len(element.spec.shape))]
    return Element.apply("index", element, (*[slice(None)] * element.spec.is_stream, *keys))


@public
def broadcast_to(x: Operand, shape: Sequence[int]) -> Any:
    """Broadcast the value along axes of size 1, and a resident value along new ones, without a copy.

    Args:
        x: any element.
        shape: the shape it has then; of a stream it begins with its length, or -1.

    Raises:
        SpecError: if it does not broadcast so.
    """
    element = as_element(x, "broadcast_to")
    wanted = tuple(_item_shape(element, "broadcast_to", shape))
    try:
        if element.spec.is_stream and len(wanted) != len(element.spec.shape):
            raise ValueError
        np.broadcast_to(np.broadcast_to(np.empty(()), element.spec.shape), wanted)
    except (OverflowError, TypeError, ValueError):
        raise SpecError(
            "cannot broadcast to this shape",
            element="broadcast_to",
            site=user_site(),
            expected=f"a shape that {format_shape(element.spec.shape)} broadcasts to",
            got=format_shape(wanted),
        ) from None
    return element if wanted == element.spec.shape else make_view(BROADCAST, (element,), wanted)
