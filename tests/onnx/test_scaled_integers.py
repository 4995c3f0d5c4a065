"""Dequantised values remember their integers: products of them are sums of integers, and moved ones stay integers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view

import flowcompute as fc
import flowcompute.onnx
from flowcompute.onnx.scaled_integers import MOST_TERMS
from tests.onnx.models import model, node, port

rng = np.random.default_rng(11)
STEPS_OFF = 1e-3
"""Share of outputs that may be off by a step: a sum that is scaled may stand just beside a half."""


def walked(element: Any) -> Iterator[Any]:
    """Each element that one is made of."""
    seen, todo = set(), [element]
    while todo:
        one = todo.pop()
        if id(one) not in seen:
            seen.add(id(one))
            todo += getattr(one, "inputs", ())
            yield one


def products(element: Any) -> list[str]:
    """The dtypes of all products of matrices that an element needs."""
    return [one.dtype.name for one in walked(element) if getattr(one, "op", None) is not None and "mul" in one.op.name
            and one.op.name != "multiply"]  # fmt: skip


def whole(dtype: str, *shape: int) -> np.ndarray:
    info = np.iinfo(dtype)
    return rng.integers(info.min, info.max + 1, shape).astype(dtype)


def scale(*shape: int) -> np.ndarray:
    return np.exp(rng.uniform(-6, -2, shape)).astype("f4")


def quantised(real: np.ndarray, by: Any, zero: Any) -> np.ndarray:
    """Integers of exact numbers, which are float64 here."""
    info = np.iinfo(zero.dtype)
    return np.clip(np.rint(real / np.float64(by)) + int(zero), info.min, info.max).astype(zero.dtype)


def close(got: np.ndarray, wanted: np.ndarray) -> None:
    off = np.abs(got.astype(int) - wanted.astype(int))
    assert off.max(initial=0) <= 1, off.max()
    assert (off != 0).mean() <= STEPS_OFF, (off != 0).mean()


def quantise_dequantise(name: str, made: str) -> list[Any]:
    return [node("DequantizeLinear", f"{name} {name}s {name}z", made)]


@pytest.mark.parametrize("device", ["numpy", "cpu"])
@pytest.mark.parametrize(("x", "w", "per_channel"), [("u1", "i1", True), ("i1", "i1", False), ("u1", "u1", True)])
def test_a_convolution_of_dequantised_values_is_one_of_integers(x: str, w: str, per_channel: bool, device: str) -> None:
    given, weight, bias = whole(x, 40, 3, 9, 8), whole(w, 6, 3, 3, 3), rng.standard_normal(6).astype("f4")
    many = (6,) if per_channel else ()
    xs, xz, ws = scale(), whole(x), scale(*many)
    wz = np.zeros(many, w) if w == "i1" else np.full(many, 131, w)
    values = {"xs": xs, "xz": xz, "w": weight, "ws": ws, "wz": wz, "b": bias}
    left = np.pad(given.astype("i8") - int(xz), ((0, 0), (0, 0), (1, 1), (1, 1)))
    sums = np.einsum("nchwkl,ockl->nohw", sliding_window_view(left, (3, 3), (2, 3)),
                     weight.astype("i8") - int(wz.reshape(-1)[0]))  # fmt: skip
    real = sums * (np.float64(xs) * ws.astype("f8")).reshape(-1, 1, 1) + bias.astype("f8")[:, None, None]
    values |= {"ys": np.float32(real.std() / 40), "yz": whole(x)}
    nodes = [*quantise_dequantise("x", "f"), node("DequantizeLinear", "w ws wz", "g", axis=0),
             node("Conv", "f g b", "c", pads=[1, 1, 1, 1]), node("Relu", "c", "r"),
             node("QuantizeLinear", "r ys yz", "y")]  # fmt: skip
    kind = {"u1": 2, "i1": 3}[x]
    made = fc.onnx.load(model(nodes, [port("x", ("N", 3, 9, 8), kind)], values=values))(fc.source(given))
    assert products(made) == ["int32"]
    close(made.resolve(device=device, progress=False), quantised(np.maximum(real, 0), values["ys"], values["yz"]))


@pytest.mark.parametrize("device", ["numpy", "cpu"])
@pytest.mark.parametrize("op", ["MatMul", "Gemm", "turned", "two streams"])
def test_a_product_of_dequantised_values_is_one_of_integers(op: str, device: str) -> None:
    a, b = whole("u1", 300, 5, 24), whole("i1", 24, 16)
    xs, xz, ws, wz = scale(), np.uint8(7), scale(16), np.zeros(16, "i1")
    values = {"xs": xs, "xz": xz, "w": b, "ws": ws, "wz": wz, "yz": np.uint8(120)}
    inputs = [port("x", ("N", 5, 24), 2)]
    given = {"x": fc.source(a)}
    nodes = quantise_dequantise("x", "f")
    left, right = a.astype("i8") - 7, b.astype("i8")
    if op == "Gemm":
        inputs, given, left = [port("x", ("N", 24), 2)], {"x": fc.source(a[:, 0])}, left[:, 0]
        values |= {"w": b.T.copy(), "c": rng.standard_normal(16).astype("f4")}
        nodes += [node("DequantizeLinear", "w ws wz", "g", axis=0), node("Gemm", "f g c", "m", transB=1, alpha=0.5)]
    elif op == "turned":
        values |= {"w": b.T.copy()}
        nodes += [node("DequantizeLinear", "w ws wz", "t", axis=0), node("Transpose", "t", "g"),
                  node("MatMul", "f g", "m")]  # fmt: skip
    elif op == "two streams":
        other = whole("i1", 300, 24, 4)
        inputs.append(port("w", ("N", 24, 4), 3))
        given["w"], right = fc.source(other), other.astype("i8")
        del values["w"]
        values |= {"ws": scale(), "wz": np.int8(0)}
        nodes += [*quantise_dequantise("w", "g"), node("MatMul", "f g", "m")]
    else:
        nodes += [node("DequantizeLinear", "w ws wz", "g", axis=1), node("MatMul", "f g", "m")]
    real = (left @ right) * (np.float64(xs) * values["ws"].astype("f8"))
    if op == "Gemm":
        real = real * 0.5 + values["c"].astype("f8")
    values["ys"] = np.float32(real.std() / 40)
    made = fc.onnx.load(model([*nodes, node("QuantizeLinear", "m ys yz", "y")], inputs, values=values))(**given)
    assert products(made) == ["int32"]
    close(made.resolve(device=device, progress=False), quantised(real, values["ys"], values["yz"]))


def test_halves_are_rounded_to_even_where_scales_are_powers_of_two() -> None:
    a, b = whole("i1", 500, 16), whole("i1", 16, 8)
    values = {"xs": np.float32(2**-4), "xz": np.int8(0), "w": b, "ws": np.float32(2**-3), "wz": np.int8(0),
              "ys": np.float32(4), "yz": np.int8(-3)}  # fmt: skip
    nodes = [*quantise_dequantise("x", "f"), *quantise_dequantise("w", "g"), node("MatMul", "f g", "m"),
             node("QuantizeLinear", "m ys yz", "y")]  # fmt: skip
    made = fc.onnx.load(model(nodes, [port("x", ("N", 16), 3)], values=values))(fc.source(a))
    wanted = quantised((a.astype("i8") @ b.astype("i8")) * 2.0**-7, 4, np.int8(-3))
    np.testing.assert_array_equal(made.resolve(device="numpy", progress=False), wanted)


MOVES = [
    ([node("MaxPool", "f", "m", kernel_shape=[2, 2], strides=[2, 2])],
     lambda q: q.reshape(-1, 4, 3, 2, 2, 2).max((3, 5))),
    ([node("Flatten", "f", "m")], lambda q: q.reshape(len(q), -1)),
    ([node("Transpose", "f", "m", perm=[0, 2, 3, 1])], lambda q: q.transpose(0, 2, 3, 1)),
    ([node("Reshape", "f shape", "m")], lambda q: q.reshape(-1, 12, 8)),
    ([node("Slice", "f starts ends axes", "m")], lambda q: q[:, 1:3]),
    ([node("Concat", "f f", "m", axis=1)], lambda q: np.concatenate([q, q], 1)),
    ([node("Gather", "f axes", "m", axis=2)], lambda q: q[:, :, [1]]),
    ([node("GlobalMaxPool", "f", "h"), node("Identity", "h", "m")], lambda q: q.max((2, 3), keepdims=True)),
]  # fmt: skip


@pytest.mark.parametrize(("nodes", "moved"), MOVES, ids=lambda one: one[0].op_type if isinstance(one, list) else "")
@pytest.mark.parametrize("dtype", ["u1", "i1"])
def test_numbers_that_are_moved_stay_integers(nodes: list[Any], moved: Any, dtype: str) -> None:
    q = whole(dtype, 7, 4, 6, 4)
    values = {"s": scale(), "z": whole(dtype), "shape": np.array([0, 12, 8]), "starts": np.array([1]),
              "ends": np.array([3]), "axes": np.array([1])}  # fmt: skip
    made = model(
        [node("DequantizeLinear", "x s z", "f"), *nodes, node("QuantizeLinear", "m s z", "y")],
        [port("x", ("N", 4, 6, 4), {"u1": 2, "i1": 3}[dtype])],
        values=values,
    )
    element = fc.onnx.load(made)(fc.source(q))
    assert not any(one.dtype.kind == "f" for one in walked(element))
    np.testing.assert_array_equal(element.resolve(device="numpy", progress=False), moved(q), strict=True)


def test_another_scale_or_dtype_is_quantised_anew() -> None:
    q = whole("u1", 9, 4)
    values = {"s": np.float32(0.5), "z": np.uint8(3), "t": np.float32(0.25), "i": np.int8(3)}
    nodes = [node("DequantizeLinear", "x s z", "f"), node("QuantizeLinear", "f t z", "y"),
             node("QuantizeLinear", "f s i", "w")]  # fmt: skip
    made = fc.onnx.load(model(nodes, [port("x", ("N", 4), 2)], ["y", "w"], values=values))(q)
    y, w = (one.resolve(device="numpy", progress=False) for one in made)
    np.testing.assert_array_equal(y, np.clip((q.astype(int) - 3) * 2 + 3, 0, 255).astype("u1"), strict=True)
    np.testing.assert_array_equal(w, np.clip(q.astype(int), -128, 127).astype("i1"), strict=True)


@pytest.mark.parametrize("how", ["subnormal", "huge", "nan", "negative", "given", "long", "float weights", "blocks"])
def test_products_stay_those_of_floats_where_integers_do_not_stand_for_them(how: str) -> None:
    depth = MOST_TERMS + 1 if how == "long" else 8
    scales = {"subnormal": 1e-40, "huge": 1e38, "nan": np.nan, "negative": -1.0}
    values = {"xs": np.float32(scales.get(how, 0.5)), "xz": np.uint8(0), "w": whole("i1", depth, 2),
              "ws": np.float32(0.5), "wz": np.int8(0)}  # fmt: skip
    inputs, given = [port("x", ("N", depth), 2)], {"x": whole("u1", 3, depth)}
    nodes = quantise_dequantise("x", "f")
    if how == "given":
        inputs.append(port("xs", []))
        given["xs"] = values.pop("xs")
    if how == "float weights":
        values["g"] = rng.standard_normal((depth, 2)).astype("f4")
    elif how == "blocks":
        values |= {"ws": np.ones((4, 2), "f4"), "wz": np.zeros((4, 2), "i1")}
        nodes.append(node("DequantizeLinear", "w ws wz", "g", axis=0, block_size=2))
    else:
        nodes += quantise_dequantise("w", "g")
    made = fc.onnx.load(model([*nodes, node("MatMul", "f g", "y")], inputs, opset=21, values=values))(**given)
    assert products(made) == ["float32"]
