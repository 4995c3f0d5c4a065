"""Gradients of element-wise operations; their slopes stand in `slopes`."""

from __future__ import annotations

import functools
from types import SimpleNamespace
from typing import Any

from flowcompute.elements import Compute
from flowcompute.elements.creation import ones_like
from flowcompute.elements.math import ELEMENTWISE, divide, less_equal, negative, pow, reciprocal, where
from flowcompute.elements.quantized import DEQUANTIZE
from flowcompute.gradients.cotangents import is_computed_number, times
from flowcompute.gradients.rules import Contribution, Scaled, no_gradient, rule
from flowcompute.gradients.slopes import BINARY, UNARY, first_of

_F = SimpleNamespace(**ELEMENTWISE, where=where, one=ones_like)
_F.pow = pow


def _unary(name: str, node: Compute, g: Any) -> tuple[Contribution, ...]:
    return (times(g, UNARY[name](_F, node.inputs[0], node)),)


def _binary(name: str, node: Compute, g: Any) -> tuple[Contribution, ...]:
    slopes = (None if slope is None else slope(_F, node.inputs[0], node.inputs[1], node) for slope in BINARY[name])
    return tuple(None if slope is None else times(g, slope) for slope in slopes)


for _name in UNARY:
    rule(f"elementwise.{_name}")(functools.partial(_unary, _name))
for _name in BINARY:
    if _name not in ("multiply", "divide"):
        rule(f"elementwise.{_name}")(functools.partial(_binary, _name))


@rule("elementwise.positive", "elementwise.quiet_nan", "elementwise.parameter", "elementwise.recompute")
def _identity(node: Compute, g: Any) -> tuple[Contribution, ...]:
    return (g,)


@rule("elementwise.negative")
def _negative(node: Compute, g: Any) -> tuple[Contribution, ...]:
    return (negative(g),)


@rule("elementwise.astype")
def _cast(node: Compute, g: Any) -> tuple[Contribution, ...]:
    # Whoever passes it on casts it.
    return (g,)


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


def _either(name: str, node: Compute, g: Any) -> tuple[Contribution, ...]:
    a, b = node.inputs
    if node.call is not None and node.call.name == "relu":
        # maximum(x, 0), of which the slope at 0 is 0.
        return where(less_equal(a, b), 0.0, g), None
    first = first_of(_F, name, a, b)
    return where(first, g, 0.0), where(first, 0.0, g)


for _name in ("maximum", "minimum", "fmax", "fmin"):
    rule(f"elementwise.{_name}")(functools.partial(_either, _name))


@rule("elementwise.where")
def _where(node: Compute, g: Any) -> tuple[Contribution, ...]:
    chosen = node.inputs[0]
    return None, where(chosen, g, 0.0), where(chosen, 0.0, g)


no_gradient(
    "elementwise",
    "ceil floor round trunc sign floor_divide trunc_divide nextafter equal not_equal greater greater_equal less "
    "less_equal isnan isinf isfinite signbit logical_and logical_or logical_xor logical_not bitwise_and bitwise_or "
    "bitwise_xor bitwise_invert bitwise_left_shift bitwise_right_shift range uniform.32 uniform.64 normal.32 normal.64 "
    "integers.64 integers.128 stop_gradient bits.i bits.u bits.f",
)
no_gradient("elementwise", " ".join(f"dequantize.{name}" for name in DEQUANTIZE))
