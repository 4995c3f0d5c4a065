"""Arithmetic, comparisons, logic and bits, number by number."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import reduce
from operator import and_, eq, ge, gt, le, lt, or_, sub, xor
from typing import Any

import numpy as np

import flowcompute.elements.axes as fc_axes
import flowcompute.elements.math as fc
from flowcompute.elements import nn
from flowcompute.onnx.logical_value import Value, together
from flowcompute.onnx.operators.record import REQUIRED, Integers, NodeCall, Operator, known_of
from flowcompute.onnx.operators.shape_numbers import (
    as_dtype,
    larger,
    pointwise,
    power,
    quotient,
    reduced,
    rest,
    smaller,
)
from flowcompute.onnx.problems import Refusal
from flowcompute.onnx.tensors import dtype_of
from flowcompute.spec import is_float

LEGACY = {"axis": None, "broadcast": 0, "consumed_inputs": None}
"""Attributes of operands that broadcast, before opset 7."""


def unary(name: str, function: Callable[[Any], Any], since: int = 1, integers: Integers | None = None) -> Operator:
    """Return the record of a function of each number."""

    def build(call: NodeCall) -> Value:
        return call[0].like(function(call[0].element))

    return Operator(name, build, since, attributes={"consumed_inputs": None}, integers=integers)


def binary(
    name: str, function: Callable[[Any, Any], Any], integers: Integers | None = None, since: int = 1
) -> tuple[Operator, ...]:
    """Return the records of a function of two numbers, which broadcast in another way before opset 7."""

    def build(call: NodeCall) -> Value:
        return together(function, call[0], call[1])

    def legacy(call: NodeCall) -> Value:
        first, second = call[0], call[1]
        axis = call.attribute("axis")
        if call.attribute("broadcast") and axis is not None:
            behind = first.ndim - first.normal(axis) - second.ndim
            element = second.resident("what is broadcast")
            second = Value.of(fc_axes.reshape(element, (*element.spec.shape, *(1,) * max(behind, 0))))
        return together(function, first, second)

    def legacy_integers(call: NodeCall) -> Any:
        if integers is None or call.attribute("axis") is not None:
            raise ValueError
        return integers(call)

    if since >= 7:
        return (Operator(name, build, since, integers=integers),)
    return (
        Operator(name, legacy, since, 7, attributes=LEGACY, integers=integers and legacy_integers),
        Operator(name, build, 7, integers=integers),
    )


def divided(a: Any, b: Any) -> Any:
    """Divide; integers truncate towards zero."""
    if is_float(a.dtype):
        return fc.divide(a, b)
    return fc.trunc_divide(a, b)


def _mod(call: NodeCall) -> Value:
    if not call.attribute("fmod"):
        return together(fc.remainder, call[0], call[1])
    return together(fc.fmod, call[0], call[1])


_remainders = pointwise(lambda a, b: a % b)
_rests = pointwise(rest)


def _mod_integers(call: NodeCall) -> Any:
    return (_rests if call.attribute("fmod") else _remainders)(call)


def _pow(a: Any, b: Any) -> Any:
    if a.dtype == b.dtype:
        return fc.pow(a, b)
    if is_float(a.dtype) and not is_float(b.dtype):
        return fc.pow(a, fc.astype(b, a.dtype))
    return fc.astype(fc.pow(a, b), a.dtype)


def variadic(name: str, function: Callable[[Any, Any], Any], integers: Integers | None = None) -> Operator:
    """Return the record of a function of two numbers that is applied to all inputs."""

    def build(call: NodeCall) -> Value:
        return reduce(lambda a, b: together(function, a, b), call.given)

    return Operator(name, build, attributes={"consumed_inputs": None}, integers=integers)


def _mean(call: NodeCall) -> Value:
    total = reduce(lambda a, b: together(fc.add, a, b), call.given)
    return total.like(fc.divide(total.element, float(len(call.given))))


# -- limits and casts ---------------------------------------------------------------------------------


def _clip_attributes(call: NodeCall) -> Value:
    value = call[0].element
    low, high = call.attribute("min"), call.attribute("max")
    if low is not None:
        value = fc.maximum(value, low)
    return call[0].like(value if high is None else fc.minimum(value, high))


def _clip(call: NodeCall) -> Value:
    value, low, high = call[0], call.get(1), call.get(2)
    value = value if low is None else together(fc.maximum, value, low)
    return value if high is None else together(fc.minimum, value, high)


def _cast(call: NodeCall) -> Value:
    to = call.attribute("to")
    if isinstance(to, str):
        raise Refusal("opset", "a dtype given as text, as before opset 6", "convert the model to opset 13 or later")
    return call[0].like(_as(call[0].element, dtype_of(to)))


def _cast_integers(call: NodeCall) -> Any:
    dtype = dtype_of(call.attribute("to"))
    return np.frompyfunc(lambda number: as_dtype(number, dtype), 1, 1)(*known_of(call))


def _cast_like(call: NodeCall) -> Value:
    return call[0].like(_as(call[0].element, call[1].dtype))


def _cast_like_integers(call: NodeCall) -> Any:
    dtype = call[1].dtype
    return np.frompyfunc(lambda number: as_dtype(number, dtype), 1, 1)(known_of(call)[0])


def _as(value: Any, dtype: np.dtype) -> Any:
    return value if value.dtype == dtype else fc.astype(value, dtype)


def _bit_cast(call: NodeCall) -> Value:
    return call[0].like(fc.view(call[0].element, dtype_of(call.attribute("to"))))


def _where(call: NodeCall) -> Value:
    return together(fc.where, call[0], call[1], call[2])


def _shift(call: NodeCall) -> Value:
    left = call.choice("direction", ("LEFT", "RIGHT")) == "LEFT"
    return together(fc.bitwise_left_shift if left else fc.bitwise_right_shift, call[0], call[1])


def _isinf(call: NodeCall) -> Value:
    x = call[0].element
    infinite = fc.isinf(x)
    if not call.attribute("detect_negative"):
        infinite = fc.logical_and(infinite, fc.greater(x, 0))
    if not call.attribute("detect_positive"):
        infinite = fc.logical_and(infinite, fc.less(x, 0))
    return call[0].like(infinite)


def _identity(call: NodeCall) -> Value:
    return call[0]


def _binarizer(call: NodeCall) -> Value:
    """Give 1 where a number is above a threshold, else 0, also for NaN."""
    x = call[0]
    return x.like(fc.astype(fc.greater(x.element, call.attribute("threshold")), x.dtype))


def _dropout(call: NodeCall) -> Any:
    training = call.get(2)
    if training is not None and any(training.wholes("training_mode")):
        ratio = call.get(1)
        # A ratio of 0 drops nothing, in training neither.
        if ratio is None or any(ratio.wholes("ratio")):
            raise Refusal("training", "dropout in training mode", "export the model for inference")
    if not call.wants(1):
        return call[0]
    x = call[0].element
    made = fc.astype(fc.logical_or(fc.equal(x, x), True), "bool")
    mask = call[0].like(made if call.opset >= 10 else fc.astype(made, x.dtype))
    return call[0], mask


def _floor(number: Any) -> Any:
    return float(np.floor(number))


def _ceil(number: Any) -> Any:
    return float(np.ceil(number))


OPERATORS: tuple[Operator, ...] = (
    *binary("Add", fc.add, pointwise(lambda a, b: a + b)),
    *binary("Sub", fc.subtract, pointwise(sub)),
    *binary("Mul", fc.multiply, pointwise(lambda a, b: a * b)),
    *binary("Div", divided, pointwise(quotient)),
    *binary("Pow", _pow, pointwise(power)),
    *binary("Equal", fc.equal, pointwise(eq)),
    *binary("Less", fc.less, pointwise(lt)),
    *binary("Greater", fc.greater, pointwise(gt)),
    *binary("LessOrEqual", fc.less_equal, pointwise(le), 12),
    *binary("GreaterOrEqual", fc.greater_equal, pointwise(ge), 12),
    *binary("And", fc.logical_and, pointwise(and_)),
    *binary("Or", fc.logical_or, pointwise(or_)),
    *binary("Xor", fc.logical_xor, pointwise(xor)),
    *binary("BitwiseAnd", fc.bitwise_and, None, 18),
    *binary("BitwiseOr", fc.bitwise_or, None, 18),
    *binary("BitwiseXor", fc.bitwise_xor, None, 18),
    unary("BitwiseNot", fc.bitwise_invert, 18),
    unary("Not", fc.logical_not, 1, pointwise(lambda a: not a, 1)),
    Operator("BitShift", _shift, 11, attributes={"direction": None}),
    Operator("Mod", _mod, 10, attributes={"fmod": 0}, integers=_mod_integers),
    variadic("Sum", fc.add, reduced(lambda a, b: a + b)),
    variadic("Max", fc.maximum, reduced(larger)),
    variadic("Min", fc.minimum, reduced(smaller)),
    Operator("Mean", _mean, attributes={"consumed_inputs": None}),
    unary("Abs", fc.abs, 1, pointwise(abs, 1)),
    unary("Neg", fc.negative, 1, pointwise(lambda a: -a, 1)),
    unary("Sign", fc.sign, 9),
    unary("Reciprocal", fc.reciprocal),
    unary("Sqrt", fc.sqrt, 1, pointwise(math.sqrt, 1)),
    unary("Exp", fc.exp),
    unary("Log", fc.log),
    unary("Floor", fc.floor, 1, pointwise(_floor, 1)),
    unary("Ceil", fc.ceil, 1, pointwise(_ceil, 1)),
    unary("Round", fc.round, 11),
    unary("Sin", fc.sin, 7),
    unary("Cos", fc.cos, 7),
    unary("Tan", fc.tan, 7),
    unary("Asin", fc.asin, 7),
    unary("Acos", fc.acos, 7),
    unary("Atan", fc.atan, 7),
    unary("Sinh", fc.sinh, 9),
    unary("Cosh", fc.cosh, 9),
    unary("Tanh", fc.tanh),
    unary("Asinh", fc.asinh, 9),
    unary("Acosh", fc.acosh, 9),
    unary("Atanh", fc.atanh, 9),
    unary("Erf", nn.erf, 9),
    unary("IsNaN", fc.isnan, 9),
    Operator("IsInf", _isinf, 10, attributes={"detect_negative": 1, "detect_positive": 1}),
    Operator("Where", _where, 9, integers=pointwise(lambda c, a, b: a if c else b, 3)),
    Operator("Clip", _clip_attributes, 1, 11, attributes={"min": None, "max": None, "consumed_inputs": None}),
    Operator("Clip", _clip, 11),
    Operator("Cast", _cast, attributes={"to": None, "saturate": 1, "round_mode": "up"}, integers=_cast_integers),
    Operator(
        "CastLike",
        _cast_like,
        15,
        attributes={"saturate": 1, "round_mode": "up"},
        integers=_cast_like_integers,
        integers_of=1,
    ),
    Operator("BitCast", _bit_cast, 26, attributes={"to": REQUIRED}),
    Operator("Identity", _identity, integers=lambda call: known_of(call)[0]),
    Operator("Binarizer", _binarizer, 1, domain="ai.onnx.ml", attributes={"threshold": 0.0}),
    Operator("Dropout", _dropout, 1, attributes={"ratio": 0.5, "is_test": 0, "consumed_inputs": None, "seed": 0}),
)
