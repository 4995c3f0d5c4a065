"""Nodes over values with a growing axis: how each operator lets the axis pass, or masks it where it sums along it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

import flowcompute.elements.axes as fc_axes
import flowcompute.elements.math as fc
from flowcompute.elements import Constant, nn
from flowcompute.imports import dataclass
from flowcompute.onnx.logical_value import Value, element_of_length
from flowcompute.onnx.operators import POINTWISE, NodeCall, Operator, grouped_attention, multi_head_attention
from flowcompute.onnx.sessions.growing_values import (
    GrowingRows,
    element_of,
    growing_axis,
    is_number,
    is_one,
    is_same,
    known_size,
    length_of,
    length_or_none,
    masked,
    plain,
    refusal,
    with_sizes,
)
from flowcompute.onnx.sizes import Length


@dataclass(frozen=True)
class NodeOverRows:
    """A node of a step that sees a growing axis."""

    rows: GrowingRows
    record: Operator
    call: NodeCall


def build_over_rows(rows: GrowingRows, record: Operator, call: NodeCall) -> Sequence[Value] | None:
    """Build a node of a step, or return None for one that sees no growing axis.

    Raises:
        Refusal: if it is not known what the node makes of such an axis.
    """
    hangs = [value for value in call.given if length_of(value) is not None or not value.has_element]
    if not hangs or call.node.op in ("Shape", "Size"):
        return None
    rule = _RULES.get(call.node.op) if not call.node.domain else _OF_ONNXRUNTIME.get(call.node.full_op)
    if rule is None and not call.node.domain and call.node.op in POINTWISE:
        rule = _pointwise
    if rule is None:
        raise refusal(f"{call.node.full_op} over a growing axis")
    made = rule(NodeOverRows(rows, record, call))
    return [made] if isinstance(made, Value) else made


def _ordinary(at: NodeOverRows, *values: Value | None) -> Value:
    """Build a node as ever, of values whose sizes are those of their elements."""
    assert at.record.build is not None
    made = at.record.build(replace(at.call, values=tuple(values)))
    assert made is not None
    return made if isinstance(made, Value) else made[0]


def _but(call: NodeCall, *kept: int) -> NodeCall:
    """Return a call with the sizes of elements in all values but some."""
    values = (one if one is None or place in kept else plain(one) for place, one in enumerate(call.values))
    return replace(call, values=tuple(values))


def _pointwise(at: NodeOverRows) -> Value:
    rank = max(value.ndim for value in at.call.given)
    sizes: list[Length | None] = [None] * rank
    for place in range(1, rank + 1):
        own = [value.shape[-place] for value in at.call.given if value.ndim >= place]
        grown = [size for size in own if isinstance(size, Length)]
        if grown and not all((isinstance(one, Length) and one == grown[0]) or is_one(one) for one in own):
            raise refusal(f"sizes {own} meet")
        sizes[-place] = grown[0] if grown else None
    made = _ordinary(at, *(None if one is None else plain(one) for one in at.call.values))
    return with_sizes(made, sizes)


def _transpose(at: NodeOverRows) -> Value:
    value = at.call[0]
    order = value.normals(at.call.attribute("perm") or range(value.ndim)[::-1])
    return with_sizes(_ordinary(at, plain(value)), [length_or_none(value.shape[axis]) for axis in order])


def _unsqueeze(at: NodeOverRows) -> Value:
    made = _ordinary(at, plain(at.call[0]), *at.call.values[1:])
    given = at.call.get(1)
    axes = given.ints("axes") if given is not None else at.call.attribute("axes")
    new = {axis % made.ndim for axis in axes}
    rest = iter(at.call[0].shape)
    return with_sizes(made, [None if axis in new else length_or_none(next(rest)) for axis in range(made.ndim)])


def _squeeze(at: NodeOverRows) -> Value:
    value, given = at.call[0], at.call.get(1)
    axes = given.ints("axes") if given is not None else at.call.node.attributes.get("axes")
    if axes is None:
        raise refusal("axes of size 1 that are not named")
    gone = set(value.normals(axes))
    made = _ordinary(at, plain(value), *at.call.values[1:])
    return with_sizes(made, [length_or_none(size) for axis, size in enumerate(value.shape) if axis not in gone])


def _matmul(at: NodeOverRows) -> Value:
    a, b = at.call[0], at.call[1]
    if min(a.ndim, b.ndim) < 2 or any(isinstance(size, Length) for one in (a, b) for size in one.shape[:-2]):
        raise refusal("a product of matrices along whose stacks a state grows")
    inner = (a.shape[-1], b.shape[-2])
    values = [plain(a), plain(b)]
    if any(isinstance(size, Length) for size in inner):
        if not all(isinstance(size, Length) for size in inner) or not inner[0] == inner[1]:
            raise refusal(f"a product over {inner[0]} and {inner[1]}")
        # 0 times what stands behind the rows may be NaN.
        values = [Value.of(masked(a, a.ndim - 1, 0)), Value.of(masked(b, b.ndim - 2, 0))]
    made = _ordinary(at, *values)
    return with_sizes(made, [*(None,) * (made.ndim - 2), length_or_none(a.shape[-2]), length_or_none(b.shape[-1])])


def _softmax(at: NodeOverRows) -> Value:
    value = at.call[0]
    axis, grown = value.normal(at.call.attribute("axis")), growing_axis(value)
    if at.call.node.opset < 13 and axis != value.ndim - 1:
        raise refusal("a softmax over several axes")
    if grown != axis:
        return _same(at)
    made = nn.softmax(masked(value, axis, -np.inf), axis=axis)
    # Behind the rows weights are 0, whatever a row of masked scores gives.
    return Value(value.dtype, value.shape, None, made)


def _same(at: NodeOverRows) -> Value:
    value = at.call[0]
    made = _ordinary(at, plain(value), *at.call.values[1:])
    return with_sizes(made, [length_or_none(size) for size in value.shape])


def _running(at: NodeOverRows) -> Value:
    """Build a running sum, which sees no later row."""
    if at.call.attribute("reverse"):
        raise refusal("a running sum from the end")
    return _same(at)


def _reduce(at: NodeOverRows) -> Value:
    value, given = at.call[0], at.call.get(1)
    axes = given.ints("axes") if given is not None else at.call.node.attributes.get("axes")
    if axes is None:
        raise refusal("a reduction of all axes")
    reduced, keeps = set(value.normals(axes)), at.call.attribute("keepdims")
    grown = growing_axis(value)
    number = {"ReduceSum": 0.0, "ReduceMax": -np.inf, "ReduceMin": np.inf}.get(at.call.node.op)
    own = plain(value)
    if grown is not None and grown in reduced:
        if number is None or (np.isinf(number) and value.dtype.kind != "f"):
            raise refusal(f"{at.call.node.op} over the growing axis")
        own = Value.of(masked(value, grown, number))
    made = _ordinary(at, own, *at.call.values[1:])
    sizes = [
        None if axis in reduced else length_or_none(size)
        for axis, size in enumerate(value.shape)
        if keeps or axis not in reduced
    ]
    return with_sizes(made, sizes)


def _reshape(at: NodeOverRows) -> Value:
    value, wanted = at.call[0], list(at.call[1].wholes("shape"))
    if at.call.attribute("allowzero"):
        raise refusal("a reshape to a size of 0")
    wanted = [value.shape[place] if is_number(size, 0) else size for place, size in enumerate(wanted)]
    axis = growing_axis(value)
    if axis is None:
        raise refusal("a reshape to the length of a state")
    behind = int(np.prod([known_size(size) for size in value.shape[axis + 1 :]], dtype=np.int64))
    open_at = [place for place, size in enumerate(wanted) if is_number(size, -1)]
    grown = [place for place, size in enumerate(wanted) if isinstance(size, Length)]
    if len(grown) + len(open_at) > 2 or len(grown) > 1 or len(open_at) > 1:
        raise refusal(f"a reshape to {wanted}")
    place = grown[0] if grown else open_at[0] if open_at else -1
    if place < 0 or (grown and not wanted[place] == value.shape[axis]):
        raise refusal(f"a reshape of {value.shape} to {wanted}")
    after = [size for size in wanted[place + 1 :] if not is_number(size, -1)]
    product = int(np.prod([known_size(size) for size in after], dtype=np.int64))
    if product != behind and not (grown and open_at and open_at[0] > place and behind % max(product, 1) == 0):
        raise refusal(f"a reshape of {value.shape} to {wanted}")
    shape = [at.rows.capacity if own == place else size for own, size in enumerate(wanted)]
    made = Value.of(fc_axes.reshape(value.element, tuple(shape)))
    return with_sizes(made, [length_or_none(value.shape[axis]) if own == place else None for own in range(len(shape))])


def _expand(at: NodeOverRows) -> Value:
    value, wanted = at.call[0], at.call[1].wholes("shape")
    rank = max(value.ndim, len(wanted))
    own = (1,) * (rank - value.ndim) + value.shape
    asked = (1,) * (rank - len(wanted)) + tuple(wanted)
    sizes: list[Any] = []
    for have, want in zip(own, asked, strict=True):
        grown = [one for one in (have, want) if isinstance(one, Length)]
        if grown and not all(is_one(one) or (isinstance(one, Length) and one == grown[0]) for one in (have, want)):
            raise refusal(f"{own} is expanded to {asked}")
        sizes.append(grown[0] if grown else want if have == 1 else have)
    shape = tuple(at.rows.capacity if isinstance(size, Length) else size for size in sizes)
    element = fc_axes.reshape(element_of(value), (1,) * (rank - value.ndim) + plain(value).shape)  # type: ignore[operator]
    return with_sizes(Value.of(fc_axes.broadcast_to(element, shape)), [length_or_none(size) for size in sizes])


def _filled(at: NodeOverRows) -> Value:
    sizes = at.call[0].wholes("the shape")
    given = at.call.node.attributes.get("value")
    number = np.zeros(1, np.float32) if given is None else given.value.reshape(-1)
    shape = tuple(at.rows.capacity if isinstance(size, Length) else size for size in sizes)
    made = Value.of(fc_axes.broadcast_to(Constant(number[0]), shape))
    return with_sizes(made, [length_or_none(size) for size in sizes])


def _range(at: NodeOverRows) -> Value:
    start, limit, step = (at.call[place].numbers("a bound").reshape(-1)[0] for place in range(3))
    if step != 1 or isinstance(step, Length):
        raise refusal(f"a range by {step}")
    size = limit - start
    count = at.rows.capacity if isinstance(size, Length) else max(int(size), 0)
    numbers = Constant(np.arange(count).astype(at.call[0].dtype))
    begin = element_of(Value.of_known(start, at.call[0].dtype))
    return with_sizes(Value.of(fc.add(numbers, begin)), [length_or_none(size)])


def _slice(at: NodeOverRows) -> Value:
    """Cut rows from known places, or of a constant those up to the length and those of the step."""
    value = at.call[0]
    starts, ends = at.call[1].wholes("starts"), at.call[2].wholes("ends")
    axes = value.normals(at.call[3].ints("axes") if at.call.get(3) is not None else range(len(starts)))
    steps = at.call[4].ints("steps") if at.call.get(4) is not None else (1,) * len(starts)
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        value = _cut(at.rows, value, axis, start, end, step)
    return value


def _cut(rows: GrowingRows, value: Value, axis: int, start: Any, end: Any, step: int) -> Value:
    size, element = value.shape[axis], value.element
    far = not isinstance(end, Length) and end >= 10**9
    if step == 1 and is_number(start, 0) and (far or (isinstance(end, Length) and is_same(end, size))):
        return value
    if isinstance(size, Length):
        if not isinstance(end, Length) and not isinstance(start, Length) and 0 <= start <= end <= size.more:
            end = int(end)
        else:
            raise refusal(f"rows {start} to {end} of {size}")
    keys: list[Any] = [slice(None)] * value.ndim
    sizes = [length_or_none(one) for one in value.shape]
    if isinstance(start, Length) and isinstance(end, Length) and step == 1:
        # Rows of a table at the places of this step.
        places = fc.add(Constant(np.arange(end - start, dtype=np.int64)), element_of_length(start))
        taken = fc_axes.take(element, fc.minimum(places, max(known_size(size) - 1, 0)), axis)
        return with_sizes(Value.of(taken), sizes)
    if isinstance(end, Length) and is_number(start, 0) and step == 1:
        if known_size(size) < rows.capacity:
            raise refusal(f"{size} rows of a table for {rows.capacity} of the state")
        keys[axis], sizes[axis] = slice(0, rows.capacity), end
    elif not isinstance(start, Length) and not isinstance(end, Length):
        keys[axis], sizes[axis] = slice(start, None if far else end, step), None
    else:
        raise refusal(f"rows {start} to {end} of {size}")
    return with_sizes(Value.of(element[tuple(keys)]), sizes)


def _gather(at: NodeOverRows) -> Value:
    value, indices = at.call[0], at.call[1]
    axis = value.normal(at.call.attribute("axis"))
    if isinstance(value.shape[axis], Length):
        raise refusal("rows of a state by their places")
    made = _ordinary(at, plain(value), plain(indices))
    sizes = [*value.shape[:axis], *indices.shape, *value.shape[axis + 1 :]]
    return with_sizes(made, [length_or_none(size) for size in sizes])


def _concat(at: NodeOverRows) -> Value:
    values = at.call.given
    axis = values[0].normal(at.call.attribute("axis"))
    grown = [isinstance(one.shape[axis], Length) for one in values]
    if not any(grown):
        made = _ordinary(at, *(plain(one) for one in values))
        own = [length_or_none(size) for size in values[0].shape]
        if any([length_or_none(size) for size in one.shape] != own for one in values):
            raise refusal("values of other growing axes are joined")
        return with_sizes(made, own)
    if grown != [True] + [False] * (len(values) - 1):
        raise refusal("rows are joined that do not stand behind those of the state")
    rows = values[1].element if len(values) == 2 else fc_axes.concat([one.element for one in values[1:]], axis=axis)
    return at.rows.appended_to(values[0], rows, axis)


def _grouped(at: NodeOverRows) -> Sequence[Value]:
    return grouped_attention(_but(at.call, 3, 4), partial(_extended, at.rows))


def _many_heads(at: NodeOverRows) -> Sequence[Value]:
    return multi_head_attention(_but(at.call, 6, 7), partial(_extended, at.rows))


def _extended(rows: GrowingRows, past: Value | None, new: Value, start: Any) -> Value:
    if past is None or not isinstance(past.shape[2], Length):
        raise refusal("attention over masks that grow, without past keys that do")
    return rows.appended_to(past, new.element, 2, start)


Rule = Callable[[NodeOverRows], Value | Sequence[Value]]

_RULES: dict[str, Rule] = {
    "Transpose": _transpose,
    "Unsqueeze": _unsqueeze,
    "Squeeze": _squeeze,
    "MatMul": _matmul,
    "Softmax": _softmax,
    "Reshape": _reshape,
    "Expand": _expand,
    "ConstantOfShape": _filled,
    "Range": _range,
    "Slice": _slice,
    "Gather": _gather,
    "Concat": _concat,
    "CumSum": _running,
    "ReduceSum": _reduce,
    "ReduceMax": _reduce,
    "ReduceMin": _reduce,
    "ReduceMean": _reduce,
}

_OF_ONNXRUNTIME: dict[str, Rule] = {
    "com.microsoft.GroupQueryAttention": _grouped,
    "com.microsoft.MultiHeadAttention": _many_heads,
}
