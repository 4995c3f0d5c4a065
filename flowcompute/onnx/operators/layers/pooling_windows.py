"""Pools: the largest number, the mean or a norm of windows over the last axes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import flowcompute.elements.axes as fc_axes
import flowcompute.elements.math as fc
from flowcompute.elements import nn
from flowcompute.onnx.logical_value import Value
from flowcompute.onnx.operators.arrays import lowest_of
from flowcompute.onnx.operators.layers.window_geometry import WINDOW_ATTRIBUTES, WindowAxis, window_axes
from flowcompute.onnx.operators.record import REQUIRED, NodeCall, Operator
from flowcompute.onnx.problems import Refusal
from flowcompute.onnx.sizes import Records
from flowcompute.spec import BFLOAT16, FLOAT16

MOST_WINDOWS = 1 << 24
"""Limit of an item, whose numbers are counted when the graph is composed."""


def _windows(call: NodeCall) -> tuple[Value, list[WindowAxis]]:
    value = call[0]
    value.batch_first("pool")
    sizes = tuple(value.size(axis) for axis in range(2, value.ndim))
    ceil = bool(call.attribute("ceil_mode"))
    return value, window_axes(call, sizes, tuple(call.attribute("kernel_shape")), ceil=ceil)


def _padded(x: Any, axes: list[WindowAxis], fill: Any) -> Any:
    """Pad so far that each window lies inside, and cut what none sees."""
    lead = x.ndim - len(axes)
    widths = [(0, 0)] * lead + [(axis.before, max(axis.after + axis.extra, 0)) for axis in axes]
    return fc_axes.pad(x, widths, constant_values=fill) if any(map(any, widths)) else x


def _pooled(x: Any, axes: list[WindowAxis], pool1d: Any, pool2d: Any) -> Any:
    """Pool the last axes, two of them at a time."""
    first = x.ndim - len(axes)
    if len(axes) > 2:
        # Largest numbers and sums of windows are those of their rows.
        place = first
        moved = fc_axes.moveaxis(x, place, x.ndim - 1)
        moved = _pooled(moved, axes[:1], pool1d, pool2d)
        return _pooled(fc_axes.moveaxis(moved, x.ndim - 1, place), axes[1:], pool1d, pool2d)
    if len(axes) == 1:
        (axis,) = axes
        return pool1d(x, axis.kernel, axis.stride, 0, axis.dilation)
    kernel, stride, spread = ([getattr(axis, name) for axis in axes] for name in ("kernel", "stride", "dilation"))
    return pool2d(x, kernel, stride, 0, spread)


def _max_pool(call: NodeCall) -> Any:
    value, axes = _windows(call)
    if call.wants(1):
        return _largest_and_places(call, value, axes)
    x = _padded(value.element, axes, lowest_of(value.dtype))
    return value.like(_pooled(x, axes, nn.max_pool1d, nn.max_pool2d))


def _largest_and_places(call: NodeCall, value: Value, axes: list[WindowAxis]) -> tuple[Value, Value]:
    """Return the largest numbers, and where they stand, counted over all records and channels."""
    functions = {1: nn.max_pool1d, 2: nn.max_pool2d, 3: nn.max_pool3d}
    if len(axes) not in functions:
        raise Refusal("missing", f"places along {len(axes)} axes", "pool one to three axes")
    if isinstance(value.shape[0], Records) or (value.axis is not None and value.shape[0] != 1):
        raise Refusal("batch axis", "places that are counted over records", "give a resident array")
    kernel, stride, spread = ([getattr(axis, name) for axis in axes] for name in ("kernel", "stride", "dilation"))
    edges = [(axis.before, max(0, axis.after + axis.extra)) for axis in axes]
    made, places = functions[len(axes)](value.element, kernel, stride, edges, spread, return_indices=True)
    sizes = [axis.size for axis in axes]
    if call.attribute("storage_order"):
        # Counted with the first axis as the fastest one.
        step, rest, turned = math.prod(sizes), places, None
        for at, size in enumerate(sizes):
            step //= size
            part = fc.multiply(fc.floor_divide(rest, step), math.prod(sizes[:at]))
            turned, rest = part if turned is None else fc.add(turned, part), fc.remainder(rest, step)
        places = turned
    records, channels = value.shape[0], value.size(1)
    firsts = np.arange(records * channels, dtype=np.int64).reshape(records, channels, *(1,) * len(axes))
    if records * channels > 1:
        places = fc.add(places, (firsts if value.axis is None else firsts[0]) * math.prod(sizes))
    return value.like(made), value.like(places)


def _summed(x: Any, axes: list[WindowAxis]) -> Any:
    """Sum the numbers of windows."""
    made = _pooled(_padded(x, axes, 0), axes, nn.avg_pool1d, nn.avg_pool2d)
    return fc.multiply(made, float(np.prod([axis.kernel for axis in axes])))


def _counts(axes: list[WindowAxis], *, with_pads: bool) -> np.ndarray:
    counts = np.ones((), np.int64)
    total = math.prod(axis.count for axis in axes)
    if total > MOST_WINDOWS:
        raise Refusal("unbounded", f"{total} windows", f"use at most {MOST_WINDOWS}")
    for axis in axes:
        counts = counts[..., None] * axis.numbers(with_pads=with_pads)
    return counts


def _average_pool(call: NodeCall) -> Value:
    value, axes = _windows(call)
    counts = _counts(axes, with_pads=bool(call.attribute("count_include_pad")))
    x = value.element
    wide = fc.astype(x, "float32") if x.dtype in (FLOAT16, BFLOAT16) else x
    if counts.size and counts.min() == counts.max() == np.prod([axis.kernel for axis in axes]):
        made = _pooled(_padded(wide, axes, 0), axes, nn.avg_pool1d, nn.avg_pool2d)
    else:
        made = fc.divide(_summed(wide, axes), counts.astype(wide.dtype))
    return value.like(made if made.dtype == x.dtype else fc.astype(made, x.dtype))


def _lp_pool(call: NodeCall) -> Value:
    value, axes = _windows(call)
    return value.like(_root(_summed(_power(value.element, call.attribute("p")), axes), call.attribute("p")))


def _power(x: Any, p: int) -> Any:
    return fc.abs(x) if p == 1 else fc.square(x) if p == 2 else fc.pow(fc.abs(x), float(p))


def _root(x: Any, p: int) -> Any:
    return x if p == 1 else fc.sqrt(x) if p == 2 else fc.pow(x, 1 / p)


def _global(call: NodeCall) -> tuple[Value, tuple[int, ...]]:
    value = call[0]
    value.batch_first("pool")
    if value.ndim < 3:
        raise Refusal("invalid", f"a value of {value.ndim} axes is pooled", "correct the model")
    return value, tuple(range(2, value.ndim))


def _global_average(call: NodeCall) -> Value:
    value, axes = _global(call)
    return value.like(fc.mean(value.element, axes, keepdims=True))


def _global_max(call: NodeCall) -> Value:
    value, axes = _global(call)
    return value.like(fc.max(value.element, axes, keepdims=True))


def _global_lp(call: NodeCall) -> Value:
    value, axes = _global(call)
    p = call.attribute("p")
    return value.like(_root(fc.sum(_power(value.element, p), axes, keepdims=True), p))


_POOL = {**WINDOW_ATTRIBUTES, "kernel_shape": REQUIRED, "ceil_mode": 0}

OPERATORS: tuple[Operator, ...] = (
    Operator("MaxPool", _max_pool, attributes={**_POOL, "storage_order": 0}, moves=True),
    Operator("AveragePool", _average_pool, attributes={**_POOL, "count_include_pad": 0}),
    Operator("LpPool", _lp_pool, 2, attributes={**_POOL, "p": 2}),
    Operator("GlobalAveragePool", _global_average),
    Operator("GlobalMaxPool", _global_max, moves=True),
    Operator("GlobalLpPool", _global_lp, 2, attributes={"p": 2}),
)
