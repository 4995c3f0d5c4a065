"""Items of other sizes: `Resize` and `Upsample`, and convolutions that spread numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from flowcompute.elements import nn
from flowcompute.onnx.logical_value import APART, Value
from flowcompute.onnx.operators.layers.window_geometry import AUTO_PAD, WINDOW_ATTRIBUTES
from flowcompute.onnx.operators.record import REQUIRED, NodeCall, Operator
from flowcompute.onnx.problems import Refusal
from flowcompute.onnx.sizes import Records

COORDINATES = (
    "half_pixel",
    "half_pixel_symmetric",
    "pytorch_half_pixel",
    "align_corners",
    "asymmetric",
    "tf_half_pixel_for_nn",
    "tf_crop_and_resize",
)
POLICIES = ("stretch", "not_larger", "not_smaller")


def _resize(call: NodeCall) -> Value:
    value, roi, scales, sizes = call[0], call.get(1), call.get(2), call.get(3)
    given = call.attribute("axes")
    axes = list(range(value.ndim)) if given is None else list(value.normals(given))
    factors = None if scales is None or scales.shape == (0,) else [float(one) for one in scales.wholes("scales")]
    counts = None if factors is not None or sizes is None else list(sizes.wholes("sizes"))
    policy = call.choice("keep_aspect_ratio_policy", POLICIES)
    if counts is not None and policy != "stretch":
        factors = [size / value.size(axis) for size, axis in zip(counts, axes, strict=True)]
        factor = (min if policy == "not_larger" else max)(factors)
        factors, counts = None, [math.floor(factor * value.size(axis) + 0.5) for axis in axes]
    coordinates = call.choice("coordinate_transformation_mode", COORDINATES)
    region = None
    if coordinates == "tf_crop_and_resize":
        if roi is None:
            raise Refusal("invalid", "no region to crop", "correct the model")
        ends = [float(one) for one in roi.wholes("roi")]
        region = list(zip(ends[: len(axes)], ends[len(axes) :], strict=True))
    return _resized(
        value,
        axes,
        counts,
        factors,
        region,
        method=call.choice("mode", ("nearest", "linear", "cubic")),
        coordinates=coordinates,
        nearest=call.choice("nearest_mode", ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")),
        antialias=bool(call.attribute("antialias")),
        cubic_coefficient=call.attribute("cubic_coeff_a"),
        exclude_outside=bool(call.attribute("exclude_outside")),
        fill=call.attribute("extrapolation_value"),
    )


def _upsample(call: NodeCall) -> Value:
    given = call.attribute("scales") if call.opset < 9 else call[1].wholes("scales")
    factors = [float(one) for one in given]
    value = call[0]
    method = call.choice("mode", ("nearest", "linear", "bilinear"))
    return _resized(
        value, list(range(value.ndim)), None, factors, None,
        method="nearest" if method == "nearest" else "linear", coordinates="asymmetric", nearest="floor",
    )  # fmt: skip


def _resized(
    value: Value,
    axes: Sequence[int],
    counts: Sequence[Any] | None,
    factors: Sequence[float] | None,
    region: Sequence[tuple[float, float]] | None,
    **how: Any,
) -> Value:
    """Resize along those axes that change."""
    wanted = counts if factors is None else factors
    if wanted is None or len(wanted) != len(axes):
        raise Refusal("invalid", f"sizes or scales for {len(axes)} axes", "correct the model")
    changed = []
    for place, (axis, one) in enumerate(zip(axes, wanted, strict=True)):
        crops = region is not None and region[place] != (0.0, 1.0)
        same = one == 1 if factors is not None else _is_same(one, value.shape[axis])
        if same and not crops:
            continue
        if axis == value.axis or isinstance(one, Records):
            raise Refusal("batch axis", "records are resized", APART)
        changed.append(place)
    if not changed:
        return value
    chosen: dict[str, Any] = {"axes": tuple(value.physical(axes[place]) for place in changed)}
    chosen["scale" if factors is not None else "size"] = [wanted[place] for place in changed]
    if region is not None:
        chosen["region"] = [region[place] for place in changed]
    return value.like(nn.resize(value.element, **chosen, **how))


def _is_same(a: Any, b: Any) -> bool:
    return isinstance(a, Records) == isinstance(b, Records) and bool(a == b)


# -- spreading ----------------------------------------------------------------------------------------


def _conv_transpose(call: NodeCall) -> Value:
    value, bias = call[0], call.get(2)
    weight = call[1].resident("weights")
    x = value.batch_first("convolve")
    kernel = weight.spec.shape[2:]
    dims = len(kernel)
    functions = {1: nn.conv_transpose1d, 2: nn.conv_transpose2d, 3: nn.conv_transpose3d}
    if dims not in functions or value.ndim != dims + 2:
        raise Refusal("missing", f"a convolution along {dims} axes", "convolve along one to three axes")
    strides = list(call.attribute("strides") or (1,) * dims)
    spreads = list(call.attribute("dilations") or (1,) * dims)
    more = list(call.attribute("output_padding") or (0,) * dims)
    pads = list(call.attribute("pads") or (0,) * (2 * dims))
    how, shape = call.choice("auto_pad", AUTO_PAD), call.attribute("output_shape")
    edges = []
    for at in range(dims):
        size = value.size(at + 2)
        whole = strides[at] * (size - 1) + more[at] + (kernel[at] - 1) * spreads[at] + 1
        before, after = pads[at], pads[at + dims]
        if shape is not None or how.startswith("SAME"):
            total = whole - (size * strides[at] if shape is None else shape[len(shape) - dims + at])
            more[at] += max(0, -total)
            total = max(0, total)
            before = total // 2 if how == "SAME_UPPER" else total - total // 2
            after = total - before
        elif how == "VALID":
            before = after = 0
        edges.append((before, after))
    group = call.attribute("group")
    made = functions[dims](
        x, weight, None if bias is None else bias.resident("bias"), strides, edges, spreads, group, more
    )
    return value.like(made)


_RESIZE = {
    "coordinate_transformation_mode": "half_pixel",
    "cubic_coeff_a": -0.75,
    "exclude_outside": 0,
    "extrapolation_value": 0.0,
    "mode": "nearest",
    "nearest_mode": "round_prefer_floor",
    "antialias": 0,
    "axes": None,
    "keep_aspect_ratio_policy": "stretch",
}

OPERATORS: tuple[Operator, ...] = (
    Operator("Upsample", _upsample, 7, 9, attributes={"mode": "nearest", "scales": REQUIRED}),
    Operator("Upsample", _upsample, 9, attributes={"mode": "nearest"}),
    Operator("Resize", _upsample, 10, 11, attributes={"mode": "nearest"}),
    Operator("Resize", _resize, 11, attributes=_RESIZE),
    Operator(
        "ConvTranspose",
        _conv_transpose,
        attributes={**WINDOW_ATTRIBUTES, "group": 1, "output_padding": None, "output_shape": None},
    ),
)
