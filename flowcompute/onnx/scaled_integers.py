"""Floats that are 8-bit integers less a zero point, times a scale: models say so by a DequantizeLinear.

A value remembers its integers beside its floats. Products of two such values are sums of integers, which are exact.
What only moves numbers moves their integers as well, so quantising them again by the same scale gives these.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

import flowcompute.elements.axes as fc_axes
from flowcompute.elements import Constant
from flowcompute.elements.math import astype, multiply, subtract
from flowcompute.onnx.logical_value import ScaledIntegers, Value, together

_FLOAT = np.finfo(np.float32)

MOST_TERMS = (2**31 - 1) // 255**2
"""Products of two numbers from -255 to 255 that a sum of 32 bits has room for, whatever they are."""


def scaled_integers(whole: Value, scale: Value, zero: Value | None, axis: int | None) -> ScaledIntegers | None:
    """Return what a value remembers of its integers; None where floats do not stand for them exactly.

    Scales have to be constants: positive, neither subnormal nor so large that a sum times a scale overflows.

    Args:
        whole: the integers.
        scale: a float32 number, or a vector.
        zero: an integer, or a vector; None for 0.
        axis: the logical axis along which vectors lie.
    """
    numbers = [_numbers(one) for one in (scale, zero) if one is not None]
    if whole.dtype not in (np.int8, np.uint8) or scale.dtype != np.float32 or any(one is None for one in numbers):
        return None
    by = numbers[0]
    if by is None or not by.size or not (_FLOAT.tiny <= by.min() and by.max() <= _FLOAT.max / 2**32):
        return None
    is_one = all(one is not None and one.size == 1 for one in numbers)
    return ScaledIntegers(whole, scale, zero, None if is_one else axis)


def _numbers(value: Value) -> np.ndarray | None:
    """Return the numbers of a constant."""
    element = value.element if value.has_element else None
    return element.value if isinstance(element, Constant) else None


def are_scaled_alike(a: ScaledIntegers, scale: Value, zero: Value | None, dtype: np.dtype) -> bool:
    """Check whether integers are those that quantising by one scale and one zero point gives."""
    if a.axis is not None or a.whole.dtype != dtype:
        return False
    pairs = ((a.scale, scale), (a.zero, zero))
    return all(_number(own, 0.0) == _number(other, 0.0) for own, other in pairs)


def _number(value: Value | None, default: float) -> float | None:
    """Return the number of a constant that has just one."""
    if value is None:
        return default
    numbers = _numbers(value)
    return float(numbers.reshape(())) if numbers is not None and numbers.size == 1 else None


def move_integers(build: Callable[[Any], Any], call: Any, made: Sequence[Value]) -> None:
    """Let results of a node that only moves numbers remember their integers, if all that it moves have one scale.

    Args:
        build: the builder of the node.
        call: the node with its inputs.
        made: the results.
    """
    floats = [value for value in call.given if value.dtype == np.float32]
    first = floats[0].integers if floats else None
    if first is None:
        return
    held = [value.integers for value in floats]
    if not all(one is not None and are_scaled_alike(one, first.scale, first.zero, first.whole.dtype) for one in held):
        return
    values = tuple(value if value is None or value.integers is None else value.integers.whole for value in call.values)
    moved = build(replace(call, values=values))
    for value, whole in zip(made, [moved] if isinstance(moved, Value) else moved, strict=True):
        if value.dtype == np.float32:
            value.integers = replace(first, whole=whole)


def less_zero_point(element: Any, zero: Value | None, axis: int | None = None) -> Any:
    """Return 8-bit integers less their zero point, as int32; as they are where that is 0.

    Args:
        element: the integers.
        zero: one number, or a vector.
        axis: along which the vector lies; None for the last one.
    """
    if zero is None or (zero.known is not None and not any(zero.known.reshape(-1))):
        return element
    wide = astype(element, "int32")
    number = zero.resident("a zero point")
    if zero.ndim == 1 and zero.size(0) == 1:
        number = fc_axes.reshape(number, ())
    elif zero.ndim == 1 and axis is not None:
        number = fc_axes.reshape(number, (-1, *(1,) * (element.ndim - axis - 1)))
    return subtract(wide, astype(number, "int32"))


def exact_product(
    a: Value, b: Value, terms: int, axes: tuple[int, int], multiplied: Callable[[Value, Value], Value]
) -> Value | None:
    """Return a product of two values by sums of their integers; None where it has to be one of floats.

    The sums are exact. They are scaled by the product of both scales, so three roundings remain of those of each term.

    Args:
        a, b: the factors; the scale of the first one has to be one number.
        terms: products that are added up for a number.
        axes: the logical axis of `b` along which its scale may lie, and that of the result, counted from the end.
        multiplied: makes the sums, in int32, of integers less their zero points.
    """
    left, right = a.integers, b.integers
    if left is None or right is None or left.axis is not None or terms > MOST_TERMS:
        return None
    if right.axis not in (None, axes[0]) or (right.axis is not None and b.axis is not None):
        return None
    scales = [_numbers(one.scale) for one in (left, right)]
    smallest, largest = (np.prod([np.float64(found(one)) for one in scales]) for found in (np.min, np.max))  # type: ignore[arg-type]
    if smallest < _FLOAT.tiny or largest > _FLOAT.max / 2**32:
        return None
    sums = multiplied(
        left.whole.like(less_zero_point(left.whole.element, left.zero)),
        right.whole.like(less_zero_point(right.whole.element, right.zero, right.axis)),
    )
    one, other = (fc_axes.reshape(held.scale.element, (-1,)) for held in (left, right))
    factor = multiply(one, other)
    shape = () if right.axis is None else (-1, *(1,) * (-1 - axes[1]))
    factor = fc_axes.reshape(factor, shape)
    return together(lambda x, by: multiply(astype(x, "float32"), by), sums, Value.of(factor))
