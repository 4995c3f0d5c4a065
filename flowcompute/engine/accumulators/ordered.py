"""Numbers as integers of the same order, so that comparing them is exact and says where NaN and the zeros stand."""

from __future__ import annotations

import numpy as np

from flowcompute.ir import canonical_nan
from flowcompute.spec import BOOL, is_float


def to_ordered(values: np.ndarray, nan_first: bool = False) -> np.ndarray:
    """Return integers in the order of `values`: -0 before +0, NaN after all numbers (before them if `nan_first`)."""
    if values.dtype == BOOL:
        return values.view(np.uint8)
    if not is_float(values.dtype):
        return values
    ordered = _flipped(values.view(f"i{values.dtype.itemsize}"))
    info = np.iinfo(ordered.dtype)
    np.copyto(ordered, info.min if nan_first else info.max, where=np.isnan(values))
    return ordered


def from_ordered(ordered: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Return the numbers of `dtype` that these integers stand for."""
    if is_float(dtype):
        return canonical_nan(_flipped(ordered).view(dtype))
    return ordered.view(dtype)


def _flipped(bits: np.ndarray) -> np.ndarray:
    """Turn sign and magnitude into two's complement, and back: of negative numbers all bits but the sign change."""
    width = 8 * bits.dtype.itemsize
    return np.asarray(bits ^ ((bits >> (width - 1)) & np.iinfo(bits.dtype).max))
