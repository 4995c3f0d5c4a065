"""Losses of steps that are told from each other, and found again, by their structure."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import flowcompute as fc
from flowcompute.train.composing import Problem
from flowcompute.train.loss_pattern import LossPattern
from tests.train.problems import X, Y, loss, weights

W, B = weights()
BIG = np.ones((129, 129), "f4")
"""More bytes than are compared."""


def found(first: Any, second: Any) -> list[Any] | None:
    return LossPattern(Problem.of("step", first, (W, B))).sources(second, (W, B))


def rows() -> Any:
    return fc.source(X) @ W + B


@fc.kernel
def squared(a: Any) -> Any:
    return a * a


@fc.kernel
def cubed(a: Any) -> Any:
    return a * a * a


def negative(a: np.ndarray) -> np.ndarray:
    return -a


def halved(a: np.ndarray) -> np.ndarray:
    return a / 2


def by_host(function: Callable[[np.ndarray], np.ndarray]) -> Any:
    return (rows() + fc.stop_gradient(fc.host(function, fc.source(X), shape=(6,), dtype="f4"))[:, :3]).sum()


COMPOSED: dict[str, Callable[[], Any]] = {
    "a mean": lambda: rows().mean(),
    "a sum": lambda: rows().sum(),
    "one axis": lambda: rows().max(axis=1).sum(),
    "the axis kept": lambda: rows().max(axis=1, keepdims=True).sum(),
    "twice as many": lambda: (rows() * 2.0).sum(),
    "thrice as many": lambda: (rows() * 3.0).sum(),
    "a zero": lambda: (rows() + 0.0).sum(),
    "a zero below zero": lambda: (rows() + -0.0).sum(),
    "columns": lambda: rows()[:, :2].sum(),
    "other columns": lambda: rows()[:, 1:].sum(),
    "fewer records": lambda: (fc.source(X[:20]) @ W + B).sum(),
    "a wider dtype": lambda: fc.astype(rows(), "float64").sum(),
    "swapped": lambda: (B - fc.source(X) @ W).sum(),
    "as they were": lambda: (fc.source(X) @ W - B).sum(),
    "one source": lambda: (lambda x: ((x @ W + B) * (x @ W)).sum())(fc.source(X)),
    "two sources": lambda: ((fc.source(X) @ W + B) * (fc.source(X) @ W)).sum(),
    "squares": lambda: squared(rows()).sum(),
    "cubes": lambda: cubed(rows()).sum(),
    "by Python": lambda: by_host(negative),
    "by another function": lambda: by_host(halved),
    "pinned": lambda: fc.exp(rows()).on("numpy").sum(),
    "not pinned": lambda: fc.exp(rows()).sum(),
    "random": lambda: (rows() * fc.random.uniform(50, shape=(3,), seed=1)).sum(),
    "of another seed": lambda: (rows() * fc.random.uniform(50, shape=(3,), seed=2)).sum(),
    "of a part": lambda: (fc.source(np.vstack([X, X]))[:50] @ W + B).sum(),
}


@pytest.mark.parametrize("name", COMPOSED)
def test_a_loss_is_found_again_and_no_other_one(name: str) -> None:
    same = [other for other, compose in COMPOSED.items() if found(COMPOSED[name](), compose()) is not None]
    # A part of a source is a source.
    assert same == (["a sum", "of a part"] if name in {"a sum", "of a part"} else [name])


def test_sources_come_in_the_order_of_the_first_loss() -> None:
    x, y = fc.source(X), fc.source(Y)
    assert found(loss(fc.source(X), fc.source(Y), W, B), loss(x, y, W, B)) == [x, y]


def test_parameters_are_told_by_their_place() -> None:
    v, c = weights()
    pattern = LossPattern(Problem.of("step", loss(fc.source(X), fc.source(Y), W, B), (W, B)))
    other = loss(fc.source(X), fc.source(Y), v, c)
    assert pattern.sources(other, (W, B)) is None
    assert pattern.sources(other, (c, v)) is None
    assert pattern.sources(other, (v, c)) is not None
    assert pattern.sources(None, (W, B)) is None


def test_large_constants_are_told_by_the_element() -> None:
    big = fc.constant(BIG)
    first = (rows() * big.sum()).sum()
    assert found(first, (rows() * big.sum()).sum()) is not None
    assert found(first, (rows() * fc.constant(BIG).sum()).sum()) is None


def test_large_constants_of_equal_calls_are_told_by_their_array() -> None:
    # Classes are counted by a constant of 72 KB, which each call of cross_entropy had made anew.
    scores, labels = fc.ones((9000,), dtype="float32"), np.zeros(len(X), "i8")

    def composed(label: int) -> Any:
        wide = rows().sum(axis=1)[:, None] * scores
        return fc.nn.cross_entropy(wide, fc.source(labels + label), reduction="mean")

    *_, first, second = (composed(label) for label in range(4))
    assert found(first, second) is not None
    assert found(first, second + 1.0) is None


def test_nothing_is_kept_alive() -> None:
    first = (rows() * fc.constant(BIG).sum()).sum()
    pattern, kept = LossPattern(Problem.of("step", first, (W, B))), weakref.ref(first)
    del first
    gc.collect()
    assert kept() is None
    assert pattern.sources((rows() * fc.constant(BIG).sum()).sum(), (W, B)) is None
