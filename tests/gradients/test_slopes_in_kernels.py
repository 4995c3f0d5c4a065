"""Slopes of each operation that a user's kernel may call, and that each of them is noticed where it is missing."""

from __future__ import annotations

import math
from typing import Any
from unittest import mock

import numpy as np

import flowcompute as fc
from flowcompute.gradients import kernel_tangents
from flowcompute.gradients.rules import NO_GRADIENT, RULES
from flowcompute.gradients.slopes import BINARY, UNARY

X, Y = np.random.default_rng(4).uniform(0.2, 0.8, (2, 16))
STEP = 1e-6


@fc.kernel
def of_one(x):
    return (
        math.acos(x) + 1.1 * math.asin(x) + 1.2 * math.atan(x) + 1.3 * math.atanh(x) + 1.4 * math.acosh(x + 1.5)
        + 1.5 * math.asinh(x) + 1.6 * math.cos(x) + 1.7 * math.cosh(x) + 1.8 * math.exp(x) + 1.9 * np.exp2(x)
        + 2.1 * math.expm1(x) + 2.2 * math.log(x) + 2.3 * math.log10(x) + 2.4 * math.log1p(x) + 2.5 * math.log2(x)
        + 2.6 * np.reciprocal(x) + 2.7 * math.sin(x) + 2.8 * math.sinh(x) + 2.9 * math.sqrt(x) + 3.1 * np.square(x)
        + 3.2 * math.tan(x) + 3.3 * math.tanh(x) + 3.4 * abs(x - 0.5) - 3.5 * -x
    )  # fmt: skip


@fc.kernel
def of_two(x, y):
    return (
        math.atan2(x, y) + 1.1 * math.copysign(x, y - 0.5) + 1.2 * (x / y) + 1.3 * math.fmod(x + 1.0, y)
        + 1.4 * math.hypot(x, y) + 1.5 * np.logaddexp(x, y) + 1.6 * (x * y) + 1.7 * math.pow(x, y) + 1.8 * ((x + 1.0) % y)
        + 1.9 * max(x, y) + 2.1 * min(x, y) + 2.2 * np.maximum(x, y) + 2.3 * np.minimum(x, y) + 2.4 * (x if x > y else y * y)
        + 2.5 * (x - y)
    )  # fmt: skip


UNCALLED = {"erf", "sigmoid", "native_exp2"}
"""Slopes of operations that no function of Python or NumPy stands for."""


def gradients() -> list[Any]:
    x, y = fc.source(X), fc.source(Y)
    return [fc.grad(of_one(x).sum(), x), *fc.grad(of_two(x, y).sum(), [x, y])]


def found(wanted: list[Any]) -> list[np.ndarray]:
    return list(fc.resolve(*wanted, device="numpy", progress=False))


def test_slopes_are_those_of_differences() -> None:
    def differences(function: Any, *at: np.ndarray, operand: int = 0) -> np.ndarray:
        ends = ([one + s * STEP * (i == operand) for i, one in enumerate(at)] for s in (1, -1))
        ahead, behind = (np.array([function.python(*each) for each in zip(*end, strict=True)]) for end in ends)
        return (ahead - behind) / (2 * STEP)

    expected = [differences(of_one, X), *(differences(of_two, X, Y, operand=i) for i in range(2))]
    for one, other in zip(found(gradients()), expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-6)


def test_each_slope_is_noticed_where_it_is_missing() -> None:
    whole, mutants = found(gradients()), dict[tuple[str, int], list[Any]]()
    for name in UNARY.keys() - UNCALLED:
        with mock.patch.dict(UNARY, {name: lambda f, x, y: x * 0.0}):
            mutants[name, 0] = gradients()
    for name, slopes in BINARY.items():
        for place, slope in enumerate(slopes):
            less = tuple(None if i == place else one for i, one in enumerate(slopes))
            if slope is not None:
                with mock.patch.dict(BINARY, {name: less}):
                    mutants[name, place] = gradients()
    for name in ("maximum", "minimum"):
        with mock.patch.dict(RULES, {f"elementwise.{name}": NO_GRADIENT}):
            mutants[name, 0] = gradients()
    assert kernel_tangents.UNARY is UNARY
    values = iter(found([one for each in mutants.values() for one in each]))
    unnoticed = [name for name in mutants if all(np.allclose(next(values), one, rtol=1e-4) for one in whole)]
    assert unnoticed == []
