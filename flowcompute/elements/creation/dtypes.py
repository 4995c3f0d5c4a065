"""Questions about dtypes, bfloat16 included; and the parts of numbers, all of which are real here."""

from __future__ import annotations

from functools import partial, reduce
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from flowcompute.elements.arguments import dtype_of, one_of
from flowcompute.elements.calls import public
from flowcompute.elements.compute import Operand, as_element
from flowcompute.elements.creation.filled import zeros_like
from flowcompute.elements.element import Element
from flowcompute.elements.op import by_ufunc
from flowcompute.elements.site import user_site
from flowcompute.errors import SpecError, SpecTypeError, short_repr
from flowcompute.spec import BOOL, is_float, parse_dtype

_WEAK = (bool, int, float)
_KINDS = ("bool", "signed integer", "unsigned integer", "integral", "real floating", "complex floating", "numeric")


def _dtype(op: str, value: Any) -> np.dtype:
    """Return the dtype of an element or an array, or the one that is given."""
    return dtype_of(op, value.dtype if isinstance(value, Element | np.ndarray | np.generic) else value)


def finfo(type: Element | np.ndarray | npt.DTypeLike, /) -> Any:
    """Return the limits of a dtype of floats, as `numpy.finfo`: bits, eps, max, min, smallest_normal, dtype.

    Args:
        type: a dtype, an element or an array.

    Raises:
        SpecTypeError: if it is no dtype of floats.
    """
    dtype = _dtype("finfo", type)
    if not is_float(dtype):
        raise SpecTypeError(
            "cannot tell the limits of floats",
            element="finfo",
            site=user_site(),
            expected="a dtype of floats",
            got=dtype.name,
            hint="use fc.iinfo",
        )
    return ml_dtypes.finfo(dtype)  # type: ignore[no-untyped-call]


def iinfo(type: Element | np.ndarray | npt.DTypeLike, /) -> np.iinfo:
    """Return the limits of a dtype of integers, as `numpy.iinfo`: bits, max, min, dtype.

    Args:
        type: a dtype, an element or an array.

    Raises:
        SpecTypeError: if it is no dtype of integers.
    """
    dtype = _dtype("iinfo", type)
    if dtype.kind not in "iu":
        raise SpecTypeError(
            "cannot tell the limits of integers",
            element="iinfo",
            site=user_site(),
            expected="a dtype of integers",
            got=dtype.name,
            hint="use fc.finfo" if is_float(dtype) else None,
        )
    return np.iinfo(dtype)


def isdtype(dtype: npt.DTypeLike, kind: npt.DTypeLike | str | tuple[Any, ...]) -> bool:
    """Check whether a dtype is of a kind of the Array API.

    Args:
        dtype: a dtype.
        kind: "bool", "signed integer", "unsigned integer", "integral", "real floating", "complex floating",
            "numeric", a dtype, or a tuple of these, one of which is enough.

    Raises:
        SpecError: for any other kind.
    """
    asked = _dtype("isdtype", dtype)
    kinds = kind if isinstance(kind, tuple) else (kind,)
    return any(list(map(partial(_is_kind, asked), kinds)))  # all of them are checked


def _is_kind(dtype: np.dtype, kind: Any) -> bool:
    if not isinstance(kind, str):
        return dtype == dtype_of("isdtype", kind)
    match one_of("isdtype", "kind", kind, _KINDS):
        case "bool":
            return dtype == BOOL
        case "signed integer":
            return dtype.kind == "i"
        case "unsigned integer":
            return dtype.kind == "u"
        case "integral":
            return dtype.kind in "iu"
        case "real floating":
            return is_float(dtype)
        case "numeric":
            return dtype != BOOL
    return False


def can_cast(from_: Element | np.ndarray | npt.DTypeLike, to: npt.DTypeLike, /) -> bool:
    """Check whether a dtype promotes to another without loss, as `numpy.can_cast` does.

    Args:
        from_: a dtype, an element or an array.
        to: a dtype.

    Raises:
        SpecTypeError: if either is none.
    """
    return bool(np.can_cast(_dtype("can_cast", from_), _dtype("can_cast", to)))


def result_type(*operands: Any) -> np.dtype:
    """Return the dtype that operands promote to. Python's numbers are weak: they take the dtype of the others.

    Args:
        operands: elements, arrays, dtypes and numbers, at least one.

    Raises:
        SpecTypeError: if there is no such dtype, or nothing is given.
    """
    weak = [one for one in operands if type(one) in _WEAK]
    dtypes = [_dtype("result_type", one) for one in operands if type(one) not in _WEAK]
    try:
        return parse_dtype(_promoted(dtypes, sorted({type(one) for one in weak}, key=_WEAK.index)))
    except (TypeError, ValueError) as error:
        raise SpecTypeError(
            "cannot find a common dtype",
            element="result_type",
            site=user_site(),
            expected="at least one operand, and dtypes that promote to one",
            got=", ".join(short_repr(one) for one in operands[:8]) or "nothing",
        ) from error


def _promoted(dtypes: list[np.dtype], weak: list[type]) -> np.dtype:
    """Return the dtype of dtypes and of Python's types of numbers, the narrower of these first."""
    if not dtypes:
        return np.result_type(*(one(0) for one in weak))
    try:
        strong = np.result_type(*dtypes)
    except TypeError:
        # Operations on bfloat16 and a dtype that it does not promote with are computed in a wider one.
        strong = reduce(_pair, dtypes)
    return reduce(_pair, weak, strong)


def _pair(one: np.dtype, other: np.dtype | type) -> np.dtype:
    return by_ufunc(np.maximum)(one, other)[-1]


@public
def real(x: Operand) -> Element:
    """Return the real part of numbers: the element itself, since all dtypes here are real.

    Raises:
        SpecError: for complex numbers. `fc.fft` has pairs of a real and an imaginary part.
    """
    return _of_real_numbers("real", x)


@public
def imag(x: Operand) -> Element:
    """Return the imaginary part of numbers: zeros, since all dtypes here are real; see `zeros_like`.

    Raises:
        SpecError: for complex numbers. `fc.fft` has pairs of a real and an imaginary part.
    """
    return zeros_like(_of_real_numbers("imag", x))


@public
def conj(x: Operand) -> Element:
    """Return the complex conjugate of numbers: the element itself, since all dtypes here are real.

    Raises:
        SpecError: for complex numbers. `fc.fft` has pairs of a real and an imaginary part.
    """
    return _of_real_numbers("conj", x)


def _of_real_numbers(op: str, x: Operand) -> Element:
    if isinstance(getattr(x, "dtype", None), np.dtype) and x.dtype.kind == "c":  # type: ignore[union-attr]
        raise SpecError(
            "cannot compute with complex numbers",
            element=op,
            site=user_site(),
            expected="real numbers",
            got=str(x.dtype),  # type: ignore[union-attr]
            hint="take x.real and x.imag of the array, as two sources",
        )
    return as_element(x, op)
