"""Formulas over rows that are one kernel, with what stands before and after them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import flowcompute as fc
from flowcompute.elements.element import Element
from tests.gpu.shapes import plan_for_gpu

X = fc.source(np.ones((300, 96), np.float32), name="x")
Y = fc.source(np.ones((300, 96), np.float32), name="y")
LABELS = fc.source(np.arange(300) % 96, name="labels")
IMAGES = fc.source(np.ones((300, 8, 6, 6), np.float32), name="images")


def best(x: Element) -> list[Element]:
    return [x.argmax(axis=1), x.max(axis=1) + 1, x]


def moments(x: Element) -> list[Element]:
    mean, var = x.mean(axis=1, keepdims=True), x.var(axis=1, keepdims=True)
    return [mean, var, (x - mean) / fc.sqrt(var + 1e-5)]


def scaled(x: Element) -> Element:
    low, high = (reduced(axis=1, keepdims=True) for reduced in (x.min, x.max))
    return (x - low) / (high - low)


def cosine(x: Element, y: Element) -> Element:
    return fc.vecdot(x, y) / fc.sqrt(fc.vecdot(x, x) * fc.vecdot(y, y))


CASES: dict[str, Callable[[], Element | list[Element]]] = {
    "softmax": lambda: fc.nn.relu(fc.nn.softmax(X * 2 + 1)) * Y,
    "log softmax": lambda: fc.nn.log_softmax(X * 2 + 1) * Y + X,
    "logsumexp": lambda: [fc.nn.logsumexp(fc.abs(X)) * 2, X - fc.nn.logsumexp(fc.abs(X), keepdims=True)],
    "cross entropy": lambda: fc.nn.cross_entropy(X * 0.5 + Y, LABELS) * 2,
    "mean cross entropy": lambda: fc.nn.cross_entropy(X * 0.5 + Y, LABELS, reduction="mean"),
    "the largest and its place": lambda: best(X * Y),
    "a choice by the largest": lambda: fc.where((X * Y).argmax(axis=1) > 3, (X * Y).max(axis=1), 0),
    "the three largest": lambda: [*fc.top_k(X * Y, 3, axis=1), (X * Y).sum(axis=1)],
    "variance": lambda: (X + Y).std(axis=1, correction=1) * 3,
    "moments": lambda: moments(X * Y),
    "squared distance": lambda: fc.sqrt(((X - Y) ** 2).sum(axis=1)) + 1,
    "all squared distances": lambda: ((X - Y) ** 2).sum(),
    "squared distances of columns": lambda: ((X - Y) ** 2).sum(axis=0),
    "squared distances of numbers": lambda: ((X[:, 0] - Y[:, 0]) ** 2).sum(),
    "variance of the stream": lambda: [(X * Y).var(axis=0), (X * Y).mean(axis=0)],
    "layer norm": lambda: fc.nn.layer_norm(fc.nn.gelu(X) + Y) * 2,
    "rms norm": lambda: fc.nn.rms_norm(X * Y, weight=fc.constant(np.ones(96, np.float32))) + X,
    "instance norm": lambda: fc.nn.relu(fc.nn.instance_norm(IMAGES * 2)),
    "from lowest to highest": lambda: scaled(fc.abs(X)),
    "cosine": lambda: cosine(X * 2, Y),
    "a matrix and a vector": lambda: fc.nn.relu((X * 2) @ np.ones(96, np.float32)) + 1,
    "half formats and a vector": lambda: X.astype("f2") @ np.ones(96, np.float16),
}


@pytest.mark.parametrize("name", CASES)
def test_one_kernel(name: str) -> None:
    made = CASES[name]()
    roots = made if isinstance(made, list) else [made]
    for plan in (fc.plan(*roots, device="cpu"), plan_for_gpu(*roots)):
        assert len(plan.passes) == 1
        assert len(plan.kernels) == 1, plan


@pytest.mark.parametrize("columns", [40, 1000])
@pytest.mark.parametrize("formula", [fc.nn.softmax, fc.nn.layer_norm, lambda x: x.argmax(axis=1)])
def test_while_a_long_row_is_computed_memory_brings_the_next(
    formula: Callable[[Element], Element], columns: int
) -> None:
    (kernel,) = fc.plan(formula(fc.source(np.ones((9, columns), np.float32))), device="cpu").kernels
    asked = [line for line in kernel.source.splitlines() if "prefetch" in line]
    assert bool(asked) == (columns == 1000)
    assert all(f" + {columns})" in line for line in asked)


def test_folds_of_columns_ask_for_records_to_come() -> None:
    (kernel,) = fc.plan(fc.source(np.ones((9, 512), np.float32)).sum(axis=0), device="cpu").kernels
    (asked,) = [line for line in kernel.source.splitlines() if "prefetch" in line]
    assert f" + {4 * 512})" in asked
