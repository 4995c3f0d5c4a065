"""Shuffled streams: their records against NumPy, what is read for them, gradients, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flowcompute as fc
from flowcompute.elements.generated import Permutation
from flowcompute.errors import PlanError, RunError, SpecError
from tests.properties.cases import cases

N = 300
X = np.random.default_rng(1).integers(-9, 9, (N, 3)).astype(np.float32)
LABELS = np.arange(N) % 7
W = np.arange(6, dtype="f4").reshape(3, 2)


def resolve(*elements: Any, **options: Any) -> Any:
    return fc.resolve(*elements, **{"device": "numpy", "progress": False} | options)


def order(length: int, seed: int = 4, epoch: int = 0, block: int = 1, window: int = 1) -> np.ndarray:
    return Permutation(seed, epoch, length, block, window).records(np.arange(length))


MAPS: dict[str, tuple[Callable[[Any], Any], np.ndarray]] = {
    "a source": (lambda x: x, X),
    "a product": (lambda x: x @ W + 1, X @ W + 1),
    "rows": (lambda x: fc.sort(x, axis=1).max(axis=1, keepdims=True) - x, X.max(axis=1, keepdims=True) - X),
    "a view": (lambda x: x[:, ::-1] * 2, X[:, ::-1] * 2),
    "cut along": (lambda x: x + X, X + X),
    "a fold beside it": (lambda x: x - x.mean(axis=0), X - X.mean(axis=0, dtype="f4")),
    "a section": (lambda x: (x * 2)[10:200:3], X[10:200:3] * 2),
    "runs": (lambda x: fc.cut(x.astype("f8"), 7, tail="drop")[1:] * 2, X[7:294].reshape(41, 7, 3) * 2.0),
    "runs beside a constant": (lambda x: fc.cut(x + X, 10).sum(axis=1), (X + X).reshape(30, 10, 3).sum(axis=1)),
    "shuffled": (lambda x: fc.shuffle(x * 2, seed=9), X[order(N, 9)] * 2),
    "a part of shuffled": (lambda x: fc.shuffle(x, seed=9)[5:50] + 1, X[order(N, 9)][5:50] + 1),
}


@pytest.mark.parametrize("name", MAPS)
def test_records_of_maps(name: str) -> None:
    make, expected = MAPS[name]
    made = fc.shuffle(make(fc.source(X)), seed=4, epoch=2, block=3, window=12)
    np.testing.assert_allclose(resolve(made), expected[order(len(expected), 4, 2, 3, 12)], rtol=1e-5)


@pytest.mark.parametrize("device", ["numpy", "cpu"])
def test_both_backends_and_files(device: str, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", X)
    x, y = fc.shuffle(fc.open(tmp_path / "x.npy") @ W, fc.source(LABELS), seed=4, epoch=1)
    found = resolve(x, y, (x[:, 0] * y).sum(), device=device)
    at = order(N, 4, 1)
    np.testing.assert_array_equal(found[0], (X @ W)[at])
    np.testing.assert_array_equal(found[1], LABELS[at])
    np.testing.assert_allclose(found[2], ((X @ W)[:, 0] * LABELS).sum(), rtol=1e-6)


@cases(12)
@given(
    batch=st.sampled_from([16, 64, 100_000]),
    block=st.sampled_from([1, 4, 500]),
    window=st.sampled_from([None, 1, 50]),
    start=st.integers(0, N),
    stop=st.integers(0, N),
)
def test_any_part_in_any_batches(batch: int, block: int, window: int | None, start: int, stop: int) -> None:
    made = fc.shuffle(fc.source(X) * 2, seed=1, block=block, window=window)[start:stop]
    mixed = (1 if block == 1 else 64 * block) if window is None else window
    expected = (X * 2)[order(N, 1, 0, block, mixed)][start:stop]
    np.testing.assert_array_equal(resolve(made, strategy=fc.Strategy(batch_bytes=batch * 12)), expected)


def test_parts_of_a_shuffled_stream_beside_it() -> None:
    x = fc.shuffle(fc.source(X), seed=4)
    mixed = X[order(N)]
    np.testing.assert_array_equal(resolve(x[1:] - x[:-1]), mixed[1:] - mixed[:-1])
    np.testing.assert_array_equal(resolve(fc.concat([x, fc.source(X)], axis=0)), np.concatenate([mixed, X]))
    np.testing.assert_array_equal(resolve(fc.cumulative_sum(x, axis=0)), np.cumsum(mixed, 0))
    np.testing.assert_array_equal(resolve(x[x[:, 0] > 0]), mixed[mixed[:, 0] > 0])


def test_equal_shuffles_are_read_once() -> None:
    x = fc.source(X)
    plan = fc.plan(fc.shuffle(x, seed=4), fc.shuffle(x, seed=4) * 2, device="numpy")
    assert len(plan.passes[0].sources) == 1


@pytest.mark.parametrize("of", ["source", "map", "resident"])
def test_gradients_pass_through(of: str) -> None:
    x, w = fc.source(X.astype("f8")), fc.parameter(W.astype("f8"))
    hidden = fc.tanh(x @ w)
    weights = np.arange(N * 2.0).reshape(N, 2)
    loss = (fc.shuffle(hidden, seed=4) * weights).sum()
    plain = (hidden * weights[np.argsort(order(N))]).sum()
    wrt = {"source": x, "map": hidden, "resident": w}[of]
    found, expected = resolve(fc.grad(loss, wrt), fc.grad(plain, wrt))
    np.testing.assert_allclose(found, expected, rtol=1e-10)


def test_a_mean_over_a_shuffled_stream_has_the_gradient_of_a_mean() -> None:
    x = fc.source(X.astype("f8"))
    found = resolve(fc.grad(fc.shuffle(x, seed=1).mean(), x))
    np.testing.assert_allclose(found, np.full_like(X, 1 / X.size, "f8"), rtol=1e-12)


@pytest.mark.parametrize("batches", [1, 3])
def test_frozen_and_thawed(batches: int, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", X)

    def job() -> Any:
        return fc.shuffle(fc.open(tmp_path / "x.npy"), seed=4, block=4, window=32) >> fc.save(tmp_path / "y.npy")

    seen = []

    def watch(run: fc.Run) -> None:
        seen.append(run)
        if len(seen) == batches:
            run.freeze(tmp_path / "kept")

    small = fc.Strategy(batch_bytes=480)
    with pytest.raises(RunError, match="was frozen"):
        fc.run(job(), device="numpy", progress=False, strategy=small, on_batch=watch)
    fc.thaw(tmp_path / "kept").resolve(device="numpy", progress=False)
    np.testing.assert_array_equal(np.load(tmp_path / "y.npy"), X[order(N, 4, 0, 4, 32)])


def test_another_seed_is_another_job_and_named(tmp_path: Path) -> None:
    options: dict[str, Any] = {"device": "numpy", "progress": False, "checkpoint": tmp_path / "kept"}
    fc.run(fc.shuffle(fc.source(X), seed=4).sum(), **options)
    with pytest.raises(fc.CheckpointError, match="seed=5, and had seed=4"):
        fc.run(fc.shuffle(fc.source(X), seed=5).sum(), **options)


REFUSED: dict[str, tuple[Callable[[Any], Any], str]] = {
    "scan": (lambda x: fc.cumulative_sum(x, axis=0), "takes several records"),
    "selection": (lambda x: x[x[:, 0] > 0], "its length is unknown"),
    "window": (lambda x: fc.window(x, 3), "takes several records"),
    "concat": (lambda x: fc.concat([x, x], axis=0), "takes several records"),
    "iterator": (lambda _: fc.iterate([X], shape=(3,), dtype="f4"), "its length is unknown"),
    "spool": (lambda x: fc.spool(x), "kept for a later pass"),
    "random": (lambda x: x + fc.random.uniform(N, shape=(3,), seed=1), "made in order"),
    "row maxima, cut": (lambda x: fc.cut(x.max(axis=1), 3), "whole items and then cut"),
    "computed and cut along": (lambda x: x + fc.matmul(np.ones((N, 3), "f4"), x.T @ x), "computed and cut along"),
    "resident": (lambda x: x.sum(axis=0), "cannot shuffle what is no stream"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_read_at_any_record_is_refused(name: str) -> None:
    make, text = REFUSED[name]
    with pytest.raises(SpecError, match=text) as caught:
        fc.shuffle(make(fc.source(X)), seed=1)
    assert "test_shuffles.py" in str(caught.value)


def test_other_mistakes_are_refused() -> None:
    x = fc.source(X)
    with pytest.raises(SpecError, match="cannot shuffle nothing"):
        fc.shuffle(seed=1)
    with pytest.raises(SpecError, match="different length"):
        fc.shuffle(x, x[1:], seed=1)
    for wrong in ({"seed": -1}, {"seed": 1, "epoch": -1}, {"seed": 1, "block": 0}, {"seed": 1, "window": 0}):
        with pytest.raises(SpecError, match="cannot take"):
            fc.shuffle(x, **wrong)


@pytest.mark.parametrize("length", [0, 1, 2])
def test_few_records(length: int) -> None:
    np.testing.assert_array_equal(resolve(fc.shuffle(fc.source(X[:length]), seed=4)), X[:length][order(length)])
    np.testing.assert_array_equal(
        resolve(fc.shuffle(fc.source(X[:length]), seed=4, block=2)), X[:length][order(length, block=2, window=128)]
    )


def test_a_budget_that_is_too_small_is_refused_before_reading() -> None:
    with pytest.raises(PlanError):
        fc.plan(fc.shuffle(fc.source(np.ones((4, 1 << 20))), seed=1) * 2, device="numpy", memory="1MiB")
