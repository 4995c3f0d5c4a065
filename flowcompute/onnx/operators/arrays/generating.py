"""Values that follow from shapes: constants, ranges, diagonals, windows, and filters."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import flowcompute.elements.axes as fc_axes
import flowcompute.elements.math as fc
from flowcompute.elements import Constant
from flowcompute.elements.creation import full
from flowcompute.onnx.logical_value import APART, Value
from flowcompute.onnx.operators.arrays.logical_shapes import broadcast
from flowcompute.onnx.operators.record import NodeCall, Operator, known_of
from flowcompute.onnx.problems import Refusal
from flowcompute.onnx.sizes import MOST_KNOWN, Records
from flowcompute.onnx.tensors import dtype_of

MOST_NUMBERS = 1 << 24
"""Of a value that is made when the graph is composed."""


def _constant(call: NodeCall) -> Value:
    given = call.node.attributes
    if "value" in given:
        return Value.of(given["value"])
    if "value_int" in given or "value_ints" in given:
        return Value.of(Constant(np.array(given.get("value_int", given.get("value_ints")), np.int64)))
    if "value_float" in given or "value_floats" in given:
        return Value.of(Constant(np.array(given.get("value_float", given.get("value_floats")), np.float32)))
    if "value_string" in given or "value_strings" in given:
        raise Refusal("string", "a constant string", "make numbers of the strings before the model")
    raise Refusal("dtype", "a sparse constant", "make it dense in the model")


def _constant_of_shape(call: NodeCall) -> Value:
    given = call.node.attributes.get("value")
    number = np.zeros(1, np.float32) if given is None else given.value
    shape = call[0].wholes("the shape")
    single = number.reshape(-1)[0]
    if any(isinstance(size, Records) for size in shape):
        return broadcast(Value.of(Constant(single)), shape, call.stream)
    count = math.prod(shape)
    made = Value.of(full(tuple(shape), single, number.dtype))
    return made.with_known(np.full(shape, single.item(), object)) if 0 < count <= MOST_KNOWN else made


def _constant_of_shape_integers(call: NodeCall) -> Any:
    """Return numbers of a shape that is known, for shapes made of them."""
    given = call.node.attributes.get("value")
    number = 0.0 if given is None else given.value.reshape(-1)[0].item()
    shape = [int(size) for size in known_of(call)[0]]
    if math.prod(shape) > MOST_KNOWN:
        raise ValueError
    return np.full(shape, number, object)


def _range(call: NodeCall) -> Value:
    start, limit, delta = (call[place].numbers("a bound") for place in range(3))
    if any(isinstance(one[()], Records) for one in (start, limit, delta)):
        raise Refusal("batch axis", "a range up to the number of records", APART)
    dtype = call[0].dtype
    begin, end, step = (one.reshape(-1)[0] for one in (start, limit, delta))
    count = max(0, math.ceil((end - begin) / step))
    if count > MOST_NUMBERS:
        raise Refusal("unbounded", f"a range of {count} numbers", f"use at most {MOST_NUMBERS}")
    if dtype.kind in "iu":
        return Value.of(Constant((begin + step * np.arange(count, dtype=np.int64)).astype(dtype)))
    numbers = np.arange(count).astype(np.float64) * step + begin
    return Value.of(Constant(numbers.astype(dtype)))


def _eye_like(call: NodeCall) -> Value:
    value = call[0]
    if value.axis is not None or value.ndim != 2:
        raise Refusal("batch axis", "a diagonal along the records", APART)
    number = call.attribute("dtype")
    dtype = value.dtype if number is None else dtype_of(number)
    rows, columns = value.size(0), value.size(1)
    if rows * columns > MOST_NUMBERS:
        raise Refusal("unbounded", f"a diagonal of {rows} x {columns}", f"use at most {MOST_NUMBERS} numbers")
    return Value.of(Constant(np.eye(rows, columns, call.attribute("k"), np.float64).astype(dtype)))


def _trilu(call: NodeCall) -> Value:
    value, given = call[0], call.get(1)
    k = 0 if given is None else given.ints("k")[0]
    if value.axis is not None and value.axis >= value.ndim - 2:
        raise Refusal("batch axis", "a triangle along the records", APART)
    x = value.element
    function = fc_axes.triu if call.attribute("upper") else fc_axes.tril
    most = max(*x.shape[-2:], 1)
    return value.like(function(x, k=max(-most, min(most, k))))


def _window(call: NodeCall) -> Value:
    size = call[0].ints("size")[0]
    if not 0 <= size <= MOST_NUMBERS:
        raise Refusal("unbounded", f"a window of {size}", f"use at most {MOST_NUMBERS}")
    dtype = dtype_of(call.attribute("output_datatype"))
    below = size if call.attribute("periodic") else size - 1
    with np.errstate(invalid="ignore"):
        angle = 2 * np.pi * np.arange(size) / below
    if call.node.op == "HannWindow":
        made = 0.5 - 0.5 * np.cos(angle)
    elif call.node.op == "HammingWindow":
        made = 25 / 46 - 21 / 46 * np.cos(angle)
    else:
        made = 0.42 - 0.5 * np.cos(angle) + 0.08 * np.cos(2 * angle)
    return Value.of(Constant(made.astype(dtype)))


def _mel_weights(call: NodeCall) -> Value:
    """Return triangular filters that are even on the mel scale."""
    bins, length, rate = (call[place].ints("a size")[0] for place in range(3))
    low, high = (float(call[place].numbers("a frequency").reshape(-1)[0]) for place in (3, 4))
    spectrum = length // 2 + 1
    if bins < 1 or length < 1 or bins * spectrum > MOST_NUMBERS:
        raise Refusal("unbounded", f"{bins} filters of {spectrum} numbers", f"use at most {MOST_NUMBERS} numbers")
    mel_low, mel_high = (2595 * math.log10(1 + one / 700) for one in (low, high))
    mels = np.arange(bins + 2) * ((mel_high - mel_low) / (bins + 2)) + mel_low
    edges = ((length + 1) * (700 * (10 ** (mels / 2595) - 1)) // rate).astype(np.int64)
    made = np.zeros((spectrum, bins))
    for place in range(bins):
        below, centre, above = edges[place : place + 3]
        if below == centre:
            made[centre, place] = 1
        else:
            rising = np.arange(below, centre + 1)
            made[rising, place] = (rising - below) / (centre - below)
        if above > centre:
            falling = np.arange(centre, above)
            made[falling, place] = (above - falling) / (above - centre)
    return Value.of(Constant(made.astype(dtype_of(call.attribute("output_datatype")))))


def _one_hot(call: NodeCall) -> Value:
    indices, depth, values = call[0], call[1].ints("depth")[0], call[2]
    rank = indices.ndim + 1
    axis = call.attribute("axis")
    place = axis + rank if axis < 0 else axis
    if not 0 <= place < rank or not 0 <= depth <= MOST_NUMBERS:
        raise Refusal("invalid", f"axis {axis} and depth {depth}", "correct the model")
    x = indices.element
    moved = indices.axis
    if moved is not None and place <= moved:
        moved += 1
    own = place if moved is None else place if place > moved else place + 1
    opened = fc_axes.expand_dims(x, own)
    places = np.arange(depth).reshape(-1, *(1,) * (opened.ndim - own - 1))
    # Negative ones count from the end, and those beyond are nowhere.
    wide = opened if opened.dtype in (np.int64, np.uint64) else fc.astype(opened, "int64")
    counted = wide if wide.dtype.kind == "u" else fc.where(fc.less(wide, 0), fc.add(wide, depth), wide)
    pair = values.resident("values")
    return indices.like(fc.where(fc.equal(counted, places.astype(wide.dtype)), pair[1], pair[0]), moved)


def _has_element(call: NodeCall) -> Value:
    return Value.of(Constant(np.asarray(call.get(0) is not None)))


def _element(call: NodeCall) -> Value:
    return call[0]


_WINDOW = {"periodic": 1, "output_datatype": 1}

OPERATORS: tuple[Operator, ...] = (
    Operator(
        "Constant",
        _constant,
        attributes=dict.fromkeys(
            ("value", "value_float", "value_floats", "value_int", "value_ints", "value_string", "value_strings",
             "sparse_value")
        ),
    ),
    Operator(
        "ConstantOfShape", _constant_of_shape, 9, attributes={"value": None}, integers=_constant_of_shape_integers
    ),
    Operator("OptionalHasElement", _has_element, 15),
    Operator("OptionalGetElement", _element, 15),
    Operator("Range", _range, 11, attributes={"stash_type": 1}),
    Operator("EyeLike", _eye_like, 9, attributes={"dtype": None, "k": 0}),
    Operator("Trilu", _trilu, 14, attributes={"upper": 1}),
    Operator("HannWindow", _window, 17, attributes=_WINDOW),
    Operator("HammingWindow", _window, 17, attributes=_WINDOW),
    Operator("BlackmanWindow", _window, 17, attributes=_WINDOW),
    Operator("MelWeightMatrix", _mel_weights, 17, attributes={"output_datatype": 1}),
    Operator("OneHot", _one_hot, 9, attributes={"axis": -1}),
)  # fmt: skip
