"""Sums over selected records: one fold with the mask in it, the bits of the documented order, and no stray numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flowcompute as fc

N = 3000
RNG = np.random.default_rng(11)
X = (RNG.standard_normal((N, 3)) * 4).astype(np.float32)
Y = RNG.standard_normal((N, 3)).astype(np.float32)
M = RNG.random(N) < 0.4

Meaning = tuple[Callable[..., Any], Callable[..., Any]]

SUMS: dict[str, Meaning] = {
    "sum": (lambda x, y, m: x[m].sum(axis=0), lambda x, y, m: x[m].sum(axis=0, dtype=np.float64)),
    "sum of all": (lambda x, y, m: x[m].sum(), lambda x, y, m: x[m].sum(dtype=np.float64)),
    "mean": (lambda x, y, m: x[m].mean(axis=0), lambda x, y, m: x[m].mean(axis=0, dtype=np.float64)),
    "mean of all": (lambda x, y, m: x[m].mean(), lambda x, y, m: x[m].mean(dtype=np.float64)),
    "mean kept": (lambda x, y, m: x[m].mean(axis=0, keepdims=True), lambda x, y, m: x[m].mean(axis=0, keepdims=True)),
    "any": (lambda x, y, m: (x[m] > 12).any(axis=0), lambda x, y, m: (x[m] > 12).any(axis=0)),
    "all": (lambda x, y, m: (x[m] > -12).all(axis=0), lambda x, y, m: (x[m] > -12).all(axis=0)),
    "prod": (lambda x, y, m: fc.sign(x[m]).prod(axis=0), lambda x, y, m: np.sign(x[m]).prod(axis=0)),
    "vecdot": (lambda x, y, m: fc.vecdot(x[m], y[m], axis=0), lambda x, y, m: (x[m] * y[m]).sum(axis=0)),
    "vecdot with itself": (lambda x, y, m: fc.vecdot(x[m], x[m], axis=0), lambda x, y, m: (x[m] ** 2).sum(axis=0)),
    "of a map": (lambda x, y, m: (x[m] * y[m] + 1).sum(axis=0), lambda x, y, m: (x[m] * y[m] + 1).sum(axis=0)),
    "of rows": (lambda x, y, m: x[m].max(axis=1).sum(), lambda x, y, m: x[m].max(axis=1).sum(dtype=np.float64)),
    "selected twice": (
        lambda x, y, m: (s := x[m])[s[:, 0] > 0].sum(axis=0),
        lambda x, y, m: (s := x[m])[s[:, 0] > 0].sum(axis=0),
    ),
    "two masks": (
        lambda x, y, m: x[m].sum(axis=0) - x[y[:, 0] > 0].sum(axis=0),
        lambda x, y, m: x[m].sum(axis=0) - x[y[:, 0] > 0].sum(axis=0),
    ),
    "meeting another stream": (
        lambda x, y, m: (x[m] + y[y[:, 0] > -9][m]).sum(axis=0),
        lambda x, y, m: (x[m] + y[m]).sum(axis=0),
    ),
    "centred": (
        lambda x, y, m: (x[m] - x[m].mean(axis=0)).sum(axis=0),
        lambda x, y, m: (x[m] - x[m].mean(axis=0)).sum(axis=0),
    ),
    "beside the selection": (lambda x, y, m: x[m].sum(axis=0) * x[m][0], lambda x, y, m: x[m].sum(axis=0) * x[m][0]),
    "count": (lambda x, y, m: fc.count_nonzero(x[m] > 0, axis=0), lambda x, y, m: (x[m] > 0).sum(axis=0)),
    "largest": (lambda x, y, m: x[m].max(axis=0), lambda x, y, m: x[m].max(axis=0)),
    "place of the largest": (lambda x, y, m: x[m].argmax(axis=0), lambda x, y, m: x[m].argmax(axis=0)),
    "variance": (lambda x, y, m: x[m].var(axis=0), lambda x, y, m: x[m].var(axis=0, dtype=np.float64)),
}


@pytest.mark.parametrize("name", SUMS)
def test_against_numpy(name: str) -> None:
    build, meaning = SUMS[name]
    wanted = np.asarray(meaning(X, Y, M))
    for mask in (fc.source(M), fc.source(M.astype(np.int8)) == 1, M):
        element = build(fc.source(X), fc.source(Y), mask)
        result = np.asarray(element.resolve(device="numpy", progress=False))
        np.testing.assert_allclose(result, wanted, rtol=1e-5, atol=2e-3 if name == "centred" else 1e-4)
        again = element.resolve(device="numpy", progress=False, strategy=fc.Strategy(batch_bytes=5000))
        assert np.asarray(again).tobytes() == result.tobytes()


def test_kernels_have_the_mask_in_them() -> None:
    x, y, m = fc.source(X), fc.source(Y), fc.source(M)
    names = [name for name in SUMS if name not in ("meeting another stream", "centred", "beside the selection")]
    elements = [SUMS[name][0](x, y, m) for name in names]
    results = fc.resolve(*elements, device="cpu", progress=False)
    for name, result in zip(names, results, strict=True):
        np.testing.assert_allclose(result, SUMS[name][1](X, Y, M), rtol=1e-5, atol=1e-4, err_msg=name)
    smaller = fc.resolve(*elements, device="cpu", progress=False, strategy=fc.Strategy(batch_bytes=1 << 14))
    for name, result, other in zip(names, results, smaller, strict=True):
        assert np.asarray(result).tobytes() == np.asarray(other).tobytes(), name


def test_a_sum_moves_no_record() -> None:
    x, m = fc.source(X), fc.source(M)
    plan = (x[m] * 2).sum(axis=0).plan(device="cpu")
    assert len(plan.kernels) == 1
    assert not any(clock.entries for clock in plan.passes[0].clocks)
    kept = x[m].max(axis=0).plan(device="cpu")
    assert any(clock.entries for clock in kept.passes[0].clocks)


@pytest.mark.parametrize("length", [1, 1023, 1024, 1025, N])
def test_blocks_count_by_the_record_before_the_selection(length: int) -> None:
    x, m = X[:length, 0], M[:length]
    result = fc.source(x)[m].sum().resolve(device="numpy", progress=False)
    # Dropped records are the identity, and a sum of nothing is +0.
    assert result == fc.source(np.where(m, x, np.float32(-0.0))).sum().resolve(device="numpy", progress=False) + 0


@given(st.data())
def test_what_is_dropped_is_never_felt(data: st.DataObject) -> None:
    dtype = data.draw(st.sampled_from(["float32", "float64", "float16", "bfloat16", "int8", "bool"]))
    length = data.draw(st.sampled_from([0, 1, 5, 1025]))
    m = np.random.default_rng(length).random(length) < data.draw(st.sampled_from([0.0, 0.2, 1.0]))
    clean = np.where(m, np.arange(length) % 5 - 2, 0).astype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
    dirty = clean.copy()
    dirty[~m] = True if dtype == "bool" else 127 if dtype == "int8" else np.nan
    sums = [
        fc.resolve(
            *(
                getattr(fc, name)(fc.source(array)[fc.source(m)], axis=0)
                for name in ("sum", "prod", "mean", "any", "all")
            ),
            fc.vecdot(fc.source(array)[m].astype("float32"), fc.source(array)[m].astype("float32"), axis=0),
            device="numpy",
            progress=False,
        )
        for array in (clean, dirty)
    ]
    for a, b in zip(*sums, strict=True):
        assert (a.dtype, a.tobytes()) == (b.dtype, b.tobytes())


def test_a_selection_of_nothing() -> None:
    none = np.zeros(N, bool)
    x, m = fc.source(X), fc.source(none)
    total, product, average, some, every, dot = fc.resolve(
        x[m].sum(axis=0),
        x[m].prod(axis=0),
        x[m].mean(axis=0),
        (x[m] > 0).any(axis=0),
        (x[m] > 0).all(axis=0),
        fc.vecdot(x[m], -x[m], axis=0),
        progress=False,
    )
    for zero in (total, dot):
        assert zero.tobytes() == np.zeros(3, np.float32).tobytes(), "+0, as NumPy's sum of nothing"
    np.testing.assert_array_equal(product, [1, 1, 1])
    np.testing.assert_array_equal(average, [np.nan] * 3)
    np.testing.assert_array_equal(some, [False] * 3)
    np.testing.assert_array_equal(every, [True] * 3)


def test_infinities_that_are_selected_count() -> None:
    x = np.array([np.inf, 1, -np.inf, 2, np.nan], np.float32)
    for chosen, wanted in (([1, 1, 0, 0, 0], np.inf), ([0, 1, 0, 1, 0], 3), ([1, 0, 1, 0, 0], np.nan)):
        m = np.array(chosen, bool)
        for device in ("numpy", "cpu"):
            total, dot = fc.resolve(
                fc.source(x)[m].sum(), fc.vecdot(fc.source(x)[m], np.float32(1) + 0 * fc.source(x)[m]), device=device,
                progress=False,
            )  # fmt: skip
            np.testing.assert_equal(float(total), wanted)
            # Infinity times 0 is NaN, as NumPy says too.
            with np.errstate(invalid="ignore"):
                np.testing.assert_equal(float(dot), float(np.sum(x[m] * (1 + 0 * x[m]))))


def test_masks_of_another_length_are_refused_in_the_fold_too() -> None:
    x = fc.iterate([X], shape=(3,), dtype="float32")
    m = fc.iterate([M[:-1]], shape=(), dtype="bool")
    with pytest.raises(fc.RunError, match="different lengths") as caught:
        x[m].sum(axis=0).resolve(device="numpy", progress=False)
    assert f"{N - 1}" in f"{caught.value.expected} {caught.value.got}"
