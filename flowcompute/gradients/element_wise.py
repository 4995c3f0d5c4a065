"""Slopes of element-wise operations.

At kinks: the slope of `abs` and `relu` at 0 is 0; of equal numbers `maximum` and `minimum` take the first operand.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

from flowcompute.elements import Compute, cast
from flowcompute.elements.math import (
    copysign,
    cos,
    cosh,
    divide,
    equal,
    exp,
    floor,
    greater_equal,
    isnan,
    less_equal,
    log,
    logical_or,
    multiply,
    negative,
    pow,
    reciprocal,
    sign,
    signbit,
    sin,
    sinh,
    sqrt,
    square,
    trunc,
    where,
)
from flowcompute.gradients.cotangents import is_computed_number, times
from flowcompute.gradients.rules import Contribution, Scaled, no_gradient, rule

UNARY: dict[str, Callable[[Any, Any], Any]] = {
    "abs": lambda x, y: sign(x),
    "acos": lambda x, y: negative(reciprocal(sqrt(1.0 - square(x)))),
    "acosh": lambda x, y: reciprocal(multiply(sqrt(x - 1.0), sqrt(x + 1.0))),
    "asin": lambda x, y: reciprocal(sqrt(1.0 - square(x))),
    "asinh": lambda x, y: reciprocal(sqrt(square(x) + 1.0)),
    "atan": lambda x, y: reciprocal(square(x) + 1.0),
    "atanh": lambda x, y: reciprocal(1.0 - square(x)),
    "cos": lambda x, y: negative(sin(x)),
    "cosh": lambda x, y: sinh(x),
    "erf": lambda x, y: exp(negative(square(x))) * (2.0 / math.sqrt(math.pi)),
    "exp": lambda x, y: y,
    "exp2": lambda x, y: y * math.log(2.0),
    "expm1": lambda x, y: exp(x),
    "log": lambda x, y: reciprocal(x),
    "log10": lambda x, y: reciprocal(x * math.log(10.0)),
    "log1p": lambda x, y: reciprocal(x + 1.0),
    "log2": lambda x, y: reciprocal(x * math.log(2.0)),
    "native_exp2": lambda x, y: y * math.log(2.0),
    "reciprocal": lambda x, y: negative(square(y)),
    "sigmoid": lambda x, y: y * (1.0 - y),
    "sin": lambda x, y: cos(x),
    "sinh": lambda x, y: cosh(x),
    "sqrt": lambda x, y: divide(0.5, y),
    "square": lambda x, y: x * 2.0,
    "tan": lambda x, y: square(y) + 1.0,
    "tanh": lambda x, y: 1.0 - square(y),
}
"""Slopes by operand and result."""


def _by_slope(slope: Callable[[Any, Any], Any], node: Compute, g: Any) -> tuple[Contribution, ...]:
    return (times(g, slope(node.inputs[0], node)),)


for _name, _slope in UNARY.items():
    rule(f"elementwise.{_name}")(functools.partial(_by_slope, _slope))


@rule("elementwise.positive", "elementwise.quiet_nan", "elementwise.parameter")
def _identity(node: Compute, g: Any) -> tuple[Contribution, ...]:
    return (g,)


@rule("elementwise.negative")
def _negative(node: Compute, g: Any) -> tuple[Contribution, ...]:
    return (negative(g),)


@rule("elementwise.astype")
def _cast(node: Compute, g: Any) -> tuple[Contribution, ...]:
    return (cast(g, node.inputs[0].dtype),)


@rule("elementwise.add")
def _add(node: Compute, g: Any) -> tuple[Contribution, ...]:
    return g, g


@rule("elementwise.subtract")
def _subtract(node: Compute, g: Any) -> tuple[Contribution, ...]:
    return g, negative(g)


@rule("elementwise.multiply")
def _multiply(node: Compute, g: Any) -> tuple[Contribution, ...]:
    a, b = node.inputs
    return tuple(Scaled(other, g) if is_computed_number(other) else times(g, other) for other in (b, a))


@rule("elementwise.divide")
def _divide(node: Compute, g: Any) -> tuple[Contribution, ...]:
    _, b = node.inputs
    first = Scaled(reciprocal(b), g) if is_computed_number(b) else divide(g, b)
    return first, negative(times(g, divide(node, b)))


def _either(node: Compute, g: Any, first: Any) -> tuple[Contribution, ...]:
    return where(first, g, 0.0), where(first, 0.0, g)


@rule("elementwise.maximum")
def _maximum(node: Compute, g: Any) -> tuple[Contribution, ...]:
    a, b = node.inputs
    if node.call is not None and node.call.name == "relu":
        return where(less_equal(a, b), 0.0, g), None
    return _either(node, g, logical_or(greater_equal(a, b), isnan(a)))


@rule("elementwise.minimum")
def _minimum(node: Compute, g: Any) -> tuple[Contribution, ...]:
    a, b = node.inputs
    return _either(node, g, logical_or(less_equal(a, b), isnan(a)))


@rule("elementwise.fmax")
def _fmax(node: Compute, g: Any) -> tuple[Contribution, ...]:
    a, b = node.inputs
    return _either(node, g, logical_or(greater_equal(a, b), isnan(b)))


@rule("elementwise.atan2")
def _atan2(node: Compute, g: Any) -> tuple[Contribution, ...]:
    a, b = node.inputs
    radius = square(a) + square(b)
    return times(g, divide(b, radius)), negative(times(g, divide(a, radius)))


@rule("elementwise.hypot")
def _hypot(node: Compute, g: Any) -> tuple[Contribution, ...]:
    return tuple(times(g, where(equal(node, 0.0), 0.0, divide(one, node))) for one in node.inputs)


@rule("elementwise.logaddexp")
def _logaddexp(node: Compute, g: Any) -> tuple[Contribution, ...]:
    return tuple(times(g, exp(one - node)) for one in node.inputs)


@rule("elementwise.pow")
def _pow(node: Compute, g: Any) -> tuple[Contribution, ...]:
    a, b = node.inputs
    base = where(equal(b, 0.0), 0.0, multiply(b, pow(a, b - 1.0)))
    return times(g, base), times(g, where(equal(a, 0.0), 0.0, multiply(node, log(a))))


@rule("elementwise.remainder")
def _remainder(node: Compute, g: Any) -> tuple[Contribution, ...]:
    a, b = node.inputs
    return g, negative(times(g, floor(divide(a, b))))


@rule("elementwise.fmod")
def _fmod(node: Compute, g: Any) -> tuple[Contribution, ...]:
    a, b = node.inputs
    return g, negative(times(g, trunc(divide(a, b))))


@rule("elementwise.copysign")
def _copysign(node: Compute, g: Any) -> tuple[Contribution, ...]:
    a, b = node.inputs
    return times(g, where(equal(signbit(a), signbit(b)), 1.0, -1.0) * where(equal(a, 0.0), 0.0, copysign(a / a, 1.0))), None


@rule("elementwise.where")
def _where(node: Compute, g: Any) -> tuple[Contribution, ...]:
    chosen = node.inputs[0]
    return None, where(chosen, g, 0.0), where(chosen, 0.0, g)


no_gradient(
    "elementwise",
    "ceil floor round trunc sign floor_divide trunc_divide nextafter equal not_equal greater greater_equal less "
    "less_equal isnan isinf isfinite signbit logical_and logical_or logical_xor logical_not bitwise_and bitwise_or "
    "bitwise_xor bitwise_invert bitwise_left_shift bitwise_right_shift range uniform.32 uniform.64 normal.32 normal.64 "
    "integers.64 integers.128 stop_gradient",
)
