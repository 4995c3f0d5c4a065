"""The functions that a kernel may call: Python's `math` and NumPy's as operations of the tables."""

from __future__ import annotations

import builtins
import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from flowcompute.elements.math import ELEMENTWISE, POW, WHERE
from flowcompute.elements.op import Kind, Op, by_ufunc

FMOD = Op("fmod", 2, Kind.ELEMENTWISE, np.fmod, by_ufunc(np.fmod), text={"float": "fmod({a}, {b})"}, cost=20)

_FUNCTIONS = {name: function.op for name, function in ELEMENTWISE.items()}
OPERATIONS: dict[str, Op] = {**_FUNCTIONS, "pow": POW, "where": WHERE, "fmod": FMOD}
"""Element-wise operations by name."""

_ONE_TO_ONE = (
    "sqrt", "exp", "exp2", "expm1", "log", "log1p", "log2", "log10", "sin", "cos", "tan", "asin", "acos", "atan",
    "atan2", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "copysign", "isnan", "isinf", "isfinite", "hypot",
    "pow", "fmod", "nextafter",
)  # fmt: skip
_TO_INTEGERS = ("floor", "ceil", "trunc")

FLOAT_CALLS: dict[Any, str] = {getattr(math, name): name for name in _ONE_TO_ONE} | {math.fabs: "abs"}
"""Functions of floats that give a float or a bool."""

INTEGER_CALLS: dict[Any, str] = {getattr(math, name): name for name in _TO_INTEGERS} | {builtins.round: "round"}
"""Functions of floats that give a Python int."""

UFUNC_CALLS: dict[Any, str] = {op.numpy: op.name for op in _FUNCTIONS.values() if isinstance(op.numpy, np.ufunc)} | {
    np.power: "pow",
    np.fabs: "abs",
    np.rint: "round",
}
"""NumPy's functions of numbers."""

PYTHON: dict[str, Callable[..., Any]] = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "divide": operator.truediv,
    "floor_divide": operator.floordiv,
    "remainder": operator.mod,
    "pow": operator.pow,
    "negative": operator.neg,
}
"""Operations on numbers that are known: Python computes them, exactly as in the function itself."""
