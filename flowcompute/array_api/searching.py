"""Functions of the standard that index, search, sort, and find different numbers, by those of elements."""

from __future__ import annotations

from typing import Literal

from flowcompute.array_api.array import LazyArray, element_of, elements_of, in_arrays, operands_of, reduced
from flowcompute.array_api.promotion import Scalar
from flowcompute.elements import axes, math, search, streams
from flowcompute.elements.streams import UniqueCountsResult


def argmax(x: LazyArray, /, *, axis: int | None = None, keepdims: bool = False) -> LazyArray:
    """Return the index of the first largest number along `axis`, as int64; see `fc.argmax`."""
    return LazyArray(math.argmax(element_of("argmax", x), axis, keepdims=keepdims))


def argmin(x: LazyArray, /, *, axis: int | None = None, keepdims: bool = False) -> LazyArray:
    """Return the index of the first smallest number along `axis`, as int64; see `fc.argmin`."""
    return LazyArray(math.argmin(element_of("argmin", x), axis, keepdims=keepdims))


def count_nonzero(x: LazyArray, /, *, axis: int | tuple[int, ...] | None = None, keepdims: bool = False) -> LazyArray:
    """Count the numbers over `axis` that are not zero, as int64; see `fc.count_nonzero`."""
    return reduced("count_nonzero", x, axis, keepdims)


def nonzero(x: LazyArray, /) -> tuple[LazyArray, ...]:
    """Return the positions of numbers that are not zero, as streams for each axis; see `fc.nonzero`."""
    return tuple(map(LazyArray, search.nonzero(element_of("nonzero", x))))


def searchsorted(
    x1: LazyArray, x2: LazyArray, /, *, side: Literal["left", "right"] = "left", sorter: LazyArray | None = None
) -> LazyArray:
    """Return where numbers would be inserted in a sorted resident vector, as int64; see `fc.searchsorted`.

    Raises:
        SpecTypeError: if kinds of dtypes are mixed.
    """
    table, numbers = elements_of("searchsorted", x1, x2)
    order = None if sorter is None else element_of("searchsorted", sorter)
    return LazyArray(search.searchsorted(table, numbers, side=side, sorter=order))


def where(condition: LazyArray, x1: LazyArray | Scalar, x2: LazyArray | Scalar, /) -> LazyArray:
    """Choose `x1` where the condition is true, else `x2`; one of both may be a Python number. See `fc.where`.

    Raises:
        SpecTypeError: if kinds of dtypes are mixed.
    """
    return LazyArray(math.where(element_of("where", condition), *operands_of("where", x1, x2)))


def take(x: LazyArray, indices: LazyArray, /, *, axis: int | None = None) -> LazyArray:
    """Take the numbers at a resident vector of indices along an axis of items; see `fc.take`."""
    return LazyArray(axes.take(element_of("take", x), element_of("take", indices), axis))


def take_along_axis(x: LazyArray, indices: LazyArray, /, *, axis: int = -1) -> LazyArray:
    """Take numbers along an axis of items at places of their own; see `fc.take_along_axis`."""
    elements = element_of("take_along_axis", x), element_of("take_along_axis", indices)
    return LazyArray(search.take_along_axis(*elements, axis))


def sort(x: LazyArray, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> LazyArray:
    """Sort the numbers along an axis of items; NaN counts as the largest. See `fc.sort`."""
    return LazyArray(search.sort(element_of("sort", x), axis, descending=descending, stable=stable))


def argsort(x: LazyArray, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> LazyArray:
    """Return the places of numbers along an axis of items in their order, as int64; see `fc.argsort`."""
    return LazyArray(search.argsort(element_of("argsort", x), axis, descending=descending, stable=stable))


def unique_counts(x: LazyArray, /) -> UniqueCountsResult:
    """Return the different numbers, ascending, and how often each comes; see `fc.unique_counts`."""
    return in_arrays(streams.unique_counts(element_of("unique_counts", x)))


def unique_values(x: LazyArray, /) -> LazyArray:
    """Return the different numbers, ascending; see `fc.unique_values`."""
    return LazyArray(streams.unique_values(element_of("unique_values", x)))
