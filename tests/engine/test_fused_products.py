"""`a * b + c` rounded once: against exact fractions, over all magnitudes and special numbers."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from flowcompute.engine.folds.fused_products import fused_multiply_add

DTYPES = ["float32", "float64"]


def rounded(exact: Fraction, dtype: np.dtype) -> Any:
    """The nearest number of the dtype, of two the one whose last bit is even."""
    try:
        with np.errstate(over="ignore"):
            guess = np.asarray(float(exact)).astype(dtype)[()]
    except OverflowError:
        return dtype.type(np.inf if exact > 0 else -np.inf)
    bits = np.dtype(f"i{dtype.itemsize}")
    with np.errstate(over="ignore"):
        near = [guess, np.nextafter(guess, dtype.type(-np.inf)), np.nextafter(guess, dtype.type(np.inf))]
    largest = Fraction(float(np.finfo(dtype).max))
    # Infinity stands where the next number of the format would.
    next_one = largest + largest / (2 ** (np.finfo(dtype).nmant + 1) - 1)
    far = {float(x): Fraction(float(x)) if np.isfinite(x) else next_one * (1 if x > 0 else -1) for x in near}
    return min(near, key=lambda x: (abs(far[float(x)] - exact), int(x.view(bits)) & 1))


def assert_rounded_once(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> None:
    result = fused_multiply_add(a, b, c)
    assert result.dtype == a.dtype
    for x, y, z, made in zip(a, b, c, result, strict=True):
        if np.isfinite([x, y, z]).all():
            exact = Fraction(float(x)) * Fraction(float(y)) + Fraction(float(z))
            wanted = rounded(exact, a.dtype)
        else:
            with np.errstate(all="ignore"):
                finite = np.isfinite(x) and np.isfinite(y)
                wanted = z if finite else np.float64(x) * np.float64(y) + np.float64(z)
        same = made == wanted or (np.isnan(made) and np.isnan(wanted))
        assert same, f"{x!r} * {y!r} + {z!r} is {wanted!r}, not {made!r}"


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("spread", [0, 10, "all"])
def test_any_numbers(dtype: str, spread: Any) -> None:
    rng = np.random.default_rng(5)
    most = {"float32": 148, "float64": 1070}[dtype] if spread == "all" else spread
    with np.errstate(all="ignore"):
        a, b, c = (
            (rng.standard_normal(1500) * 2.0 ** rng.uniform(-most, min(most, 1000), 1500)).astype(dtype)
            for _ in range(3)
        )
    assert_rounded_once(a, b, c)


@pytest.mark.parametrize("dtype", DTYPES)
def test_what_nearly_cancels(dtype: str) -> None:
    rng = np.random.default_rng(6)
    a, b = (rng.standard_normal(2000).astype(dtype) for _ in range(2))
    near = 1 + rng.integers(-3, 4, 2000) * 2.0 ** -rng.integers(20, 56, 2000)
    assert_rounded_once(a, b, (-(a * b) * near).astype(dtype))


@pytest.mark.parametrize("dtype", DTYPES)
def test_ties_and_special_numbers(dtype: str) -> None:
    info = np.finfo(dtype)
    odd = 1 + info.eps
    numbers = [
        0, -0.0, 1, -1, odd, info.eps / 2, -info.eps / 4, info.max, -info.max, info.tiny, info.smallest_subnormal,
        -info.smallest_subnormal, np.inf, -np.inf, np.nan,
    ]  # fmt: skip
    a, b, c = np.array(list(itertools.product(numbers, repeat=3)), dtype).T.copy()
    assert_rounded_once(a, b, c)


def test_the_sign_of_zero() -> None:
    a, b, c = np.array([[0.0, 1, -0.0], [-0.0, 1, -0.0], [0.0, 1, 0.0], [2, 3, -6]], np.float32).T.copy()
    np.testing.assert_array_equal(np.signbit(fused_multiply_add(a, b, c)), [False, True, False, False])
