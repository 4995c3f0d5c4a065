"""Conventions in which runtimes differ: what the standard's text says decides, and its reference implementation."""

from __future__ import annotations

import itertools
import warnings
from typing import Any

import numpy as np
import pytest
from onnx import helper
from onnx.reference import ReferenceEvaluator

import flowcompute as fc
from tests.onnx.models import model, node, one, port

rng = np.random.default_rng(31)


def spread(x: np.ndarray, weight: np.ndarray, stride: int, dilation: int, more: int) -> np.ndarray:
    """A transposed convolution before anything is left out."""
    size = weight.shape[2]
    reach = (size - 1) * dilation + 1
    whole = [stride * (count - 1) + more + reach for count in x.shape[2:]]
    made = np.zeros((len(x), weight.shape[1], *whole))
    for i, j in np.ndindex(*x.shape[2:]):
        part = np.einsum("nc,cokl->nokl", x[:, :, i, j], weight)
        rows, columns = (slice(at * stride, at * stride + reach, dilation) for at in (i, j))
        made[:, :, rows, columns] += part
    return made


@pytest.mark.parametrize("how", ["NOTSET", "SAME_UPPER", "SAME_LOWER"])
def test_pads_of_a_transposed_convolution_follow_from_its_shape(how: str) -> None:
    """An odd number of them lies behind for SAME_UPPER, and before otherwise; also where a shape is given."""
    x = rng.standard_normal((1, 2, 5, 4)).astype("f4")
    for stride, size, dilation, more in itertools.product((1, 2, 3), (1, 2, 4), (1, 2), (0, 1)):
        if more >= stride:
            continue
        weight = rng.standard_normal((2, 3, size, size)).astype("f4")
        full = spread(x, weight, stride, dilation, more)
        given: dict[str, Any] = {"strides": [stride] * 2, "dilations": [dilation] * 2, "output_padding": [more] * 2}
        wanted = [5 * stride, 4 * stride]
        if how == "NOTSET":
            wanted = [max(1, count - 1) for count in full.shape[2:]]
            given["output_shape"] = wanted
        totals = [whole - count for whole, count in zip(full.shape[2:], wanted, strict=True)]
        full = np.pad(full, ((0, 0), (0, 0), *((0, max(0, -total)) for total in totals)))
        starts = [max(0, total) // 2 if how == "SAME_UPPER" else -(-max(0, total) // 2) for total in totals]
        rows, columns = (slice(start, start + count) for start, count in zip(starts, wanted, strict=True))
        got = one("ConvTranspose", [x, weight], opset=22, auto_pad=how, **given)
        np.testing.assert_allclose(got, full[:, :, rows, columns], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_sizes_between_two_counts(mode: str) -> None:
    """Scales that are no ratios of sizes, in each convention, as the reference implementation has them."""
    conventions = ("half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric")
    kinds = (0, 1) if mode != "nearest" else (0,)
    for convention, antialias, scales in itertools.product(conventions, kinds, ((0.37, 0.81), (1.3, 2.6))):
        x = rng.standard_normal((1, 1, 7, 5)).astype("f4")
        how: dict[str, Any] = {"coordinate_transformation_mode": convention, "antialias": antialias, "mode": mode}
        given = {"s": np.array([1, 1, *scales], "f4")}
        made = model([node("Resize", "x _ s", "y", **how)], [port("x", x.shape)], opset=19, values=given)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            (wanted,) = ReferenceEvaluator(made).run(None, {"x": x})
        got = fc.onnx.load(made)(x).resolve(device="numpy", progress=False)
        assert got.shape == wanted.shape, how
        np.testing.assert_allclose(got, wanted, rtol=1e-3, atol=1e-4, err_msg=str(how))


def test_numbers_are_seen_by_their_bits() -> None:
    x = np.array([1, -2, np.inf], "f4")
    np.testing.assert_array_equal(one("BitCast", [x], opset=26, to=6), x.view("i4"), strict=True)
    with pytest.raises(fc.onnx.UnsupportedError, match="cannot see these numbers"):
        one("BitCast", [x], opset=26, to=11)


def test_records_that_are_normalised_by_their_own_mean() -> None:
    given = np.random.default_rng(8).normal(2, 3, (6, 3, 4)).astype("f4")
    values = {name: np.array(one, "f4") for name, one in
              {"s": [1, 2, 3], "b": [0, 1, -1], "mean": [1, 1, 1], "var": [2, 2, 2]}.items()}  # fmt: skip
    nodes = [node("BatchNormalization", "x s b mean var", "y m v", training_mode=1, momentum=0.75, epsilon=0.5)]
    made = fc.onnx.load(model(nodes, [port("x", ("N", 3, 4))], ["y", "m", "v"], opset=15, values=values))
    y, mean, var = (one.resolve(device="numpy", progress=False) for one in made(given))
    own, spread = given.mean((0, 2)), given.var((0, 2))
    lined = [one[:, None] for one in (own, spread, values["s"], values["b"])]
    wanted = (given - lined[0]) / np.sqrt(lined[1] + 0.5) * lined[2] + lined[3]
    np.testing.assert_allclose(y, wanted, rtol=0, atol=1e-5)
    np.testing.assert_allclose(mean, 0.75 + own * 0.25, rtol=1e-5)
    np.testing.assert_allclose(var, 1.5 + spread * 0.25, rtol=1e-5)
    with pytest.raises(fc.onnx.UnsupportedError, match="a mean of all records together"):
        made(fc.source(given))


def test_dropout_in_training_drops_nothing_by_a_ratio_of_zero() -> None:
    given = np.ones((3, 2), "f4")
    values = {"none": np.float32(0), "some": np.float32(0.5), "yes": np.array(True)}
    made = model([node("Dropout", "x none yes", "y mask")], [port("x", (3, 2))], ["y", "mask"], values=values)
    y, mask = (one.resolve(device="numpy", progress=False) for one in fc.onnx.load(made)(given))
    np.testing.assert_array_equal(y, given)
    assert mask.dtype == bool
    assert mask.all()
    for inputs in ("x some yes", "x _ yes"):
        other = fc.onnx.load(model([node("Dropout", inputs, "y")], [port("x", (3, 2))], values=values))
        with pytest.raises(fc.onnx.UnsupportedError, match="training"):
            other(given)


def test_thresholds_and_columns_of_tables() -> None:
    given = np.array([[0.5, np.nan, -2], [3, 1, 0.75]], "f4")
    domains = {"domains": [helper.make_opsetid("ai.onnx.ml", 1)]}
    nodes = [node("Binarizer", "x", "y", domain="ai.onnx.ml", threshold=0.5),
             node("ArrayFeatureExtractor", "x places", "z", domain="ai.onnx.ml")]  # fmt: skip
    made = model(nodes, [port("x", ("N", 3))], ["y", "z"], values={"places": np.array([[2, 0]])}, **domains)
    for x in (given, fc.source(given)):
        y, z = fc.onnx.load(made)(x)
        np.testing.assert_array_equal(y.resolve(device="numpy", progress=False), [[0, 0, 0], [1, 1, 1]])
        np.testing.assert_array_equal(z.resolve(device="numpy", progress=False), given[:, [2, 0]])
