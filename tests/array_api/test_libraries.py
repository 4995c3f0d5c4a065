"""Functions that are written for the standard, and know no library: NumPy's namespace gives the expected numbers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flowcompute as fc
import flowcompute.array_api as xp

ROWS = np.random.default_rng(1).standard_normal((12, 4))


def standardised(x: Any) -> Any:
    xp = x.__array_namespace__()
    return (x - xp.mean(x, axis=0)) / xp.std(x, axis=0, correction=1)


def softmax(x: Any) -> Any:
    xp = x.__array_namespace__()
    powers = xp.exp(x - xp.max(x, axis=-1, keepdims=True))
    return powers / xp.sum(powers, axis=-1, keepdims=True)


def logsumexp(x: Any) -> Any:
    xp = x.__array_namespace__()
    largest = xp.max(x, axis=0, keepdims=True)
    largest = xp.where(xp.isfinite(largest), largest, 0.0)
    return xp.squeeze(xp.log(xp.sum(xp.exp(x - largest), axis=0, keepdims=True)) + largest, axis=0)


def principal_values(x: Any) -> Any:
    xp = x.__array_namespace__()
    centred = x - xp.mean(x, axis=0)
    return xp.linalg.eigvalsh(xp.matmul(centred.T, centred) / (x.shape[0] - 1))


def smoothed(x: Any) -> Any:
    xp = x.__array_namespace__()
    running = xp.cumulative_sum(x, axis=-1, include_initial=True)
    return (running[..., 2:] - running[..., :-2]) / 2


def ranks(x: Any) -> Any:
    xp = x.__array_namespace__()
    return xp.astype(xp.argsort(xp.argsort(x, axis=-1), axis=-1), xp.float32)


def clipped(x: Any) -> Any:
    xp = x.__array_namespace__()
    x = xp.asarray(x, copy=True)
    x[x > 1] = 1.0
    x[:, 0] = -x[:, 1]
    return x


FUNCTIONS = [standardised, softmax, logsumexp, principal_values, smoothed, ranks, clipped]


@pytest.mark.parametrize("form", ["resident", "stream"])
@pytest.mark.parametrize("function", FUNCTIONS)
def test_functions_for_the_standard(function: Callable[[Any], Any], form: str) -> None:
    x = xp.asarray(ROWS if form == "resident" else fc.source(ROWS))
    made, expected = function(x), function(ROWS)
    assert (made.shape, made.dtype) == (expected.shape, expected.dtype)
    np.testing.assert_allclose(made.resolve(device="numpy"), expected, rtol=1e-12, atol=1e-12)


def test_a_file_goes_to_a_file_in_bounded_memory(tmp_path: Path) -> None:
    array = np.random.default_rng(2).standard_normal((50_000, 8))
    np.save(tmp_path / "x.npy", array)
    element = standardised(xp.asarray(fc.open(tmp_path / "x.npy"))).element
    run = (element >> fc.save(tmp_path / "y.npy")).run(memory="1MiB", device="numpy")
    assert array.nbytes > 3 * 2**20
    assert len(run.plan.passes) == 2
    np.testing.assert_allclose(np.load(tmp_path / "y.npy"), standardised(array), rtol=1e-12, atol=1e-15)


PATTERNS: list[tuple[str, dict[str, int], bool]] = [
    ("b (h w) c -> b h (w c)", {"h": 2}, True),
    ("b h c -> b c h", {}, True),
    ("b h c -> (b h) c", {}, True),
    ("b h c -> h b c", {}, False),
]


@pytest.mark.parametrize("form", ["resident", "stream"])
def test_einops(form: str) -> None:
    einops = pytest.importorskip("einops")
    through = pytest.importorskip("einops.array_api")
    array = np.arange(48.0).reshape(4, 6, 2)
    x = xp.asarray(array if form == "resident" else fc.source(array))
    for pattern, sizes, of_streams in PATTERNS:
        if of_streams or form == "resident":
            made = through.rearrange(x, pattern, **sizes)
            np.testing.assert_array_equal(made.resolve(device="numpy"), einops.rearrange(array, pattern, **sizes))
    for pattern, reduction in (("b (h k) c -> b h", "mean"), ("b (h k) c -> b k", "max"), ("b (h k) c -> h k", "sum")):
        made = through.reduce(x, pattern, reduction, k=3)
        np.testing.assert_allclose(made.resolve(device="numpy"), einops.reduce(array, pattern, reduction, k=3))
    made = through.repeat(x, "b h c -> b h (k c)", k=2)
    np.testing.assert_array_equal(made.resolve(device="numpy"), einops.repeat(array, "b h c -> b h (k c)", k=2))
