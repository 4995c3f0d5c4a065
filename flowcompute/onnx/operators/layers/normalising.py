"""Normalisations: numbers less their mean, divided by their spread."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import flowcompute.elements.axes as fc_axes
import flowcompute.elements.math as fc
from flowcompute.elements import nn
from flowcompute.onnx.logical_value import APART, Value, together
from flowcompute.onnx.operators.control_flow import MOST_UNROLLED
from flowcompute.onnx.operators.record import REQUIRED, NodeCall, Operator
from flowcompute.onnx.problems import Refusal
from flowcompute.spec import BFLOAT16, FLOAT16

_WIDE = 1
"""`stash_type` of float32."""


def _in_float32(call: NodeCall, value: Value) -> Value:
    """Return half formats in float32, where the node says that it is computed so."""
    if call.attribute("stash_type") == _WIDE and value.dtype in (FLOAT16, BFLOAT16):
        return value.like(fc.astype(value.element, "float32"))
    return value


def _trailing(value: Value, axis: int) -> tuple[int, ...]:
    """Return the axes of the element from a logical one on."""
    axes = range(value.normal(axis), value.ndim)
    if value.axis in axes:
        raise Refusal("batch axis", "a mean over the records", APART)
    return tuple(value.physical(one) for one in axes)


def _cast(value: Value, dtype: Any) -> Value:
    return value if value.dtype == dtype else value.like(fc.astype(value.element, dtype))


def _layer(call: NodeCall) -> Any:
    given, scale, bias = call[0], call[1], call.get(2)
    eps = call.attribute("epsilon")
    x = _in_float32(call, given)
    axes = _trailing(x, call.attribute("axis"))
    made = together(fc.multiply, _cast(x.like(nn.layer_norm(x.element, axes, eps)), given.dtype), scale)
    made = made if bias is None else together(fc.add, made, bias)
    if not (call.wants(1) or call.wants(2)):
        return made
    mean = fc.mean(x.element, axes, keepdims=True)
    spread = fc.var(x.element, axes, keepdims=True)
    return made, x.like(mean), x.like(fc.reciprocal(fc.sqrt(fc.add(spread, eps))))


def _rms(call: NodeCall) -> Value:
    given, scale = call[0], call[1]
    x = _in_float32(call, given)
    axes = _trailing(x, call.attribute("axis"))
    made = x.like(nn.rms_norm(x.element, axes, call.attribute("epsilon")))
    return together(fc.multiply, _cast(made, given.dtype), scale)


def per_channel(value: Value, ndim: int) -> Any:
    """Return one number a channel, lined up with the items of (N, C, *sizes)."""
    element = value.resident("a weight of channels")
    return fc_axes.reshape(element, (-1, *(1,) * (ndim - 2)))


def _instance(call: NodeCall) -> Value:
    x, scale, bias = call[0], call[1], call[2]
    element = x.batch_first("normalise")
    scales, biases = scale.resident("scale"), bias.resident("bias")
    return x.like(nn.instance_norm(element, call.attribute("epsilon"), scales, biases))


def _group(call: NodeCall) -> Value:
    x, scale, bias = call[0], call[1], call[2]
    element = x.batch_first("normalise")
    groups, eps = call.attribute("num_groups"), call.attribute("epsilon")
    if call.opset >= 21:
        return x.like(nn.group_norm(element, groups, eps, scale.resident("scale"), bias.resident("bias")))
    # One weight for a group.
    count = x.size(1) // groups
    weights = [fc_axes.repeat(one.resident("a weight of groups"), count, 0) for one in (scale, bias)]
    return x.like(nn.group_norm(element, groups, eps, weights[0], weights[1]))


def _batch(call: NodeCall) -> Value | Sequence[Value]:
    x, scale, bias, mean, variance = (call[place] for place in range(5))
    if call.attribute("training_mode") and call.opset >= 14:
        return _batch_of_its_own(call)
    if call.opset < 7 and not call.attribute("is_test"):
        raise Refusal("training", "a batch normalisation in training mode", "export the model for inference")
    if call.wants(1):
        raise Refusal("training", "running means", "export the model for inference")
    return _normalised(call, x, scale, bias, mean.resident("mean"), variance.resident("var"))


def _normalised(call: NodeCall, x: Value, scale: Value, bias: Value, mean: Any, variance: Any) -> Value:
    """Normalise channels by a mean and a variance each."""
    element = x.batch_first("normalise")
    deviation = fc.sqrt(fc.add(variance, call.attribute("epsilon")))
    factor = fc.divide(scale.resident("scale"), deviation)
    shift = fc.subtract(bias.resident("B"), fc.multiply(mean, factor))
    lined = [fc_axes.reshape(one, (-1, *(1,) * max(x.ndim - 2, 0))) for one in (factor, shift)]
    made = fc.add(fc.multiply(element, lined[0]), lined[1])
    return x.like(made if made.dtype == x.dtype else fc.astype(made, x.dtype))


def _batch_of_its_own(call: NodeCall) -> Sequence[Value]:
    """Normalise channels by the mean and the variance of all records, which have to be resident."""
    x, scale, bias, mean, variance = (call[place] for place in range(5))
    if x.axis is not None:
        raise Refusal("batch axis", "a mean of all records together", "give a resident array")
    momentum, axes = call.attribute("momentum"), (0, *range(2, x.ndim))
    # Half formats are added up in float32, as the standard asks.
    inner = mean.dtype if mean.dtype == np.float64 else np.dtype(np.float32)
    wide = fc.astype(x.element, inner)
    own = fc.mean(wide, axes), fc.var(wide, axes)
    running = [
        fc.astype(
            fc.add(fc.multiply(one.resident("a running number"), momentum), fc.multiply(new, 1 - momentum)), one.dtype
        )
        for one, new in zip((mean, variance), own, strict=True)
    ]
    made = _normalised(call, x, scale, bias, *own)
    return (made, *(Value.of(one) for one in running))


def _lp(call: NodeCall) -> Value:
    value, p = call[0], call.attribute("p")
    at = value.item_axis(value.normal(call.attribute("axis")), "normalise along")
    x = value.element
    if p == 1:
        norm = fc.sum(fc.abs(x), at, keepdims=True)
    elif p == 2:
        norm = fc.sqrt(fc.sum(fc.square(x), at, keepdims=True))
    else:
        raise Refusal("attribute", f"p={p}", "use p=1 or p=2")
    return value.like(fc.where(fc.equal(norm, 0), 0, fc.divide(x, norm)))


def _across_channels(call: NodeCall) -> Value:
    """Divide by a power of the mean of squares over neighbouring channels (LRN)."""
    value, size = call[0], call.attribute("size")
    at = value.item_axis(1, "look along")
    x = value.element
    if not 1 <= size <= MOST_UNROLLED:
        raise Refusal("unbounded", f"{size} neighbouring channels", f"use 1 to {MOST_UNROLLED}")
    before = (size - 1) // 2
    widths = [(0, 0)] * x.ndim
    widths[at] = (before, size - 1 - before)
    squares = fc_axes.pad(fc.square(x), widths)
    channels, lead = value.size(1), (slice(None),) * at
    total = squares[(*lead, slice(0, channels))]
    for place in range(1, size):
        total = fc.add(total, squares[(*lead, slice(place, place + channels))])
    scale = fc.add(fc.multiply(total, call.attribute("alpha") / size), call.attribute("bias"))
    return value.like(fc.divide(x, fc.pow(scale, call.attribute("beta"))))


def _mean_variance(call: NodeCall) -> Value:
    value = call[0]
    axes = value.normals(call.attribute("axes"))
    if value.axis in axes:
        raise Refusal("batch axis", "a mean over the records", APART)
    own = tuple(value.physical(axis) for axis in axes)
    x = value.element
    mean = fc.mean(x, own, keepdims=True)
    squares = fc.mean(fc.square(x), own, keepdims=True)
    spread = fc.sqrt(fc.subtract(squares, fc.square(mean)))
    return value.like(fc.divide(fc.subtract(x, mean), fc.add(spread, 1e-9)))


_EPSILON = {"epsilon": 1e-5}

OPERATORS: tuple[Operator, ...] = (
    Operator("LayerNormalization", _layer, 17, attributes={"axis": -1, "stash_type": 1, **_EPSILON}),
    Operator("RMSNormalization", _rms, 23, attributes={"axis": -1, "stash_type": 1, **_EPSILON}),
    Operator("InstanceNormalization", _instance, attributes={"consumed_inputs": None, **_EPSILON}),
    Operator("GroupNormalization", _group, 18, attributes={"num_groups": REQUIRED, "stash_type": 1, **_EPSILON}),
    Operator(
        "BatchNormalization",
        _batch,
        attributes={
            "momentum": 0.9,
            "training_mode": 0,
            "is_test": 0,
            "spatial": 1,
            "consumed_inputs": None,
            **_EPSILON,
        },
    ),
    Operator("LpNormalization", _lp, attributes={"axis": -1, "p": 2}),
    Operator("LRN", _across_channels, attributes={"alpha": 1e-4, "beta": 0.75, "bias": 1.0, "size": REQUIRED}),
    Operator("MeanVarianceNormalization", _mean_variance, 9, attributes={"axes": (0, 2, 3)}),
)
