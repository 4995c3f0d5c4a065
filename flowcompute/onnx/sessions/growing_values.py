"""Values with a growing axis: rows of a state in a buffer of fixed size, of which the first ones count.

The logical size of such an axis is a `Length`, that of its element the capacity. What stands behind the rows that count
is any number.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import flowcompute.elements.axes as fc_axes
import flowcompute.elements.math as fc
from flowcompute.elements import Constant
from flowcompute.elements.search import take_along_axis
from flowcompute.graph import Placeholder
from flowcompute.onnx.logical_value import Value, element_of_length
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
        raise refusal("several growing axes")
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


class GrowingRows:
    """Knowledge of a step about its states: their room, and the rows that are added to them.

    Args:
        capacity: rows of a buffer.

    Attributes:
        capacity: the same.
        appended: by the element that stands for a state after the step, how it is made.
    """

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.appended: dict[Any, Appended] = {}

    def appended_to(self, before: Value, rows: Any, axis: int, start: Any = None) -> Value:
        """Return a growing value with rows behind those that it has; a state is noted as being added to."""
        size = before.shape[axis]
        assert isinstance(size, Length)
        start = element_of_length(size) if start is None else start
        sizes = [length_or_none(one) for one in before.shape]
        sizes[axis] = size + rows.spec.shape[axis]
        if isinstance(before.element, Placeholder):
            made = Appended(before.element, rows, axis, start)
            self.appended[made.after] = made
            return with_sizes(Value.of(made.after), sizes)
        placed, is_new = rows_at(rows, axis, start, before.element.spec.shape[axis])
        return with_sizes(Value.of(fc.where(is_new, placed, before.element)), sizes)

    def began(self, state: Placeholder, value: Value, axis: int) -> Appended:
        """Return a state that begins anew with the rows of a value, in a step that looks at none before."""
        made = Appended(state, value.element, axis, Constant(np.int64(0)), begins=True)
        self.appended[made.after] = made
        return made


def plain(value: Value) -> Value:
    """Return a value whose sizes are those of its element."""
    return Value.of(element_of(value))


def with_sizes(value: Value, sizes: Sequence[Length | None]) -> Value:
    """Return a value with lengths as the sizes of some of its axes."""
    element = value.element
    shape = tuple(own if size is None else size for own, size in zip(element.spec.shape, sizes, strict=True))
    return Value(value.dtype, shape, None, element)


def length_or_none(size: Any) -> Length | None:
    """Return a size if it is a length."""
    return size if isinstance(size, Length) else None


def known_size(size: Any) -> int:
    """Return a size that is a number.

    Raises:
        Refusal: if it is none.
    """
    if isinstance(size, Length):
        raise refusal("a growing axis is merged with another")
    return int(size)


def is_number(size: Any, number: int) -> bool:
    """Check whether a size is this number."""
    return not isinstance(size, Length) and size == number


def is_one(size: Any) -> bool:
    """Check whether a size is 1."""
    return is_number(size, 1)


def is_same(a: Any, b: Any) -> bool:
    """Check whether sizes are one length."""
    return isinstance(a, Length) and isinstance(b, Length) and bool(a == b)


def refusal(text: str) -> Refusal:
    """Return what says that a node cannot be built in a session."""
    return Refusal("missing", f"{text} in a session", _HINT)
