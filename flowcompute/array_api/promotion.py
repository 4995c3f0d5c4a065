"""Type promotion by the standard's table: within a kind of dtypes, never between two."""

from __future__ import annotations

import numpy as np

from flowcompute.elements import user_site
from flowcompute.errors import SpecTypeError, short_repr
from flowcompute.spec import is_float

Scalar = bool | int | float
"""A Python number, which takes the dtype of the arrays beside it."""


def kind_of(dtype: np.dtype) -> str:
    """Return the standard's kind of a dtype: "bool", "integral" or "real floating"."""
    return "real floating" if is_float(dtype) else "bool" if dtype.kind == "b" else "integral"


def _takes(kind: str, scalar: Scalar) -> bool:
    """Check whether arrays of a kind take a Python number without leaving their kind."""
    if isinstance(scalar, bool):
        return kind == "bool"
    return kind == "real floating" or (kind == "integral" and isinstance(scalar, int))


def promoted(op: str, *operands: np.dtype | Scalar) -> np.dtype:
    """Return the dtype that arrays and Python numbers promote to.

    Args:
        op: the function that asks, for errors.
        operands: dtypes of arrays, and Python numbers, which only follow these.

    Raises:
        SpecTypeError: if kinds are mixed, or the standard has no dtype for them (uint64 beside a signed one). Also if
            there is no array among them.
    """
    dtypes = [operand for operand in operands if isinstance(operand, np.dtype)]
    scalars = [operand for operand in operands if not isinstance(operand, np.dtype)]
    if not dtypes:
        raise SpecTypeError(
            "cannot promote without an array",
            element=op,
            site=user_site(),
            expected="an array among the operands",
            got=", ".join(map(short_repr, scalars)) or "no operand",
            hint="asarray(number) makes an array",
        )
    kinds = {kind_of(dtype) for dtype in dtypes}
    result = np.result_type(*dtypes) if len(kinds) == 1 else None
    if result is None or kind_of(result) not in kinds or not all(_takes(kind_of(result), one) for one in scalars):
        raise SpecTypeError(
            "cannot mix kinds of dtypes",
            element=op,
            site=user_site(),
            expected="dtypes of one kind: bool, integers (no uint64 beside signed ones), or floats",
            got=" and ".join([*(dtype.name for dtype in dtypes), *(f"Python {type(one).__name__}" for one in scalars)]),
            hint="cast one with astype",
        )
    return result
