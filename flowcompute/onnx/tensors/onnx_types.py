"""The types of ONNX by their numbers, and the dtypes of elements that they are."""

from __future__ import annotations

from typing import Any

import numpy as np

from flowcompute.onnx.problems import Refusal
from flowcompute.spec import BFLOAT16

DTYPES: dict[int, np.dtype] = {
    1: np.dtype(np.float32),
    2: np.dtype(np.uint8),
    3: np.dtype(np.int8),
    4: np.dtype(np.uint16),
    5: np.dtype(np.int16),
    6: np.dtype(np.int32),
    7: np.dtype(np.int64),
    9: np.dtype(np.bool_),
    10: np.dtype(np.float16),
    11: np.dtype(np.float64),
    12: np.dtype(np.uint32),
    13: np.dtype(np.uint64),
    16: BFLOAT16,
}
"""Types whose dtype elements have."""

OTHERS = {
    0: "undefined", 8: "string", 14: "complex64", 15: "complex128", 17: "float8e4m3fn", 18: "float8e4m3fnuz",
    19: "float8e5m2", 20: "float8e5m2fnuz", 21: "uint4", 22: "int4", 23: "float4e2m1", 24: "float8e8m0", 25: "uint2",
    26: "int2",
}  # fmt: skip
"""Names of types that elements do not have."""

NARROW = {21: (4, False), 22: (4, True), 25: (2, False), 26: (2, True)}
"""Bits and signs of integers that are stored several in a byte, the first one lowest. Weights may be of them."""

STRING = 8


def dtype_of(number: Any) -> np.dtype:
    """Return the dtype of a type.

    Raises:
        Refusal: if elements have no such dtype.
    """
    found = DTYPES.get(number)
    if found is not None:
        return found
    if number == STRING:
        raise Refusal("string", "strings", "make numbers of the strings before the model")
    name = OTHERS.get(number, f"type {number}")
    raise Refusal("dtype", f"numbers of {name}", "export the model in float32, float16 or 8-bit integers")


def number_of(dtype: np.dtype) -> int:
    """Return the type of a dtype."""
    return next(number for number, one in DTYPES.items() if one == dtype)
