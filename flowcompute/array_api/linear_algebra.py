"""Linear algebra functions of the standard's main namespace, by those of elements."""

from __future__ import annotations

from collections.abc import Sequence

from flowcompute.array_api.array import LazyArray, binary, element_of, elements_of
from flowcompute.elements import math, products
from flowcompute.elements.arguments import whole


def matmul(x1: LazyArray, x2: LazyArray, /) -> LazyArray:
    """Multiply matrices, or stacks of them; see `fc.matmul`.

    Raises:
        SpecTypeError: if kinds of dtypes are mixed.
    """
    return binary("matmul", x1, x2)


def matrix_transpose(x: LazyArray, /) -> LazyArray:
    """Exchange the last two axes; of a stream of rows the result is what `matmul` takes on its left."""
    element_of("matrix_transpose", x)
    return x.mT


def tensordot(x1: LazyArray, x2: LazyArray, /, *, axes: int | tuple[Sequence[int], Sequence[int]] = 2) -> LazyArray:
    """Sum products over pairs of axes; see `fc.tensordot`.

    Raises:
        SpecTypeError: if kinds of dtypes are mixed.
    """
    left, right = elements_of("tensordot", x1, x2)
    return LazyArray(products.tensordot(left, right, axes))


def vecdot(x1: LazyArray, x2: LazyArray, /, *, axis: int = -1) -> LazyArray:
    """Return dot products of vectors along an axis, which is counted from the last one; see `fc.vecdot`.

    Raises:
        SpecError: for an axis that is not one of both, or sizes that differ there.
        SpecTypeError: if kinds of dtypes are mixed.
    """
    left, right = elements_of("vecdot", x1, x2)
    ndim = min(left.ndim, right.ndim)
    return LazyArray(math.vecdot(left, right, whole("vecdot", "axis", axis, -ndim, -1, f"-{ndim} to -1")))
