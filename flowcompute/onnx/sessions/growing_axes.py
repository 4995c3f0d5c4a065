"""Nodes over values with a growing axis: rows of a state in a buffer of fixed size, of which the first ones count.

The logical size of such an axis is a `Length`, that of its element the capacity. What stands behind the rows that count
is any number. So each operator says how the axis passes through it, and whoever sums along it masks the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

import flowcompute.elements.axes as fc_axes
import flowcompute.elements.math as fc
from flowcompute.elements import Constant
from flowcompute.elements.nn import softmax
from flowcompute.elements.per_record import Placeholder
from flowcompute.elements.search import take_along_axis
from flowcompute.onnx.logical_value import Value, element_of_length
from flowcompute.onnx.operators import POINTWISE, NodeCall, Operator, grouped_attention, multi_head_attention
from flowcompute.onnx.problems import Refusal
from flowcompute.onnx.sizes import Length, is_decided

_HINT = "export the model so that it masks keys, or compute it without a session"


def length_of(value: Value) -> Length | None:
    """Return the length of a value's growing axis."""
    return next((size for size in value.shape if isinstance(size, Length)), None)


def growing_axis(value: Value) -> int | None:
    """Return the growing axis of a value.

    Raises:
        Refusal: if there are several.
    """
    axes = [axis for axis, size in enumerate(value.shape) if isinstance(size, Length)]
    if len(axes) > 1:
        raise _refusal("several growing axes")
    return axes[0] if axes else None


def element_of(value: Value) -> Any:
    """Return the element of a value, also of known numbers that hang on the length."""
    if value.has_element or value.known is None or is_decided(value.known):
        return value.element
    found = next(one for one in value.known.flat if isinstance(one, Length))
    every = value.known.reshape(-1).tolist()
    base = np.array([one.more if isinstance(one, Length) else one for one in every], value.dtype)
    factor = np.array([isinstance(one, Length) for one in every], value.dtype)
    shape = value.known.shape
    return fc.add(base.reshape(shape), fc.multiply(factor.reshape(shape), fc.astype(found.rows, value.dtype)))


def counts(size: Length, capacity: int) -> Any:
    """Return whether the rows of a buffer count, one bool for each."""
    return fc.less(Constant(np.arange(capacity, dtype=np.int64)), element_of_length(size))


def along(vector: Any, axis: int, rank: int) -> Any:
    """Return a vector that lines up with an axis of values of some rank."""
    return fc_axes.reshape(vector, (-1, *(1,) * (rank - 1 - axis)))


def masked(value: Value, axis: int, number: float) -> Any:
    """Return the element with a number in place of what does not count along an axis."""
    size, element = value.shape[axis], value.element
    assert isinstance(size, Length)
    there = along(counts(size, element.spec.shape[axis]), axis, value.ndim)
    return fc.where(there, element, Constant(np.asarray(number, value.dtype)))


def rows_at(rows: Any, axis: int, start: Any, capacity: int) -> tuple[Any, Any]:
    """Return rows of a buffer in which given ones begin at `start`, and which of them are given.

    Args:
        rows: a resident value.
        axis: the axis that they stand along.
        start: a resident integer, or one for each of the first axis as (n, 1, ..., 1) of the rank of `rows`.
        capacity: rows of the buffer.
    """
    shape, rank = rows.spec.shape, len(rows.spec.shape)
    numbers = np.arange(capacity, dtype=np.int64).reshape((1,) * axis + (-1,) + (1,) * (rank - 1 - axis))
    place = fc.subtract(Constant(numbers), start)
    count = shape[axis]
    is_new = fc.logical_and(fc.greater_equal(place, 0), fc.less(place, count))
    wanted = (*shape[:axis], capacity, *shape[axis + 1 :])
    if count == 1:
        return fc_axes.broadcast_to(rows, wanted), is_new
    taken = fc.minimum(fc.maximum(place, 0), count - 1)
    return take_along_axis(rows, fc_axes.broadcast_to(taken, wanted), axis), is_new


class Appended:
    """The state after a step: a placeholder for rows of which those of the step are written.

    Attributes:
        state: the placeholder of the buffer before the step.
        after: the placeholder of the buffer after it.
        rows: what is written, in the shape of the buffer.
        is_new: where it is written.
        count: how many rows are added.
        begins: whether they are the first ones, whatever the state held.
    """

    def __init__(self, state: Placeholder, rows: Any, axis: int, start: Any, *, begins: bool = False) -> None:
        shape = state.spec.shape
        if (*rows.spec.shape[:axis], *rows.spec.shape[axis + 1 :]) != (*shape[:axis], *shape[axis + 1 :]):
            raise Refusal("invalid", f"rows {rows.spec.shape} of a state {shape}", "correct the model")
        self.state = state
        self.after = Placeholder(state.dtype, shape)
        self.rows, self.is_new = rows_at(rows, axis, start, shape[axis])
        self.count = rows.spec.shape[axis]
        self.begins = begins


class GrowingAxes:
    """Builds the nodes of one step that see a growing axis, and notes what is added to states.

    Args:
        capacity: rows of a buffer.

    Attributes:
        appended: by the element that stands for a state after the step, how it is made.
    """

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self.appended: dict[Any, Appended] = {}

    def build(self, record: Operator, call: NodeCall) -> Sequence[Value] | None:
        """Build a node, or return None for one that sees no growing axis."""
        hangs = [value for value in call.given if length_of(value) is not None or not value.has_element]
        if not hangs or call.node.op in ("Shape", "Size"):
            return None
        rule = _RULES.get(call.node.op) if not call.node.domain else _OWN.get(call.node.full_op)
        if rule is not None:
            made = rule(self, record, call)
            return [made] if isinstance(made, Value) else made
        if not call.node.domain and call.node.op in POINTWISE:
            return [self._pointwise(record, call)]
        raise _refusal(f"{call.node.full_op} over a growing axis")

    def ordinary(self, record: Operator, call: NodeCall, *values: Value | None) -> Value:
        """Build a node as ever, of values whose sizes are those of their elements."""
        assert record.build is not None
        made = record.build(replace(call, values=tuple(values)))
        return made if isinstance(made, Value) else made[0]

    # -- rules --------------------------------------------------------------------------------------

    def _pointwise(self, record: Operator, call: NodeCall) -> Value:
        rank = max(value.ndim for value in call.given)
        sizes: list[Length | None] = [None] * rank
        for place in range(1, rank + 1):
            own = [value.shape[-place] for value in call.given if value.ndim >= place]
            grown = [size for size in own if isinstance(size, Length)]
            if grown and not all(isinstance(one, Length) and one == grown[0] or _is_one(one) for one in own):
                raise _refusal(f"sizes {own} meet")
            sizes[-place] = grown[0] if grown else None
        made = self.ordinary(record, call, *(None if one is None else _plain(one) for one in call.values))
        return _with_sizes(made, sizes)

    def _transpose(self, record: Operator, call: NodeCall) -> Value:
        value = call[0]
        order = value.normals(call.attribute("perm") or range(value.ndim)[::-1])
        return _with_sizes(self.ordinary(record, call, _plain(value)), [_length(value.shape[axis]) for axis in order])

    def _unsqueeze(self, record: Operator, call: NodeCall) -> Value:
        made = self.ordinary(record, call, _plain(call[0]), *call.values[1:])
        given = call.get(1)
        axes = given.ints("axes") if given is not None else call.attribute("axes")
        new = {axis % made.ndim for axis in axes}
        rest = iter(call[0].shape)
        return _with_sizes(made, [None if axis in new else _length(next(rest)) for axis in range(made.ndim)])

    def _squeeze(self, record: Operator, call: NodeCall) -> Value:
        value, given = call[0], call.get(1)
        axes = given.ints("axes") if given is not None else call.node.attributes.get("axes")
        if axes is None:
            raise _refusal("axes of size 1 that are not named")
        gone = set(value.normals(axes))
        made = self.ordinary(record, call, _plain(value), *call.values[1:])
        return _with_sizes(made, [_length(size) for axis, size in enumerate(value.shape) if axis not in gone])

    def _matmul(self, record: Operator, call: NodeCall) -> Value:
        a, b = call[0], call[1]
        if min(a.ndim, b.ndim) < 2 or any(isinstance(size, Length) for one in (a, b) for size in one.shape[:-2]):
            raise _refusal("a product of matrices along whose stacks a state grows")
        inner = (a.shape[-1], b.shape[-2])
        values = [_plain(a), _plain(b)]
        if any(isinstance(size, Length) for size in inner):
            if not all(isinstance(size, Length) for size in inner) or not inner[0] == inner[1]:
                raise _refusal(f"a product over {inner[0]} and {inner[1]}")
            # 0 times what stands behind the rows may be NaN.
            values = [Value.of(masked(a, a.ndim - 1, 0)), Value.of(masked(b, b.ndim - 2, 0))]
        made = self.ordinary(record, call, *values)
        return _with_sizes(made, [*(None,) * (made.ndim - 2), _length(a.shape[-2]), _length(b.shape[-1])])

    def _softmax(self, record: Operator, call: NodeCall) -> Value:
        value = call[0]
        axis, grown = value.normal(call.attribute("axis")), growing_axis(value)
        if call.node.opset < 13 and axis != value.ndim - 1:
            raise _refusal("a softmax over several axes")
        if grown != axis:
            return self._same(record, call)
        made = softmax(masked(value, axis, -np.inf), axis=axis)
        # Behind the rows weights are 0, whatever a row of masked scores gives.
        return Value(value.dtype, value.shape, None, made)

    def _same(self, record: Operator, call: NodeCall) -> Value:
        value = call[0]
        made = self.ordinary(record, call, _plain(value), *call.values[1:])
        return _with_sizes(made, [_length(size) for size in value.shape])

    def _along_one(self, record: Operator, call: NodeCall) -> Value:
        """Build what works along one axis and leaves the others alone."""
        value = call[0]
        if value.normal(call.attribute("axis")) == growing_axis(value):
            raise _refusal(f"{call.node.op} along the growing axis")
        return self._same(record, call)

    def _running(self, record: Operator, call: NodeCall) -> Value:
        """Build a running sum, which sees no later row."""
        if call.attribute("reverse"):
            raise _refusal("a running sum from the end")
        return self._same(record, call)

    def _reduce(self, record: Operator, call: NodeCall) -> Value:
        value, given = call[0], call.get(1)
        axes = given.ints("axes") if given is not None else call.node.attributes.get("axes")
        if axes is None:
            raise _refusal("a reduction of all axes")
        reduced, keeps = set(value.normals(axes)), call.attribute("keepdims")
        grown = growing_axis(value)
        number = {"ReduceSum": 0.0, "ReduceMax": -np.inf, "ReduceMin": np.inf}.get(call.node.op)
        own = _plain(value)
        if grown is not None and grown in reduced:
            if number is None or (np.isinf(number) and value.dtype.kind != "f"):
                raise _refusal(f"{call.node.op} over the growing axis")
            own = Value.of(masked(value, grown, number))
        made = self.ordinary(record, call, own, *call.values[1:])
        sizes = [
            None if axis in reduced else _length(size)
            for axis, size in enumerate(value.shape)
            if keeps or axis not in reduced
        ]
        return _with_sizes(made, sizes)

    def _reshape(self, record: Operator, call: NodeCall) -> Value:
        value, wanted = call[0], list(call[1].wholes("shape"))
        if call.attribute("allowzero"):
            raise _refusal("a reshape to a size of 0")
        wanted = [value.shape[place] if _is(size, 0) else size for place, size in enumerate(wanted)]
        axis = growing_axis(value)
        if axis is None:
            raise _refusal("a reshape to the length of a state")
        behind = int(np.prod([_known(size) for size in value.shape[axis + 1 :]], dtype=np.int64))
        open_at = [place for place, size in enumerate(wanted) if _is(size, -1)]
        grown = [place for place, size in enumerate(wanted) if isinstance(size, Length)]
        if len(grown) + len(open_at) > 2 or len(grown) > 1 or len(open_at) > 1:
            raise _refusal(f"a reshape to {wanted}")
        at = grown[0] if grown else open_at[0] if open_at else -1
        if at < 0 or (grown and not wanted[at] == value.shape[axis]):
            raise _refusal(f"a reshape of {value.shape} to {wanted}")
        after = [size for size in wanted[at + 1 :] if not _is(size, -1)]
        product = int(np.prod([_known(size) for size in after], dtype=np.int64))
        if product != behind and not (grown and open_at and open_at[0] > at and behind % max(product, 1) == 0):
            raise _refusal(f"a reshape of {value.shape} to {wanted}")
        shape = [self._capacity if place == at else size for place, size in enumerate(wanted)]
        made = Value.of(fc_axes.reshape(value.element, tuple(shape)))
        return _with_sizes(made, [value.shape[axis] if place == at else None for place in range(len(shape))])

    def _expand(self, record: Operator, call: NodeCall) -> Value:
        del record
        value, wanted = call[0], call[1].wholes("shape")
        rank = max(value.ndim, len(wanted))
        own = (1,) * (rank - value.ndim) + value.shape
        asked = (1,) * (rank - len(wanted)) + tuple(wanted)
        sizes: list[Any] = []
        for have, want in zip(own, asked, strict=True):
            grown = [one for one in (have, want) if isinstance(one, Length)]
            if grown and not all(_is_one(one) or (isinstance(one, Length) and one == grown[0]) for one in (have, want)):
                raise _refusal(f"{own} is expanded to {asked}")
            sizes.append(grown[0] if grown else want if have == 1 else have)
        shape = tuple(self._capacity if isinstance(size, Length) else size for size in sizes)
        element = fc_axes.reshape(element_of(value), (1,) * (rank - value.ndim) + _plain(value).shape)  # type: ignore[operator]
        return _with_sizes(Value.of(fc_axes.broadcast_to(element, shape)), [_length(size) for size in sizes])

    def _filled(self, record: Operator, call: NodeCall) -> Value:
        del record
        sizes = call[0].wholes("the shape")
        given = call.node.attributes.get("value")
        number = np.zeros(1, np.float32) if given is None else given.value.reshape(-1)
        shape = tuple(self._capacity if isinstance(size, Length) else size for size in sizes)
        made = Value.of(fc_axes.broadcast_to(Constant(number[0]), shape))
        return _with_sizes(made, [_length(size) for size in sizes])

    def _range(self, record: Operator, call: NodeCall) -> Value:
        del record
        start, limit, step = (call[place].numbers("a bound").reshape(-1)[0] for place in range(3))
        if step != 1 or isinstance(step, Length):
            raise _refusal(f"a range by {step}")
        size = limit - start
        count = self._capacity if isinstance(size, Length) else max(int(size), 0)
        numbers = Constant(np.arange(count).astype(call[0].dtype))
        begin = element_of(Value.of_known(start, call[0].dtype))
        return _with_sizes(Value.of(fc.add(numbers, begin)), [_length(size)])

    def _slice(self, record: Operator, call: NodeCall) -> Value:
        """Cut rows from known places, or of a constant those up to the length and those of the step."""
        value = call[0]
        starts, ends = call[1].wholes("starts"), call[2].wholes("ends")
        axes = value.normals(call[3].ints("axes") if call.get(3) is not None else range(len(starts)))
        steps = call[4].ints("steps") if call.get(4) is not None else (1,) * len(starts)
        for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
            value = self._cut(value, axis, start, end, step)
        del record
        return value

    def _cut(self, value: Value, axis: int, start: Any, end: Any, step: int) -> Value:
        size, element = value.shape[axis], value.element
        far = not isinstance(end, Length) and end >= 10**9
        if step == 1 and _is(start, 0) and (far or (isinstance(end, Length) and _is_same(end, size))):
            return value
        if isinstance(size, Length):
            if not isinstance(end, Length) and not isinstance(start, Length) and 0 <= start <= end <= size.more:
                end = int(end)
            else:
                raise _refusal(f"rows {start} to {end} of {size}")
        keys: list[Any] = [slice(None)] * value.ndim
        sizes = [_length(one) for one in value.shape]
        if isinstance(start, Length) and isinstance(end, Length) and step == 1:
            # Rows of a table at the places of this step.
            places = fc.add(Constant(np.arange(end - start, dtype=np.int64)), element_of_length(start))
            taken = fc_axes.take(element, fc.minimum(places, max(_known(size) - 1, 0)), axis)
            return _with_sizes(Value.of(taken), sizes)
        if isinstance(end, Length) and _is(start, 0) and step == 1:
            if _known(size) < self._capacity:
                raise _refusal(f"{size} rows of a table for {self._capacity} of the state")
            keys[axis], sizes[axis] = slice(0, self._capacity), end
        elif not isinstance(start, Length) and not isinstance(end, Length):
            keys[axis], sizes[axis] = slice(start, None if far else end, step), None
        else:
            raise _refusal(f"rows {start} to {end} of {size}")
        return _with_sizes(Value.of(element[tuple(keys)]), sizes)

    def _gather(self, record: Operator, call: NodeCall) -> Value:
        value, indices = call[0], call[1]
        axis = value.normal(call.attribute("axis"))
        if isinstance(value.shape[axis], Length):
            raise _refusal("rows of a state by their places")
        made = self.ordinary(record, call, _plain(value), _plain(indices))
        sizes = [*value.shape[:axis], *indices.shape, *value.shape[axis + 1 :]]
        return _with_sizes(made, [_length(size) for size in sizes])

    def _concat(self, record: Operator, call: NodeCall) -> Value:
        values = call.given
        axis = values[0].normal(call.attribute("axis"))
        grown = [isinstance(one.shape[axis], Length) for one in values]
        if not any(grown):
            made = self.ordinary(record, call, *(_plain(one) for one in values))
            own = [_length(size) for size in values[0].shape]
            if any([_length(size) for size in one.shape] != own for one in values):
                raise _refusal("values of other growing axes are joined")
            return _with_sizes(made, own)
        if grown != [True] + [False] * (len(values) - 1):
            raise _refusal("rows are joined that do not stand behind those of the state")
        rows = values[1].element if len(values) == 2 else fc_axes.concat([one.element for one in values[1:]], axis=axis)
        return self.appended_to(values[0], rows, axis)

    def appended_to(self, before: Value, rows: Any, axis: int, start: Any = None) -> Value:
        """Return a growing value with rows behind those that it has; a state is noted as being added to."""
        size = before.shape[axis]
        assert isinstance(size, Length)
        start = element_of_length(size) if start is None else start
        sizes = [_length(one) for one in before.shape]
        sizes[axis] = size + rows.spec.shape[axis]
        if isinstance(before.element, Placeholder):
            made = Appended(before.element, rows, axis, start)
            self.appended[made.after] = made
            return _with_sizes(Value.of(made.after), sizes)
        placed, is_new = rows_at(rows, axis, start, before.element.spec.shape[axis])
        return _with_sizes(Value.of(fc.where(is_new, placed, before.element)), sizes)

    def _grouped(self, record: Operator, call: NodeCall) -> Sequence[Value]:
        del record
        return grouped_attention(_but(call, 3, 4), self._extended)

    def _many_heads(self, record: Operator, call: NodeCall) -> Sequence[Value]:
        del record
        return multi_head_attention(_but(call, 6, 7), self._extended)

    def _extended(self, past: Value | None, rows: Value, start: Any) -> Value:
        if past is None or not isinstance(past.shape[2], Length):
            raise _refusal("attention over masks that grow, without past keys that do")
        return self.appended_to(past, rows.element, 2, start)

    def began(self, state: Placeholder, value: Value, axis: int) -> Appended:
        """Return a state that begins anew with the rows of a value, in a step that looks at none before."""
        made = Appended(state, value.element, axis, Constant(np.int64(0)), begins=True)
        self.appended[made.after] = made
        return made


def _plain(value: Value) -> Value:
    """Return a value whose sizes are those of its element."""
    return Value.of(element_of(value))


def _but(call: NodeCall, *kept: int) -> NodeCall:
    """Return a call with the sizes of elements in all values but some."""
    values = (
        one if one is None or place in kept else _plain(one) for place, one in enumerate(call.values)
    )
    return replace(call, values=tuple(values))


def _with_sizes(value: Value, sizes: Sequence[Length | None]) -> Value:
    element = value.element
    shape = tuple(own if size is None else size for own, size in zip(element.spec.shape, sizes, strict=True))
    return Value(value.dtype, shape, None, element)


def _length(size: Any) -> Length | None:
    return size if isinstance(size, Length) else None


def _known(size: Any) -> int:
    if isinstance(size, Length):
        raise _refusal("a growing axis is merged with another")
    return int(size)


def _is(size: Any, number: int) -> bool:
    return not isinstance(size, Length) and size == number


def _is_one(size: Any) -> bool:
    return _is(size, 1)


def _is_same(a: Any, b: Any) -> bool:
    return isinstance(a, Length) and isinstance(b, Length) and bool(a == b)


def _refusal(text: str) -> Refusal:
    return Refusal("missing", f"{text} in a session", _HINT)


Rule = Callable[[GrowingAxes, Operator, NodeCall], Any]

_RULES: dict[str, Rule] = {
    "Transpose": GrowingAxes._transpose,
    "Unsqueeze": GrowingAxes._unsqueeze,
    "Squeeze": GrowingAxes._squeeze,
    "MatMul": GrowingAxes._matmul,
    "Softmax": GrowingAxes._softmax,
    "Reshape": GrowingAxes._reshape,
    "Expand": GrowingAxes._expand,
    "ConstantOfShape": GrowingAxes._filled,
    "Range": GrowingAxes._range,
    "Slice": GrowingAxes._slice,
    "Gather": GrowingAxes._gather,
    "Concat": GrowingAxes._concat,
    "CumSum": GrowingAxes._running,
    "ReduceSum": GrowingAxes._reduce,
    "ReduceMax": GrowingAxes._reduce,
    "ReduceMin": GrowingAxes._reduce,
    "ReduceMean": GrowingAxes._reduce,
}

_OWN: dict[str, Rule] = {
    "com.microsoft.GroupQueryAttention": GrowingAxes._grouped,
    "com.microsoft.MultiHeadAttention": GrowingAxes._many_heads,
}
