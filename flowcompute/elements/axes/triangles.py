"""Matrices by their diagonals: `diagonal`, `trace`, `tril`, `triu`, and the exchange of their axes."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from flowcompute.elements.arguments import whole
from flowcompute.elements.axes.shape import permute_dims, reshape
from flowcompute.elements.calls import public
from flowcompute.elements.compute import Compute, Constant, Operand, as_element, cast
from flowcompute.elements.element import Element
from flowcompute.elements.generated import index
from flowcompute.elements.math import (
    greater_equal,
    less_equal,
    logical_and,
    logical_or,
    matrix_transposed,
    normalise_axes,
    where,
)
from flowcompute.elements.math import sum as sum_along
from flowcompute.elements.op import MOST
from flowcompute.elements.site import user_site
from flowcompute.errors import SpecError
from flowcompute.spec import BOOL, INT64


@public
def matrix_transpose(x: Operand) -> Any:
    """Exchange the last two axes; also `x.mT`. Of a stream of rows the result is a transposed stream, as `x.T`.

    Raises:
        SpecError: with fewer than two axes.
    """
    return matrix_transposed(as_element(x, "matrix_transpose"))


@public
def diagonal(x: Operand, offset: int = 0, axis1: int = -2, axis2: int = -1) -> Any:
    """Return the diagonals of matrices, along a last axis of their own.

    Args:
        x: any element of at least two axes.
        offset: which diagonal: those above the main one are positive, those below it negative. One that lies outside
            is empty.
        axis1, axis2: the axes of rows and of columns, neither of them the stream.

    Raises:
        SpecError: for axes out of range, equal ones, or the stream.
    """
    element: Any = as_element(x, "diagonal")
    rows, columns = (
        normalise_axes("diagonal", element, whole("diagonal", name, axis, -MOST))[0]
        for name, axis in (("axis1", axis1), ("axis2", axis2))
    )
    if rows == columns or (element.spec.is_stream and 0 in (rows, columns)):
        raise SpecError(
            "cannot find the diagonal between these axes",
            element="diagonal",
            site=user_site(),
            expected="two axes of items" if element.spec.is_stream else "two axes",
            got=f"axes {axis1} and {axis2} of {element.spec}",
            hint="x[:, k] is column k of a stream of rows" if element.spec.is_stream else None,
        )
    others = [axis for axis in range(element.ndim) if axis not in (rows, columns)]
    matrices = permute_dims(element, (*others, rows, columns))
    height, width = matrices.spec.shape[-2:]
    above = max(-height, min(width, whole("diagonal", "offset", offset, -MOST)))
    count = max(0, min(height + min(above, 0), width - max(above, 0)))
    begin = above if above >= 0 else -above * width
    lead = (-1,) if element.spec.is_stream else ()
    numbers = reshape(matrices, (*lead, *matrices.spec.shape[:-2], height * width))
    return numbers[..., begin : begin + count * (width + 1) : width + 1]


@public
def trace(
    x: Operand, offset: int = 0, axis1: int = -2, axis2: int = -1, *, dtype: npt.DTypeLike | None = None
) -> Compute:
    """Sum the diagonals of matrices; arguments are those of `diagonal`, dtypes and order those of `sum`.

    Raises:
        SpecError: as `diagonal` and `sum`.
    """
    return sum_along(diagonal(as_element(x, "trace"), offset, axis1, axis2), -1, dtype=dtype)


@public
def tril(x: Operand, k: int = 0) -> Any:
    """Keep the lower triangles of matrices, and put 0 above diagonal `k`.

    Args:
        x: any element of at least two axes. A stream of rows is one matrix, whose rows are the records.
        k: the last diagonal that is kept; see `diagonal`.

    Raises:
        SpecError: with fewer than two axes.
    """
    return _triangle("tril", x, k)


@public
def triu(x: Operand, k: int = 0) -> Any:
    """Keep the upper triangles of matrices, and put 0 below diagonal `k`; otherwise as `tril`."""
    return _triangle("triu", x, k)


def _triangle(op: str, x: Operand, k: int) -> Any:
    element: Any = as_element(x, op)
    if element.ndim < 2:
        raise SpecError(
            "cannot find a triangle in fewer than two axes",
            element=op,
            site=user_site(),
            expected="matrices",
            got=str(element.spec),
        )
    # Farther than any matrix reaches, and far from where int64 wraps.
    offset = max(-MOST // 2, min(MOST // 2, whole(op, "k", k, -MOST)))
    height, width = element.shape[-2:]
    columns = np.arange(width, dtype=np.int64) - offset
    if element.spec.is_stream and element.ndim == 2:
        rows: Any = positions(element)[:, None]
    else:
        rows = Constant(np.arange(height, dtype=np.int64)[:, None])
    inside = (greater_equal if op == "tril" else less_equal)(rows, Constant(columns))
    return logical_and(element, inside) if element.dtype == BOOL else where(inside, element, 0)


def positions(stream: Any) -> Any:
    """Return the number of each record of a stream, from 0 on, as a stream of int64."""
    if stream.spec.length is not None:
        return index(stream.spec.length)
    axes = tuple(range(1, stream.ndim))
    one = logical_or(Element.apply("any", stream, axis=axes) if axes else stream, True)
    return Element.apply("cumulative_sum", cast(one, INT64), axis=0) - 1
