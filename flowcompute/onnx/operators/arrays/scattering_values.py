"""Numbers put into values at given places, and taken from places along several axes."""

from __future__ import annotations

from typing import Any

import numpy as np

import flowcompute.elements.axes as fc_axes
import flowcompute.elements.math as fc
from flowcompute.elements.search import gather_nd, scatter_elements, scatter_nd
from flowcompute.onnx.logical_value import APART, Value, same_streams
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


def _tensor_scatter(call: NodeCall) -> Value:
    """Put a part of a sequence into a cache, behind what each record has there."""
    past, update, given = call[0], call[1], call.get(2)
    axis = past.normal(call.attribute("axis"))
    size, count = past.size(axis), update.size(axis)
    circular = call.choice("mode", ("linear", "circular")) == "circular"
    if axis == 0 or update.ndim != past.ndim or count > size:
        raise Refusal("invalid", f"{update.shape} are put into {past.shape} along axis {axis}", "correct the model")
    steps = np.arange(count, dtype=np.int64).reshape([-1 if at == axis else 1 for at in range(past.ndim)])
    if given is None:
        (past, update), layout = same_streams([past, update])
        places: Any = steps[0] if past.axis is not None else steps
    else:
        if given.ndim != 1:
            raise Refusal("invalid", f"write_indices {given.shape}", "correct the model")
        begins = given.like(fc_axes.reshape(given.batch_first("write at"), (-1, *(1,) * (past.ndim - 1))))
        (past, update, begins), layout = same_streams([past, update, begins])
        places = fc.add(fc.astype(begins.batch_first("write at"), "int64"), steps)
        places = fc.remainder(places, size) if circular else places
    cache = past.batch_first("write into")
    made = scatter_elements(cache, places, update.batch_first("write"), past.physical(axis))
    return layout.value(made)


_SCATTER = {"axis": 0, "reduction": "none"}

OPERATORS: tuple[Operator, ...] = (
    Operator("Scatter", _scatter_elements, 9, attributes=_SCATTER),
    Operator("ScatterElements", _scatter_elements, 11, attributes=_SCATTER),
    Operator("ScatterND", _scatter_nd, 11, attributes={"reduction": "none"}),
    Operator("TensorScatter", _tensor_scatter, 24, attributes={"axis": -2, "mode": "linear"}),
    Operator("GatherND", _gather_nd, 11, attributes={"batch_dims": 0}),
)
