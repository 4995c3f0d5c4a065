"""Slopes of element-wise operations, written once for elements and for the inside of users' functions.

Each is made of the operations of a namespace `f` and of Python's operators. At kinks the slope of `abs` at 0 is 0, and
of equal numbers `maximum` and `minimum` take the first operand.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

UNARY: dict[str, Callable[[Any, Any, Any], Any]] = {
    "abs": lambda f, x, y: f.sign(x),
    "acos": lambda f, x, y: f.negative(f.reciprocal(f.sqrt(1.0 - f.square(x)))),
    "acosh": lambda f, x, y: f.reciprocal(f.sqrt(x - 1.0) * f.sqrt(x + 1.0)),
    "asin": lambda f, x, y: f.reciprocal(f.sqrt(1.0 - f.square(x))),
    "asinh": lambda f, x, y: f.reciprocal(f.hypot(x, x * 0.0 + 1.0)),
    "atan": lambda f, x, y: f.reciprocal(f.square(x) + 1.0),
    "atanh": lambda f, x, y: f.reciprocal(1.0 - f.square(x)),
    "cos": lambda f, x, y: f.negative(f.sin(x)),
    "cosh": lambda f, x, y: f.sinh(x),
    "erf": lambda f, x, y: f.exp(f.negative(f.square(x))) * (2.0 / math.sqrt(math.pi)),
    "exp": lambda f, x, y: y,
    "exp2": lambda f, x, y: y * math.log(2.0),
    "expm1": lambda f, x, y: f.exp(x),
    "log": lambda f, x, y: f.reciprocal(x),
    "log10": lambda f, x, y: f.reciprocal(x * math.log(10.0)),
    "log1p": lambda f, x, y: f.reciprocal(x + 1.0),
    "log2": lambda f, x, y: f.reciprocal(x * math.log(2.0)),
    "native_exp2": lambda f, x, y: y * math.log(2.0),
    "reciprocal": lambda f, x, y: f.negative(f.square(y)),
    "sigmoid": lambda f, x, y: y * (1.0 - y),
    "sin": lambda f, x, y: f.cos(x),
    "sinh": lambda f, x, y: f.cosh(x),
    "sqrt": lambda f, x, y: f.reciprocal(y) * 0.5,
    "square": lambda f, x, y: x * 2.0,
    "tan": lambda f, x, y: f.square(y) + 1.0,
    "tanh": lambda f, x, y: 1.0 - f.square(y),
}
"""Slopes by operand x and result y."""


def _remainder(f: Any, a: Any, b: Any, y: Any) -> Any:
    return f.negative(f.floor(a / b))


def _power(f: Any, a: Any, b: Any, y: Any) -> Any:
    return f.where(f.equal(b, 0.0), 0.0, b * f.pow(a, b - 1.0))


def _exponent(f: Any, a: Any, b: Any, y: Any) -> Any:
    return f.where(f.equal(a, 0.0), 0.0, y * f.log(a))


def _share(f: Any, one: Any, y: Any) -> Any:
    return f.where(f.equal(y, 0.0), 0.0, one / y)


def _of_sign(f: Any, a: Any, b: Any, y: Any) -> Any:
    return f.where(f.equal(a, 0.0), 0.0, f.sign(a) * f.copysign(f.abs(f.sign(a)), b))


BINARY: dict[str, tuple[Callable[[Any, Any, Any, Any], Any] | None, Callable[[Any, Any, Any, Any], Any] | None]] = {
    "atan2": (
        lambda f, a, b, y: b / (f.square(a) + f.square(b)),
        lambda f, a, b, y: f.negative(a / (f.square(a) + f.square(b))),
    ),
    "copysign": (_of_sign, None),
    "divide": (lambda f, a, b, y: f.reciprocal(b), lambda f, a, b, y: f.negative(y / b)),
    "fmod": (lambda f, a, b, y: f.one(a), lambda f, a, b, y: f.negative(f.trunc(a / b))),
    "hypot": (lambda f, a, b, y: _share(f, a, y), lambda f, a, b, y: _share(f, b, y)),
    "logaddexp": (lambda f, a, b, y: f.exp(a - y), lambda f, a, b, y: f.exp(b - y)),
    "multiply": (lambda f, a, b, y: b, lambda f, a, b, y: a),
    "pow": (_power, _exponent),
    "remainder": (lambda f, a, b, y: f.one(a), _remainder),
}
"""Slopes for each of two operands a and b by these and the result y; None where the result does not follow it."""


def first_of(f: Any, name: str, a: Any, b: Any) -> Any:
    """Return where the first operand of `maximum`, `minimum`, `fmax` or `fmin` is the result."""
    ahead = (f.greater_equal if name in ("maximum", "fmax") else f.less_equal)(a, b)
    return f.logical_or(ahead, f.isnan(b if name in ("fmax", "fmin") else a))
