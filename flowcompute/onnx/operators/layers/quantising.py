"""Integers that stand for floats by a scale and a zero point. Products of them are exact."""

from __future__ import annotations

from typing import Any

import numpy as np

import flowcompute.elements.axes as fc_axes
import flowcompute.elements.math as fc
from flowcompute.onnx.logical_value import NarrowIntegers, Value, together
from flowcompute.onnx.operators.layers.convolving import CONVOLUTION, integer_convolution
from flowcompute.onnx.operators.layers.matrix_products import product
from flowcompute.onnx.operators.record import NodeCall, Operator
from flowcompute.onnx.problems import Refusal
from flowcompute.onnx.scaled_integers import are_scaled_alike, less_zero_point, scaled_integers
from flowcompute.onnx.tensors import dtype_of
from flowcompute.spec import is_float


def _lined_up(call: NodeCall, parameter: Value) -> Value:
    """Return a scale or a zero point so that it broadcasts with the first input."""
    value = call[0]
    if parameter.ndim == 0:
        return parameter
    if parameter.ndim == 1 and parameter.size(0) == 1 and not call.attribute("block_size"):
        return Value.of(fc_axes.reshape(parameter.resident("a scale"), ()))
    axis, block = value.normal(call.attribute("axis")), call.attribute("block_size")
    element = parameter.resident("a scale")
    if not block:
        return Value.of(fc_axes.reshape(element, (-1, *(1,) * (value.ndim - axis - 1))))
    repeated = fc_axes.repeat(element, block, axis)
    return Value.of(repeated[(*(slice(None),) * axis, slice(value.size(axis)))])


def rounded(x: Any, dtype: np.dtype, zero: Any) -> Any:
    """Round to the nearest integer, halves to even, add a zero point and saturate, as casts do."""
    whole = fc.round(x)
    return fc.astype(whole if zero is None else fc.add(whole, zero), dtype)


def _quantize(call: NodeCall) -> Value:
    value, scale, zero = call[0], call[1], call.get(2)
    dtype = np.dtype(np.uint8) if zero is None else zero.dtype
    if zero is None and call.attribute("output_dtype"):
        dtype = dtype_of(call.attribute("output_dtype"))
    if zero is None and call.attribute("block_size"):
        # The standard's one test of it holds its answer as a proto, which nothing can be compared with.
        raise Refusal("missing", "blocks without a zero point", "give a zero point, which may be 0")
    if dtype.kind not in "iu":
        raise Refusal("dtype", f"quantised numbers of {dtype.name}", "quantise to integers")
    held = value.integers
    if held is not None and are_scaled_alike(held, scale, zero, dtype):
        return held.whole
    x = value if is_float(value.dtype) else value.like(fc.astype(value.element, scale.dtype))
    inner = np.dtype(np.float32)
    if x.dtype != inner:
        x = x.like(fc.astype(x.element, inner))
    by = _lined_up(call, scale)
    by = by if by.dtype == inner else by.like(fc.astype(by.element, inner))
    scaled = together(fc.divide, x, by)
    if zero is None or (zero.known is not None and not any(zero.known.reshape(-1))):
        return scaled.like(rounded(scaled.element, dtype, None))
    shift = _lined_up(call, zero)
    return together(lambda a, b: rounded(a, dtype, fc.astype(b, inner)), scaled, shift)


def _widened(value: Value) -> Value:
    return value.wide if isinstance(value, NarrowIntegers) else value


def _dequantize(call: NodeCall) -> Value:
    value, scale, zero = _widened(call[0]), call[1], call.get(2)
    zero = None if zero is None else _widened(zero)
    by = _lined_up(call, scale)
    wide = value.like(fc.astype(value.element, "int32"))
    if zero is not None and not (zero.known is not None and not any(zero.known.reshape(-1))):
        wide = together(lambda a, b: fc.subtract(a, fc.astype(b, "int32")), wide, _lined_up(call, zero))
    made = together(lambda a, b: fc.multiply(fc.astype(a, b.dtype), b), wide, by)
    if not call.attribute("block_size"):
        along = value.normal(call.attribute("axis")) if value.ndim > 1 else 0
        made.integers = scaled_integers(value, scale, zero, along)
    wanted = call.attribute("output_dtype")
    if wanted and dtype_of(wanted) != made.dtype:
        return made.like(fc.astype(made.element, dtype_of(wanted)))
    return made


def _dynamic(call: NodeCall) -> tuple[Value, Value, Value]:
    value = call[0]
    if value.axis is not None:
        raise Refusal("batch axis", "a scale of all records together", "give a resident array")
    x = value.element
    high, low = fc.maximum(fc.max(x), 0), fc.minimum(fc.min(x), 0)
    # Numbers that are all 0 have any scale.
    scale = fc.where(fc.equal(high, low), 1.0, fc.divide(fc.subtract(high, low), 255.0))
    zero = fc.clip(fc.round(fc.divide(fc.negative(low), scale)), 0.0, 255.0)
    made = rounded(fc.divide(x, scale), np.dtype(np.uint8), zero)
    return Value.of(made), Value.of(scale), Value.of(fc.astype(zero, "uint8"))


def _matmul_integer(call: NodeCall) -> Value:
    a, b, zero_a, zero_b = call[0], call[1], call.get(2), call.get(3)
    left = a.like(less_zero_point(a.element, zero_a, a.ndim - 2 if zero_a is not None and zero_a.ndim == 1 else None))
    right = b.like(less_zero_point(b.element, zero_b))
    return product(left, right, "int32")


def _requantized(value: Value, factor: Any, zero: Value, channels: int | None) -> Value:
    """Scale exact sums and round them to integers."""
    wide = fc.astype(value.element, "float32")
    if channels is not None and factor.ndim == 1:
        factor = fc_axes.reshape(factor, (-1, *(1,) * channels))
    shift = fc.astype(_single(zero), "float32")
    return value.like(rounded(fc.multiply(wide, factor), zero.dtype, shift))


def _single(value: Value) -> Any:
    """Return a parameter that is one number as such, and a vector as it is."""
    element = value.resident("a parameter of quantised numbers")
    return fc_axes.reshape(element, ()) if element.ndim == 1 and element.shape[0] == 1 else element


def _factor(a: Value, b: Value, made: Value) -> Any:
    wide = [fc.astype(_single(one), "float32") for one in (a, b, made)]
    return fc.divide(fc.multiply(wide[0], wide[1]), wide[2])


def _qlinear_conv(call: NodeCall) -> Value:
    x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero = (call[place] for place in range(8))
    bias = call.get(8)
    weight = less_zero_point(w.resident("weights"), w_zero, 0)
    total = integer_convolution(call, x, x_zero, weight, None if bias is None else bias.resident("bias"))
    return _requantized(total, _factor(x_scale, w_scale, y_scale), y_zero, x.ndim - 2)


def _qlinear_matmul(call: NodeCall) -> Value:
    a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero = (call[place] for place in range(8))
    rows = a.ndim - 2 if a_zero.ndim == 1 else None
    total = product(
        a.like(less_zero_point(a.element, a_zero, rows)), b.like(less_zero_point(b.element, b_zero)), "int32"
    )
    if any(one.ndim and one.shape != (1,) for one in (a_scale, y_scale)):
        raise Refusal("missing", "a scale for each row", "use one scale")
    return _requantized(total, _factor(a_scale, b_scale, y_scale), y_zero, None)


def _qgemm(call: NodeCall) -> Value:
    """Multiply matrices of 8-bit integers: `com.microsoft.QGemm`."""
    a, a_scale, a_zero, b, b_scale, b_zero = (call[place] for place in range(6))
    bias, y_scale, y_zero = call.get(6), call.get(7), call.get(8)
    if call.attribute("transA"):
        raise Refusal("attribute", "transA=1", "transpose in the model")
    left = a.like(less_zero_point(a.element, a_zero))
    matrix = less_zero_point(b.resident("weights"), b_zero, 0 if call.attribute("transB") else 1)
    right = Value.of(fc_axes.permute_dims(matrix, (1, 0)) if call.attribute("transB") else matrix)
    total = product(left, right, "int32")
    if bias is not None:
        total = together(fc.add, total, bias)
    scale = fc.multiply(fc.multiply(_single(a_scale), _single(b_scale)), call.attribute("alpha"))
    if y_scale is None:
        return total.like(fc.multiply(fc.astype(total.element, "float32"), scale))
    if y_zero is None:
        raise Refusal("invalid", "a scale of the result without its zero point", "correct the model")
    return _requantized(total, fc.divide(scale, _single(y_scale)), y_zero, None)


_BLOCKS = {"axis": 1, "block_size": 0, "output_dtype": 0}

OPERATORS: tuple[Operator, ...] = (
    Operator("QuantizeLinear", _quantize, 10, attributes={**_BLOCKS, "saturate": 1, "precision": 0}),
    Operator("DequantizeLinear", _dequantize, 10, attributes=_BLOCKS),
    Operator("DynamicQuantizeLinear", _dynamic, 11),
    Operator("MatMulInteger", _matmul_integer, 10),
    Operator("QLinearConv", _qlinear_conv, 10, attributes=CONVOLUTION),
    Operator("QLinearMatMul", _qlinear_matmul, 10),
    Operator("QGemm", _qgemm, 1, domain="com.microsoft", attributes={"alpha": 1.0, "transA": 0, "transB": 0}),
)
