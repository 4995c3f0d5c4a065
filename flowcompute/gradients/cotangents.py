"""Cotangents: what a loss changes by when a value changes, as sums of elements, each perhaps scaled by a number.

A scale is a resident number such as 1/N of a mean. It stays outside until the end, so that a fold over the stream
runs before the number is known, and the file is read once. A value may lack axes along which it is the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from flowcompute.elements import Constant, Element, cast
from flowcompute.elements.axes import broadcast_to, expand_dims, reshape
from flowcompute.elements.creation import full_like
from flowcompute.elements.generated import index
from flowcompute.elements.math import any as any_of
from flowcompute.elements.math import multiply, sum, where
from flowcompute.elements.streams import cumulative_sum
from flowcompute.spec import BFLOAT16, BOOL, FLOAT16, FLOAT32, INT64


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
    made = sum(full(stream, value), tuple(axes), dtype=wide(value.dtype))
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
