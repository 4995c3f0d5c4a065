"""Sequences of values between the nodes of a model: which value stands where is known when the graph is composed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np

from flowcompute.onnx.logical_value import Value
from flowcompute.onnx.operators.arrays import MOST_PARTS, concatenated, parted, picked, stacked
from flowcompute.onnx.operators.record import REQUIRED, NodeCall, Operator
from flowcompute.onnx.problems import Refusal

_INT64 = np.dtype(np.int64)


class ValueSequence(Value):
    """Several values under one name. Whatever asks for its dtype, its shape or its element is refused.

    Attributes:
        values: in their order.
    """

    def __init__(self, values: Sequence[Value]) -> None:
        # No `Value.__init__`: there is neither a dtype nor a shape, nor numbers that are known.
        self.values = tuple(values)
        self.axis, self._element, self._known = None, None, None
        if len(self.values) > MOST_PARTS:
            raise Refusal("unbounded", f"a sequence of more than {MOST_PARTS} values", "make it shorter")

    @property
    def element(self) -> NoReturn:
        """No element.

        Raises:
            Refusal: always.
        """
        raise self._refusal()

    def __getattr__(self, name: str) -> NoReturn:
        raise self._refusal() if name in ("dtype", "shape") else AttributeError(name)

    @staticmethod
    def _refusal() -> Refusal:
        return Refusal("sequence", "a sequence is given where an array is needed", "take its values out by SequenceAt")


def _sequence(call: NodeCall) -> tuple[Value, ...]:
    value = call[0]
    if not isinstance(value, ValueSequence):
        raise Refusal("invalid", "an array is given where a sequence is needed", "correct the model")
    return value.values


def _place(call: NodeCall, number: int, count: int, usual: int) -> int:
    """Return a place among `count` ones: that of an input, from the end where it is negative, else the usual one."""
    given = call.get(number)
    place = usual if given is None else given.ints("the position")[0]
    if not -count <= place < count:
        raise Refusal("invalid", f"position {place} among {count}", "correct the model")
    return place % count


def _construct(call: NodeCall) -> Value:
    if len({value.dtype for value in call.given}) != 1:
        raise Refusal("invalid", "a sequence of no values, or of several dtypes", "correct the model")
    return ValueSequence(call.given)


def _empty(call: NodeCall) -> Value:  # noqa: ARG001 - a builder takes its call
    return ValueSequence(())


def _at(call: NodeCall) -> Value:
    values = _sequence(call)
    return values[_place(call, 1, len(values), 0)]


def _insert(call: NodeCall) -> Value:
    values = list(_sequence(call))
    if values and values[0].dtype != call[1].dtype:
        raise Refusal("invalid", f"{call[1].dtype} in a sequence of {values[0].dtype}", "correct the model")
    # A position counts those that are there: one from the end stands before the last.
    count = len(values)
    given = call.get(2)
    place = count if given is None else given.ints("the position")[0]
    if not -count <= place <= count:
        raise Refusal("invalid", f"position {place} among {count}", "correct the model")
    values.insert(place, call[1])
    return ValueSequence(values)


def _erase(call: NodeCall) -> Value:
    values = _sequence(call)
    place = _place(call, 1, len(values), -1)
    return ValueSequence((*values[:place], *values[place + 1 :]))


def _length(call: NodeCall) -> Value:
    return Value.of_known(np.asarray(len(_sequence(call))), _INT64)


def _split(call: NodeCall) -> Value:
    value, given = call[0], call.get(1)
    axis = value.normal(call.attribute("axis"))
    value.item_axis(axis, "split along")
    size = value.size(axis)
    parts: Sequence[int] = (1,) * min(size, MOST_PARTS + 1)
    if given is not None and given.ndim:
        parts = given.ints("split")
    elif given is not None:
        (most,) = given.ints("split")
        if most < 1:
            raise Refusal("invalid", f"parts of {most}", "correct the model")
        parts = [min(most, size - begin) for begin in range(0, min(size, most * (MOST_PARTS + 1)), most)]
    if len(parts) > MOST_PARTS:
        raise Refusal("unbounded", f"more than {MOST_PARTS} parts", "split it into larger ones")
    if given is None and not call.attribute("keepdims") and value.has_element:
        return ValueSequence([picked(value, axis, place) for place in range(size)])
    made = parted(value, axis, parts)
    if given is None and not call.attribute("keepdims"):
        made = tuple(Value.of_known(np.squeeze(one.numbers("a part"), axis), one.dtype) for one in made)
    return ValueSequence(made)


def _concat(call: NodeCall) -> Value:
    values, new = _sequence(call), call.attribute("new_axis")
    if not values:
        raise Refusal("invalid", "a sequence of no values is joined", "correct the model")
    rank = values[0].ndim + bool(new)
    axis = call.attribute("axis")
    if not -rank <= axis < rank or len({value.ndim for value in values}) > 1:
        raise Refusal("invalid", f"values are joined along axis {axis} of {rank}", "correct the model")
    known = [value.known for value in values]
    made: Value | None = None
    if all(value.has_element for value in values):
        made = stacked(values, axis % rank) if new else concatenated(values, axis % rank)
    numbers: Any = None
    if all(one is not None for one in known):
        joined: Any = np.stack if new else np.concatenate
        numbers = joined(known, axis=axis)
    if made is None:
        if numbers is None:
            raise Refusal("unknown", "values that hang on the number of records are joined", "give resident arrays")
        return Value.of_known(numbers, values[0].dtype)
    return made if numbers is None else made.with_known(numbers)


OPERATORS: tuple[Operator, ...] = (
    Operator("SequenceConstruct", _construct, 11),
    Operator("SequenceEmpty", _empty, 11, attributes={"dtype": None}),
    Operator("SequenceAt", _at, 11),
    Operator("SequenceInsert", _insert, 11),
    Operator("SequenceErase", _erase, 11),
    Operator("SequenceLength", _length, 11),
    Operator("SplitToSequence", _split, 11, attributes={"axis": 0, "keepdims": 1}),
    Operator("ConcatFromSequence", _concat, 11, attributes={"axis": REQUIRED, "new_axis": 0}),
)
