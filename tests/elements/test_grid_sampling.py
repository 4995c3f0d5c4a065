"""Sampling at a grid: ONNX's reference for every method and padding, on every backend, streams and resident."""

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


def sampled(x: np.ndarray, grid: np.ndarray, method: str, padding: str, align_corners: bool) -> np.ndarray:
    names = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None) for name in ("x", "grid", "y")]
    node = onnx.helper.make_node(
        "GridSample", ["x", "grid"], ["y"], mode=method, padding_mode=padding, align_corners=int(align_corners)
    )
    graph = onnx.helper.make_graph([node], "g", names[:2], names[2:])
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 20)])
    return ReferenceEvaluator(model).run(None, {"x": x, "grid": grid})[0]


@settings(max_examples=15)
@given(data=st.data())
def test_every_way_is_onnxs(data: st.DataObject) -> None:
    axes = data.draw(st.integers(1, 3))
    sizes = [data.draw(st.integers(2, 4)) for _ in range(axes)]
    rng = np.random.default_rng(data.draw(st.integers(0, 50)))
    x = rng.standard_normal((2, 2, *sizes)).astype("f4")
    grid = rng.uniform(-1.7, 1.7, (2, *([2] * axes), axes)).astype("f4")
    method, padding = (
        data.draw(st.sampled_from(["nearest", "linear", "cubic"])),
        data.draw(st.sampled_from(["zeros", "border", "reflection"])),
    )
    aligned = data.draw(st.booleans())
    wanted = sampled(x, grid, method, padding, aligned)
    ends = [data.draw(st.sampled_from([fc.source, fc.constant])) for _ in range(2)]
    made = fc.nn.grid_sample(ends[0](x), ends[1](grid), method, padding, aligned)
    assert (made.shape, made.dtype) == (wanted.shape, np.float32)
    np.testing.assert_allclose(made.resolve(device="numpy", progress=False), wanted, rtol=2e-4, atol=2e-5)


@pytest.mark.slow
def test_on_devices() -> None:
    rng = np.random.default_rng(3)
    x, grid = rng.standard_normal((3, 2, 5)).astype("f4"), rng.uniform(-1.2, 1.2, (3, 3, 1)).astype("f4")
    made = fc.nn.grid_sample(fc.source(x) * 2, fc.source(grid)) + 1
    wanted = made.resolve(device="numpy", progress=False)
    np.testing.assert_allclose(made.resolve(device="cpu", progress=False), wanted, rtol=1e-5)
    np.testing.assert_allclose(resolve_on_gpu(made)[0], wanted, rtol=1e-5)


def test_places_that_are_none_and_numbers_outside() -> None:
    """Beyond zeros nothing is read, not even an infinity at the end; NaN is beyond."""
    x = fc.source(np.full((1, 1, 3), np.inf))
    grid = np.array([[[np.nan], [np.inf], [-np.inf], [5.0], [0.0]]])
    assert fc.nn.grid_sample(x, grid).resolve(device="numpy", progress=False).tolist() == [[[0, 0, 0, 0, np.inf]]]
    whole = fc.source(np.arange(6, dtype="i4").reshape(1, 1, 6))
    nearest = fc.nn.grid_sample(whole, np.array([[[-1.0], [1.0], [3.0]]]), "nearest", "border", True)
    assert (nearest.dtype, nearest.resolve(device="numpy", progress=False).tolist()) == (np.int32, [[[0, 5, 5]]])


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda x: fc.nn.grid_sample(x, np.zeros((2, 3, 3))), "cannot sample these items"),
        (lambda x: fc.nn.grid_sample(x, np.zeros((2, 3, 2), int)), "cannot sample these items"),
        (lambda x: fc.nn.grid_sample(x[:, 0, 0], np.zeros((2, 3, 2))), "cannot sample these items"),
        (lambda x: fc.nn.grid_sample(x, np.zeros((2, 3, 2)), "bilinear"), "cannot take method="),
        (lambda x: fc.nn.grid_sample(x, np.zeros((2, 3, 2)), padding="wrap"), "cannot take padding="),
        (lambda x: fc.nn.grid_sample(x, np.zeros((3, 3, 2))), "cannot align a resident operand"),
    ],
)
def test_refusals(call: Any, said: str) -> None:
    with pytest.raises(SpecError, match=said):
        call(fc.source(np.ones((2, 2, 3, 4))))
