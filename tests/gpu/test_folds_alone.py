"""Folds whose state lies on a discrete device, where no kernel computes what they read: each batch brings its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from unittest import mock

import numpy as np
import pytest

import flowcompute as fc
from flowcompute.gpu import OpenCLBackend
from tests.gpu.shapes import gpu_shaped, run_on_gpu

RNG = np.random.default_rng(6)
X = RNG.integers(-4, 5, (40, 6)).astype("float32")
KEYS = RNG.integers(0, 3, 40)
SUMS = np.stack([X[key == KEYS].sum(axis=0) for key in range(3)])


def product(x: Any, _: Any) -> Any:
    return x.T @ x


def by_key(x: Any, keys: Any) -> Any:
    return fc.segment_sum(x, keys, 3)


FOLDS = pytest.mark.parametrize(("fold", "wanted"), [(product, X.T @ X), (by_key, SUMS)], ids=["product", "by_key"])


@FOLDS
@pytest.mark.parametrize("depth", [1, 2])
def test_batches_of_a_run(fold: Callable[..., Any], wanted: np.ndarray, depth: int) -> None:
    strategy = fc.Strategy(batch_bytes=7 * 32, depth=depth, joined_batches=1)
    (made,) = run_on_gpu(fold(fc.source(X), fc.source(KEYS)), strategy=strategy).values
    np.testing.assert_array_equal(made, wanted)


@FOLDS
def test_sends_of_a_flow(fold: Callable[..., Any], wanted: np.ndarray) -> None:
    x, keys = fc.feed(shape=(6,), dtype="float32", name="x"), fc.feed(dtype="int64", name="keys")
    made = fold(x, keys)
    with (
        mock.patch.object(OpenCLBackend, "select", return_value=gpu_shaped()),
        made.flow(device="gpu") as flow,
    ):
        for start in range(0, 40, 8):
            sent = {"x": X[start : start + 8], "keys": KEYS[start : start + 8]}
            flow.send(**sent if fold is by_key else {"x": sent["x"]})
        np.testing.assert_array_equal(flow.resolve(), wanted)
