"""Numbers put into values at given places, and taken from places along several axes."""

from __future__ import annotations

import flowcompute.elements.math as fc
from flowcompute.elements.search import gather_nd, scatter_elements, scatter_nd
from flowcompute.onnx.logical_value import APART, Value
from flowcompute.onnx.operators.record import NodeCall, Operator
from flowcompute.onnx.problems import Refusal

REDUCTIONS = {"none": "set", "add": "add", "mul": "mul", "max": "max", "min": "min"}


def _scatter_elements(call: NodeCall) -> Value:
    data, indices, updates = call[0], call[1], call[2]
    axis = data.normal(call.attribute("axis"))
    how = REDUCTIONS[call.choice("reduction", tuple(REDUCTIONS))]
    if not data.axis == indices.axis == updates.axis or data.axis == axis:
        raise Refusal("batch axis", "data, indices and updates do not advance together", APART)
    made = scatter_elements(data.element, indices.element, updates.element, data.physical(axis), how)
    return data.like(made if made.dtype == data.dtype else fc.astype(made, data.dtype))


def _scatter_nd(call: NodeCall) -> Value:
    data, indices, updates = call[0], call[1], call[2]
    how = REDUCTIONS[call.choice("reduction", tuple(REDUCTIONS))]
    if any(one.axis is not None for one in (data, indices, updates)):
        raise Refusal("batch axis", "places that are counted over records", "give resident arrays")
    return Value.of(scatter_nd(data.element, indices.element, updates.element, how))


def _gather_nd(call: NodeCall) -> Value:
    data, indices, batch = call[0], call[1], call.attribute("batch_dims")
    if data.axis != indices.axis or (data.axis is not None and (data.axis != 0 or batch < 1)):
        raise Refusal("batch axis", "data and indices do not advance together", APART)
    return data.like(gather_nd(data.element, indices.element, batch))


_SCATTER = {"axis": 0, "reduction": "none"}

OPERATORS: tuple[Operator, ...] = (
    Operator("Scatter", _scatter_elements, 9, attributes=_SCATTER),
    Operator("ScatterElements", _scatter_elements, 11, attributes=_SCATTER),
    Operator("ScatterND", _scatter_nd, 11, attributes={"reduction": "none"}),
    Operator("GatherND", _gather_nd, 11, attributes={"batch_dims": 0}),
)
