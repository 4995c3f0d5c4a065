"""Cotangents: what a loss changes by when a value changes, as sums of elements, each perhaps scaled by a number.

A scale is a resident number such as 1/N of a mean. It stays outside until the end, so that a fold over the stream
runs before the number is known, and the file is read once. A value may lack axes along which it is the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from flowcompute.elements import Compute, Constant, Element, Kind, cast
from flowcompute.elements.axes import broadcast_to, expand_dims, reshape
from flowcompute.elements.creation import full_like
from flowcompute.elements.generated import index
from flowcompute.elements.math import any as any_of
from flowcompute.elements.math import multiply, sum, where
from flowcompute.elements.streams import cumulative_sum
from flowcompute.imports import dataclass
from flowcompute.spec import BFLOAT16, BOOL, FLOAT16, FLOAT32, INT64, Spec


@dataclass(frozen=True)
class Term:
    """One term of a cotangent.

    Attributes:
        scale: a resident number, or None for 1.
        value: what it scales.
    """

    scale: Element | None
    value: Element

    def scaled(self, scale: Element | None) -> Element | None:
        """Return this term's scale times another."""
        if self.scale is None or scale is None:
            return scale if self.scale is None else self.scale
        return multiply(self.scale, scale)


def is_one(value: Any) -> bool:
    """Check whether a cotangent is the number 1, as at the beginning."""
    return isinstance(value, Constant) and value.ndim == 0 and bool(value.value == 1)


def times(cotangent: Any, slope: Any) -> Any:
    """Multiply a cotangent by a slope."""
    return slope if is_one(cotangent) and isinstance(slope, Element) else multiply(cotangent, slope)


def wide(dtype: np.dtype) -> np.dtype:
    """Return the dtype in which cotangents are summed over records."""
    return FLOAT32 if dtype in (FLOAT16, BFLOAT16) else dtype


def full(like: Any, value: Any) -> Any:
    """Return a cotangent with all axes of the value that it belongs to."""
    shape = like.spec.shape
    if not like.spec.is_stream:
        return broadcast_to(value, shape)
    if value.spec.is_stream:
        return broadcast_to(value, (-1, *shape))
    return where(full_like(like, True, BOOL), value, value)


def is_number(value: Any) -> bool:
    """Check whether a cotangent is one number for all places."""
    return not value.spec.is_stream and value.ndim == 0


def is_computed_number(value: Any) -> bool:
    """Check whether a value is a resident number that is not known yet."""
    return is_number(value) and not isinstance(value, Constant)


def summed_to(like: Any, value: Any, shape: tuple[int, ...], in_stream: bool, stream: Any) -> Any:
    """Sum a cotangent over the axes along which an operand was broadcast.

    Args:
        like: the operand.
        value: the cotangent of what it was broadcast to.
        shape: item shape of that (all of it for residents).
        in_stream: whether that is a stream.
        stream: a stream of that shape, where it is one.
    """
    own = like.spec.shape
    lead, stays = int(in_stream), int(like.spec.is_stream)
    missing = len(shape) - len(own)
    axes = [i + lead for i, size in enumerate(shape) if i < missing or (own[i - missing] == 1 and size != 1)]
    axes += [0] * (lead - stays)
    if not axes:
        return value
    # Kept axes of size 1 need no view afterwards, behind which nothing would fuse.
    kept = not missing and lead == stays
    made = sum(full(stream, value), tuple(axes), dtype=wide(value.dtype), keepdims=kept)
    return reshape(made, (*(-1,) * stays, *own)) if made.spec.shape != own else made


def count_of(stream: Any, dtype: np.dtype) -> Any:
    """Return how many records a stream has, as a resident number."""
    length = stream.spec.length
    if length is not None:
        return Constant(np.asarray(length, dtype))
    numbers = any_of(stream, tuple(range(1, stream.ndim))) if stream.ndim > 1 else stream
    return cast(sum(full_like(numbers, 1, INT64)), dtype)


def positions(stream: Any) -> Any:
    """Return the number of each record of a stream, from 0 on, as a stream of int64."""
    length = stream.spec.length
    if length is not None:
        return index(length)
    numbers = any_of(stream, tuple(range(1, stream.ndim))) if stream.ndim > 1 else stream
    return cumulative_sum(full_like(numbers, 1, INT64), 0, exclusive=True)


def with_axes(value: Any, axes: tuple[int, ...]) -> Any:
    """Insert item axes of size 1 at places of the result; a number stays as it is."""
    if is_number(value) or not axes:
        return value
    return expand_dims(value, tuple(axis + value.spec.is_stream for axis in axes))


def beside(numbers: Any, like: Any) -> Any:
    """Return a stream of numbers with as many axes as another stream."""
    return expand_dims(numbers, tuple(range(1, like.ndim))) if like.ndim > 1 else numbers


_MOST_KEPT = 32
"""Operations on results of rows that are made again with these axes kept."""


def kept_axes(value: Any, axes: tuple[int, ...]) -> Any:
    """Insert item axes of size 1, as `with_axes`, without a view where the value is made of reductions of these axes.

    Such a view ends the kernel: what is computed of rows would be stored for another one. Instead the reductions are
    made again with their axes kept, and with them what was computed of their results. Both forms are one sweep.
    """
    if not value.spec.is_stream or not axes:
        return with_axes(value, axes)
    order: list[Any] = []
    todo, seen, reduced = [value], {id(value)}, False
    while todo:
        one = todo.pop()
        order.append(one)
        if _is_reduced(one, axes):
            reduced = True
        elif _is_mapped(one, value):
            todo += [each for each in one.inputs if id(each) not in seen]
            seen.update(id(each) for each in one.inputs)
    if not reduced or len(order) > _MOST_KEPT:
        return with_axes(value, axes)
    made: dict[int, Any] = {}

    def kept(one: Any) -> Any:
        if id(one) not in made:
            made[id(one)] = _kept(one, value, axes, kept)
        return made[id(one)]

    return kept(value)


def _kept(one: Any, value: Any, axes: tuple[int, ...], kept: Callable[[Any], Any]) -> Any:
    """Return one of the values that `kept_axes` looks at, with the axes."""
    if not one.spec.is_stream and not one.ndim:
        return one
    if not _is_reduced(one, axes) and not _is_mapped(one, value):
        return with_axes(one, axes)
    shape = list(one.spec.shape)
    for axis in sorted(axes):
        shape.insert(axis, 1)
    spec = Spec(one.dtype, tuple(shape), one.spec.stream)
    if _is_reduced(one, axes):
        return Compute(one.op, one.inputs, spec, {**one.attrs, "keepdims": True})
    return Compute(one.op, tuple(kept(each) for each in one.inputs), spec, one.attrs)


def _is_reduced(one: Any, axes: tuple[int, ...]) -> bool:
    """Check whether a value is a reduction of these axes of items, which it lacks."""
    # A product of vectors is a reduction too, but keeps no axis.
    known = isinstance(one, Compute) and one.op.kind is Kind.REDUCE and one.spec.is_stream and len(one.inputs) == 1
    return known and one.attrs.get("axes") == axes and one.attrs.get("keepdims") is False


def _is_mapped(one: Any, value: Any) -> bool:
    """Check whether a value is computed number by number of values of its shape, and of numbers."""
    return (
        type(one) is Compute
        and one.op.kind is Kind.ELEMENTWISE
        and one.spec.shape == value.spec.shape
        and bool(one.inputs)
        and all((each.spec.is_stream and each.spec.shape == one.spec.shape) or not each.ndim for each in one.inputs)
    )
