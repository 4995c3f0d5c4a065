"""The bounds that docs/precision.md states, by its own numbers: held against exact arithmetic on what is hard to add."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import flowcompute as fc
from flowcompute.elements.elementwise_functions import Function
from flowcompute.elements.math.arithmetic import POW
from flowcompute.spec import BFLOAT16, FLOAT16
from tests.gpu.test_ops import OPS

PAGE = (Path(__file__).parents[1] / "docs" / "precision.md").read_text()
STEPS: dict[str, Any] = {}
exec(re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)[0], STEPS)
row, column, product, running = (STEPS[name] for name in ("row", "column", "product", "running"))

FLOATS = [np.dtype("f4"), np.dtype("f8"), FLOAT16, BFLOAT16]
CASES = [
    *((dtype, "numpy") for dtype in FLOATS),
    *(pytest.param(dtype, "cpu", marks=pytest.mark.compiles) for dtype in FLOATS),
]


def test_the_table_of_functions_is_that_of_the_records() -> None:
    ulps = {name: one.op.ulp for name, one in OPS.items() if isinstance(one, Function)} | {"pow": POW.ulp}
    table = PAGE[PAGE.index("| function | ulp |") :].split("\n\n")[0]
    stated = {name: float(ulp) for name, ulp in re.findall(r"`(\w+)` \| ([\d.]+)", table)}
    assert stated == {name: ulp for name, ulp in ulps.items() if ulp}


def unit(dtype: np.dtype) -> float:
    """`u` of the dtype in which numbers of this one are computed."""
    return 2.0**-53 if dtype == np.float64 else 2.0**-24


def drawn(dtype: np.dtype, *shape: int, seed: int = 0) -> np.ndarray:
    """Numbers of all sizes of which most cancels, so that a sum is small beside what is added."""
    rng = np.random.default_rng([seed, *shape])
    half = rng.standard_normal(shape) * 2.0 ** rng.integers(-6, 7, shape)
    data = half.astype(dtype)
    flat = data.reshape(-1)
    flat[1::2] = -flat[: len(flat) // 2 * 2 : 2] * np.asarray(1.01, dtype)
    return rng.permuted(data, axis=-1) if data.ndim > 1 else data


def exact(numbers: Any) -> Fraction:
    return sum(map(Fraction, np.asarray(numbers, np.float64).reshape(-1).tolist()), Fraction(0))


def exact_dot(a: np.ndarray, b: np.ndarray) -> tuple[Fraction, Fraction]:
    """The sum of products, and that of their sizes."""
    pairs = zip(*(map(Fraction, np.asarray(one, np.float64).tolist()) for one in (a, b)), strict=True)
    terms = [x * y for x, y in pairs]
    return sum(terms, Fraction(0)), sum(map(abs, terms), Fraction(0))


def hold(result: Any, value: Fraction, error: Fraction | float, what: str) -> None:
    """The result lies within the error, and the rounding of its dtype, of the value."""
    info = ml_dtypes.finfo(np.asarray(result).dtype)
    own = (abs(value) + Fraction(error)) * Fraction(float(info.eps)) / 2 + Fraction(float(info.smallest_subnormal))
    off = abs(Fraction(float(result)) - value)
    assert off <= Fraction(error) + own, f"{what}: {float(off)} beyond {float(error)}"


Rule = Callable[[np.ndarray, float, bool], tuple[Fraction, Fraction | float]]


def resolved(device: str, *elements: Any) -> list[np.ndarray]:
    return [np.asarray(one) for one in fc.resolve(*elements, fc.constant(0), device=device, progress=False)[:-1]]


@pytest.mark.parametrize(("dtype", "device"), CASES, ids=str)
def test_sums_of_rows(dtype: np.dtype, device: str) -> None:
    u, wide = unit(dtype), dtype == np.float64
    for n in (1000, 3000):
        a, b = drawn(dtype, 2, n), drawn(dtype, 2, n, seed=1)
        near = (1 + drawn(dtype, 2, 500).astype("f8") / 2**13).astype(dtype)
        x, y = fc.source(a), fc.source(b)
        results = resolved(device, x.sum(1), x.mean(1), fc.vecdot(x, y), x.var(1), fc.source(near).prod(1))
        for i in range(2):
            steps, size, total = row(n, wide), exact(np.abs(a[i].astype("f8"))), exact(a[i])
            hold(results[0][i], total, steps * u * float(size), f"sum of {n}")
            off = (steps + 1) * u * float(size) / n
            hold(results[1][i], total / n, off, f"mean of {n}")
            dot, sizes = exact_dot(a[i], b[i])
            hold(results[2][i], dot, (steps + 1) * u * float(sizes), f"vecdot of {n}")
            var = exact_dot(a[i], a[i])[0] / n - (total / n) ** 2
            hold(results[3][i], var, (steps + 5) * u * float(var) + off**2, f"var of {n}")
            whole = math.prod(map(Fraction, near[i].astype("f8").tolist()))
            hold(results[4][i], whole, 500 * u * float(whole), "prod")


@pytest.mark.parametrize(("dtype", "device"), CASES, ids=str)
def test_sums_over_the_stream(dtype: np.dtype, device: str) -> None:
    u, wide = unit(dtype), dtype == np.float64
    for n, width in ((3000, 1), (4200, 2)):
        a = drawn(dtype, n) if width == 1 else drawn(dtype, width, n).T.copy()
        x = fc.source(a)
        results = resolved(device, x.sum(0), x.mean(0), x.var(0), fc.cumulative_sum(x, 0), fc.ema(x, 0.25))
        steps = row(n, wide) if width == 1 else column(n, width, wide)
        for i in range(width):
            numbers = a.reshape(n, width)[:, i]
            sums, means, variances = (one.reshape(-1)[i] for one in results[:3])
            size, total = exact(np.abs(numbers.astype("f8"))), exact(numbers)
            hold(sums, total, steps * u * float(size), "sum")
            hold(means, total / n, (steps + 1) * u * float(size) / n, "mean")
            var = exact_dot(numbers, numbers)[0] / n - (total / n) ** 2
            reach = float(numbers.max()) - float(numbers.min())
            hold(variances, var, 3 * (steps + 2) * u * reach**2, "var")
            so_far, sizes, average = Fraction(0), 0.0, Fraction(float(numbers[0]))
            most = float(np.abs(numbers.astype("f8")).max())
            for t, number in enumerate(numbers.astype("f8").tolist()):
                so_far, sizes = so_far + Fraction(number), sizes + abs(number)
                if t > 200 and t % 500:
                    continue
                hold(results[3].reshape(n, width)[t, i], so_far, running(t + 1, wide) * u * sizes, f"sum so far at {t}")
                if t <= 200:
                    average = average if t == 0 else average * 3 / 4 + Fraction(number) / 4
                    mine = results[4].reshape(n, width)[t, i]
                    hold(mine, average, u * abs(float(average)) + 12 * 2.0**-53 * most, f"average at {t}")


@pytest.mark.parametrize(("dtype", "device"), CASES, ids=str)
def test_products(dtype: np.dtype, device: str) -> None:
    u = unit(dtype)
    a, b = drawn(dtype, 4, 700), drawn(dtype, 700, 3)
    image, weights = drawn(dtype, 2, 5, 6, 6), drawn(dtype, 3, 5, 3, 3)
    both, conv = resolved(device, fc.source(a) @ b, fc.nn.conv2d(fc.source(image), weights))
    for i, j in np.ndindex(both.shape):
        dot, sizes = exact_dot(a[i], b[:, j])
        hold(both[i, j], dot, product(700) * u * float(sizes), "product")
    for item, channel, i, j in ((0, 0, 0, 0), (1, 2, 3, 1)):
        window = image[item, :, i : i + 3, j : j + 3].reshape(-1)
        dot, sizes = exact_dot(window, weights[channel].reshape(-1))
        hold(conv[item, channel, i, j], dot, product(45) * u * float(sizes), "convolution")
    folded = resolved(device, fc.source(a[:, :5]).T @ fc.source(a[:, 5:7]))[0]
    dot, sizes = exact_dot(a[:, 2], a[:, 6])
    hold(folded[2, 1], dot, 4097 * u * float(sizes), "product of streams")


@pytest.mark.parametrize(("dtype", "device"), CASES, ids=str)
def test_softmax_and_attention(dtype: np.dtype, device: str) -> None:
    u, n, d = unit(dtype), 200, 24
    rows = drawn(dtype, 3, n)
    q, k, v = (drawn(dtype, 1, 1, length, d, seed=seed) / np.asarray(8, dtype) for seed, length in enumerate((3, n, n)))
    shares, attended = resolved(device, fc.nn.softmax(fc.source(rows)), fc.nn.attention(*map(fc.source, (q, k, v))))
    # Exponentials in 80 bits are exact beside 64.
    long = rows.astype(np.longdouble)
    e = np.exp(long - long.max(1, keepdims=True))
    right = e / e.sum(1, keepdims=True)
    reach = (long.max(1) - long.min(1))[:, None]
    own = float(ml_dtypes.finfo(dtype).eps) / 2 * right + float(ml_dtypes.finfo(dtype).tiny)
    assert (np.abs(shares - right) <= (2 * reach + 18 + row(n)) * u * right + own).all()
    wide_q, wide_k, wide_v = (one[0, 0].astype(np.longdouble) for one in (q, k, v))
    scores = wide_q @ wide_k.T / np.sqrt(np.longdouble(d))
    weights = np.exp(scores - scores.max(1, keepdims=True))
    value = weights @ wide_v / weights.sum(1, keepdims=True)
    largest = float((np.abs(wide_q) @ np.abs(wide_k).T).max() / math.sqrt(d))
    bound = (4 * (d + 3) * largest + 3 * n + 60) * u * np.abs(wide_v).max()
    assert (np.abs(attended[0, 0] - value) <= bound + float(ml_dtypes.finfo(dtype).eps) / 2 * np.abs(value)).all()


def test_a_recurrence_forgets_its_errors() -> None:
    a, b = np.full(600, 0.9, "f4"), drawn(np.dtype("f4"), 600)
    (made,) = resolved("numpy", fc.linear_recurrence(fc.source(a), fc.source(b)))
    h, states = Fraction(0), []
    for number in b.tolist():
        h = Fraction(float(a[0])) * h + Fraction(number)
        states.append(float(h))
    assert np.abs(made - np.array(states)).max() <= 2.0**-24 / (1 - float(a[0])) * np.abs(states).max()


@pytest.mark.parametrize("device", ["numpy", "cpu"])
def test_bounds_are_reached_where_all_roundings_go_one_way(device: str) -> None:
    """A number of 2^24 swallows each 1 that is added to it alone: every rounding between it and the result loses 1."""
    swallowing = np.zeros(1024, "f4")
    # Of its lane, and of the lanes that are added to that at each level.
    swallowing[[256, 512, 768, *(1 << level for level in range(8))]] = 1
    ones = np.ones(4096, "f4")
    swallowing[0] = ones[0] = 2**24
    x, y = fc.source(ones), fc.source(ones[None, :512])
    results = resolved(device, fc.source(swallowing).sum(0), fc.cumulative_sum(x)[63])
    results += resolved(device, fc.source(np.stack([ones] * 2, axis=1)).sum(0), y @ np.ones((512, 1), "f4"))
    totals = float(swallowing.sum(dtype="f8")), 2.0**24 + 63, 2.0**24 + 4095, 2.0**24 + 511
    lost = [total - float(result.reshape(-1)[0]) for total, result in zip(totals, results, strict=True)]
    steps = [row(1024), running(64) - 2, column(4096, 2) - 2, product(512) - 2]
    # NumPy multiplies in an order of its own.
    assert lost[: 4 if device == "cpu" else 3] == steps[: 4 if device == "cpu" else 3]
