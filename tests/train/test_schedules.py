"""Schedules against their formulas in float64, and when to stop."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import flowcompute as fc
from flowcompute.errors import SpecError


def rates(schedule: Any, numbers: np.ndarray, dtype: str = "f4") -> np.ndarray:
    """Return the rates of updates, all at once."""
    return np.asarray(fc.resolve(schedule(fc.constant(numbers.astype(dtype))), device="numpy", progress=False))


def falling(t: np.ndarray, rate: float, steps: int, warmup: int, end: float, shape: Any) -> np.ndarray:
    p = np.clip((t - 1 - warmup) / (steps - warmup), 0, 1)
    return np.where(t <= warmup, rate * t / max(1, warmup), end + (rate - end) * shape(p))


@settings(max_examples=30)
@given(
    steps=st.integers(1, 50),
    warmup=st.integers(0, 49),
    end=st.sampled_from([0.0, 1e-4]),
    dtype=st.sampled_from(["f4", "f8"]),
)
def test_cosine_and_line(steps: int, warmup: int, end: float, dtype: str) -> None:
    warmup, t = min(warmup, steps - 1), np.arange(1, steps + 10)
    rtol, atol = (1e-14, 1e-16) if dtype == "f8" else (1e-5, 1e-9)
    cosine = fc.train.cosine(2e-3, steps=steps, warmup=warmup, end=end)
    expected = falling(t, 2e-3, steps, warmup, end, lambda p: (1 + np.cos(math.pi * p)) / 2)
    np.testing.assert_allclose(rates(cosine, t, dtype), expected, rtol=rtol, atol=atol)
    linear = fc.train.linear(2e-3, steps=steps, warmup=warmup, end=end)
    np.testing.assert_allclose(
        rates(linear, t, dtype), falling(t, 2e-3, steps, warmup, end, lambda p: 1 - p), rtol=rtol, atol=atol
    )


@given(every=st.integers(1, 20), factor=st.sampled_from([0.1, 0.5, 1.0, 2.0]))
def test_steps(every: int, factor: float) -> None:
    t = np.arange(1, 60)
    expected = 0.1 * factor ** np.floor((t - 1) / every)
    np.testing.assert_allclose(
        rates(fc.train.step(0.1, every=every, factor=factor), t), expected, rtol=2e-6, atol=1e-36
    )


def test_the_first_update_and_the_ends() -> None:
    schedule = fc.train.cosine(1.0, steps=10, warmup=4)
    assert rates(schedule, np.array([1, 4, 5, 11, 10_000_000])).tolist() == [0.25, 1.0, 1.0, 0.0, 0.0]
    assert rates(fc.train.cosine(1.0, steps=10), np.array([1])).tolist() == [1.0]


def test_a_number_can_be_asked_for() -> None:
    assert fc.resolve(fc.train.linear(1.0, steps=4)(3), device="numpy", progress=False) == np.float32(0.5)


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: fc.train.cosine(1, steps=0), "cannot take steps="),
        (lambda: fc.train.cosine(1, steps=10, warmup=10), "from 0 to steps - 1 = 9"),
        (lambda: fc.train.linear(-1, steps=10), "cannot take rate="),
        (lambda: fc.train.linear(1, steps=10, end=float("inf")), "cannot take end="),
        (lambda: fc.train.step(1, every=0), "cannot take every="),
        (lambda: fc.train.step(1, every=1, factor=0), "above 0"),
        (lambda: fc.train.patience(0), "cannot take evaluations="),
        (lambda: fc.train.patience(1, least=-1), "cannot take least="),
    ],
)
def test_numbers_out_of_range_are_refused(make: Any, text: str) -> None:
    with pytest.raises(SpecError, match=text):
        make()


def stopped_after(criterion: Any, values: list[float]) -> int | None:
    state = criterion.init()
    for number, value in enumerate(values, 1):
        stop, state = criterion.update(value, state)
        if stop:
            return number
    return None


def test_patience() -> None:
    nan, inf = math.nan, math.inf
    assert stopped_after(fc.train.patience(2), [3, 2, 2, 1, 1, 1, 0]) == 6
    assert stopped_after(fc.train.patience(2, least=0.5), [3, 2.9, 2.6, 2.4]) == 3
    assert stopped_after(fc.train.patience(2, largest=True), [1, 2, 3, 2, 4, 3, 4]) == 7
    assert stopped_after(fc.train.patience(2), [nan, nan, 1]) == 2
    assert stopped_after(fc.train.patience(2), [nan, 1, nan, 0.5, nan]) is None
    assert stopped_after(fc.train.patience(1), [inf, 1]) == 1
    assert repr(fc.train.patience(3)) == "patience(evaluations=3, least=0.0, largest=False)"
