"""Values joined, cut, padded, and taken by indices."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

import flowcompute.elements.axes as fc_axes
import flowcompute.elements.math as fc
from flowcompute.elements.search import take_along_axis
from flowcompute.onnx.logical_value import APART, Value, expanded, same_streams
from flowcompute.onnx.operators.arrays.logical_shapes import reshaped
from flowcompute.onnx.operators.record import REQUIRED, NodeCall, Operator, known_of
from flowcompute.onnx.problems import Refusal
from flowcompute.onnx.sizes import Records

MOST_PARTS = 1024

_TO_THE_END = 10**9
"""What exporters write for the end of an axis: this, or a larger number."""


def concatenated(values: Sequence[Value], axis: int) -> Value:
    """Join values along a logical axis."""
    made, layout = same_streams(values)
    if len(made) == 1:
        return made[0]
    at = made[0].item_axis(axis, "join along")
    return layout.value(fc_axes.concat([value.element for value in made], axis=at))


def stacked(values: Sequence[Value], axis: int) -> Value:
    """Stack values along a new axis."""
    rank = values[0].ndim + 1
    place = axis + rank if axis < 0 else axis
    opened = []
    for value in values:
        moved = value.axis
        if moved is not None and place <= moved:
            moved += 1
        own = place if moved is None or place > moved else place + 1
        opened.append(value.like(fc_axes.expand_dims(value.element, own), moved))
    return concatenated(opened, place)


def _concat(call: NodeCall) -> Value:
    return concatenated(call.given, call[0].normal(call.attribute("axis")))


def _concat_integers(call: NodeCall) -> Any:
    return np.concatenate(known_of(call), axis=call.attribute("axis"))


# -- parts --------------------------------------------------------------------------------------------


def cut_along(value: Value, axis: int, start: int, stop: int) -> Value:
    """Return places `start` to `stop` along a logical axis."""
    at = value.item_axis(axis, "cut along")
    return value.like(value.element[(*(slice(None),) * at, slice(start, stop))])


def picked(value: Value, axis: int, place: int) -> Value:
    """Return one place along an axis, which goes away."""
    part = cut_along(value, axis, place, place + 1)
    moved = value.axis - (value.axis > axis) if value.axis is not None else None
    return part.like(fc_axes.squeeze(part.element, part.physical(axis)), moved)


def _split(call: NodeCall) -> tuple[Value, ...]:
    value = call[0]
    axis = value.normal(call.attribute("axis"))
    value.item_axis(axis, "split along")
    size, given = value.size(axis), call.get(1)
    parts = call.node.attributes.get("split")
    if given is not None:
        parts = given.ints("split")
    if parts is None:
        count = call.attribute("num_outputs") if call.opset >= 18 else len(call.node.outputs)
        count = count or len(call.node.outputs)
        if not 1 <= count <= MOST_PARTS:
            raise Refusal("invalid", f"{count} parts", "correct the model")
        most = -(-size // count)
        parts = [max(0, min(most, size - most * place)) for place in range(count)]
    return parted(value, axis, parts)


def parted(value: Value, axis: int, parts: Sequence[int]) -> tuple[Value, ...]:
    """Cut a value into parts of these sizes along a logical axis that is not the stream."""
    if sum(parts) != value.size(axis) or min(parts, default=0) < 0:
        raise Refusal("invalid", f"parts {tuple(parts)[:8]} of {value.size(axis)}", "correct the model")
    ends = np.cumsum([0, *parts]).tolist()
    if not value.has_element and value.known is not None:
        return tuple(Value.of_known(one, value.dtype) for one in np.split(value.known, ends[1:-1], axis))
    made = [cut_along(value, axis, begin, end) for begin, end in itertools.pairwise(ends)]
    if value.known is None:
        return tuple(made)
    known = np.split(value.known, ends[1:-1], axis)
    return tuple(one.with_known(part) for one, part in zip(made, known, strict=True))


def _slices(call: NodeCall, rank: int) -> list[tuple[int, Any, Any, int]]:
    """Return (axis, start, end, step) of a slice."""
    starts: tuple[Any, ...]
    if call.opset < 10:
        starts, ends = call.attribute("starts"), call.attribute("ends")
        axes, steps = call.attribute("axes"), None
    else:
        starts, ends = call[1].wholes("starts"), call[2].wholes("ends")
        given_axes, given_steps = call.get(3), call.get(4)
        axes = None if given_axes is None else given_axes.ints("axes")
        steps = None if given_steps is None else given_steps.ints("steps")
    places = [axis + rank if axis < 0 else axis for axis in (range(len(starts)) if axes is None else axes)]
    strides = (1,) * len(starts) if steps is None else steps
    if not len(starts) == len(ends) == len(places) == len(strides) or not all(0 <= axis < rank for axis in places):
        raise Refusal("invalid", "starts, ends, axes and steps do not fit", "correct the model")
    if 0 in strides:
        raise Refusal("invalid", "a step of 0", "correct the model")
    return list(zip(places, starts, ends, strides, strict=True))


def _is_all(size: Any, start: Any, end: Any, step: int) -> bool:
    """Check whether a slice of an axis takes all of it."""
    if step != 1 or isinstance(start, Records) or start != 0:
        return False
    if isinstance(size, Records) or isinstance(end, Records):
        return (
            end is size
            or (isinstance(end, Records) and isinstance(size, Records) and end == size)
            or (not isinstance(end, Records) and end >= _TO_THE_END)
        )
    return bool(end >= size)


def _places(size: int, start: int, end: int, step: int) -> range:
    """Return the places that a slice takes. Backwards, a start before the axis stands at its first number."""
    if step < 0 and start < -size:
        start = 0
    return range(*slice(start, end, step).indices(size))


def _slice(call: NodeCall) -> Value:
    value = call[0]
    keys: list[Any] = [slice(None)] * value.element.ndim
    for axis, start, end, step in _slices(call, value.ndim):
        if _is_all(value.shape[axis], start, end, step):
            continue
        at = value.item_axis(axis, "slice")
        if isinstance(start, Records) or isinstance(end, Records):
            raise Refusal("batch axis", f"axis {axis} is cut by the number of records", APART)
        places = _places(value.size(axis), start, end, step)
        stop = places.start + len(places) * step
        keys[at] = slice(places.start, stop if stop >= 0 else None, step) if places else slice(0, 0)
    return value.like(value.element[tuple(keys)] if keys else value.element)


def _slice_integers(call: NodeCall) -> Any:
    numbers = known_of(call)[0]
    for axis, start, end, step in _slices(call, numbers.ndim):
        numbers = np.take(numbers, _places(numbers.shape[axis], int(start), int(end), step), axis)
    return numbers


# -- edges --------------------------------------------------------------------------------------------


def _pads(call: NodeCall, rank: int) -> list[tuple[int, int]]:
    """Return widths before and after each axis."""
    if call.opset < 11:
        widths = call.node.attributes.get("pads", call.node.attributes.get("paddings"))
        if widths is None:
            raise Refusal("attribute", "attribute 'pads' is missing", "correct the model")
        axes: Sequence[int] = range(rank)
    else:
        widths, given = call[1].ints("pads"), call.get(3)
        axes = range(rank) if given is None else call[0].normals(given.ints("axes"))
    half = len(axes)
    if len(widths) != 2 * half:
        raise Refusal("invalid", f"{len(widths)} pads for {half} axes", "correct the model")
    pairs = [(0, 0)] * rank
    for place, axis in enumerate(axes):
        pairs[axis] = (int(widths[place]), int(widths[place + half]))
    return pairs


def _pad(call: NodeCall) -> Value:
    fill: Any = call.attribute("value") if call.opset < 11 else 0
    given = call.get(2) if call.opset >= 11 else None
    if given is not None and given.known is not None and given.known.size:
        fill = given.known.reshape(-1)[0]
    elif given is not None and given.known is None:
        raise Refusal("unknown", "the number to pad with is not known", "make constant_value a constant")
    mode = call.choice("mode", ("constant", "reflect", "edge", "wrap"))
    return padded(call[0], _pads(call, call[0].ndim), mode, fill)


def padded(value: Value, pairs: Sequence[tuple[int, int]], mode: str, fill: Any) -> Value:
    """Pad along the logical axes; negative widths cut."""
    element = value.element
    widths = [(0, 0)] * element.ndim
    keys: list[Any] = [slice(None)] * element.ndim
    for axis, (before, after) in enumerate(pairs):
        if (before, after) == (0, 0):
            continue
        at = value.item_axis(axis, "pad")
        widths[at] = (max(before, 0), max(after, 0))
        if before < 0 or after < 0:
            size = value.size(axis)
            if size + before + after < 0:
                raise Refusal("invalid", f"{-before - after} of {size} numbers are cut away", "correct the model")
            # What is cut away beyond the numbers is cut off what is added at the other end.
            widths[at] = (max(before + min(size + after, 0), 0), max(after + min(size + before, 0), 0))
            keys[at] = slice(max(-before, 0), max(size - max(-after, 0), 0))
    if any(key != slice(None) for key in keys):
        element = element[tuple(keys)]
    if not any(map(any, widths)):
        return value.like(element)
    return value.like(fc_axes.pad(element, widths, mode, fill if mode == "constant" else 0))  # type: ignore[arg-type]


# -- indices ------------------------------------------------------------------------------------------


def _gather(call: NodeCall) -> Value:
    data, indices = call[0], call[1]
    axis = data.normal(call.attribute("axis"))
    if indices.axis is not None:
        if data.axis is not None:
            raise Refusal("missing", "indices and data are both streams", "give one of them as a resident array")
        return indices.like(fc_axes.take(data.element, indices.element, axis=axis), axis + indices.axis)
    at = data.item_axis(axis, "take along")
    size = data.size(axis)
    element = data.element
    if size == 1 and indices.ndim == 0 and indices.known is not None and int(indices.known[()]) in (0, -1):
        made = fc_axes.squeeze(element, at)
    elif indices.ndim == 0 and indices.known is not None:
        place = int(indices.known[()])
        if not -size <= place < size:
            raise Refusal("invalid", f"index {place} of {size}", "correct the model")
        made = element[(*(slice(None),) * at, place)]
    else:
        made = fc_axes.take(element, fc_axes.reshape(indices.element, (-1,)), axis=at)
        if indices.ndim != 1:
            shape = element.shape
            lead = (-1,) if data.axis is not None else shape[:1]
            before = shape[1:at] if at else ()
            sizes = indices.element.spec.shape
            made = fc_axes.reshape(made, (*(lead if at else ()), *before, *sizes, *shape[at + 1 :]))
    moved = data.axis
    if moved is not None and moved > axis:
        moved += indices.ndim - 1
    return data.like(made, moved)


def _columns(call: NodeCall) -> Value:
    """Take columns by their numbers, as `ai.onnx.ml.ArrayFeatureExtractor`; a vector is a row."""
    data = expanded(call[0], 2)
    last = data.ndim - 1
    indices = fc_axes.reshape(call[1].resident("the numbers of columns"), (-1,))
    return data.like(fc_axes.take(data.element, indices, axis=data.item_axis(last, "take along")))


def _gather_integers(call: NodeCall) -> Any:
    numbers, indices = known_of(call)
    return np.take(numbers, indices.astype(np.int64), axis=call.attribute("axis"))


def _gather_elements(call: NodeCall) -> Value:
    data, indices = call[0], call[1]
    axis = data.normal(call.attribute("axis"))
    if data.axis != indices.axis or data.axis == axis:
        raise Refusal("batch axis", "data and indices do not advance together", APART)
    for place, (size, wanted) in enumerate(zip(data.shape, indices.shape, strict=True)):
        if place not in (axis, data.axis) and size != wanted:
            data = cut_along(data, place, 0, indices.size(place))
    return data.like(take_along_axis(data.element, indices.element, axis=data.physical(axis)))


# -- blocks -------------------------------------------------------------------------------------------


def _depth_to_space(call: NodeCall) -> Value:
    value, block = call[0], call.attribute("blocksize")
    n, c, h, w = _four(value)
    if call.choice("mode", ("DCR", "CRD")) == "DCR":
        shape, order = (n, block, block, c // block**2, h, w), (0, 3, 4, 1, 5, 2)
    else:
        shape, order = (n, c // block**2, block, block, h, w), (0, 1, 4, 2, 5, 3)
    return _blocks(value, shape, order, (n, c // block**2, h * block, w * block))


def _space_to_depth(call: NodeCall) -> Value:
    value, block = call[0], call.attribute("blocksize")
    n, c, h, w = _four(value)
    shape = (n, c, h // block, block, w // block, block)
    order = (0, 3, 5, 1, 2, 4) if call.choice("mode", ("DCR", "CRD")) == "DCR" else (0, 1, 3, 5, 2, 4)
    return _blocks(value, shape, order, (n, c * block**2, h // block, w // block))


def _four(value: Value) -> tuple[Any, int, int, int]:
    if value.ndim != 4 or value.axis not in (None, 0):
        raise Refusal("batch axis", "blocks of a value whose records do not stand first", APART)
    return value.shape[0], value.size(1), value.size(2), value.size(3)


def _blocks(value: Value, shape: Sequence[Any], order: Sequence[int], made: Sequence[Any]) -> Value:
    opened = reshaped(value, shape)
    return reshaped(opened.like(fc_axes.permute_dims(opened.element, order)), made)


def _center_crop_pad(call: NodeCall) -> Value:
    value, wanted = call[0], call[1].ints("shape")
    axes = call.attribute("axes")
    places = range(value.ndim) if axes is None else value.normals(axes)
    pairs = [(0, 0)] * value.ndim
    for axis, size in zip(places, wanted, strict=True):
        own = value.shape[axis]
        if isinstance(own, Records):
            raise Refusal("batch axis", "records are cut or padded", APART)
        more = abs(size - own)
        pairs[axis] = (more // 2, more - more // 2) if size > own else (-(more // 2), more // 2 - more)
    return padded(value, pairs, "constant", 0)


def _reverse_sequence(call: NodeCall) -> Value:
    value, lengths = call[0], call[1].resident("sequence_lens")
    batch, time = call.attribute("batch_axis"), call.attribute("time_axis")
    if value.axis is not None:
        raise Refusal("batch axis", "sequences of a stream are reversed", "give a resident array")
    steps = np.arange(value.size(time)).reshape([-1 if at == time else 1 for at in range(value.ndim)])
    ends = fc_axes.reshape(lengths, tuple(-1 if at == batch else 1 for at in range(value.ndim)))
    places = fc.where(fc.less(steps, ends), fc.subtract(fc.subtract(ends, 1), steps), steps)
    spread = fc_axes.broadcast_to(places, value.element.spec.shape)
    return value.like(take_along_axis(value.element, spread, axis=time))


OPERATORS: tuple[Operator, ...] = (
    Operator("Concat", _concat, 1, 4, moves=True, attributes={"axis": 1}, integers=_concat_integers),
    Operator("Concat", _concat, 4, moves=True, attributes={"axis": REQUIRED}, integers=_concat_integers),
    Operator("Split", _split, 1, 13, moves=True, attributes={"axis": 0, "split": None}),
    Operator("Split", _split, 13, moves=True, attributes={"axis": 0, "num_outputs": None}),
    Operator("Slice", _slice, 1, 10, moves=True, attributes={"starts": REQUIRED, "ends": REQUIRED, "axes": None},
             integers=_slice_integers),
    Operator("Slice", _slice, 10, moves=True, integers=_slice_integers),
    Operator("Pad", _pad, 1, 11, attributes={"mode": "constant", "pads": None, "paddings": None, "value": 0.0}),
    Operator("Pad", _pad, 11, attributes={"mode": "constant"}),
    Operator("Gather", _gather, moves=True, attributes={"axis": 0}, integers=_gather_integers),
    Operator("ArrayFeatureExtractor", _columns, 1, domain="ai.onnx.ml"),
    Operator("GatherElements", _gather_elements, 11, moves=True, attributes={"axis": 0}),
    Operator("DepthToSpace", _depth_to_space, moves=True, attributes={"blocksize": REQUIRED, "mode": "DCR"}),
    Operator("SpaceToDepth", _space_to_depth, moves=True, attributes={"blocksize": REQUIRED, "mode": "DCR"}),
    Operator("CenterCropPad", _center_crop_pad, 18, attributes={"axes": None}),
    Operator("ReverseSequence", _reverse_sequence, 10, attributes={"batch_axis": 1, "time_axis": 0}),
)  # fmt: skip
