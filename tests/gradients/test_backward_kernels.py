"""Backward passes of rows are one kernel, and store no matrix of their own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import flowcompute as fc
from flowcompute.gradients import attention_rules

RNG = np.random.default_rng(5)
ROWS, WEIGHTS = (RNG.standard_normal((40, 24)).astype("f4") for _ in range(2))
LABELS = np.arange(40) % 24
G, B = fc.parameter(np.linspace(0.5, 1.5, 24, dtype="f4")), fc.parameter(np.zeros(24, "f4"))

LOSSES: dict[str, Callable[[Any, Any], Any]] = {
    "softmax": lambda x, t: (fc.nn.softmax(x, axis=1) * t).sum(),
    "log_softmax": lambda x, t: (fc.nn.log_softmax(x, axis=1) * t).sum(),
    "logsumexp": lambda x, t: (fc.nn.logsumexp(x, axis=1) * t[:, 0]).sum(),
    "cross_entropy": lambda x, t: fc.nn.cross_entropy(x, fc.source(LABELS), reduction="mean"),
    "layer_norm": lambda x, t: (fc.nn.layer_norm(x, weight=G, bias=B) * t).sum(),
    "rms_norm": lambda x, t: (fc.nn.rms_norm(x, weight=G) * t).sum(),
    "lengths": lambda x, t: fc.sqrt((x * x).sum(axis=1) + 1.0).sum(),
}


@pytest.mark.parametrize("name", LOSSES)
def test_one_kernel_for_the_gradient_of_rows(name: str) -> None:
    x, t = fc.source(ROWS), fc.source(WEIGHTS)
    text = str(fc.grad(LOSSES[name](x, t), x).plan(device="cpu"))
    assert sum(line.startswith("  batch  kernel") for line in text.splitlines()) == 1, text
    assert "(between kernels)" not in text


def test_gradients_of_weights_are_folds_beside_it() -> None:
    x, t = fc.source(ROWS), fc.source(WEIGHTS)
    text = str(fc.plan(*fc.grad(LOSSES["layer_norm"](x, t), [x, G, B]), device="cpu"))
    assert sum(line.startswith("  batch  kernel") for line in text.splitlines()) == 1, text


@pytest.mark.parametrize("name", LOSSES)
def test_slopes_by_differences(name: str) -> None:
    x, t = fc.source(ROWS[:3].astype("f8")), fc.source(WEIGHTS[:3].astype("f8"))

    def loss(rows: Any) -> Any:
        if name == "cross_entropy":
            return fc.nn.cross_entropy(rows, fc.source(LABELS[:3]), reduction="mean")
        return LOSSES[name](rows, t)

    found = fc.grad(loss(x), x).resolve(device="numpy", progress=False)
    rng = np.random.default_rng(1)
    for _ in range(3):
        step = rng.standard_normal((3, 24))
        step *= 1e-5 / np.linalg.norm(step)
        high, low = fc.resolve(loss(x + step), loss(x - step), device="numpy", progress=False)
        np.testing.assert_allclose((found * step).sum() / 1e-5, (high - low) / 2e-5, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("axis", [0, 1, (0, 1)])
def test_kept_axes_are_those_that_were_reduced(axis: Any) -> None:
    """Reductions over other axes of the same items stay apart."""
    x = RNG.standard_normal((5, 4, 3))

    def loss(s: Any) -> Any:
        own = tuple(one + 1 for one in axis) if isinstance(axis, tuple) else axis + 1
        return (fc.log((s * s).sum(axis=own) + 1.0) * fc.max(s, axis=own)).sum()

    source = fc.source(x)
    found = fc.grad(loss(source), source).resolve(device="numpy", progress=False)
    step = RNG.standard_normal(x.shape) * 1e-6
    high, low = fc.resolve(loss(source + step), loss(source - step), device="numpy", progress=False)
    np.testing.assert_allclose((found * step).sum(), (high - low) / 2, rtol=1e-5)


def test_second_derivatives_of_rows() -> None:
    x = fc.source(ROWS[:4].astype("f8"))
    first = fc.grad((fc.nn.logsumexp(x, axis=1) * 2.0).sum(), x)
    second = fc.grad((first * WEIGHTS[:4].astype("f8")).sum(), x).resolve(device="numpy", progress=False)
    e = np.exp(ROWS[:4].astype("f8"))
    p, w = e / e.sum(1, keepdims=True), WEIGHTS[:4]
    np.testing.assert_allclose(second, 2 * (p * w - p * (p * w).sum(1, keepdims=True)), rtol=1e-9)


@pytest.mark.parametrize(
    ("queries", "keys", "options"),
    [
        (12, 12, {}),
        (12, 12, {"causal": True}),
        (5, 9, {"causal": True, "window": 3}),
        (9, 5, {"causal": True}),
        (12, 7, {"mask": "floats"}),
        (12, 7, {"mask": "one for all queries"}),
        (12, 7, {"mask": "bools"}),
    ],
)
def test_attention_goes_back_in_runs_of_queries(
    queries: int, keys: int, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Runs store less, and give the same slopes to the last digits."""
    rng = np.random.default_rng(3)
    shapes = (4, queries, 3), (2, keys, 3), (2, keys, 2)
    q, k, v = (fc.source(rng.standard_normal((2, *shape))) for shape in shapes)
    masks = {
        "floats": rng.standard_normal((queries, keys)),
        "one for all queries": rng.standard_normal((1, keys)),
        "bools": rng.random((queries, keys)) > 0.3,
    }
    given = {**options, "mask": masks[options["mask"]]} if "mask" in options else options
    loss = (fc.nn.attention(q, k, v, **given) * rng.standard_normal((2, 4, queries, 2))).sum()
    whole = fc.resolve(*fc.grad(loss, [q, k, v]), device="numpy", progress=False)
    monkeypatch.setattr(attention_rules, "_STORED_BYTES", 4 * queries * keys * 8 // 3)
    gradients = fc.grad(loss, [q, k, v])
    for found, expected in zip(fc.resolve(*gradients, device="numpy", progress=False), whole, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)
