"""Functions of the standard that index, search, sort, and find different numbers, by those of elements."""

from __future__ import annotations

from typing import Literal, NamedTuple

from flowcompute.array_api.array import Array, element_of, elements_of, operands_of, reduced
from flowcompute.array_api.promotion import Scalar
from flowcompute.elements import axes, math, search, streams


def argmax(x: Array, /, *, axis: int | None = None, keepdims: bool = False) -> Array:
    """Return the index of the first largest number along `axis`, as int64; see `fc.argmax`."""
    return Array(math.argmax(element_of("argmax", x), axis, keepdims=keepdims))


def argmin(x: Array, /, *, axis: int | None = None, keepdims: bool = False) -> Array:
    """Return the index of the first smallest number along `axis`, as int64; see `fc.argmin`."""
    return Array(math.argmin(element_of("argmin", x), axis, keepdims=keepdims))


def count_nonzero(x: Array, /, *, axis: int | tuple[int, ...] | None = None, keepdims: bool = False) -> Array:
    """Count the numbers over `axis` that are not zero, as int64; see `fc.count_nonzero`."""
    return reduced("count_nonzero", x, axis, keepdims)


def nonzero(x: Array, /) -> tuple[Array, ...]:
    """Return the positions of numbers that are not zero, as streams for each axis; see `fc.nonzero`."""
    return tuple(map(Array, search.nonzero(element_of("nonzero", x))))


def searchsorted(
    x1: Array, x2: Array, /, *, side: Literal["left", "right"] = "left", sorter: Array | None = None
) -> Array:
    """Return where numbers would be inserted in a sorted resident vector, as int64; see `fc.searchsorted`.

    Raises:
        SpecTypeError: if kinds of dtypes are mixed.
    """
    table, numbers = elements_of("searchsorted", x1, x2)
    order = None if sorter is None else element_of("searchsorted", sorter)
    return Array(search.searchsorted(table, numbers, side=side, sorter=order))


def where(condition: Array, x1: Array | Scalar, x2: Array | Scalar, /) -> Array:
    """Choose `x1` where the condition is true, else `x2`; one of both may be a Python number. See `fc.where`.

    Raises:
        SpecTypeError: if kinds of dtypes are mixed.
    """
    return Array(math.where(element_of("where", condition), *operands_of("where", x1, x2)))


def take(x: Array, indices: Array, /, *, axis: int | None = None) -> Array:
    """Take the numbers at a resident vector of indices along an axis of items; see `fc.take`."""
    return Array(axes.take(element_of("take", x), element_of("take", indices), axis))


def take_along_axis(x: Array, indices: Array, /, *, axis: int = -1) -> Array:
    """Take numbers along an axis of items at places of their own; see `fc.take_along_axis`."""
    elements = element_of("take_along_axis", x), element_of("take_along_axis", indices)
    return Array(search.take_along_axis(*elements, axis))


def sort(x: Array, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Array:
    """Sort the numbers along an axis of items; NaN counts as the largest. See `fc.sort`."""
    return Array(search.sort(element_of("sort", x), axis, descending=descending, stable=stable))


def argsort(x: Array, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Array:
    """Return the places of numbers along an axis of items in their order, as int64; see `fc.argsort`."""
    return Array(search.argsort(element_of("argsort", x), axis, descending=descending, stable=stable))


class UniqueCountsResult(NamedTuple):
    """Different numbers, ascending, and how often each comes."""

    values: Array
    counts: Array


def unique_counts(x: Array, /) -> UniqueCountsResult:
    """Return the different numbers, ascending, and how often each comes; see `fc.unique_counts`."""
    return UniqueCountsResult(*map(Array, streams.unique_counts(element_of("unique_counts", x))))


def unique_values(x: Array, /) -> Array:
    """Return the different numbers, ascending; see `fc.unique_values`."""
    return Array(streams.unique_values(element_of("unique_values", x)))
