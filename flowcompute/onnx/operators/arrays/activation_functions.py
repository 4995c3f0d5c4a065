"""Activation functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import flowcompute.elements.axes as fc_axes
import flowcompute.elements.math as fc
from flowcompute.elements import nn
from flowcompute.onnx.logical_value import Value, together
from flowcompute.onnx.operators.arrays.pointwise import unary
from flowcompute.onnx.operators.record import NodeCall, Operator
from flowcompute.onnx.operators.shape_numbers import pointwise
from flowcompute.spec import is_float


def _with(function: Callable[..., Any], name: str, since: int = 1, **defaults: float) -> Operator:
    """Return the record of a function whose parameters are attributes."""

    def build(call: NodeCall) -> Value:
        return call[0].like(function(call[0].element, *(call.attribute(one) for one in defaults)))

    return Operator(name, build, since, attributes=dict(defaults) | {"consumed_inputs": None})


def _selu(x: Any, alpha: float, gamma: float) -> Any:
    return fc.multiply(nn.elu(x, alpha), gamma)


def _celu(x: Any, alpha: float) -> Any:
    low = fc.multiply(fc.expm1(fc.divide(fc.minimum(x, 0), alpha)), alpha)
    return fc.add(fc.maximum(x, 0), low)


def _thresholded(x: Any, alpha: float) -> Any:
    return fc.where(fc.greater(x, alpha), x, 0)


def _hard_sigmoid(x: Any, alpha: float, beta: float) -> Any:
    return fc.clip(fc.add(fc.multiply(x, alpha), beta), 0, 1)


def _hard_swish(x: Any) -> Any:
    return fc.multiply(x, _hard_sigmoid(x, 1 / 6, 0.5))


def _shrink(x: Any, bias: float, lambd: float) -> Any:
    wide = x if is_float(x.dtype) else fc.astype(x, "float64")
    below = fc.where(fc.less(wide, -lambd), fc.add(wide, bias), 0)
    made = fc.where(fc.greater(wide, lambd), fc.subtract(wide, bias), below)
    return made if made.dtype == x.dtype else fc.astype(made, x.dtype)


def _softsign(x: Any) -> Any:
    return fc.divide(x, fc.add(fc.abs(x), 1))


def _swish(x: Any, alpha: float) -> Any:
    return fc.multiply(x, nn.sigmoid(x if alpha == 1 else fc.multiply(x, alpha)))


def _gelu(call: NodeCall) -> Value:
    how = call.choice("approximate", ("none", "tanh"))
    return call[0].like(nn.gelu(call[0].element, approximate="tanh" if how == "tanh" else None))


def _prelu(call: NodeCall) -> Value:
    x, slope = call[0], call[1]
    if slope.axis is None and slope.ndim == 1 and x.ndim > 2 and call.opset < 7 and slope.size(0) != 1:
        slope = Value.of(fc_axes.reshape(slope.element, (-1, *(1,) * (x.ndim - 2))))
    return together(lambda a, b: fc.where(fc.less(a, 0), fc.multiply(a, b), a), x, slope)


def _swiglu(call: NodeCall) -> Value:
    alpha = call.attribute("alpha")
    return together(lambda a, b: fc.multiply(_swish(a, alpha), b), call[0], call[1])


OPERATORS: tuple[Operator, ...] = (
    unary("Relu", nn.relu, 1, pointwise(lambda a: max(a, 0), 1)),
    unary("Sigmoid", nn.sigmoid),
    unary("Softplus", nn.softplus),
    unary("Softsign", _softsign),
    unary("Mish", nn.mish, 18),
    unary("HardSwish", _hard_swish, 14),
    _with(nn.leaky_relu, "LeakyRelu", alpha=0.01),
    _with(nn.elu, "Elu", alpha=1.0),
    _with(_selu, "Selu", alpha=1.6732632423543772, gamma=1.0507009873554805),
    _with(_celu, "Celu", 12, alpha=1.0),
    _with(_thresholded, "ThresholdedRelu", 10, alpha=1.0),
    _with(_hard_sigmoid, "HardSigmoid", alpha=0.2, beta=0.5),
    _with(_shrink, "Shrink", 9, bias=0.0, lambd=0.5),
    _with(_swish, "Swish", 24, alpha=1.0),
    Operator("Gelu", _gelu, 20, attributes={"approximate": "none"}),
    Operator("SwiGLU", _swiglu, 28, attributes={"alpha": 1.0}),
    Operator("PRelu", _prelu, attributes={"consumed_inputs": None}),
)
