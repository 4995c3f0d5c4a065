"""Windows put back into items: numbers at the places that pooling took them from, and columns added up."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import flowcompute.elements.axes as fc_axes
import flowcompute.elements.math as fc
from flowcompute.elements.creation import zeros_like
from flowcompute.elements.search import scatter_elements
from flowcompute.onnx.logical_value import Value, same_streams
from flowcompute.onnx.operators.layers.window_geometry import WINDOW_ATTRIBUTES, WindowAxis, window_axes
from flowcompute.onnx.operators.record import REQUIRED, NodeCall, Operator
from flowcompute.onnx.problems import Refusal

MOST_NUMBERS = 1 << 24
"""Numbers of an item whose places are kept as constants."""


def _max_unpool(call: NodeCall) -> Value:
    """Put the numbers of each record at their places in zeros, and zeros behind them up to the shape asked for."""
    (value, indices), layout = same_streams([call[0], call[1]])
    x, places = value.batch_first("unpool"), indices.batch_first("unpool")
    kernel = tuple(call.attribute("kernel_shape"))
    dims = len(kernel)
    strides = tuple(call.attribute("strides") or (1,) * dims)
    pads = tuple(call.attribute("pads") or (0,) * (2 * dims))
    if value.ndim != dims + 2 or len(strides) != dims or len(pads) != 2 * dims or value.shape != indices.shape:
        raise Refusal("invalid", f"windows of {dims} axes over {value.shape}", "correct the model")
    channels = value.size(1)
    sizes = [(value.size(at + 2) - 1) * strides[at] - pads[at] - pads[at + dims] + kernel[at] for at in range(dims)]
    total = channels * math.prod(sizes)
    given = call.get(2)
    wanted = sizes if given is None else [int(one) for one in given.wholes("output_shape")[2:]]
    if min(sizes) < 1 or len(wanted) != dims or any(most < least for most, least in zip(wanted, sizes, strict=True)):
        raise Refusal("invalid", f"items of {wanted}, of which {sizes} are known", "correct the model")
    if channels * math.prod(wanted) > MOST_NUMBERS:
        raise Refusal("unbounded", f"items of {wanted}", f"use at most {MOST_NUMBERS} numbers")
    # Places count on from record to record, and are looked up in their own.
    length = -1 if x.spec.is_stream else x.shape[0]
    flat, here = (fc_axes.reshape(one, (length, channels * math.prod(value.shape[2:]))) for one in (x, places))
    if x.spec.is_stream:
        here = fc.remainder(here, total)
    elif x.shape[0] > 1:
        here = fc.subtract(here, np.arange(x.shape[0], dtype=np.int64)[:, None] * total)
    nothing = fc_axes.broadcast_to(zeros_like(flat[:, :1]), (*x.shape[:1], total))
    made = fc_axes.reshape(scatter_elements(nothing, here, flat, axis=1), (length, channels, *sizes))
    more = [(0, most - least) for most, least in zip(wanted, sizes, strict=True)]
    return layout.value(fc_axes.pad(made, [(0, 0), (0, 0), *more]) if any(map(any, more)) else made)


# -- columns ------------------------------------------------------------------------------------------


def _col2im(call: NodeCall) -> Value:
    """Add up columns (N, C * block, L) to items (N, C, *sizes), one axis after the other."""
    value = call[0]
    x = value.batch_first("add up")
    sizes, block = call[1].ints("image_shape"), call[2].ints("block_shape")
    if len(sizes) != len(block) or value.ndim != 3 or min((*sizes, *block), default=0) < 1:
        raise Refusal("invalid", f"blocks {block} of items {sizes}", "correct the model")
    if math.prod(sizes) * max(block) > MOST_NUMBERS:
        raise Refusal("unbounded", f"items of {sizes} in blocks of {block}", f"use at most {MOST_NUMBERS} numbers")
    axes = window_axes(call, sizes, block)
    counts = [axis.count for axis in axes]
    channels = value.size(1) // math.prod(block)
    if value.shape[1:] != (channels * math.prod(block), math.prod(counts)):
        raise Refusal("invalid", f"columns {value.shape} of {counts} blocks {block}", "correct the model")
    length, dims = -1 if x.spec.is_stream else x.shape[0], len(sizes)
    made: Any = fc_axes.reshape(x, (length, channels, *block, *counts))
    pairs = [place for at in range(dims) for place in (2 + at, 2 + dims + at)]
    made = fc_axes.permute_dims(made, (0, 1, *pairs))
    for at, axis in enumerate(axes):
        places, known = _sums(axis)
        rest = made.shape[4 + at :]
        made = fc_axes.reshape(made, (length, channels, *sizes[:at], axis.kernel * axis.count, *rest))
        made = fc_axes.take(made, places, axis=2 + at)
        made = fc.where(known.reshape(*known.shape, *(1,) * len(rest)), made, 0)
        made = fc.sum(made, 3 + at, dtype=value.dtype)
    return value.like(made)


def _sums(axis: WindowAxis) -> tuple[np.ndarray, np.ndarray]:
    """Return which numbers (of a window, window) are added up at each place of an axis, and which of them count."""
    at = np.arange(axis.size)[:, None] + axis.before - np.arange(axis.kernel) * axis.dilation
    window = at // axis.stride
    known = (at % axis.stride == 0) & (window >= 0) & (window < axis.count)
    # The numbers that count stand first, in the order of the windows' numbers.
    order = np.argsort(~known, axis=1, kind="stable")[:, : max(1, int(known.sum(1).max()))]
    known = np.take_along_axis(known, order, 1)
    return np.where(known, order * axis.count + np.take_along_axis(window, order, 1), 0), known


OPERATORS: tuple[Operator, ...] = (
    Operator("MaxUnpool", _max_unpool, 9, attributes={"kernel_shape": REQUIRED, "pads": None, "strides": None}),
    Operator("Col2Im", _col2im, 18, attributes=WINDOW_ATTRIBUTES),
)
