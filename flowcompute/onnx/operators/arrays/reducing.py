"""Reductions over axes, running sums, places of extremes, and the largest numbers."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

import flowcompute.elements.axes as fc_axes
import flowcompute.elements.math as fc
from flowcompute.elements import nn
from flowcompute.elements.creation import full
from flowcompute.elements.search import argsort, sort
from flowcompute.elements.streams import cumulative_prod, cumulative_sum, top_k
from flowcompute.onnx.logical_value import APART, Value
from flowcompute.onnx.operators.record import Integers, NodeCall, Operator, known_of
from flowcompute.onnx.problems import Refusal
from flowcompute.onnx.sizes import Records
from flowcompute.spec import is_float

Reduce = Callable[[Any, tuple[int, ...], bool], Any]
"""Reduces an element over some of its axes; the last argument is whether they stay."""


def reduced_axes(call: NodeCall) -> tuple[int, ...] | None:
    """Return the logical axes to reduce; None for a value that stays as it is."""
    value, axes = call[0], call.node.attributes.get("axes")
    given = call.get(1)
    if given is not None:
        axes = given.ints("axes")
    if axes is None or len(axes) == 0:
        return None if call.attribute("noop_with_empty_axes") else tuple(range(value.ndim))
    return tuple(sorted(set(value.normals(axes))))


def over(value: Value, axes: tuple[int, ...], keepdims: bool, reduce: Reduce, empty: Any = None) -> Value:
    """Reduce a value over logical axes, the stream not among them.

    Args:
        value: what is reduced.
        axes: positions from 0 on.
        keepdims: whether they stay, with size 1.
        reduce: the function of elements.
        empty: the number that a reduction of no numbers gives, where `reduce` refuses them.
    """
    own = tuple(value.item_axis(axis, "reduce") for axis in axes)
    at = value.axis
    if at is not None and not keepdims:
        at -= sum(axis < at for axis in axes)
    if empty is not None and any(value.shape[axis] == 0 for axis in axes):
        if value.axis is not None:
            raise Refusal("missing", "a reduction of records without numbers", "give a resident array")
        shape = tuple(1 if at in axes else size for at, size in enumerate(value.shape) if keepdims or at not in axes)
        return Value.of(full(shape, value.dtype.type(empty), value.dtype))  # type: ignore[arg-type]
    return value.like(reduce(value.element, own, keepdims), at)


def reduction(
    name: str, reduce: Reduce, empty: Callable[[np.dtype], Any] | None = None, integers: Integers | None = None
) -> tuple[Operator, ...]:
    """Return the records of a reduction: axes are an attribute at first, and later an input."""

    def build(call: NodeCall) -> Value:
        value, axes = call[0], reduced_axes(call)
        if axes is None:
            return value.like(reduce(value.element, (), True))
        lowest = None if empty is None else empty(value.dtype)
        return over(value, axes, bool(call.attribute("keepdims")), reduce, lowest)

    moved = 13 if name == "ReduceSum" else 18
    return (
        Operator(
            name,
            build,
            1,
            moved,
            attributes={"axes": None, "keepdims": 1, "noop_with_empty_axes": 0},
            integers=integers,
        ),
        Operator(name, build, moved, attributes={"keepdims": 1, "noop_with_empty_axes": 0}, integers=integers),
    )


def _sum(x: Any, axes: tuple[int, ...], keep: bool) -> Any:
    return fc.sum(x, axes, dtype=x.dtype, keepdims=keep)


def _prod(x: Any, axes: tuple[int, ...], keep: bool) -> Any:
    return fc.prod(x, axes, dtype=x.dtype, keepdims=keep)


def _mean(x: Any, axes: tuple[int, ...], keep: bool) -> Any:
    if is_float(x.dtype):
        return fc.mean(x, axes, keepdims=keep)
    return fc.astype(fc.mean(x, axes, keepdims=keep), x.dtype)


def _max(x: Any, axes: tuple[int, ...], keep: bool) -> Any:
    return fc.max(x, axes, keepdims=keep)


def _min(x: Any, axes: tuple[int, ...], keep: bool) -> Any:
    return fc.min(x, axes, keepdims=keep)


def _sum_square(x: Any, axes: tuple[int, ...], keep: bool) -> Any:
    return _sum(fc.square(x), axes, keep)


def _l1(x: Any, axes: tuple[int, ...], keep: bool) -> Any:
    return _sum(fc.abs(x), axes, keep)


def _l2(x: Any, axes: tuple[int, ...], keep: bool) -> Any:
    wide = x if is_float(x.dtype) else fc.astype(x, "float64")
    made = fc.sqrt(_sum_square(wide, axes, keep))
    return made if made.dtype == x.dtype else fc.astype(made, x.dtype)


def _log_sum(x: Any, axes: tuple[int, ...], keep: bool) -> Any:
    wide = x if is_float(x.dtype) else fc.astype(x, "float64")
    made = fc.log(_sum(wide, axes, keep))
    return made if made.dtype == x.dtype else fc.astype(made, x.dtype)


def _log_sum_exp(x: Any, axes: tuple[int, ...], keep: bool) -> Any:
    if not axes:
        return fc.add(x, 0)
    wide = x if is_float(x.dtype) else fc.astype(x, "float64")
    made = nn.logsumexp(wide, axes, keepdims=keep)
    return made if made.dtype == x.dtype else fc.astype(made, x.dtype)


def lowest_of(dtype: np.dtype) -> Any:
    """Return the number below which a dtype has none."""
    if is_float(dtype):
        return -math.inf
    return False if dtype.kind == "b" else int(np.iinfo(dtype).min)


def highest_of(dtype: np.dtype) -> Any:
    """Return the number above which a dtype has none."""
    if is_float(dtype):
        return math.inf
    return True if dtype.kind == "b" else int(np.iinfo(dtype).max)


def _prod_integers(call: NodeCall) -> Any:
    """Multiply the sizes of a shape."""
    numbers = known_of(call)[0]
    if numbers.ndim != 1 or reduced_axes(call) is None:
        raise ValueError
    total: Any = 1
    for one in numbers:
        total = total * one
    made = np.empty((1,) if call.attribute("keepdims") else (), object)
    made[...] = total
    return made


# -- places -------------------------------------------------------------------------------------------


def _extreme_place(function: Callable[..., Any]) -> Callable[[NodeCall], Value]:
    def build(call: NodeCall) -> Value:
        value, keep = call[0], bool(call.attribute("keepdims"))
        axis = value.normal(call.attribute("axis"))
        last = call.attribute("select_last_index")

        def find(x: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
            if not last:
                return function(x, axes[0], keepdims=keepdims)
            turned = fc_axes.flip(x, axes[0])
            return fc.subtract(x.shape[axes[0]] - 1, function(turned, axes[0], keepdims=keepdims))

        return over(value, (axis,), keep, find)

    return build


def _top_k(call: NodeCall) -> tuple[Value, Value]:
    value = call[0]
    axis = value.normal(call.attribute("axis"))
    at = value.item_axis(axis, "search")
    k = call.attribute("k") if call.opset < 10 else call[1].ints("K")[0]
    if not 0 <= k <= value.size(axis):
        raise Refusal("invalid", f"k = {k} of {value.size(axis)} numbers", "correct the model")
    x = value.element
    first = (*(slice(None),) * at, slice(k))
    if k == 0:
        return value.like(x[first]), value.like(fc.astype(x[first], "int64"))
    if call.attribute("largest"):
        best, places = top_k(x, k, at)
        return value.like(best), value.like(places)
    return value.like(sort(x, at)[first]), value.like(argsort(x, at)[first])


def _hardmax(call: NodeCall) -> Value:
    value = call[0]
    axis = value.normal(call.attribute("axis") if "axis" in call.node.attributes else -1 if call.opset >= 13 else 1)
    if call.opset < 13 and axis != value.ndim - 1:
        raise Refusal("missing", "a hardmax over several axes", "convert the model to opset 13 or later")
    at = value.item_axis(axis, "search")
    x = value.element
    places = np.arange(value.size(axis)).reshape(-1, *(1,) * (x.ndim - at - 1))
    return value.like(fc.astype(fc.equal(fc.argmax(x, at, keepdims=True), places), x.dtype))


# -- running ------------------------------------------------------------------------------------------


def _cumulative(function: Callable[..., Any]) -> Callable[[NodeCall], Value]:
    def build(call: NodeCall) -> Value:
        value = call[0]
        at = value.item_axis(value.normal(call[1].ints("axis")[0]), "run along")
        x = value.element
        turned = call.attribute("reverse")
        x = fc_axes.flip(x, at) if turned else x
        made = function(x, at, dtype=x.dtype, exclusive=bool(call.attribute("exclusive")))
        return value.like(fc_axes.flip(made, at) if turned else made)

    return build


# -- shares of a sum ----------------------------------------------------------------------------------


def _softmax(function: Callable[..., Any]) -> Callable[[NodeCall], Value]:
    def build(call: NodeCall) -> Value:
        value = call[0]
        given = call.node.attributes.get("axis")
        if call.opset >= 13:
            axes: tuple[int, ...] = (value.normal(-1 if given is None else given),)
        else:
            axes = tuple(range(value.normal(1 if given is None else given), value.ndim))
        if value.axis in axes:
            raise Refusal("batch axis", "shares of a sum over the records", APART)
        own = tuple(value.physical(axis) for axis in axes)
        if any(size == 0 for size in value.shape if not isinstance(size, Records)):
            return value.like(fc.exp(value.element))
        return value.like(function(value.element, own))

    return build


_AXIS = {"axis": 0, "keepdims": 1, "select_last_index": 0}

OPERATORS: tuple[Operator, ...] = (
    *reduction("ReduceSum", _sum),
    *reduction("ReduceMean", _mean),
    *reduction("ReduceMax", _max, lowest_of),
    *reduction("ReduceMin", _min, highest_of),
    *reduction("ReduceProd", _prod, None, _prod_integers),
    *reduction("ReduceSumSquare", _sum_square),
    *reduction("ReduceL1", _l1),
    *reduction("ReduceL2", _l2),
    *reduction("ReduceLogSum", _log_sum),
    *reduction("ReduceLogSumExp", _log_sum_exp, lowest_of),
    Operator("ArgMax", _extreme_place(fc.argmax), attributes=_AXIS),
    Operator("ArgMin", _extreme_place(fc.argmin), attributes=_AXIS),
    Operator("TopK", _top_k, 1, 10, attributes={"axis": -1, "k": None, "largest": 1}),
    Operator("TopK", _top_k, 10, attributes={"axis": -1, "largest": 1, "sorted": 1}),
    Operator("Hardmax", _hardmax, attributes={"axis": -1}),
    Operator("CumSum", _cumulative(cumulative_sum), 11, attributes={"exclusive": 0, "reverse": 0}),
    Operator("CumProd", _cumulative(cumulative_prod), 26, attributes={"exclusive": 0, "reverse": 0}),
    Operator("Softmax", _softmax(nn.softmax), attributes={"axis": -1}),
    Operator("LogSoftmax", _softmax(nn.log_softmax), attributes={"axis": -1}),
)
