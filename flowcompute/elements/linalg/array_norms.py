"""Norms, composed of element-wise functions and reductions: over items, and as folds over the stream."""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np

from flowcompute.elements.arguments import flag, real, wholes
from flowcompute.elements.axes import expand_dims, permute_dims
from flowcompute.elements.calls import public
from flowcompute.elements.compute import Operand, as_element, cast
from flowcompute.elements.element import Element
from flowcompute.elements.linalg.factorising import svdvals
from flowcompute.elements.linalg.host_records import check_matrix
from flowcompute.elements.math import Axis, abs, max, min, normalise_axes, not_equal, pow, sqrt, square, sum
from flowcompute.elements.site import user_site
from flowcompute.errors import SpecError, short_repr
from flowcompute.spec import BFLOAT16, FLOAT16, FLOAT32, FLOAT64, is_float

Order = float | Literal["fro", "nuc"]


def _measured(op: str, x: Operand) -> tuple[Any, np.dtype]:
    """Return the operand in the dtype that norms are computed in, and the dtype of the result.

    Integers and bools are measured in float64, half formats in float32, as by `mean`.
    """
    element = as_element(x, op)
    if not is_float(element.dtype):
        return cast(element, FLOAT64), FLOAT64
    return cast(element, FLOAT32 if element.dtype in (FLOAT16, BFLOAT16) else element.dtype), element.dtype


def _order(op: str, order: Any, words: tuple[str, ...] = ()) -> Any:
    if isinstance(order, str) and order in words:
        return order
    expected = " or ".join(("a number", *map(repr, words)))
    number = real(op, "ord", order, expected)
    if math.isnan(number):
        raise SpecError("cannot take ord=", element=op, site=user_site(), expected=expected, got="nan")
    return number


@public
def vector_norm(x: Operand, *, axis: Axis = None, keepdims: bool = False, ord: float = 2) -> Element:
    """Return norms of vectors: `sum(abs(x)**ord) ** (1 / ord)` over `axis`.

    `ord` may be `inf` and `-inf` for the largest and the smallest absolute value, and 0 for how many numbers are not
    zero. Over the stream it is a fold, of one reading. Squares are not scaled: they overflow as NumPy's do.

    Args:
        x: any element. Integers are measured in float64.
        axis: an axis, several, or None for all; the stream is axis 0.
        keepdims: whether reduced axes stay, with size 1.
        ord: the order of the norm.

    Raises:
        SpecError: for an axis out of range, or an order that is no number.
    """
    element, result = _measured("vector_norm", x)
    order, keep = _order("vector_norm", ord), flag("vector_norm", "keepdims", keepdims)
    axes = normalise_axes("vector_norm", element, axis)
    return cast(_vector_norm(element, axes, order, keep), result)


def _vector_norm(x: Any, axes: tuple[int, ...], order: float, keepdims: bool) -> Any:
    if order == 2:
        return sqrt(sum(square(x), axes, keepdims=keepdims))
    if order == 0:
        return cast(sum(not_equal(x, 0), axes, keepdims=keepdims), x.dtype)
    size = abs(x)
    if math.isinf(order):
        return max(size, axes, keepdims=keepdims) if order > 0 else min(size, axes, keepdims=keepdims)
    if order == 1:
        return sum(size, axes, keepdims=keepdims)
    return pow(sum(pow(size, order), axes, keepdims=keepdims), 1 / order)


MATRIX_ORDERS = ("fro", "nuc")
_NUMBERS = (1, 2, math.inf)


@public
def matrix_norm(x: Operand, *, keepdims: bool = False, ord: Order = "fro") -> Element:
    """Return norms of matrices `(..., m, n)`, of shape `(...)`.

    Args:
        x: matrices: the last two axes, which must be axes of items.
        keepdims: whether the last two axes stay, with size 1.
        ord: "fro" for the root of the sum of squares, "nuc" for the sum of singular values. 1 and -1 stand for the
            largest and smallest sum of a column, inf and -inf for those of a row. 2 and -2 stand for the largest and
            smallest singular value. Singular values are computed by LAPACK on the host, in float32 or float64.

    Raises:
        SpecError: if `x` is no matrix, or for another order.
    """
    order, keep = _order("matrix_norm", ord, MATRIX_ORDERS), flag("matrix_norm", "keepdims", keepdims)
    if not isinstance(order, str) and math.fabs(order) not in _NUMBERS:
        raise SpecError(
            "cannot take ord=",
            element="matrix_norm",
            site=user_site(),
            expected='"fro", "nuc", 1, -1, 2, -2, inf or -inf',
            got=short_repr(ord),
        )
    element, result = _measured("matrix_norm", x)
    check_matrix("matrix_norm", element)
    rows, columns = element.ndim - 2, element.ndim - 1
    if order == "fro":
        return cast(_vector_norm(element, (rows, columns), 2, keep), result)
    if order in ("nuc", 2, -2):
        values = svdvals(element)
        reduce = sum if order == "nuc" else max if order == 2 else min
        made: Any = reduce(values, rows)
        return cast(expand_dims(made, (rows, columns)) if keep else made, result)
    sums = sum(abs(element), rows if math.fabs(order) == 1 else columns, keepdims=True)
    return cast((max if order > 0 else min)(sums, (rows, columns), keepdims=keep), result)


@public
def norm(x: Operand, ord: Order | None = None, axis: Axis = None, keepdims: bool = False) -> Element:
    """Return norms of vectors or matrices as `numpy.linalg.norm` does.

    Args:
        x: any element.
        ord: the order, as of `vector_norm` for one axis and of `matrix_norm` for two. None is the root of the sum of
            squares over any axes.
        axis: one axis for vectors, two for matrices; None for all of `x`, which has at most two axes if `ord` is given.
        keepdims: whether reduced axes stay, with size 1.

    Raises:
        SpecError: for an axis out of range, an order that vectors or matrices have not, or more than two axes with
            an order. A matrix of which one axis is the stream has the orders None and "fro".
    """
    element = as_element(x, "norm")
    given = None if axis is None else wholes("norm", "axis", axis, expected="an int, a tuple of ints or None")
    axes = normalise_axes("norm", element, axis)
    if ord is None or (len(axes) == 2 and isinstance(ord, str) and ord == "fro"):
        return vector_norm(element, axis=axes, keepdims=keepdims)
    if len(axes) == 1:
        return vector_norm(element, axis=axes, keepdims=keepdims, ord=_order("norm", ord))
    if len(axes) != 2:
        raise SpecError(
            "cannot take a norm of this order over these axes",
            element="norm",
            site=user_site(),
            expected="one axis for vectors, or two for matrices",
            got=f"{len(axes)} axes",
            hint="fc.linalg.vector_norm takes any axes",
        )
    order = [one % element.ndim for one in given] if given is not None else list(axes)
    others = [one for one in range(element.ndim) if one not in order]
    if element.spec.is_stream and 0 in order:
        raise SpecError(
            "cannot take this norm of a matrix of which one axis is the stream",
            element="norm",
            site=user_site(),
            expected='ord=None or "fro"',
            got=short_repr(ord),
        )
    made: Any = matrix_norm(permute_dims(element, (*others, *order)), ord=ord)
    if not flag("norm", "keepdims", keepdims):
        return made  # type: ignore[no-any-return]
    return expand_dims(made, tuple(sorted(order)))  # type: ignore[no-any-return]
