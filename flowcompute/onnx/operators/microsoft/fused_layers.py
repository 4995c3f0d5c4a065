"""Activations and normalisations that onnxruntime fuses with what stands before them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import flowcompute.elements.axes as fc_axes
import flowcompute.elements.math as fc
from flowcompute.elements import nn
from flowcompute.onnx.logical_value import Value, together
from flowcompute.onnx.operators.record import NodeCall, Operator
from flowcompute.onnx.problems import Refusal
from flowcompute.spec import BFLOAT16, FLOAT16

DOMAIN = "com.microsoft"


def _summed(first: Value, *rest: Value | None) -> Value:
    for one in rest:
        first = first if one is None else together(fc.add, first, one)
    return first


def _activated(function: Callable[[Any], Any]) -> Callable[[NodeCall], Value]:
    def build(call: NodeCall) -> Value:
        total = _summed(call[0], call.get(1))
        return total.like(function(total.element))

    return build


def _quick_gelu(call: NodeCall) -> Value:
    x = call[0].element
    return call[0].like(fc.multiply(x, nn.sigmoid(fc.multiply(x, call.attribute("alpha")))))


# -- normalisations -----------------------------------------------------------------------------------


def _normalised(call: NodeCall, x: Value, gamma: Value, beta: Value | None, *, centred: bool) -> Value:
    """Normalise over the last axis in float32, and round once."""
    axis = x.item_axis(x.ndim - 1, "normalise")
    half = x.dtype in (FLOAT16, BFLOAT16)
    wide = fc.astype(x.element, "float32") if half else x.element
    norm = nn.layer_norm if centred else nn.rms_norm
    made = x.like(norm(wide, (axis,), call.attribute("epsilon")))
    weights = [one if one is None or not half else one.like(fc.astype(one.element, "float32")) for one in (gamma, beta)]
    assert weights[0] is not None
    made = _summed(together(fc.multiply, made, weights[0]), weights[1])
    return made.like(fc.astype(made.element, x.dtype)) if half else made


def _statistics(call: NodeCall, x: Value, *, centred: bool) -> tuple[Value, Value]:
    """Return the mean over the last axis, and one over the spread."""
    axis = x.item_axis(x.ndim - 1, "normalise")
    wide = fc.astype(x.element, "float32")
    mean = fc.mean(wide, axis, keepdims=True)
    square = fc.var(wide, axis, keepdims=True) if centred else fc.mean(fc.multiply(wide, wide), axis, keepdims=True)
    return x.like(mean), x.like(fc.reciprocal(fc.sqrt(fc.add(square, call.attribute("epsilon")))))


def _with_skip(call: NodeCall, total: Value, beta: Value | None, *, centred: bool) -> tuple[Value, ...]:
    made = _normalised(call, total, call[2], beta, centred=centred)
    if not (call.wants(1) or call.wants(2)):
        return made, made, made, total
    return (made, *_statistics(call, total, centred=centred), total)


def _skip_layer(call: NodeCall) -> tuple[Value, ...]:
    return _with_skip(call, _summed(call[0], call[1], call.get(4)), call.get(3), centred=True)


def _skip_simplified(call: NodeCall) -> tuple[Value, ...]:
    return _with_skip(call, _summed(call[0], call[1], call.get(3)), None, centred=False)


def _simplified(call: NodeCall) -> Any:
    x = call[0]
    if x.normal(call.attribute("axis")) != x.ndim - 1:
        raise Refusal("missing", "a normalisation over several axes", "use RMSNormalization")
    made = _normalised(call, x, call[1], None, centred=False)
    return (made, _statistics(call, x, centred=False)[1]) if call.wants(1) else made


# -- embeddings ---------------------------------------------------------------------------------------


def _embedded(call: NodeCall) -> tuple[Value, ...]:
    """Add up the rows of words, positions and segments, and normalise them."""
    ids, segments, words, positions, parts = call[0], call.get(1), call[2], call[3], call.get(4)
    gamma, beta, mask, places = call[5], call[6], call.get(7), call.get(8)
    total = _rows(words, ids)
    if places is None:
        count = ids.size(1)
        total = together(fc.add, total, Value.of(positions.resident("positions")[:count]))
    else:
        total = together(fc.add, total, _rows(positions, places))
    if segments is not None and parts is not None:
        total = together(fc.add, total, _rows(parts, segments))
    made = _normalised(call, total, gamma, beta, centred=True)
    if not call.wants(1):
        return made, made, total
    counted = (ids if mask is None else mask).batch_first("count")
    there = fc.not_equal(counted, counted) if mask is None else fc.not_equal(counted, 0)
    return made, Value.of(fc.sum(fc.astype(there, "int32"), axis=1, dtype="int32"), 0, ids.shape[0]), total


def _rows(table: Value, ids: Value) -> Value:
    made = fc_axes.take(table.resident("a table"), ids.batch_first("look up"), 0)
    return ids.like(made)


_EPSILON = {"epsilon": 1e-5}

OPERATORS: tuple[Operator, ...] = (
    Operator("Gelu", _activated(nn.gelu), domain=DOMAIN),
    Operator("BiasGelu", _activated(nn.gelu), domain=DOMAIN),
    Operator("FastGelu", _activated(lambda x: nn.gelu(x, approximate="tanh")), domain=DOMAIN),
    Operator("QuickGelu", _quick_gelu, domain=DOMAIN, attributes={"alpha": 1.702}),
    Operator("SkipLayerNormalization", _skip_layer, domain=DOMAIN, attributes=_EPSILON),
    Operator("SkipSimplifiedLayerNormalization", _skip_simplified, domain=DOMAIN, attributes=_EPSILON),
    # onnxruntime has this one in ONNX's own domain.
    Operator("SimplifiedLayerNormalization", _simplified, attributes={"axis": -1, "stash_type": 1, **_EPSILON}),
    Operator("EmbedLayerNormalization", _embedded, domain=DOMAIN, attributes={"mask_index_type": 0, **_EPSILON}),
)
