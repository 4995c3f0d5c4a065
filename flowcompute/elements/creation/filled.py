"""Values that are known when composed: filled with one number, evenly spaced, or ones on a diagonal.

What is filled holds its number once until it is computed. Beside a stream it is generated where it is needed.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from flowcompute.elements.arguments import dtype_of, flag, real, whole, wholes
from flowcompute.elements.axes import broadcast_to
from flowcompute.elements.calls import public
from flowcompute.elements.compute import Constant, Operand, as_element, cast
from flowcompute.elements.element import Element
from flowcompute.elements.generated import index
from flowcompute.elements.math import equal, greater_equal, where
from flowcompute.elements.op import MOST, MOST_AXES
from flowcompute.elements.site import user_site
from flowcompute.errors import SpecError, SpecTypeError, short_repr
from flowcompute.spec import BFLOAT16, FLOAT64, is_float

Shape = int | tuple[int, ...]

MOST_SPACED = 1 << 24
"""Numbers of an axis that are stored one by one."""


@public
def zeros(shape: Shape, dtype: npt.DTypeLike = "float64") -> Element:
    """Return a resident value of zeros; see `full`."""
    return _filled(_shape("zeros", shape), _number("zeros", 0, dtype))


@public
def ones(shape: Shape, dtype: npt.DTypeLike = "float64") -> Element:
    """Return a resident value of ones; see `full`."""
    return _filled(_shape("ones", shape), _number("ones", 1, dtype))


@public
def empty(shape: Shape, dtype: npt.DTypeLike = "float64") -> Element:
    """Return a resident value of zeros: nothing can be written to an element, so none is left unset."""
    return _filled(_shape("empty", shape), _number("empty", 0, dtype))


@public
def full(shape: Shape, fill_value: float, dtype: npt.DTypeLike | None = None) -> Element:
    """Return a resident value that has one number everywhere. It is made when it is needed, not when it is composed.

    Args:
        shape: its shape: an int, or ints from 0 on.
        fill_value: a number.
        dtype: by default bool, int64 or float64 for Python's numbers, and their own for NumPy's.

    Raises:
        SpecError: for a shape of negative sizes or 2**63 numbers, or an integer dtype that cannot hold the number.
    """
    return _filled(_shape("full", shape), _number("full", fill_value, dtype))


@public
def zeros_like(x: Operand, dtype: npt.DTypeLike | None = None) -> Element:
    """Return zeros of the shape of `x`; see `full_like`."""
    return _like("zeros_like", x, 0, dtype)


@public
def ones_like(x: Operand, dtype: npt.DTypeLike | None = None) -> Element:
    """Return ones of the shape of `x`; see `full_like`."""
    return _like("ones_like", x, 1, dtype)


@public
def empty_like(x: Operand, dtype: npt.DTypeLike | None = None) -> Element:
    """Return zeros of the shape of `x`, as `zeros_like`: nothing can be written to an element."""
    return _like("empty_like", x, 0, dtype)


@public
def full_like(x: Operand, fill_value: float, dtype: npt.DTypeLike | None = None) -> Element:
    """Return a value of the shape of `x` that has one number everywhere.

    Of a stream it is a stream that advances with `x`. Where the length is known its numbers are generated, and `x` is
    not read for them. Where it is not, `x` says with each record that there is one more.

    Args:
        x: any element.
        fill_value: a number.
        dtype: that of `x` by default.

    Raises:
        SpecError: for an integer dtype that cannot hold the number.
    """
    return _like("full_like", x, fill_value, dtype)


def _like(op: str, x: Operand, fill_value: Any, dtype: npt.DTypeLike | None) -> Element:
    element = as_element(x, op)
    number = _number(op, fill_value, element.dtype if dtype is None else dtype)
    if not element.spec.is_stream:
        return _filled(element.spec.shape, number)
    length = element.spec.length
    # True at every record and for every number, without looking at any number where the length is known.
    there = equal(element, element) if length is None else greater_equal(index(length, element.spec.shape), 0)
    return where(there, number, number)


def _filled(shape: tuple[int, ...], number: Constant) -> Element:
    return broadcast_to(number, shape) if shape else number


def _shape(op: str, shape: Any) -> tuple[int, ...]:
    sizes = wholes(op, "shape", shape, least=0, expected="an int or a tuple of ints from 0 on")
    if len(sizes) > MOST_AXES or math.prod(size for size in sizes if size) >= MOST:
        raise SpecError(
            "cannot make a value of this shape",
            element=op,
            site=user_site(),
            expected=f"at most {MOST_AXES} axes and fewer than 2**63 numbers",
            got=short_repr(shape),
        )
    return tuple(sizes)


def _number(op: str, value: Any, dtype: npt.DTypeLike | None) -> Constant:
    """Return a number as a constant.

    Raises:
        SpecTypeError: if it is no real number.
        SpecError: if the dtype holds another number instead; floats may round.
    """
    if not isinstance(value, bool | int | float | np.bool_ | np.integer | np.floating | BFLOAT16.type):
        raise SpecTypeError(
            "cannot take fill_value=",
            element=op,
            site=user_site(),
            expected="a real number",
            got=short_repr(value),
            hint="fc.broadcast_to repeats an array or an element",
        )
    constant = Constant(value)
    if dtype is None:
        return constant
    wanted = dtype_of(op, dtype)
    with np.errstate(all="ignore"):
        held = constant.value.astype(wanted)
    if not is_float(wanted) and held != constant.value:
        raise SpecError(
            f"cannot hold this number in {wanted.name}",
            element=op,
            site=user_site(),
            expected=f"a number that {wanted.name} holds",
            got=f"fill_value={short_repr(value)}",
        )
    return Constant(held)


@public
def eye(n_rows: int, n_cols: int | None = None, k: int = 0, dtype: npt.DTypeLike = "float64") -> Element:
    """Return a resident matrix with ones on a diagonal and zeros elsewhere.

    Args:
        n_rows: rows.
        n_cols: columns; as many as rows by default.
        k: which diagonal; above 0 they lie to the right of the main one.
        dtype: of the result.

    Raises:
        SpecError: for sizes below 0 or above 2**24.
    """
    rows = whole("eye", "n_rows", n_rows, 0, MOST_SPACED)
    columns = rows if n_cols is None else whole("eye", "n_cols", n_cols, 0, MOST_SPACED)
    offset = min(max(whole("eye", "k", k, -MOST), -rows), columns)
    wanted = dtype_of("eye", dtype)
    places = equal(Constant(np.arange(rows)[:, None] + offset), Constant(np.arange(columns)))
    return cast(places, wanted)


@public
def linspace(
    start: float, stop: float, num: int = 50, *, dtype: npt.DTypeLike | None = None, endpoint: bool = True
) -> Constant:
    """Return evenly spaced numbers from `start` to `stop`, resident; `fc.range` is a stream.

    Args:
        start: the first number.
        stop: the last one; where they end if not `endpoint`.
        num: how many, at most 2**24.
        dtype: a dtype of floats; float64 by default. Numbers are computed in float64 and rounded once.
        endpoint: whether `stop` is among them.

    Raises:
        SpecError: for a negative `num`, numbers that are not finite, or another dtype.
    """
    first, last = (real("linspace", what, one) for what, one in (("start", start), ("stop", stop)))
    count = whole("linspace", "num", num, 0, MOST_SPACED)
    wanted = FLOAT64 if dtype is None else dtype_of("linspace", dtype)
    if not is_float(wanted) or not (math.isfinite(first) and math.isfinite(last)):
        raise SpecError(
            "cannot space these numbers",
            element="linspace",
            site=user_site(),
            expected="finite numbers, and a dtype of floats",
            got=f"{first} to {last} in {wanted.name}",
        )
    with np.errstate(all="ignore"):
        spaced = np.linspace(first, last, count, endpoint=flag("linspace", "endpoint", endpoint))
        return Constant(spaced.astype(wanted))
