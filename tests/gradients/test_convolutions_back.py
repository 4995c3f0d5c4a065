"""Convolutions go back as convolutions and as products of windows that are read where they lie."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowcompute as fc

RNG = np.random.default_rng(8)


def close_to_differences(
    dims: int, channels: int, outputs: int, sizes: tuple[int, ...], kernel: tuple[int, ...], device: str, **options: Any
) -> None:
    """Compare the slopes along random directions with differences in float64."""
    groups = options.get("groups", 1)
    x, w = RNG.standard_normal((3, channels, *sizes)), RNG.standard_normal((outputs, channels // groups, *kernel))
    step_x, step_w = RNG.standard_normal(x.shape), RNG.standard_normal(w.shape)
    convolve = getattr(fc.nn, f"conv{dims}d")
    targets = RNG.standard_normal(convolve(fc.source(x), fc.constant(w), **options).spec.full_shape)

    def loss(images: Any, weights: Any, dtype: str = "f8") -> Any:
        return (convolve(images, weights, **options) * targets.astype(dtype)).sum()

    dtype = "f8" if device == "numpy" else "f4"
    images, weights = fc.source(x.astype(dtype)), fc.parameter(w.astype(dtype))
    gradients = fc.grad(loss(images, weights, dtype), [images, weights])
    by_x, by_w = fc.resolve(*gradients, device=device, progress=False)
    ends = [loss(fc.source(x + sign * step_x), fc.constant(w)) for sign in (1, -1)]
    ends += [loss(fc.source(x), fc.constant(w + sign * step_w)) for sign in (1, -1)]
    values = fc.resolve(*ends, device="numpy", progress=False)
    rtol = 1e-9 if device == "numpy" else 1e-4
    np.testing.assert_allclose((by_x * step_x).sum(), (values[0] - values[1]) / 2, rtol=rtol, atol=1e-3)
    np.testing.assert_allclose((by_w * step_w).sum(), (values[2] - values[3]) / 2, rtol=rtol, atol=1e-3)


@pytest.mark.parametrize(
    ("dims", "channels", "outputs", "sizes", "kernel", "options"),
    [
        (2, 4, 6, (7, 8), (3, 2), {"padding": 1}),
        (2, 4, 6, (7, 8), (3, 2), {"dilation": (2, 1), "groups": 2}),
        (2, 3, 2, (5, 4), (5, 4), {}),
        (2, 3, 2, (5, 4), (1, 1), {}),
        (2, 4, 6, (7, 8), (3, 2), {"stride": 2, "padding": 1}),
        (2, 4, 2, (8, 8), (4, 4), {"stride": 4}),
        (1, 4, 4, (9,), (3,), {"groups": 4}),
        (1, 4, 6, (9,), (3,), {"stride": 2, "dilation": 2, "groups": 2, "padding": [(0, 3)]}),
        (3, 2, 2, (4, 5, 4), (2, 3, 1), {"padding": 1}),
    ],
)
def test_slopes(dims: int, channels: int, outputs: int, sizes: Any, kernel: Any, options: Any) -> None:
    close_to_differences(dims, channels, outputs, sizes, kernel, "numpy", **options)


@pytest.mark.parametrize("options", [{"padding": 1}, {"groups": 2, "dilation": (2, 1)}])
def test_slopes_by_kernels(options: dict[str, Any]) -> None:
    close_to_differences(2, 4, 16, (7, 8), (3, 2), "cpu", **options)


def test_vectors_take_columns_of_several_short_lines() -> None:
    """A line of a window of three by three has three columns, and all nine of a channel fit into a vector."""
    images, weights = fc.source(np.ones((2, 1, 8, 8), np.float32)), fc.parameter(np.ones((8, 1, 3, 3), np.float32))
    slopes = fc.grad((fc.nn.conv2d(images, weights) ** 2).sum(), weights)
    texts = [kernel.source for kernel in slopes.plan(device="cpu").kernels if "float16 packed" in kernel.source]
    assert len(texts) == 1
    assert "for (long y" not in texts[0]


def test_second_derivatives() -> None:
    x, w = RNG.standard_normal((2, 2, 5)), RNG.standard_normal((3, 2, 3))
    images, weights = fc.source(x), fc.parameter(w)
    first = fc.grad(fc.square(fc.nn.conv1d(images, weights, padding=1)).sum(), images)
    found = fc.grad((first * x).sum(), weights).resolve(device="numpy", progress=False)
    step = RNG.standard_normal(w.shape)

    def slope(kernel: np.ndarray) -> Any:
        loss = fc.square(fc.nn.conv1d(images, fc.constant(kernel), padding=1)).sum()
        return (fc.grad(loss, images) * x).sum()

    high, low = fc.resolve(slope(w + 1e-5 * step), slope(w - 1e-5 * step), device="numpy", progress=False)
    np.testing.assert_allclose((found * step).sum(), (high - low) / 2e-5, rtol=1e-6)


def test_no_windows_are_stored() -> None:
    """Windows are nine times the images; what is stored between kernels is padded images at most."""
    images, targets = (fc.source(np.zeros((64, channels, 14, 14), "f4")) for channels in (8, 16))
    weights = fc.parameter(np.zeros((16, 8, 3, 3), "f4"))
    loss = (fc.nn.conv2d(images, weights, padding=1) * targets).sum()
    windows = 4 * 64 * 8 * 14 * 14 * 9
    for wrt in (images, weights):
        plan = fc.grad(loss, wrt).plan(device="cpu")
        assert plan.memory.host_bytes < windows, str(plan)
        assert "the host copies" not in str(plan)
