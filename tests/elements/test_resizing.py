"""Resizing by every convention: the answers of ONNX's reference, and of its properties."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx.reference import ReferenceEvaluator

import flowcompute as fc
from flowcompute.errors import SpecError
from tests.gpu.shapes import resolve_on_gpu

COORDINATES = (
    "half_pixel",
    "half_pixel_symmetric",
    "pytorch_half_pixel",
    "align_corners",
    "asymmetric",
    "tf_crop_and_resize",
)
NEAREST = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")


def resized(array: np.ndarray, sizes: Any, scales: Any, roi: Any, **attributes: Any) -> np.ndarray:
    """What ONNX's reference gives."""
    names = ["x", "roi" if roi is not None else "", "scales" if scales is not None else ""]
    node = onnx.helper.make_node("Resize", [*names, "sizes"] if sizes is not None else names, ["y"], **attributes)
    inputs = {"x": array, "roi": roi, "scales": scales, "sizes": sizes}
    values = [
        onnx.helper.make_tensor_value_info(name, onnx.helper.np_dtype_to_tensor_dtype(np.asarray(one).dtype), None)
        for name, one in inputs.items()
        if one is not None
    ]
    made = onnx.helper.make_tensor_value_info("y", onnx.helper.np_dtype_to_tensor_dtype(array.dtype), None)
    graph = onnx.helper.make_graph([node], "g", values, [made])
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 19)])
    (got,) = ReferenceEvaluator(model).run(None, {key: one for key, one in inputs.items() if one is not None})
    return got


@settings(max_examples=20)
@given(data=st.data())
def test_every_convention_is_onnxs(data: st.DataObject) -> None:
    shape = (2, data.draw(st.integers(1, 6)), data.draw(st.integers(1, 6)))
    array = np.random.default_rng(data.draw(st.integers(0, 9))).standard_normal(shape).astype("f4")
    method, coordinates = (
        data.draw(st.sampled_from(["nearest", "linear", "cubic"])),
        data.draw(st.sampled_from(COORDINATES)),
    )
    rounding = data.draw(st.sampled_from(NEAREST))
    antialias = method != "nearest" and data.draw(st.booleans())
    excluded = method == "cubic" and data.draw(st.booleans())
    by_size = data.draw(st.booleans())
    if by_size:
        sizes, scales = np.array([2, *(data.draw(st.integers(1, 9)) for _ in range(2))]), None
    else:
        numbers = [data.draw(st.sampled_from([0.5, 0.6, 0.8, 1.0, 1.5, 2.0, 2.6, 3.0])) for _ in range(2)]
        sizes, scales = None, np.array([1, *(max(one, 1 / n) for one, n in zip(numbers, shape[1:], strict=True))], "f4")
    crop = coordinates == "tf_crop_and_resize"
    roi = np.array([0, -0.125, 0.25, 1, 0.75, 1.25], "f4") if crop else None
    wanted = resized(
        array, sizes, scales, roi, mode=method, coordinate_transformation_mode=coordinates, nearest_mode=rounding,
        antialias=int(antialias), exclude_outside=int(excluded), cubic_coeff_a=-0.5, extrapolation_value=7.0,
    )  # fmt: skip
    region = None if roi is None else [(float(roi[at]), float(roi[at + 3])) for at in (1, 2)]
    made = fc.nn.resize(
        fc.source(array),
        None if sizes is None else sizes[1:].tolist(),
        None if scales is None else scales[1:].astype("f8").tolist(),
        method=method,
        coordinates=coordinates,
        nearest=rounding,
        antialias=antialias,
        cubic_coefficient=-0.5,
        exclude_outside=excluded,
        region=region,
        fill=7.0,
    )
    assert made.shape == wanted.shape
    got = made.resolve(device="numpy", strategy=fc.Strategy(batch_bytes=50), progress=False)
    np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=2e-6)


@pytest.mark.slow
def test_images_on_devices() -> None:
    array = np.random.default_rng(1).standard_normal((3, 2, 6, 5)).astype("f4")
    x = fc.source(array)
    made = [
        fc.nn.resize(x * 2, scale=2, method="nearest", coordinates="asymmetric", nearest="floor") + 1,
        fc.nn.resize(x, (12,), axes=3, method="cubic", coordinates="align_corners"),
    ]
    wanted = fc.resolve(*made, device="numpy", progress=False)
    np.testing.assert_array_equal(wanted[0], array.repeat(2, 2).repeat(2, 3) * 2 + 1)
    for values in (fc.resolve(*made, device="cpu", progress=False), resolve_on_gpu(*made)):
        for got, want in zip(values, wanted, strict=True):
            np.testing.assert_array_equal(got, want, strict=True)


def test_dtypes_and_what_changes_nothing() -> None:
    x = fc.source(np.arange(12, dtype="u1").reshape(2, 6))
    assert fc.nn.resize(x, [6]).shape == (2, 6)
    assert fc.nn.resize(x, [3], method="nearest").dtype == np.uint8
    assert fc.nn.resize(x, [3]).dtype == np.float64
    halves = fc.nn.resize(x.astype("float16"), [3], coordinates="align_corners")
    assert halves.dtype == np.float16
    assert halves.resolve(device="numpy", progress=False).tolist() == [[0, 2.5, 5], [6, 8.5, 11]]
    for coordinates in COORDINATES:
        nothing = fc.nn.resize(x, [0], coordinates=coordinates, antialias=True)
        assert nothing.resolve(device="numpy", progress=False).shape == (2, 0)
    ends = fc.nn.resize(fc.source(np.array([[1.0, np.inf, 2.0]])), [5], coordinates="align_corners")
    assert ends.resolve(device="numpy", progress=False).tolist() == [[1, np.inf, np.inf, np.inf, 2]]
    corner = np.array([[0.0, 1.0]])
    got = fc.nn.resize(fc.source(corner), [2], coordinates="tf_half_pixel_for_nn", method="nearest", nearest="floor")
    assert got.resolve(device="numpy", progress=False).tolist() == [[0, 1]]


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda x: fc.nn.resize(x), "cannot choose a size"),
        (lambda x: fc.nn.resize(x, 2, 2.0), "cannot choose a size"),
        (lambda x: fc.nn.resize(x, (2, 2), axes=(0, 1)), "cannot resize these axes"),
        (lambda x: fc.nn.resize(x, (2, 2), axes=2), "cannot resize these axes"),
        (lambda x: fc.nn.resize(x, scale=-1.0), "cannot resize an axis so"),
        (lambda x: fc.nn.resize(x, scale=1e300), "cannot resize an axis so"),
        (lambda x: fc.nn.resize(x[:, :, :0], 3), "cannot resize an axis so"),
        (lambda x: fc.nn.resize(x, 3, method="bicubic"), "cannot take method="),
        (lambda x: fc.nn.resize(x, 3, region=[(0, 1, 2)]), "cannot take region="),
    ],
)
def test_refusals(call: Any, said: str) -> None:
    with pytest.raises(SpecError, match=said):
        call(fc.source(np.ones((2, 3, 4))))
