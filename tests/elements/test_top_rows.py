"""The largest numbers along item axes: one kernel, NumPy's answers on every backend."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowcompute as fc
from flowcompute.errors import SpecError
from tests.gpu.shapes import plan_for_gpu, resolve_on_gpu


def expected(x: np.ndarray, k: int, axis: int) -> tuple[np.ndarray, np.ndarray]:
    """NaN first, then descending, earlier ones first."""
    wide = np.moveaxis(x.astype("f8"), axis, -1)
    order = np.lexsort((-np.where(np.isnan(wide), 0, wide), ~np.isnan(wide)), axis=-1)
    places = np.moveaxis(order[..., :k], -1, axis)
    return np.take_along_axis(x, places, axis), places


def special(dtype: Any) -> np.ndarray:
    rng = np.random.default_rng(3)
    x = rng.integers(-40 if np.dtype(dtype).kind != "u" else 0, 40, (60, 41)).astype(dtype)
    if np.dtype(dtype).kind == "f":
        x[0, [5, 9]] = x[4] = np.nan
        x[1] = x[3, :39] = -np.inf
        x[2] = 0
        x[2, 7:] = -0.0
        x[5, 3] = np.inf
    else:
        x[1] = np.iinfo(dtype).min
    return x


@pytest.mark.parametrize("dtype", ["f4", "i8", "u1"])
def test_the_largest_of_rows(dtype: str) -> None:
    x = special(dtype)
    values, places = expected(x, 3, 1)
    roots = fc.top_k(fc.source(x), 3, axis=1)
    for made in (fc.resolve(*roots, device="cpu"), fc.resolve(*roots, device="numpy")):
        np.testing.assert_array_equal(made[0], values)
        np.testing.assert_array_equal(made[1], places)
        assert (made[0].dtype, made[1].dtype) == (x.dtype, np.int64)


def test_with_what_stands_before_and_after() -> None:
    x = np.random.default_rng(4).standard_normal((30, 5, 3)).astype("f4")
    values, places = fc.top_k(fc.source(x) * 2, 2, axis=1)
    other = (fc.source(x) * 2).sum(axis=1)
    for plan in (fc.plan(values, places, other), plan_for_gpu(values, places, other)):
        assert len(plan.kernels) == 1
    wanted = expected(x * 2, 2, 1)
    for made in (fc.resolve(values, places, other), resolve_on_gpu(values, places, other)):
        np.testing.assert_array_equal(made[0], wanted[0])
        np.testing.assert_array_equal(made[1], wanted[1])


def test_of_what_is_resident_any_axis() -> None:
    x = special("f2")[:, :6]
    values, places = fc.resolve(*fc.top_k(fc.constant(x), 2, axis=0), device="numpy")
    np.testing.assert_array_equal(values, expected(x, 2, 0)[0])
    np.testing.assert_array_equal(places, expected(x, 2, 0)[1])


@pytest.mark.parametrize(
    ("k", "dtype"),
    [
        (17, "f4"),
        *(pytest.param(k, "f4", marks=pytest.mark.slow) for k in (16, 41)),
        *(pytest.param(k, dtype, marks=pytest.mark.slow) for dtype in ("f2", "i8", "u1") for k in (17, 41)),
        *(pytest.param(16, dtype, marks=pytest.mark.compiles) for dtype in ("f2", "i8", "u1")),
    ],
)
def test_as_many_as_one_likes(dtype: str, k: int) -> None:
    x = special(dtype)
    values, places = expected(x, k, 1)
    for of, device in ((fc.source, "numpy"), (fc.constant, "numpy"), (fc.source, "cpu")):
        made = fc.resolve(*fc.top_k(of(x), k, axis=1), device=device, progress=False)
        np.testing.assert_array_equal(made[0], values)
        np.testing.assert_array_equal(made[1], places)


@pytest.mark.parametrize("k", [0, 8, 31])
def test_too_many(k: int) -> None:
    with pytest.raises(
        SpecError, match="cannot take k=" if not k else "cannot find so many numbers along an item axis"
    ):
        fc.top_k(fc.source(np.ones((5, 7 if k == 8 else 30))), k, axis=1)


@pytest.mark.parametrize("dtype", ["f4", "u1"])
def test_the_smallest_of_rows(dtype: str) -> None:
    x = special(dtype)
    order = np.argsort(x, axis=1, kind="stable")
    for k in (1, 5, 41):
        for made in (fc.top_k(fc.source(x), k, 1, largest=False), fc.top_k(fc.constant(x), k, 1, largest=False)):
            values, places = fc.resolve(*made, device="numpy", progress=False)
            np.testing.assert_array_equal(places, order[:, :k])
            np.testing.assert_array_equal(values, np.take_along_axis(x, order[:, :k], 1), strict=True)
    with pytest.raises(SpecError, match="smallest numbers of a stream"):
        fc.top_k(fc.source(x[:, 0]), 2, largest=False)


def test_an_axis_whose_places_do_not_fit_is_refused() -> None:
    """A damaged model may pad an axis to any length; nothing of it is made before a run."""
    padded = fc.pad(fc.source(np.ones((3, 4))), [(0, 0), (0, 1 << 50)])
    with pytest.raises(SpecError, match="cannot number the values along an axis"):
        fc.top_k(padded, 2, axis=1)
