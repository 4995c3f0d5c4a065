"""Element-wise operations evaluated with NumPy: what they mean, for the reference and for scans on the host."""

from __future__ import annotations

import numpy as np

from flowcompute.elements import Op
from flowcompute.elements.functions import UserOp
from flowcompute.engine.host.numpy_functions import evaluate
from flowcompute.ir import maximum, minimum
from flowcompute.spec import is_float


def elementwise(op: Op, dtype: np.dtype, arrays: list[np.ndarray]) -> np.ndarray:
    """Return the result in `dtype`, of operands in the dtypes that they are computed in."""
    name = op.name
    if isinstance(op, UserOp):
        result = evaluate(op.function, arrays, elementwise, cast)[op.result]
    elif name in ("maximum", "minimum"):
        result = (maximum if name == "maximum" else minimum)(*arrays)
    elif name == "pow" and dtype.kind in "iu":
        result = _integer_power(*arrays)
    elif name == "reciprocal" and dtype.kind in "iu":
        result = np.where(arrays[0] == 0, 0, np.reciprocal(np.where(arrays[0] == 0, 1, arrays[0])))
    else:
        result = op.numpy(*arrays)
    # Stored by rounding to the nearest; what was computed in float32 for a half format is rounded here.
    return np.asarray(result).astype(dtype, copy=False)


def _integer_power(base: np.ndarray, exponent: np.ndarray) -> np.ndarray:
    """Compute NumPy's integer power, and truncation for the negative exponents that NumPy refuses."""
    base, exponent = np.broadcast_arrays(base, exponent)
    negative = exponent < 0
    result = np.power(base, np.where(negative, 0, exponent))
    odd = (exponent & 1) != 0
    inverse = np.where(base == 1, 1, np.where(base == -1, np.where(odd, -1, 1), 0)) if base.dtype.kind == "i" else 0
    return np.where(negative, inverse, result).astype(base.dtype)


def cast(array: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Cast as flowcompute does: floats to integers saturate, NaN gives 0."""
    if not is_float(array.dtype) or dtype.kind not in "iu":
        return array.astype(dtype)
    wide = array.astype(np.float64 if array.dtype != np.float64 else array.dtype)
    whole = np.trunc(np.nan_to_num(wide, nan=0.0, posinf=np.inf, neginf=-np.inf))
    info = np.iinfo(dtype)
    # The largest integers are no floats: compare against the next power of two.
    high, low = whole >= float(info.max) + (info.bits < 54), whole <= float(info.min)
    inside = np.where(high | low, 0, whole).astype(dtype)
    return np.where(high, info.max, np.where(low, info.min, inside)).astype(dtype)
