"""Shapes: values seen with other axes. The stream axis keeps apart, and each result knows where it stands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

import flowcompute.elements.axes as fc_axes
from flowcompute.onnx.logical_value import APART, Value, expanded, repeated_beside
from flowcompute.onnx.operators.record import REQUIRED, NodeCall, Operator, known_of
from flowcompute.onnx.problems import Refusal
from flowcompute.onnx.sizes import Records, Size, UndecidedError, product_of

MOST_AXES = 32


# -- reshape ------------------------------------------------------------------------------------------


def reshaped(value: Value, target: Sequence[Size]) -> Value:
    """Reshape a value to logical sizes, all of which are given. The stream axis must keep apart.

    Raises:
        Refusal: if numbers do not fit, or records would be mixed.
    """
    if value.axis is None:
        if any(isinstance(size, Records) for size in target):
            raise Refusal("batch axis", "a resident value gets the shape of a stream", APART)
        return Value.of(fc_axes.reshape(value.element, tuple(target)))  # type: ignore[arg-type]
    at = _place(value, tuple(target))
    items = tuple(size for place, size in enumerate(target) if place != at)
    return value.like(fc_axes.reshape(value.element, (-1, *items)), at)  # type: ignore[arg-type]


def _place(value: Value, target: tuple[Size, ...]) -> int:
    """Return where the stream axis stands in another shape: where as many numbers stand before and behind it."""
    assert value.axis is not None
    before, behind = product_of(value.shape[: value.axis]), product_of(value.shape[value.axis + 1 :])

    def fits(place: int) -> bool:
        try:
            around = product_of(target[:place]), product_of(target[place + 1 :])
            return _same(target[place], value.records) and around == (before, behind)
        except UndecidedError:
            return False

    for place in (value.axis, *range(len(target))):
        if place < len(target) and fits(place):
            return int(place)
    raise Refusal("batch axis", f"a reshape of {_text(value.shape)} to {_text(target)} mixes the records", APART)


def _same(a: Size, b: Size) -> bool:
    """Check whether sizes are equal; one that is not known equals itself only."""
    return isinstance(a, Records) == isinstance(b, Records) and bool(a == b)


def _text(shape: Sequence[Size]) -> str:
    return f"({', '.join(map(str, shape))})"


def _total(shape: Sequence[Size]) -> Size:
    try:
        total: Size = product_of(tuple(shape))
    except UndecidedError:
        raise Refusal("batch axis", f"a shape {_text(shape)} holds the number of records twice", APART) from None
    return total


def resolved_shape(value: Value, wanted: Sequence[Size], *, zero_copies: bool) -> list[Size]:
    """Return the sizes of a reshape, of which one may be -1, and 0 may mean as before.

    Raises:
        Refusal: if they do not fit.
    """
    target = list(wanted)
    for place, size in enumerate(target):
        if zero_copies and not isinstance(size, Records) and size == 0:
            if place >= value.ndim:
                raise Refusal("invalid", f"size 0 at axis {place} of {value.ndim}", "correct the model")
            target[place] = value.shape[place]
    open_at = [place for place, size in enumerate(target) if not isinstance(size, Records) and size == -1]
    if not open_at:
        return target
    rest = [size for place, size in enumerate(target) if place != open_at[0]]
    total, known = _total(value.shape), _total(rest)
    try:
        fits = known != 0 and total % known == 0 if not isinstance(total, Records) else True
        size = total // known if fits and not _is_zero(known) else 0
    except UndecidedError:
        raise Refusal(
            "batch axis", f"a reshape of {_text(value.shape)} to {_text(wanted)} mixes the records", APART
        ) from None
    if not fits or len(open_at) > 1:
        raise Refusal("invalid", f"{total} numbers do not fit into {_text(wanted)}", "correct the model")
    target[open_at[0]] = size
    return target


def _is_zero(size: Size) -> bool:
    return not isinstance(size, Records) and size == 0


def _reshape(call: NodeCall) -> Value:
    copies = not call.attribute("allowzero")
    wanted = call[1].wholes("shape")
    return reshaped(call[0], resolved_shape(call[0], wanted, zero_copies=copies))


def _reshape_attribute(call: NodeCall) -> Value:
    return reshaped(call[0], resolved_shape(call[0], call.attribute("shape"), zero_copies=True))


def _reshape_integers(call: NodeCall) -> Any:
    numbers, *shape = known_of(call)
    return numbers.reshape([int(size) for size in (shape[0] if shape else call.attribute("shape"))])


def _flatten(call: NodeCall) -> Value:
    value, axis = call[0], call.attribute("axis")
    at = axis + value.ndim if axis < 0 else axis
    return reshaped(value, (_total(value.shape[:at]), _total(value.shape[at:])))


# -- axes of size 1, and their order ------------------------------------------------------------------


def _axes_of(call: NodeCall) -> tuple[int, ...] | None:
    """Return axes given as an attribute, or as the second input."""
    given = call.get(1)
    if given is not None:
        return given.ints("axes")
    axes = call.node.attributes.get("axes")
    return None if axes is None else tuple(axes)


def _squeeze(call: NodeCall) -> Value:
    value, axes = call[0], _axes_of(call)
    if axes is None:
        dropped = {at for at, size in enumerate(value.shape) if at != value.axis and size == 1}
        if value.axis is not None and not isinstance(value.records, Records) and value.records == 1:
            dropped.add(value.axis)
    else:
        dropped = set(value.normals(axes))
    if value.axis in dropped:
        raise Refusal("batch axis", "the axis of the records is removed", APART)
    if any(value.shape[axis] != 1 for axis in dropped):
        raise Refusal("invalid", f"axes {sorted(dropped)} of {_text(value.shape)} are not all 1", "correct the model")
    kept = [size for at, size in enumerate(value.shape) if at not in dropped]
    return _rearranged(value, kept, lambda at: at - sum(one < at for one in dropped))


def _unsqueeze(call: NodeCall) -> Value:
    value = call[0]
    axes = _axes_of(call) or ()
    rank = value.ndim + len(axes)
    places = {axis + rank if axis < 0 else axis for axis in axes}
    if len(places) != len(axes) or not all(0 <= place < rank <= MOST_AXES for place in places):
        raise Refusal("invalid", f"axes {axes} for a result with {rank} axes", "correct the model")
    old = [place for place in range(rank) if place not in places]
    rest = iter(value.shape)
    shape = [1 if place in places else next(rest) for place in range(rank)]
    return _rearranged(value, shape, lambda at: old[at])


def _rearranged(value: Value, shape: Sequence[Size], moved: Any) -> Value:
    """Return a value with axes of size 1 added or removed; `moved` tells where an axis stands then."""
    if value.axis is None:
        return Value.of(fc_axes.reshape(value.element, tuple(shape)))  # type: ignore[arg-type]
    at = moved(value.axis)
    items = tuple(size for place, size in enumerate(shape) if place != at)
    return value.like(fc_axes.reshape(value.element, (-1, *items)), at)  # type: ignore[arg-type]


def _squeeze_integers(call: NodeCall) -> Any:
    axes = _axes_of(call)
    numbers = known_of(call)[0]
    return np.squeeze(numbers, None if axes is None else tuple(axes))


def _unsqueeze_integers(call: NodeCall) -> Any:
    return np.expand_dims(known_of(call)[0], _axes_of(call) or ())


def transposed(value: Value, order: Sequence[int]) -> Value:
    """Return a value with its logical axes in another order; the stream may move."""
    axes = value.normals(order)
    if sorted(axes) != list(range(value.ndim)):
        raise Refusal("invalid", f"an order {tuple(order)} of {value.ndim} axes", "correct the model")
    if value.axis is None:
        made = Value.of(fc_axes.permute_dims(value.element, axes) if axes else value.element)
    else:
        physical = [0, *(value.physical(axis) for axis in axes if axis != value.axis)]
        made = value.like(fc_axes.permute_dims(value.element, physical), axes.index(value.axis))
    held = value.integers
    if held is not None:
        along = None if held.axis is None else axes.index(held.axis)
        made.integers = replace(held, whole=transposed(held.whole, axes), axis=along)
    return made


def _transpose(call: NodeCall) -> Value:
    order = call.attribute("perm")
    return transposed(call[0], tuple(range(call[0].ndim))[::-1] if order is None else order)


def _transpose_integers(call: NodeCall) -> Any:
    return np.transpose(known_of(call)[0], call.attribute("perm"))


# -- larger ones --------------------------------------------------------------------------------------


def _expand(call: NodeCall) -> Value:
    return broadcast(call[0], call[1].wholes("shape"), call.stream)


def broadcast(value: Value, wanted: Sequence[Size], stream: Any) -> Value:
    """Broadcast a value and a shape with each other.

    Args:
        value: the value.
        wanted: the shape.
        stream: beside which a resident value is repeated, where the shape holds the number of records.
    """
    rank = max(value.ndim, len(wanted))
    value, sizes = expanded(value, rank), (1,) * (rank - len(wanted)) + tuple(wanted)
    if value.axis is not None:
        if not (_same(sizes[value.axis], value.records) or sizes[value.axis] == 1):
            raise Refusal("batch axis", f"records are broadcast to {_text(sizes)}", APART)
        shape = _merged(value, sizes, value.axis)
        return value.like(fc_axes.broadcast_to(value.element, (-1, *shape)))
    along = [place for place, size in enumerate(sizes) if isinstance(size, Records)]
    if not along:
        return Value.of(fc_axes.broadcast_to(value.element, _merged(value, sizes, None)))
    if len(along) > 1 or sizes[along[0]] != Records() or value.shape[along[0]] != 1 or stream is None:
        raise Refusal("batch axis", f"a resident value is broadcast to {_text(sizes)}", APART)
    shape = _merged(value, sizes, along[0])
    items = fc_axes.broadcast_to(fc_axes.squeeze(value.element, along[0]), shape)
    return Value.of(repeated_beside(items, stream), along[0], Records())


def _merged(value: Value, sizes: Sequence[Size], but: int | None) -> tuple[int, ...]:
    """Return the sizes of both, broadcast with each other, without the axis `but`."""
    pairs = [pair for place, pair in enumerate(zip(value.shape, sizes, strict=True)) if place != but]
    if any(isinstance(one, Records) for pair in pairs for one in pair):
        raise Refusal("batch axis", f"{_text(value.shape)} is broadcast to {_text(sizes)}", APART)
    if any(a != b and 1 not in (a, b) for a, b in pairs):
        raise Refusal("invalid", f"{_text(value.shape)} does not broadcast to {_text(sizes)}", "correct the model")
    return tuple(b if a == 1 else a for a, b in pairs)  # type: ignore[misc]


def _expand_integers(call: NodeCall) -> Any:
    numbers, shape = known_of(call)
    return np.broadcast_to(numbers, np.broadcast_shapes(numbers.shape, tuple(shape.tolist())))


def _tile(call: NodeCall) -> Value:
    value, counts = call[0], call[1].ints("repeats")
    if len(counts) != value.ndim:
        raise Refusal("invalid", f"{len(counts)} repeats for {value.ndim} axes", "correct the model")
    if value.axis is None:
        return Value.of(fc_axes.tile(value.element, counts) if counts else value.element)
    if counts[value.axis] != 1:
        raise Refusal("batch axis", "records are repeated", APART)
    return value.like(fc_axes.tile(value.element, (1, *(n for at, n in enumerate(counts) if at != value.axis))))


def _shape(call: NodeCall) -> Value:
    shape = call[0].shape
    end = call.attribute("end")
    return Value.of_known(_objects(shape[slice(call.attribute("start"), end)]), np.dtype(np.int64))


def _objects(sizes: Sequence[Any]) -> np.ndarray:
    made = np.empty(len(sizes), object)
    made[:] = list(sizes)
    return made


def _size(call: NodeCall) -> Value:
    made = np.empty((), object)
    made[()] = _total(call[0].shape)
    return Value.of_known(made, np.dtype(np.int64))


OPERATORS: tuple[Operator, ...] = (
    Operator(
        "Reshape", _reshape_attribute, 1, 5, moves=True, attributes={"shape": REQUIRED, "consumed_inputs": None},
        integers=_reshape_integers,
    ),
    Operator("Reshape", _reshape, 5, moves=True, attributes={"allowzero": 0}, integers=_reshape_integers),
    Operator("Flatten", _flatten, moves=True, attributes={"axis": 1}),
    Operator("Squeeze", _squeeze, 1, 13, moves=True, attributes={"axes": None}, integers=_squeeze_integers),
    Operator("Squeeze", _squeeze, 13, moves=True, integers=_squeeze_integers),
    Operator("Unsqueeze", _unsqueeze, 1, 13, moves=True, attributes={"axes": REQUIRED}, integers=_unsqueeze_integers),
    Operator("Unsqueeze", _unsqueeze, 13, moves=True, integers=_unsqueeze_integers),
    Operator("Transpose", _transpose, attributes={"perm": None}, integers=_transpose_integers),
    Operator("Expand", _expand, 8, moves=True, integers=_expand_integers),
    Operator("Tile", _tile, 6, moves=True),
    Operator("Shape", _shape, attributes={"start": 0, "end": None}),
    Operator("Size", _size),
)  # fmt: skip
