"""Convolutions of floats and of 8-bit integers."""

from __future__ import annotations

import math
from typing import Any

import flowcompute.elements.axes as fc_axes
import flowcompute.elements.math as fc
from flowcompute.elements import nn
from flowcompute.onnx.logical_value import StreamPlace, Value, same_streams
from flowcompute.onnx.operators.layers.window_geometry import WINDOW_ATTRIBUTES, window_axes
from flowcompute.onnx.operators.record import NodeCall, Operator
from flowcompute.onnx.problems import Refusal
from flowcompute.onnx.scaled_integers import exact_product, less_zero_point


def convolved(call: NodeCall, value: Value, x: Any, weight: Any, bias: Any, dtype: str | None = None) -> Value:
    """Convolve items by the attributes of a node.

    Args:
        call: of a node with `WINDOW_ATTRIBUTES` and `group`.
        value: what is convolved, for its shape.
        x: its element, perhaps cast.
        weight, bias: resident elements; the bias may be None.
        dtype: in which is multiplied and added up, by default what operands promote to.
    """
    kernel = weight.spec.shape[2:]
    dims = len(kernel)
    functions = {1: nn.conv1d, 2: nn.conv2d, 3: nn.conv3d}
    if dims not in functions:
        raise Refusal("missing", f"a convolution along {dims} axes", "convolve along one to three axes")
    if value.ndim != dims + 2:
        raise Refusal("invalid", f"{value.ndim} axes and weights of {dims + 2}", "correct the model")
    given = call.attribute("kernel_shape")
    if given is not None and tuple(given) != kernel:
        raise Refusal("invalid", f"kernel_shape={tuple(given)} and weights of {kernel}", "correct the model")
    axes = window_axes(call, tuple(value.size(axis) for axis in range(2, value.ndim)), kernel)
    edges = [(axis.before, axis.after) for axis in axes]
    strides, spreads = [axis.stride for axis in axes], [axis.dilation for axis in axes]
    made = functions[dims](x, weight, bias, strides, edges, spreads, call.attribute("group"), dtype=dtype)
    return value.like(made)


def _conv(call: NodeCall) -> Value:
    value, bias = call[0], call.get(2)
    weight = call[1].resident("weights")
    x = value.batch_first("convolve")
    exact = exact_product(
        value,
        call[1],
        math.prod(weight.spec.shape[1:]),
        (0, 1 - value.ndim),
        lambda a, b: convolved(call, a, a.element, b.element, None, "int32"),
    )
    if exact is None:
        return convolved(call, value, x, weight, None if bias is None else bias.resident("bias"))
    if bias is None:
        return exact
    channels = fc_axes.reshape(bias.resident("bias"), (-1, *(1,) * (value.ndim - 2)))
    return exact.like(fc.add(exact.element, channels))


def integer_convolution(call: NodeCall, value: Value, zero: Value | None, weight: Any, bias: Any) -> Value:
    """Convolve 8-bit integers exactly, in int32; `weight` is less its zero point already."""
    x = less_zero_point(value.batch_first("convolve"), zero)
    return convolved(call, value, x, weight, bias, "int32")


def _conv_integer(call: NodeCall) -> Value:
    weight = less_zero_point(call[1].resident("weights"), call.get(3), 0)
    return integer_convolution(call, call[0], call.get(2), weight, None)


def _causal_conv(call: NodeCall) -> tuple[Value, Value]:
    """Convolve each channel along the positions before, which go on from a state."""
    value, past, weight = call[0], call.get(3), call[1].resident("weights")
    if value.ndim != 3 or len(weight.shape) != 3:
        raise Refusal("invalid", f"{value.shape} and weights {weight.shape}", "correct the model")
    activation = call.choice("activation", ("none", "silu", "swish"))
    before, layout = weight.shape[2] - 1, StreamPlace(value.axis, value.shape[0])
    if past is None:
        x = value.batch_first("convolve")
        wide = fc_axes.pad(x, [(0, 0), (0, 0), (before, 0)]) if before else x
    else:
        (value, past), layout = same_streams([value, past])
        wide = fc_axes.concat([past.batch_first("convolve"), value.batch_first("convolve")], axis=2)
    if wide.shape[2] != value.size(2) + before:
        raise Refusal("invalid", f"a state {past and past.shape} for {before} positions", "correct the model")
    bias = call.get(2)
    made = nn.conv1d(wide, weight, None if bias is None else bias.resident("bias"), groups=weight.shape[0])
    made = made if activation == "none" else nn.silu(made)
    return layout.value(made), layout.value(wide[:, :, wide.shape[2] - before :])


CONVOLUTION = {**WINDOW_ATTRIBUTES, "group": 1}

OPERATORS: tuple[Operator, ...] = (
    Operator("Conv", _conv, attributes=CONVOLUTION),
    Operator("CausalConvWithState", _causal_conv, 27, attributes={"activation": "none"}),
    Operator("ConvInteger", _conv_integer, 10, attributes=CONVOLUTION),
)
