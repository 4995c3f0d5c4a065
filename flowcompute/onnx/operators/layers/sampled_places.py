"""Numbers read at places between those where they stand: grids, deformed windows and regions of interest."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import flowcompute.elements.axes as fc_axes
import flowcompute.elements.math as fc
from flowcompute.elements import nn
from flowcompute.onnx.logical_value import StreamPlace, Value, same_streams
from flowcompute.onnx.operators.layers.window_geometry import window_axes
from flowcompute.onnx.operators.record import NodeCall, Operator
from flowcompute.onnx.problems import Refusal
from flowcompute.onnx.sizes import Records
from flowcompute.spec import BFLOAT16, FLOAT16

METHODS = {"nearest": "nearest", "bilinear": "linear", "linear": "linear", "bicubic": "cubic", "cubic": "cubic"}

MOST_PLACES = 1 << 24
"""Places of an item that are kept as constants."""


def _length(element: Any) -> int:
    """Return the first size of a shape that keeps axis 0."""
    return -1 if element.spec.is_stream else int(element.shape[0])


def _few_places(sizes: tuple[int, ...]) -> None:
    if math.prod(sizes) > MOST_PLACES:
        raise Refusal("unbounded", f"{math.prod(sizes)} places", f"use at most {MOST_PLACES}")


def _wide(x: Any) -> Any:
    """Return half formats as float32."""
    return fc.astype(x, "float32") if x.dtype in (FLOAT16, BFLOAT16) else x


def _grid_sample(call: NodeCall) -> Value:
    (value, grid), layout = same_streams([call[0], call[1]])
    made = nn.grid_sample(
        value.batch_first("sample"),
        grid.batch_first("sample"),
        METHODS[call.choice("mode", tuple(METHODS))],
        call.choice("padding_mode", ("zeros", "border", "reflection")),
        bool(call.attribute("align_corners")),
    )
    return layout.value(made if made.dtype == value.dtype else fc.astype(made, value.dtype))


def _affine_grid(call: NodeCall) -> Value:
    """Multiply the places of a regular grid, with a 1 behind each, by a matrix for each record."""
    theta, wanted = call[0], call[1].wholes("size")
    matrix = theta.batch_first("transform by")
    records, sizes = wanted[0], tuple(wanted[2:])
    dims = len(sizes)
    if any(isinstance(one, Records) for one in sizes) or theta.shape[1:] != (dims, dims + 1) or dims not in (2, 3):
        raise Refusal("invalid", f"size={wanted} and matrices {theta.shape}", "correct the model")
    if records != theta.shape[0]:
        raise Refusal("invalid", f"a grid for {records} records, and {theta.shape[0]} matrices", "correct the model")
    _few_places(sizes)
    aligned = bool(call.attribute("align_corners"))
    along = [np.linspace(-1, 1, size) if aligned else (2 * np.arange(size) + 1) / size - 1 for size in sizes]
    *places, last = np.meshgrid(*along, indexing="ij")
    # A place is (x, y) or (x, y, z): the last axis first.
    regular = np.stack([last, *places[::-1], np.ones(sizes)], axis=-1).reshape(-1, dims + 1)
    made = fc.matmul(regular.astype(theta.dtype), fc_axes.permute_dims(matrix, (0, 2, 1)))
    return theta.like(fc_axes.reshape(made, (_length(matrix), *sizes, dims)))


def _deform_conv(call: NodeCall) -> Value:
    """Read each number of a window at its own offset, then multiply the windows by the weights."""
    weights, bias = call[1], call.get(3)
    given = [call[0], call[2], *([] if call.get(4) is None else [call[4]])]
    (value, offsets, *masks), layout = same_streams(given)
    x, moves = value.batch_first("convolve"), _wide(offsets.batch_first("convolve"))
    kernel, dims = weights.element.spec.shape[2:], weights.ndim - 2
    if dims not in (1, 2, 3) or value.ndim != dims + 2:
        raise Refusal("missing", f"a convolution along {dims} axes", "convolve along one to three axes")
    axes = window_axes(call, tuple(value.size(axis) for axis in range(2, value.ndim)), kernel)
    group, parts = call.attribute("group"), call.attribute("offset_group")
    counts = tuple(axis.count for axis in axes)
    channels, taps, outputs = value.size(1), math.prod(kernel), weights.size(0)
    fits = min(group, parts) > 0 and channels % group == channels % parts == outputs % group == 0
    if not fits or weights.size(1) * group != channels or offsets.shape[1:] != (parts * taps * dims, *counts):
        raise Refusal("invalid", f"offsets {offsets.shape} and weights {weights.shape}", "correct the model")
    if masks and masks[0].shape[1:] != (parts * taps, *counts):
        raise Refusal("invalid", f"a mask {masks[0].shape}", "correct the model")
    _few_places((taps, *counts))
    moves = fc_axes.reshape(moves, (_length(moves), parts, taps, dims, *counts))
    own = channels // parts
    seen = [
        nn.grid_sample(x[:, part * own : (part + 1) * own], _deformed(moves[:, part], axes, kernel, counts))
        for part in range(parts)
    ]
    # (N, offset groups, channels, taps, *counts)
    read = fc_axes.stack([fc_axes.reshape(one, (_length(one), own, taps, *counts)) for one in seen], axis=1)
    if masks:
        mask = masks[0].batch_first("convolve")
        read = fc.multiply(read, fc_axes.reshape(mask, (_length(mask), parts, 1, taps, *counts)))
    columns = fc_axes.reshape(read, (_length(read), group, channels // group * taps, math.prod(counts)))
    rows = fc_axes.reshape(weights.resident("weights"), (group, outputs // group, channels // group * taps))
    made = fc.matmul(rows, columns)
    made = fc_axes.reshape(made, (_length(made), outputs, *counts))
    if bias is not None:
        made = fc.add(made, fc_axes.reshape(bias.resident("bias"), (-1, *(1,) * dims)))
    return layout.value(made)


def _deformed(moves: Any, axes: Any, kernel: tuple[int, ...], counts: tuple[int, ...]) -> Any:
    """Return the places that windows are read at, as `grid_sample` counts them.

    Args:
        moves: (N, taps, dims, *counts), how far each place is moved along each axis.
        axes: the windows.
        kernel: numbers in a window along each axis.
        counts: windows along each axis.
    """
    taps = np.stack(np.meshgrid(*map(np.arange, kernel), indexing="ij")).reshape(len(axes), -1)
    along = []
    for at, (axis, offset) in enumerate(zip(axes, taps, strict=True)):
        windows = np.arange(counts[at]) * axis.stride - axis.before
        regular = offset.reshape(-1, *(1,) * len(axes)) * axis.dilation
        regular = regular + windows.reshape([-1 if one == at else 1 for one in range(len(axes))])
        place = fc.add(moves[:, :, at], regular.astype(moves.dtype))
        along.append(fc.subtract(fc.divide(fc.add(fc.multiply(place, 2.0), 1.0), float(axis.size)), 1.0))
    return fc_axes.stack(along[::-1], axis=-1)


# -- regions ------------------------------------------------------------------------------------------


def _roi_align(call: NodeCall) -> Value:
    """Read a regular grid of places in each region, and take the mean or the largest number of each bin."""
    x = call[0].resident("the feature map of regions")
    (rois, which), layout = _regions(call)
    mode = call.choice("mode", ("avg", "max"))
    shift = 0.0
    if call.opset >= 16:
        how = call.choice("coordinate_transformation_mode", ("half_pixel", "output_half_pixel"))
        shift = 0.5 if how == "half_pixel" else 0.0
    ratio = call.attribute("sampling_ratio")
    if ratio < 1:
        raise Refusal("unknown", "the number of samples follows from the regions", "export with sampling_ratio=2")
    count, channels, *sizes = x.spec.shape
    bins = (call.attribute("output_height"), call.attribute("output_width"))
    if min(bins) < 1 or 0 in sizes or len(sizes) != 2:
        raise Refusal("invalid", f"{bins} bins of {call[0].shape}", "correct the model")
    _few_places((*bins, ratio, ratio))
    scaled = fc.subtract(fc.multiply(_wide(rois), call.attribute("spatial_scale")), shift)
    inside, lows, parts = [], [], []
    for axis, (size, own) in enumerate(zip(sizes, bins, strict=True)):
        start, length = scaled[..., 1 - axis], fc.subtract(scaled[..., 3 - axis], scaled[..., 1 - axis])
        length = length if shift else fc.maximum(length, 1.0)
        at = ((np.arange(own * ratio) + 0.5) / (own * ratio)).astype(scaled.dtype)
        place = fc.add(start[..., None], fc.multiply(length[..., None], at))
        inside.append(fc.logical_and(fc.greater_equal(place, -1.0), fc.less_equal(place, float(size))))
        place = fc.clip(fc.where(inside[-1], place, 0.0), 0.0, float(size - 1))
        low = fc.minimum(fc.floor(place), float(max(size - 2, 0)))
        lows.append(fc.astype(low, "int64"))
        parts.append(fc.subtract(place, low))
    table = fc_axes.reshape(fc_axes.permute_dims(x, (0, 2, 3, 1)), (count * sizes[0] * sizes[1], channels))
    first = fc.multiply(fc.astype(which, "int64")[..., None, None], sizes[0] * sizes[1])
    sides = []
    for up in range(2):
        for left in range(2):
            row = fc.minimum(fc.add(lows[0], up), sizes[0] - 1)[..., :, None]
            column = fc.minimum(fc.add(lows[1], left), sizes[1] - 1)[..., None, :]
            weight = fc.multiply(_share(parts[0], up)[..., :, None], _share(parts[1], left)[..., None, :])
            known = fc.logical_and(inside[0][..., :, None], inside[1][..., None, :])
            weight = fc.where(known, weight, 0.0)[..., None]
            seen = fc_axes.take(table, fc.add(fc.add(fc.multiply(row, sizes[1]), column), first), axis=0)
            sides.append(fc.where(fc.equal(weight, 0.0), 0.0, fc.multiply(_wide(seen), weight)))
    # The largest of weighted numbers, as the standard's own answers have it.
    combine = fc.add if mode == "avg" else fc.maximum
    made = combine(combine(sides[0], sides[1]), combine(sides[2], sides[3]))
    made = fc_axes.reshape(made, (_length(made), bins[0], ratio, bins[1], ratio, channels))
    made = (fc.mean if mode == "avg" else fc.max)(made, (2, 4))
    made = fc_axes.permute_dims(made, (0, 3, 1, 2))
    return layout.value(made if made.dtype == x.dtype else fc.astype(made, x.dtype))


def _regions(call: NodeCall) -> tuple[list[Any], StreamPlace]:
    """Return the regions (R, 4) and which record each is of (R,), both streams or both resident."""
    rois, which = call[1], call[2]
    if rois.ndim != 2 or rois.size(1) != 4 or which.ndim != 1:
        raise Refusal("invalid", f"regions {rois.shape} of records {which.shape}", "correct the model")
    (rois, which), layout = same_streams([rois, which])
    return [rois.batch_first("read regions of"), which.batch_first("read regions of")], layout


def _share(part: Any, upper: int) -> Any:
    return part if upper else fc.subtract(1.0, part)


_WINDOWS = {"dilations": None, "kernel_shape": None, "pads": None, "strides": None, "auto_pad": "NOTSET"}
_BINS = {"mode": "avg", "output_height": 1, "output_width": 1, "sampling_ratio": 0, "spatial_scale": 1.0}

OPERATORS: tuple[Operator, ...] = (
    Operator("GridSample", _grid_sample, 16, 20,
             attributes={"align_corners": 0, "mode": "bilinear", "padding_mode": "zeros"}),
    Operator("GridSample", _grid_sample, 20,
             attributes={"align_corners": 0, "mode": "linear", "padding_mode": "zeros"}),
    Operator("AffineGrid", _affine_grid, 20, attributes={"align_corners": 0}),
    Operator("DeformConv", _deform_conv, 19, attributes={**_WINDOWS, "group": 1, "offset_group": 1}),
    Operator("RoiAlign", _roi_align, 10, 16, attributes=_BINS),
    Operator("RoiAlign", _roi_align, 16, attributes={**_BINS, "coordinate_transformation_mode": "half_pixel"}),
)  # fmt: skip
