"""Windows of one to three axes with other padding before than behind: number by number in plain Python."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import flowcompute as fc
from flowcompute.errors import SpecError
from tests.gpu.shapes import resolve_on_gpu


def members(shape: tuple[int, ...], how: dict[str, Any], *, ceil: bool) -> tuple[tuple[int, ...], dict[Any, Any]]:
    """Return how many windows there are, and for each its places inside, and the count of places in the padding too."""
    axes = list(zip(shape, how["kernel"], how["stride"], how["padding"], how["dilation"], strict=True))
    counts = []
    for n, k, s, (before, after), d in axes:
        room = (n + before + after - d * (k - 1) - 1) / s
        count = (math.ceil(room) if ceil else math.floor(room)) + 1
        counts.append(count - 1 if ceil and (count - 1) * s >= n + before else count)
    made = {}
    for window in np.ndindex(*counts):
        inside, padded = [], 0
        for tap in np.ndindex(*how["kernel"]):
            at = [i * s - before + j * d for i, j, (_, _, s, (before, _), d) in zip(window, tap, axes, strict=True)]
            if all(0 <= one < n for one, n in zip(at, shape, strict=True)):
                inside.append(tuple(at))
            padded += all(-b <= one < n + a for one, (n, _, _, (b, a), _) in zip(at, axes, strict=True))
        made[window] = inside, padded
    return tuple(counts), made


@st.composite
def drawn_windows(draw: st.DrawFn) -> tuple[tuple[int, ...], dict[str, Any]]:
    """Sizes of axes, and windows with a number each."""
    shape, how = [], {"kernel": [], "stride": [], "padding": [], "dilation": []}
    for _ in range(draw(st.integers(1, 3))):
        kernel, dilation = draw(st.integers(1, 3)), draw(st.integers(1, 2))
        padding = tuple(draw(st.integers(0, kernel - 1)) for _ in range(2))
        shape.append(draw(st.integers((kernel - 1) * dilation + 1, (kernel - 1) * dilation + 3)))
        for key, value in (("kernel", kernel), ("padding", padding), ("dilation", dilation)):
            how[key].append(value)
        how["stride"].append(draw(st.integers(1, 3)))
    return tuple(shape), {key: tuple(value) for key, value in how.items()}


@settings(max_examples=15)
@given(drawn_windows(), st.booleans(), st.booleans(), st.sampled_from(["f4", "i1", "f2"]))
def test_windows_number_by_number(windows: Any, ceil: bool, counted: bool, dtype: str) -> None:
    shape, how = windows
    array = np.random.default_rng(1).integers(-4, 5, (3, 2, *shape)).astype(dtype)
    if dtype == "f4":
        array[0, 0], array[1, 0, ..., 0] = -np.inf, np.nan
    counts, inside = members(shape, how, ceil=ceil)
    made: dict[str, np.ndarray] = {name: np.zeros((3, 2, *counts)) for name in ("max", "at", "mean", "norm")}
    for window, (places, padded) in inside.items():
        numbers = np.stack([array[(..., *at)] for at in places]).astype("f8")
        flat = np.array([np.ravel_multi_index(at, shape) for at in places])
        made["max"][(..., *window)] = numbers.max(axis=0)
        made["at"][(..., *window)] = flat[np.argmax(numbers, axis=0)]
        made["mean"][(..., *window)] = numbers.sum(axis=0) / (padded if counted else len(places))
        made["norm"][(..., *window)] = np.sqrt((numbers**2).sum(axis=0))
    x, dims = fc.source(array), len(shape)
    most, at = getattr(fc.nn, f"max_pool{dims}d")(x, **how, ceil_mode=ceil, return_indices=True)
    mean = getattr(fc.nn, f"avg_pool{dims}d")(x, **how, ceil_mode=ceil, count_include_pad=counted)
    norm = getattr(fc.nn, f"lp_pool{dims}d")(x, 2, **how, ceil_mode=ceil)
    assert (at.dtype, most.dtype) == (np.int64, array.dtype)
    values = fc.resolve(most, at, mean, norm, device="numpy", strategy=fc.Strategy(batch_bytes=200), progress=False)
    for got, name in zip(values, ("max", "at"), strict=False):
        np.testing.assert_array_equal(got.astype("f8"), made[name])
    for got, name in zip(values[2:], ("mean", "norm"), strict=True):
        np.testing.assert_allclose(got, made[name], rtol=2e-3 if got.dtype == np.float16 else 1e-6)


@pytest.mark.slow
def test_windows_of_three_axes_on_devices() -> None:
    array = np.random.default_rng(2).integers(-4, 5, (3, 2, 4, 5, 6)).astype("f4")
    how = {"kernel": (2, 3, 2), "stride": (1, 2, 2), "padding": ((1, 0), (0, 2), (0, 0)), "dilation": (1, 1, 2)}
    x = fc.source(array)
    made = fc.nn.max_pool3d(x, **how, return_indices=True)
    wanted = fc.resolve(*made, device="numpy", progress=False)
    for values in (fc.resolve(*made, device="cpu", progress=False), resolve_on_gpu(*made)):
        for got, want in zip(values, wanted, strict=True):
            np.testing.assert_array_equal(got, want, strict=True)


def test_other_norms() -> None:
    array = np.random.default_rng(3).standard_normal((4, 9))
    seen = np.lib.stride_tricks.sliding_window_view(np.abs(array), 3, axis=1)[:, ::3]
    for p in (1, 3, 0.5):
        got = fc.nn.lp_pool1d(fc.source(array), p, 3).resolve(device="numpy", progress=False)
        np.testing.assert_allclose(got, (seen**p).sum(axis=2) ** (1 / p))
    for p in (0, -1, np.inf, np.nan):
        with pytest.raises(SpecError, match="cannot take p="):
            fc.nn.lp_pool1d(fc.source(array), p, 3)


def test_wide_padding_is_refused_where_a_window_would_hold_nothing_else() -> None:
    x = fc.source(np.ones((2, 5), "f4"))
    assert fc.nn.max_pool1d(x, 3, 1, [(2, 2)]).shape == (2, 7)
    for padding in (3, [(0, 3)]):
        with pytest.raises(SpecError, match="holds nothing else"):
            fc.nn.max_pool1d(x, 3, 1, padding)
    for padding in ([1, 1], [(1, 2, 3)], "same"):
        with pytest.raises(SpecError, match="cannot take padding="):
            fc.nn.max_pool1d(x, 3, 1, padding)
