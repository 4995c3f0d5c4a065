"""Names of our dtypes in OpenCL C, in memory and in registers."""

from __future__ import annotations

import numpy as np

from flowcompute.ir import Var, register_dtype
from flowcompute.spec import BFLOAT16, BOOL, FLOAT16, FLOAT32, FLOAT64

_INTEGERS = {"i": {1: "char", 2: "short", 4: "int", 8: "long"}, "u": {1: "uchar", 2: "ushort", 4: "uint", 8: "ulong"}}


def memory_type(dtype: np.dtype) -> str:
    """Return the type of a dtype's numbers behind a pointer."""
    if dtype == BOOL:
        return "uchar"
    if dtype == BFLOAT16:
        return "ushort"
    if dtype == FLOAT16:
        return "half"
    return scalar_type(dtype)


def scalar_type(dtype: np.dtype) -> str:
    """Return the type of one number in a register (not of bools, which are masks)."""
    dtype = register_dtype(dtype)
    if dtype == FLOAT32:
        return "float"
    if dtype == FLOAT64:
        return "double"
    return _INTEGERS[dtype.kind][dtype.itemsize]


def vector(name: str, lanes: int) -> str:
    """Return the name of a vector type: `float`, 16 gives `float16`."""
    return name if lanes == 1 else f"{name}{lanes}"


def mask_type(mask_bytes: int, lanes: int) -> str:
    """Return the type of a mask. Comparisons of scalars give int."""
    return "int" if lanes == 1 else vector(_INTEGERS["i"][mask_bytes], lanes)


def var_type(var: Var) -> str:
    """Return the type of a value."""
    return type_of(var.dtype, var.lanes, var.mask_bytes)


def type_of(dtype: np.dtype, lanes: int, mask_bytes: int) -> str:
    """Return the type of `lanes` numbers in registers."""
    return mask_type(mask_bytes, lanes) if dtype == BOOL else vector(scalar_type(dtype), lanes)


def type_bytes(dtype: np.dtype, lanes: int, mask_bytes: int) -> int:
    """Return the bytes of `type_of`."""
    number = register_dtype(dtype).itemsize if dtype != BOOL else 4 if lanes == 1 else mask_bytes
    return lanes * number


def type_names(dtype: np.dtype, lanes: int) -> dict[str, str]:
    """Return the types that `{T}`, `{I}`, `{U}`, `{R}` and `{W}` stand for in an op's text."""
    register = register_dtype(dtype)
    size = register.itemsize
    return {
        "T": vector(scalar_type(register), lanes) if register != BOOL else mask_type(1, lanes),
        "I": vector(_INTEGERS["i"][size], lanes),
        "U": vector(_INTEGERS["u"][size], lanes),
        "R": vector("double" if size == 8 else "float", lanes),
        "W": str(8 * size),
    }


def dtype_class(dtype: np.dtype) -> str:
    """Return the key of an op's texts for a dtype."""
    register = register_dtype(dtype)
    return {"b": "bool", "i": "int", "u": "uint"}.get(register.kind, "float")


def quiet_nan(dtype: np.dtype) -> str:
    """Return the only NaN that is stored, which is NumPy's. OpenCL's NAN has other bits on some platforms."""
    return "as_double(0x7ff8000000000000UL)" if dtype == FLOAT64 else "as_float(0x7fc00000U)"
