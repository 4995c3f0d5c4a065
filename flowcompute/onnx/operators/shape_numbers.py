"""Numbers of shapes: what operators do to values that are known when the graph is composed."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from flowcompute.onnx.operators.record import Integers, NodeCall, known_of
from flowcompute.onnx.sizes import MOST_KNOWN, Records


def pointwise(function: Callable[..., Any], operands: int = 2) -> Integers:
    """Return what applies a function of Python's numbers to each of the known ones, which broadcast."""
    ufunc = np.frompyfunc(function, operands, 1)

    def made(call: NodeCall) -> Any:
        return ufunc(*_few(known_of(call)))

    return made


def reduced(function: Callable[[Any, Any], Any]) -> Integers:
    """Return what applies a function of two to all inputs, one after the other."""
    ufunc = np.frompyfunc(function, 2, 1)

    def made(call: NodeCall) -> Any:
        first, *rest = _few(known_of(call))
        for one in rest:
            first = ufunc(first, one)
        return first

    return made


def _few(arrays: list[np.ndarray]) -> list[np.ndarray]:
    """Return arrays that broadcast to few numbers.

    Raises:
        ValueError: if they do not.
    """
    if math.prod(np.broadcast_shapes(*(one.shape for one in arrays))) > MOST_KNOWN:
        raise ValueError
    return arrays


def quotient(a: Any, b: Any) -> Any:
    """Divide as ONNX: integers truncate towards zero.

    Raises:
        ZeroDivisionError: for a divisor of 0.
    """
    if isinstance(a, Records) or isinstance(b, Records):
        return a // b
    if isinstance(a, float) or isinstance(b, float):
        return a / b
    whole = abs(a) // abs(b)
    return whole if (a < 0) == (b < 0) else -whole


def rest(a: Any, b: Any) -> Any:
    """Return the remainder of a division that truncates towards zero."""
    if isinstance(a, Records) or isinstance(b, Records):
        return a % b
    if isinstance(a, float) or isinstance(b, float):
        return math.fmod(a, b)
    return a - b * quotient(a, b)


def power(a: Any, b: Any) -> Any:
    """Raise a number to a power.

    Raises:
        ArithmeticError: if an integer becomes none, or one of more than 64 bits, or a float no real number.
    """
    if isinstance(a, int) and isinstance(b, int) and (b < 0 or (abs(a) > 1 and b > 64)):
        raise ArithmeticError
    made = a**b
    if isinstance(made, complex):
        raise ArithmeticError
    return made


def larger(a: Any, b: Any) -> Any:
    """Return the larger one."""
    return a if a >= b else b


def smaller(a: Any, b: Any) -> Any:
    """Return the smaller one."""
    return b if a >= b else a


def as_dtype(number: Any, dtype: np.dtype) -> Any:
    """Return a number in a dtype, as a Python number; a `Records` stays what it is as an integer.

    Raises:
        ValueError: if it does not fit.
    """
    if isinstance(number, Records):
        if dtype.kind in "iu" and dtype.itemsize >= 4:
            return number
        raise ValueError
    if dtype.kind in "iu":
        whole = int(number)
        if not np.iinfo(dtype).min <= whole <= np.iinfo(dtype).max:
            raise ValueError
        return whole
    if dtype.kind == "b":
        return bool(number)
    return np.asarray(number).astype(dtype).astype(np.float64).item()
