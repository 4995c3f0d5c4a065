"""Optimizers against their formulas in NumPy: bits of plain descent, float64 and torch's order of terms of the others."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flowcompute as fc
from flowcompute.errors import SpecError

SHAPE = (3, 5)


def trained(optimizer: Any, first: np.ndarray, gradients: list[np.ndarray], device: str) -> list[np.ndarray]:
    """Return a parameter after each of the updates, computed one at a time as training does."""
    value: Any = fc.parameter(first)
    state = optimizer.begin(value)
    made = []
    for number, gradient in enumerate(gradients, 1):
        after, kept = optimizer.advance(fc.constant(gradient), state, value, fc.constant(np.int64(number)))
        found = fc.resolve(after, *kept, device=device, progress=False)
        arrays = list(found) if isinstance(found, tuple | list) and kept else [found]
        value, state = fc.parameter(arrays[0]), tuple(fc.constant(one) for one in arrays[1:])
        made.append(arrays[0])
    return made


def drawn(count: int, dtype: str = "f4") -> tuple[np.ndarray, list[np.ndarray]]:
    rng = np.random.default_rng(20)
    return rng.standard_normal(SHAPE).astype(dtype), [rng.standard_normal(SHAPE).astype(dtype) for _ in range(count)]


@pytest.mark.parametrize("device", ["numpy", "cpu"])
def test_plain_descent_has_the_bits_of_its_formula(device: str) -> None:
    p, gradients = drawn(3)
    for made, g in zip(trained(fc.train.sgd(0.3), p, gradients, device), gradients, strict=True):
        p = p - np.float32(0.3) * g
        np.testing.assert_array_equal(made, p)


@given(
    momentum=st.sampled_from([0.0, 0.5, 0.9]),
    nesterov=st.booleans(),
    decay=st.sampled_from([0.0, 0.01]),
    dtype=st.sampled_from(["f4", "f8"]),
)
def test_descent_with_momentum_has_the_bits_of_its_formulas(
    momentum: float, nesterov: bool, decay: float, dtype: str
) -> None:
    p, gradients = drawn(4, dtype)
    nesterov = nesterov and momentum > 0
    rule = fc.train.sgd(0.1, momentum=momentum, nesterov=nesterov, weight_decay=decay)
    made = trained(rule, p, gradients, "numpy")
    mu, wd, rate = (np.dtype(dtype).type(one) for one in (momentum, decay, 0.1))
    v = np.zeros_like(p)
    for after, g in zip(made, gradients, strict=True):
        d = g + wd * p
        v = mu * v + d
        p = p - rate * (d + mu * v if nesterov else v)
        np.testing.assert_array_equal(after, p)


def by_adam(p: np.ndarray, gradients: list[np.ndarray], rates: list[float], betas: tuple[float, float], eps: float,
            decay: float = 0.0) -> list[np.ndarray]:  # fmt: skip
    """Return parameters by Adam in float64, each term where torch has it: decay first, then the step."""
    m = v = np.zeros(p.shape)
    p, made = p.astype("f8"), []
    for t, (g, rate) in enumerate(zip(gradients, rates, strict=True), 1):
        g = g.astype("f8")
        m, v = betas[0] * m + (1 - betas[0]) * g, betas[1] * v + (1 - betas[1]) * g**2
        p = p * (1 - rate * decay)
        p = p - rate / (1 - betas[0] ** t) * m / (np.sqrt(v) / np.sqrt(1 - betas[1] ** t) + eps)
        made.append(p)
    return made


@pytest.mark.parametrize(
    ("device", "betas"), [("cpu", (0.9, 0.999)), ("numpy", (0.9, 0.999)), ("numpy", (0.0, 0.5)), ("numpy", (0.5, 0.0))]
)
def test_adam_against_float64(device: str, betas: tuple[float, float]) -> None:
    p, gradients = drawn(5)
    made = trained(fc.train.adam(2e-3, betas=betas, eps=1e-8), p, gradients, device)
    np.testing.assert_allclose(made, by_adam(p, gradients, [2e-3] * 5, betas, 1e-8), rtol=3e-7, atol=1e-7)


def test_adamw_against_float64() -> None:
    p, gradients = drawn(5)
    made = trained(fc.train.adamw(0.05, weight_decay=0.1), p, gradients, "numpy")
    np.testing.assert_allclose(made, by_adam(p, gradients, [0.05] * 5, (0.9, 0.999), 1e-8, 0.1), rtol=1e-6, atol=1e-6)


def test_the_first_updates_lose_no_digits() -> None:
    """1 - 0.999^t is 1e-3 at first: computed as a power in float32 it has four digits."""
    p, gradients = np.zeros(SHAPE, "f4"), [np.full(SHAPE, 1.0, "f4")]
    made = trained(fc.train.adam(1.0), p, gradients, "numpy")[0]
    np.testing.assert_allclose(made, -1.0, rtol=3e-7)


def test_float64_stays_float64() -> None:
    p, gradients = drawn(4, "f8")
    made = trained(fc.train.adam(1e-2), p, gradients, "numpy")
    np.testing.assert_allclose(made, by_adam(p, gradients, [1e-2] * 4, (0.9, 0.999), 1e-8), rtol=1e-14)


def test_half_parameters_have_moments_in_float32() -> None:
    p = fc.parameter(np.ones(4, "f2"))
    adam = fc.train.adam()
    state = adam.begin(p)
    assert [one.dtype for one in state] == [np.float32, np.float32]
    after, _ = adam.advance(fc.constant(np.ones(4, "f4")), state, p, fc.constant(np.int64(1)))
    assert after.dtype == np.float16


@pytest.mark.parametrize("device", ["numpy", "cpu"])
def test_a_schedule_gives_the_rate_of_each_update(device: str) -> None:
    p, gradients = drawn(4)
    made = trained(fc.train.sgd(lambda step: 1.0 / (step * step)), p, gradients, device)
    for t, (after, g) in enumerate(zip(made, gradients, strict=True), 1):
        p = p - np.float32(1) / np.float32(t * t) * g
        np.testing.assert_array_equal(after, p)


def test_an_optimizer_of_ones_own() -> None:
    def update(g: Any, state: Any, p: Any, step: Any) -> Any:
        (total,) = state
        total = total + g * g
        return p - 0.1 * g / (fc.sqrt(total) + 1e-6), [total]

    adagrad = fc.train.Optimizer(lambda p: [np.zeros(p.shape, "f4")], update)
    p, gradients = drawn(3)
    total = np.zeros(SHAPE)
    for after, g in zip(trained(adagrad, p, gradients, "numpy"), gradients, strict=True):
        total = total + g.astype("f8") ** 2
        p = p - 0.1 * g / (np.sqrt(total) + 1e-6)
        np.testing.assert_allclose(after, p, rtol=1e-5, atol=1e-6)


def test_settings_are_printed() -> None:
    rule = fc.train.adam(fc.train.cosine(0.002, steps=400, warmup=20))
    expected = "adam(rate=cosine(rate=0.002, steps=400, warmup=20, end=0.0), betas=(0.9, 0.999), eps=1e-08)"
    assert repr(rule) == expected
    assert repr(fc.train.sgd(0.5)) == "sgd(rate=0.5, momentum=0.0, nesterov=False, weight_decay=0.0)"


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: fc.train.sgd(-1), "cannot take rate="),
        (lambda: fc.train.sgd(float("nan")), "a number, 0 or more"),
        (lambda: fc.train.sgd(fc.constant(1.0)), "a function of the number of the update"),  # type: ignore[arg-type]
        (lambda: fc.train.sgd(1, momentum=1), ", below 1"),
        (lambda: fc.train.sgd(1, nesterov=True), "a momentum above 0"),
        (lambda: fc.train.adam(betas=(0.9,)), "two numbers"),  # type: ignore[arg-type]
        (lambda: fc.train.adam(betas=(0.9, 1.0)), "below 1"),
        (lambda: fc.train.adam(eps=0), "above 0"),
        (lambda: fc.train.adamw(weight_decay=-1), "cannot take weight_decay="),
        (lambda: fc.train.Optimizer(None, lambda *_: None), "cannot take init="),  # type: ignore[arg-type]
    ],
)
def test_settings_out_of_range_are_refused(make: Any, text: str) -> None:
    with pytest.raises(SpecError) as caught:
        make()
    assert text in str(caught.value)
    assert "test_optimizers.py" in str(caught.value)


P = fc.parameter(np.ones(3, "f4"), name="p")
G, STEP = fc.constant(np.ones(3, "f4")), fc.constant(np.int64(1))


@pytest.mark.parametrize(
    ("update", "text"),
    [
        (lambda g, s, p, t: p, "to return the next parameter and the next state"),
        (lambda g, s, p, t: (p.astype("float64"), s), "to keep dtypes and shapes"),
        (lambda g, s, p, t: (p, (g, *s)), "to keep dtypes and shapes"),
        (lambda g, s, p, t: (p[None], s), "to keep dtypes and shapes"),
        (lambda g, s, p, t: (p, 3), "cannot take state="),
        (lambda g, s, p, t: (fc.source(np.ones(3, "f4")), s), "resident values"),
    ],
)
def test_an_update_that_cannot_be_carried_on_is_refused(update: Any, text: str) -> None:
    rule = fc.train.Optimizer(lambda p: [p], update)
    with pytest.raises(SpecError, match=text):
        rule.advance(G, rule.begin(P), P, STEP)


def test_other_mistakes_are_refused() -> None:
    with pytest.raises(SpecError, match=r"a gradient float32\(3,\)"):
        fc.train.sgd(1).advance(fc.constant(np.ones(2, "f4")), (), P, STEP)
    with pytest.raises(SpecError, match="a resident parameter of floats"):
        fc.train.sgd(1).begin(fc.source(np.ones(3, "f4")))
    with pytest.raises(SpecError, match="a resident number"):
        fc.train.sgd(lambda step: G).advance(G, (), P, STEP)
