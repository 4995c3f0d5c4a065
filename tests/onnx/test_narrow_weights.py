"""Weights of 2 and 4 bits: unpacked where they are dequantised, and refused everywhere else."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import flowcompute as fc
from tests.onnx.models import FLOAT, model, node, port
from tests.support.slow import slow_but

KINDS = {
    "int4": (TensorProto.INT4, 4, -8, 7),
    "uint4": (TensorProto.UINT4, 4, 0, 15),
    "int2": (TensorProto.INT2, 2, -2, 1),
    "uint2": (TensorProto.UINT2, 2, 0, 3),
}


def packed(name: str, numbers: np.ndarray, kind: str, raw: bool = True) -> onnx.TensorProto:
    """A tensor as the standard stores it: the first number in the lowest bits."""
    number, bits, low, high = KINDS[kind]
    assert numbers.size == 0 or low <= numbers.min() <= numbers.max() <= high
    per = 8 // bits
    flat = np.zeros(-(-numbers.size // per) * per, np.uint8)
    flat[: numbers.size] = numbers.reshape(-1).astype(np.int8).view(np.uint8) & ((1 << bits) - 1)
    octets = np.bitwise_or.reduce(flat.reshape(-1, per) << (np.arange(per, dtype=np.uint8) * bits), axis=1)
    made = TensorProto(name=name, data_type=number, dims=numbers.shape)
    if raw:
        made.raw_data = octets.astype(np.uint8).tobytes()
    else:
        made.int32_data.extend(octets.tolist())
    return made


def drawn(kind: str, shape: tuple[int, ...]) -> np.ndarray:
    _, _, low, high = KINDS[kind]
    return np.random.default_rng(len(shape)).integers(low, high + 1, shape).astype(np.int32)


def dequantised(numbers: np.ndarray, kind: str, raw: bool = True, zero: np.ndarray | None = None, **given: Any) -> Any:
    """A model that multiplies records with weights that it dequantises, by blocks of 3 where `block_size` says so."""
    scale = given.pop("scale")
    inputs = "w scale" if zero is None else "w scale zero"
    nodes = [node("DequantizeLinear", inputs, "f", **given), node("MatMul", "x f", "y")]
    made = model(nodes, [port("x", ["N", numbers.shape[0]])], opset=25, values={"scale": scale})
    made.graph.initializer.append(packed("w", numbers, kind, raw))
    if zero is not None:
        made.graph.initializer.append(packed("zero", zero, kind, raw))
    return made


@pytest.mark.parametrize("raw", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_weights_are_those_that_onnx_reads(kind: str, raw: bool) -> None:
    numbers = drawn(kind, (6, 7))
    read = numpy_helper.to_array(packed("w", numbers, kind, raw)).astype(np.int32)
    np.testing.assert_array_equal(read, numbers)
    made = dequantised(numbers, kind, raw, scale=np.float32(0.25))
    got = fc.onnx.load(made)(np.eye(6, dtype="f4")).resolve(device="numpy", progress=False)
    np.testing.assert_array_equal(got, numbers.astype("f4") / 4, strict=True)


@pytest.mark.parametrize("kind", ["int4", "uint4"])
@pytest.mark.parametrize("device", slow_but(["numpy"], ["numpy", "cpu"]))
def test_blocks_with_zero_points_of_a_stream(kind: str, device: str) -> None:
    rng = np.random.default_rng(8)
    numbers, zero = drawn(kind, (7, 5)), drawn(kind, (3, 5))
    scale, x = rng.random((3, 5)).astype("f4"), rng.standard_normal((9, 7)).astype("f4")
    loaded = fc.onnx.load(dequantised(numbers, kind, zero=zero, scale=scale, axis=0, block_size=3))
    got = loaded(fc.source(x)).resolve(device=device, progress=False)
    wide = (numbers - zero.repeat(3, 0)[:7]).astype("f4") * scale.repeat(3, 0)[:7]
    np.testing.assert_allclose(got, x @ wide, rtol=1e-5, atol=1e-5)
    assert loaded.weights_bytes == 18 + 8 + 60


def test_no_numbers_at_all() -> None:
    made = dequantised(np.zeros((0, 3), np.int32), "int4", scale=np.float32(1))
    got = fc.onnx.load(made)(np.zeros((2, 0), "f4")).resolve(device="numpy", progress=False)
    np.testing.assert_array_equal(got, np.zeros((2, 3), "f4"), strict=True)


def test_large_weights_stay_in_their_file(tmp_path: Path) -> None:
    numbers = drawn("int4", (128, 200))
    made = dequantised(numbers, "int4", scale=np.float32(0.5))
    x = np.eye(128, dtype="f4")
    onnx.save(made, tmp_path / "own.onnx")
    onnx.save(made, tmp_path / "other.onnx", save_as_external_data=True, size_threshold=0, location="w.bin")
    assert os.path.getsize(tmp_path / "w.bin") >= 128 * 100
    for name in ("own", "other"):
        got = fc.onnx.load(tmp_path / f"{name}.onnx")(fc.source(x)).resolve(device="numpy", progress=False)
        np.testing.assert_array_equal(got, numbers.astype("f4") / 2)


@pytest.mark.parametrize(
    ("nodes", "last"),
    [
        ([node("Cast", "w", "y", to=FLOAT)], "Cast"),
        ([node("Identity", "w", "y")], "Identity"),
        ([node("Transpose", "w", "t"), node("DequantizeLinear", "t scale", "y")], "Transpose"),
        ([node("QuantizeLinear", "x scale zero", "y")], "QuantizeLinear"),
    ],
)
def test_other_operators_refuse_them(nodes: list[Any], last: str) -> None:
    made = model(nodes, [port("x", [2, 3])], opset=25, values={"scale": np.float32(1)})
    made.graph.initializer.append(packed("w", drawn("int4", (2, 3)), "int4"))
    made.graph.initializer.append(packed("zero", np.zeros((), np.int32), "int4"))
    with pytest.raises(fc.onnx.UnsupportedError, match=f"{last}.*numbers of 4 bits") as error:
        fc.onnx.load(made)(np.ones((2, 3), "f4"))
    assert [one.reason for one in error.value.problems] == ["dtype"]


def test_an_attribute_of_them_is_refused() -> None:
    held = helper.make_node("Constant", [], ["w"], value=packed("w", drawn("uint4", (3,)), "uint4"))
    made = model([held, node("DequantizeLinear", "w scale", "y")], [], opset=25, values={"scale": np.float32(1)})
    with pytest.raises(fc.onnx.UnsupportedError, match="less than 8 bits in an attribute"):
        fc.onnx.load(made)


@pytest.mark.parametrize("size", [0, 2, 4])
def test_bytes_that_do_not_fit_the_shape(size: int) -> None:
    made = dequantised(drawn("int4", (5, 1)), "int4", scale=np.float32(1))
    made.graph.initializer[-1].raw_data = bytes(size)
    with pytest.raises(fc.SourceError, match="not the bytes of its shape"):
        fc.onnx.load(made)


def test_a_session_dequantises_them() -> None:
    """Each step adds rows that are products with weights of 4 bits."""
    numbers = drawn("int4", (3, 4))
    nodes = [node("DequantizeLinear", "w scale", "f"), node("MatMul", "x f", "rows")]
    nodes += [node("Concat", "past rows", "present", axis=1), node("ReduceSum", "present one", "y")]
    ports = [port("x", ["B", "T", 3]), port("past", ["B", "P", 4])]
    values = {"scale": np.float32(0.5), "one": np.array([1])}
    made = model(nodes, ports, ("y", "present"), opset=25, values=values)
    made.graph.initializer.append(packed("w", numbers, "int4"))
    x = np.random.default_rng(3).standard_normal((1, 3, 3)).astype("f4")
    with fc.onnx.load(made).session(state={"past": "present"}, batch=1, capacity=8, device="numpy") as steps:
        got = [steps.step(x=x[:, :2])["y"], steps.step(x=x[:, 2:])["y"]]
    rows = x @ (numbers.astype("f4") / 2)
    np.testing.assert_allclose(got[0], rows[:, :2].sum(axis=1, keepdims=True), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(got[1], rows.sum(axis=1, keepdims=True), rtol=1e-5, atol=1e-5)
