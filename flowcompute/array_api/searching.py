"""Searching and indexing functions of the standard, by those of elements."""

from __future__ import annotations

from flowcompute.array_api.array import Array, element_of, operands_of, reduced
from flowcompute.array_api.promotion import Scalar
from flowcompute.elements import axes, math


def argmax(x: Array, /, *, axis: int | None = None, keepdims: bool = False) -> Array:
    """Return the index of the first largest number along `axis`, as int64; see `fc.argmax`."""
    return Array(math.argmax(element_of("argmax", x), axis, keepdims=keepdims))


def argmin(x: Array, /, *, axis: int | None = None, keepdims: bool = False) -> Array:
    """Return the index of the first smallest number along `axis`, as int64; see `fc.argmin`."""
    return Array(math.argmin(element_of("argmin", x), axis, keepdims=keepdims))


def count_nonzero(x: Array, /, *, axis: int | tuple[int, ...] | None = None, keepdims: bool = False) -> Array:
    """Count the numbers over `axis` that are not zero, as int64; see `fc.count_nonzero`."""
    return reduced("count_nonzero", x, axis, keepdims)


def where(condition: Array, x1: Array | Scalar, x2: Array | Scalar, /) -> Array:
    """Choose `x1` where the condition is true, else `x2`; one of both may be a Python number. See `fc.where`.

    Raises:
        SpecTypeError: if kinds of dtypes are mixed.
    """
    return Array(math.where(element_of("where", condition), *operands_of("where", x1, x2)))


def take(x: Array, indices: Array, /, *, axis: int | None = None) -> Array:
    """Take the numbers at a resident vector of indices along an axis of items; see `fc.take`."""
    return Array(axes.take(element_of("take", x), element_of("take", indices), axis))
