"""Products of matrices."""

from __future__ import annotations

from typing import Any

import flowcompute.elements.axes as fc_axes
import flowcompute.elements.math as fc
from flowcompute.elements.products import einsum
from flowcompute.onnx.logical_value import APART, Value, lined_up, together
from flowcompute.onnx.operators.arrays import transposed
from flowcompute.onnx.operators.record import REQUIRED, NodeCall, Operator
from flowcompute.onnx.problems import Refusal
from flowcompute.onnx.scaled_integers import exact_product
from flowcompute.spec import is_float


def product(a: Value, b: Value, dtype: Any = None) -> Value:
    """Multiply matrices by NumPy's rules, wherever the streams stand but along the axis that is summed over.

    Args:
        a, b: the values.
        dtype: in which is multiplied and added up, by default what they promote to.
    """
    if a.ndim == 0 or b.ndim == 0:
        raise Refusal("invalid", "a product of numbers as matrices", "correct the model")
    if a.axis == a.ndim - 1 or (b.axis is not None and b.axis == max(b.ndim - 2, 0)):
        raise Refusal("batch axis", "a product that sums over the records", APART)
    if a.ndim == 1:
        made = product(_with_axis(a, 0), b, dtype)
        return _without(made, -1 if b.ndim == 1 else -2)
    if b.ndim == 1:
        return _without(product(a, _with_axis(b, 1), dtype), -1)
    if a.axis == a.ndim - 2:
        return _rows(a, b, dtype)
    if b.axis == b.ndim - 1:
        turned = _rows(_swapped(b), _swapped(a), dtype)
        return _swapped(turned)
    return _stacks(a, b, dtype)


def _with_axis(value: Value, axis: int) -> Value:
    return Value.of(fc_axes.expand_dims(value.resident("a vector"), axis))


def _without(value: Value, axis: int) -> Value:
    """Remove an axis of size 1."""
    place = value.normal(axis)
    moved = value.axis - (value.axis > place) if value.axis is not None else None
    return value.like(fc_axes.squeeze(value.element, value.physical(place)), moved)


def _swapped(value: Value) -> Value:
    """Exchange the last two axes."""
    return transposed(value, (*range(value.ndim - 2), value.ndim - 1, value.ndim - 2))


def _rows(a: Value, b: Value, dtype: Any) -> Value:
    """Multiply rows that are the records by matrices."""
    if b.axis is not None:
        raise Refusal("batch axis", "products of all records with each other", APART)
    x, matrix = a.element, b.element
    if len(matrix.spec.shape) == 2:
        made = _matmul(x, matrix, dtype)
        return a.like(made, a.axis)
    # Each record has one row for each matrix of a stack, whose axes must not meet the records.
    lead = (1,) * max(0, len(matrix.spec.shape) - a.ndim)
    opened = fc_axes.reshape(x, (-1, *lead, *x.spec.shape[:-1], 1, x.spec.shape[-1]))
    made = _matmul(opened, matrix, dtype)
    made = fc_axes.squeeze(made, made.ndim - 2)
    return a.like(made, made.ndim - 2)


def _stacks(a: Value, b: Value, dtype: Any) -> Value:
    """Multiply stacks of matrices, whose leading axes broadcast."""
    if a.axis is None and b.axis is None:
        return Value.of(_matmul(a.element, b.element, dtype))
    elements, layout = lined_up([a, b])
    left, right = elements
    # A resident matrix has as many axes as those it stands beside.
    return layout.value(_matmul(left, right, dtype))


def _matmul(a: Any, b: Any, dtype: Any) -> Any:
    # Products keep the dtype of their operands, which NumPy does not say of every half format.
    return fc.matmul(a, b, dtype=a.dtype if dtype is None and is_float(a.dtype) else dtype)


def float_product(a: Value, b: Value) -> Value:
    """Multiply matrices, by the integers that their numbers stand for where they do."""
    exact = None
    if min(a.ndim, b.ndim) > 1 and b.axis != b.ndim - 2:
        exact = exact_product(a, b, b.size(b.ndim - 2), (b.ndim - 1, -1), lambda x, y: product(x, y, "int32"))
    return product(a, b) if exact is None else exact


def _matmul_node(call: NodeCall) -> Value:
    return float_product(call[0], call[1])


def _gemm(call: NodeCall) -> Value:
    a, b, c = call[0], call[1], call.get(2)
    alpha, beta = call.attribute("alpha"), call.attribute("beta")
    made = float_product(_swapped(a) if call.attribute("transA") else a, _swapped(b) if call.attribute("transB") else b)
    if alpha != 1:
        made = made.like(_scaled(made.element, alpha))
    if c is None or beta == 0:
        return made
    added = c if beta == 1 else c.like(_scaled(c.element, beta))
    return together(fc.add, made, added)


def _scaled(x: Any, factor: float) -> Any:
    if x.dtype.kind in "iu":
        if factor != int(factor):
            raise Refusal("attribute", f"a factor of {factor} of integers", "cast to floats in the model")
        return fc.multiply(x, int(factor))
    return fc.multiply(x, factor)


def _einsum(call: NodeCall) -> Value:
    equation = call.attribute("equation").replace(" ", "")
    values = call.given
    streams = [value for value in values if value.axis is not None]
    if any(value.axis != 0 for value in streams):
        raise Refusal("batch axis", "a value whose records do not stand first", APART)
    if streams and "..." in equation:
        raise Refusal("missing", "an ellipsis beside a stream", "write the axes as letters")
    terms, _, made = equation.partition("->")
    if streams and not _keeps_first(terms.split(","), made, values, bool(_)):
        raise Refusal("batch axis", f"{equation!r} mixes the records", APART)
    element = einsum(equation, *(value.element for value in values))
    element = element if element.dtype == values[0].dtype else fc.astype(element, values[0].dtype)
    return streams[0].like(element, 0) if streams else Value.of(element)


def _keeps_first(terms: list[str], made: str, values: list[Value], is_given: bool) -> bool:
    """Check whether the letter of the records stands first in the result."""
    letters = {term[:1] for term, value in zip(terms, values, strict=True) if value.axis is not None}
    return is_given and len(letters) == 1 and made[:1] in letters


OPERATORS: tuple[Operator, ...] = (
    Operator("MatMul", _matmul_node),
    Operator("Gemm", _gemm, attributes={"alpha": 1.0, "beta": 1.0, "transA": 0, "transB": 0, "broadcast": 0}),
    Operator("Einsum", _einsum, 12, attributes={"equation": REQUIRED}),
)
