"""Dtypes of the standard, and its functions of dtypes."""

from __future__ import annotations

from typing import Any

import numpy as np

from flowcompute.array_api.array import LazyArray, check_device, element_of
from flowcompute.array_api.promotion import Scalar, promoted
from flowcompute.elements import creation, math
from flowcompute.elements.arguments import dtype_of, flag
from flowcompute.errors import SpecTypeError
from flowcompute.spec import BOOL, FLOAT32, FLOAT64, INT32, INT64, UINT8, UINT64

bool = BOOL
int8, int16, int32, int64 = np.dtype(np.int8), np.dtype(np.int16), INT32, INT64
uint8, uint16, uint32, uint64 = UINT8, np.dtype(np.uint16), np.dtype(np.uint32), UINT64
float32, float64 = FLOAT32, FLOAT64

DTYPES = {
    dtype.name: dtype for dtype in (bool, int8, int16, int32, int64, uint8, uint16, uint32, uint64, float32, float64)
}
"""The standard's dtypes by name; there are no complex ones."""


def astype(x: LazyArray, dtype: np.dtype, /, *, copy: Any = True, device: str | None = None) -> LazyArray:
    """Cast `x` to `dtype`; see `fc.astype`. With `copy=False` an array of that dtype is given back itself."""
    check_device("astype", device)
    element, wanted = element_of("astype", x), dtype_of("astype", dtype)
    if element.dtype == wanted:
        return LazyArray(element) if flag("astype", "copy", copy) else x
    return LazyArray(math.astype(element, wanted))


def can_cast(from_: np.dtype | LazyArray, to: np.dtype, /) -> Any:
    """Check whether a dtype promotes to another one, without a change of kind."""
    held, wanted = _dtype("can_cast", from_), dtype_of("can_cast", to)
    try:
        return promoted("can_cast", held, wanted) == wanted
    except SpecTypeError:
        return False


def finfo(type: np.dtype | LazyArray, /) -> Any:
    """Return the limits of a floating dtype: bits, eps, max, min, smallest_normal, dtype; see `fc.finfo`."""
    return creation.finfo(_dtype("finfo", type))


def iinfo(type: np.dtype | LazyArray, /) -> np.iinfo[Any]:
    """Return the limits of an integer dtype: bits, max, min, dtype; see `fc.iinfo`."""
    return creation.iinfo(_dtype("iinfo", type))


def isdtype(dtype: np.dtype, kind: np.dtype | str | tuple[np.dtype | str, ...]) -> Any:
    """Check whether a dtype is another one, of a kind by its name, or one of several of these; see `fc.isdtype`.

    float16 and bfloat16, which the standard does not have, are of the kind "real floating".
    """
    return creation.isdtype(dtype, kind)


def result_type(*arrays_and_dtypes: LazyArray | Scalar | np.dtype) -> np.dtype:
    """Return the dtype that arrays, dtypes and Python numbers promote to.

    Raises:
        SpecTypeError: if kinds are mixed, or there are Python numbers only.
    """
    return promoted("result_type", *(_operand(one) for one in arrays_and_dtypes))


def _operand(one: LazyArray | Scalar | np.dtype) -> np.dtype | Scalar:
    return one if isinstance(one, int | float) else _dtype("result_type", one)


def _dtype(op: str, given: np.dtype | LazyArray) -> np.dtype:
    return dtype_of(op, given) if isinstance(given, np.dtype) else element_of(op, given).dtype
