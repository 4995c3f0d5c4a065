"""Convolution over three axes, of integers, and transposed, product by product in plain Python."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import flowcompute as fc
from flowcompute.errors import SpecError
from tests.gpu.shapes import resolve_on_gpu

Pairs = Sequence[tuple[int, int]]


def whole(shape: Sequence[int], dtype: Any = "f4", seed: int = 0) -> np.ndarray:
    """Small whole numbers, whose sums and products are exact in any order."""
    return np.random.default_rng(seed).integers(-4, 5, shape).astype(dtype)


def spread(x: np.ndarray, w: np.ndarray, stride: Any, padding: Pairs, dilation: Any, more: Any) -> np.ndarray:
    """Transposed convolution by its definition: each number of `x` adds to the results that it reaches."""
    sizes, kernel, own = x.shape[2:], w.shape[2:], w.shape[1]
    full = [
        (n - 1) * s + d * (k - 1) + 1 + e for n, s, d, k, e in zip(sizes, stride, dilation, kernel, more, strict=True)
    ]
    made = np.zeros((len(x), own, *full), np.result_type(x, w))
    for place in np.ndindex(*sizes):
        for tap in np.ndindex(*kernel):
            at = tuple(i * s + k * d for i, s, k, d in zip(place, stride, tap, dilation, strict=True))
            with np.errstate(invalid="ignore"):
                made[(..., *at)] += x[(..., *place)] @ w[(..., *tap)]
    return made[(..., *(slice(before, f - after) for f, (before, after) in zip(full, padding, strict=True)))]


@st.composite
def transposed(draw: st.DrawFn) -> tuple[Any, ...]:
    dims = draw(st.integers(1, 3))
    sizes, kernel, stride, dilation = ([draw(st.integers(1, 3)) for _ in range(dims)] for _ in range(4))
    more = [draw(st.integers(0, 2)) for _ in range(dims)]
    rows = zip(sizes, kernel, stride, dilation, more, strict=True)
    full = [(n - 1) * s + d * (k - 1) + 1 + e for n, k, s, d, e in rows]
    padding = [tuple(draw(st.integers(0, (f - 1) // 2)) for _ in range(2)) for f in full]
    return sizes, kernel, tuple(stride), padding, tuple(dilation), tuple(more)


@settings(max_examples=12)
@given(transposed(), st.integers(1, 2), st.booleans())
def test_transposed_convolution(drawn: Any, groups: int, with_bias: bool) -> None:
    sizes, kernel, stride, padding, dilation, more = drawn
    array, weight = whole((3, 2 * groups, *sizes)), whole((2 * groups, 3, *kernel), seed=1)
    array[0, 0, ..., 0] = np.inf
    halves = zip(np.split(array, groups, axis=1), np.split(weight, groups), strict=True)
    wanted = np.concatenate([spread(x, w, stride, padding, dilation, more) for x, w in halves], axis=1)
    bias = whole(wanted.shape[1:2], seed=2) if with_bias else None
    wanted = wanted if bias is None else wanted + bias.reshape(-1, *(1,) * len(sizes))
    function = getattr(fc.nn, f"conv_transpose{len(sizes)}d")
    for x, w in ((fc.source(array), weight), (fc.constant(array), fc.constant(weight) * np.float32(1))):
        made = function(x, w, bias, stride, padding, dilation, groups, more)
        assert made.shape == wanted.shape
        got = made.resolve(device="numpy", strategy=fc.Strategy(batch_bytes=300), progress=False)
        np.testing.assert_array_equal(got, wanted, strict=True)


@pytest.mark.slow
def test_transposed_convolution_on_devices() -> None:
    array, weight = whole((3, 4, 5)), whole((4, 3, 3), seed=1)
    made = fc.nn.relu(fc.nn.conv_transpose1d(fc.source(array), weight, None, 2, [(1, 0)], output_padding=1))
    wanted = np.maximum(spread(array, weight, (2,), [(1, 0)], (1,), (1,)), 0)
    np.testing.assert_array_equal(made.resolve(device="cpu", progress=False), wanted)
    np.testing.assert_array_equal(resolve_on_gpu(made)[0], wanted)


def test_transposed_convolution_as_wide_as_its_stride_is_one_product() -> None:
    array, weight = whole((3, 4, 3, 5)), whole((4, 2, 2, 2), seed=1)
    made = fc.nn.conv_transpose2d(fc.source(array), weight, stride=2)
    assert len(fc.plan(made, device="cpu").kernels) == 1
    wanted = np.einsum("nchw,cokl->nohkwl", array, weight).reshape(3, 2, 6, 10)
    np.testing.assert_array_equal(made.resolve(device="numpy", progress=False), wanted)


@pytest.mark.slow
def test_three_axes() -> None:
    array, weight = whole((3, 4, 5, 6, 7)), whole((6, 2, 2, 3, 3), seed=1)
    made = fc.nn.conv3d(fc.source(array), weight, None, (1, 2, 1), [(1, 0), (0, 2), (1, 1)], (2, 1, 1), groups=2)
    padded = np.pad(array, ((0, 0), (0, 0), (1, 0), (0, 2), (1, 1)))
    seen = np.lib.stride_tricks.sliding_window_view(padded, (3, 3, 3), axis=(2, 3, 4))[:, :, :, ::2, :, ::2]
    halves = [np.einsum("ncxyzijk,ocijk->noxyz", seen[:, g : g + 2], weight[3 * g // 2 :][:3]) for g in (0, 2)]
    wanted = np.concatenate(halves, axis=1)
    for device in ("numpy", "cpu"):
        np.testing.assert_array_equal(made.resolve(device=device, progress=False), wanted, strict=True)
    np.testing.assert_array_equal(resolve_on_gpu(made)[0], wanted, strict=True)


@pytest.mark.parametrize("device", ["numpy", pytest.param("cpu", marks=pytest.mark.slow)])
def test_integers_are_exact_in_a_wider_dtype(device: str) -> None:
    rng = np.random.default_rng(3)
    array, weight = rng.integers(0, 256, (3, 2, 6, 5)).astype("u1"), rng.integers(-128, 128, (4, 2, 3, 3)).astype("i1")
    seen = np.lib.stride_tricks.sliding_window_view(array.astype("i4"), (3, 3), axis=(2, 3))
    wanted = np.einsum("ncyxij,ocij->noyx", seen, weight.astype("i4"))
    made = fc.nn.conv2d(fc.source(array), weight, dtype="int32")
    assert made.dtype == np.int32
    assert len(fc.plan(made, device="cpu").kernels) == 1
    np.testing.assert_array_equal(made.resolve(device=device, progress=False), wanted, strict=True)
    back = fc.nn.conv_transpose2d(fc.source(array), weight[:2, :, :2, :1], dtype="int32")
    wide = spread(array.astype("i4"), weight[:2, :, :2, :1].astype("i4"), (1, 1), ((0, 0),) * 2, (1, 1), (0, 0))
    np.testing.assert_array_equal(back.resolve(device="numpy", progress=False), wide, strict=True)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda x: fc.nn.conv_transpose1d(x, np.ones((3, 1, 2)), padding=4), "cannot leave out so many results"),
        (lambda x: fc.nn.conv_transpose1d(x, np.ones((2, 1, 2))), "cannot convolve with weights of this shape"),
        (lambda x: fc.nn.conv_transpose1d(x, np.ones((3, 1, 2)), np.ones(2)), "cannot add a bias of this shape"),
        (lambda x: fc.nn.conv_transpose1d(x, np.ones((3, 1, 2)), groups=2), "cannot divide the channels into groups"),
        (lambda x: fc.nn.conv_transpose2d(x, np.ones((3, 1, 2, 2))), "cannot convolve this"),
        (lambda x: fc.nn.conv_transpose1d(x, x), "stream of weights"),
        (lambda x: fc.nn.conv_transpose1d(x, np.ones((3, 1, 2)), output_padding=-1), "cannot take output_padding="),
        (lambda x: fc.nn.conv1d(x, np.ones((3, 3, 2)), dtype="int32"), "cannot multiply floats as integers"),
        (lambda x: fc.nn.conv1d(x > 0, np.ones((3, 3, 2)) > 0, dtype="bool"), "cannot multiply bools"),
    ],
)
def test_refusals(call: Any, said: str) -> None:
    with pytest.raises(SpecError, match=said):
        call(fc.source(np.ones((2, 3, 4))))
