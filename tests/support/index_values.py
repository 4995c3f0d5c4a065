"""What integer expressions of the kernel IR are worth: a second reading of them, beside the C text."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from flowcompute.ir.index_nodes import (
    Arithmetic,
    ArrayNumber,
    Both,
    Choice,
    Comparison,
    ConditionLike,
    Either,
    IndexLike,
    IsFinite,
    IsNan,
    IsSet,
    IsZero,
    Name,
    ToWidth,
)


def quotient(a: Any, b: Any) -> Any:
    """C's division: towards 0."""
    if isinstance(a, int) and isinstance(b, int):  # as most are: NumPy would take ten times as long
        whole = abs(a) // abs(b)
        return whole if (a < 0) == (b < 0) else -whole
    return np.sign(a) * np.sign(b) * (np.abs(a) // np.abs(b))


OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": quotient,
    "%": lambda a, b: a - b * quotient(a, b),
    "&": operator.and_,
    "^": operator.xor,
    "<<": operator.lshift,
    ">>": operator.rshift,
    "min": np.minimum,
    "max": np.maximum,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}


def index_value(index: IndexLike, names: Mapping[str, Any]) -> Any:
    """The value of an integer, or of an array of them; `names` has those of its names."""
    match index:
        case int():
            return index
        case Name(name):
            return names[name]
        case Arithmetic(op, left, right):
            return OPERATORS[op](index_value(left, names), index_value(right, names))
        case ToWidth(operand):
            return index_value(operand, names)
        case ArrayNumber(array, position):
            return names[array][index_value(position, names)]
        case Choice(condition, yes, no):
            return np.where(condition_value(condition, names), index_value(yes, names), index_value(no, names))
    raise TypeError(index)


def condition_value(condition: ConditionLike, names: Mapping[str, Any]) -> Any:
    """The truth of a condition."""
    match condition:
        case bool():
            return condition
        case Comparison(op, left, right):
            return OPERATORS[op](index_value(left, names), index_value(right, names))
        case Both(left, right):
            return np.logical_and(condition_value(left, names), condition_value(right, names))
        case Either(left, right):
            return np.logical_or(condition_value(left, names), condition_value(right, names))
        case IsSet(operand):
            return index_value(operand, names) != 0
        case IsNan(variable):
            return np.isnan(names[variable])
        case IsZero(variable):
            return names[variable] == 0
        case IsFinite(variable):
            return np.isfinite(names[variable])
    raise TypeError(condition)
