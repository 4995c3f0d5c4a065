"""Sums of products of records in steps on CPUs, by kernels (order 2), and by BLAS in jobs that were kept before."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest

import flowcompute as fc
from flowcompute.checkpoint.job.kept import KeptJob
from flowcompute.checkpoint.store.folder import CheckpointFolder
from flowcompute.engine.accumulators import products
from flowcompute.errors import RunError
from flowcompute.schedule import Shaping

HERE: dict[str, Any] = {"device": "cpu", "progress": False}
X = np.random.default_rng(0).standard_normal((240, 24)).astype(np.float32)
BLOCK = 4096


def trained(x: Any, dtype: Any = np.float32, **options: Any) -> list[Any]:
    """Learn two matrices, of which the first has a bias."""
    rng = np.random.default_rng(1)
    width = x.spec.shape[-1]
    w, v = (
        fc.parameter(rng.standard_normal(shape).astype(dtype), name=name)
        for name, shape in (("w", (width, 20)), ("v", (20, 3)))
    )
    b = fc.parameter(np.zeros(20, dtype), name="b")
    loss = (fc.tanh(fc.tanh(x @ w + b) @ v) ** 2).mean()
    made = fc.train.fit(loss, fc.train.adam(0.05), **{"batch": 40, "epochs": 2, **options})
    return [made["w"], made["v"], made["b"], made.losses]


def value_bytes(values: Any) -> list[bytes]:
    return [np.asarray(one).tobytes() for one in values]


def order_1() -> Any:
    """Plan as jobs were planned before there was order 2."""
    return mock.patch("flowcompute.jobs.job_planner.Shaping", partial(Shaping, product_order=1))


def by_blas() -> Any:
    """Count the products of BLAS."""
    return mock.patch.object(products, "multiply_blocks", side_effect=products.multiply_blocks)


@pytest.mark.compiles
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_kernels_multiply_all_records_of_a_step(dtype: Any) -> None:
    with order_1(), by_blas() as called:
        wanted = fc.resolve(*trained(fc.source(X.astype(dtype)), dtype), **HERE)
    assert called.call_count == 2 * 12
    with by_blas() as called:
        made = fc.resolve(*trained(fc.source(X.astype(dtype)), dtype), **HERE)
    assert not called.called
    # Adam's first updates have the sign of the gradient alone, so rounding is all that may differ.
    for one, other in zip(made, wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-3 if dtype == np.float32 else 1e-9, atol=1e-4)


@pytest.mark.compiles
def test_the_gradient_is_the_sum_of_products() -> None:
    rows = np.random.default_rng(2).standard_normal((30, 7, 24)).astype(np.float32)
    for x in (X, rows):
        w = fc.parameter(np.zeros((24, 20), np.float32), name="w")
        made = fc.train.fit((fc.source(x) @ w + 1).sum(), fc.train.sgd(1.0), batch=None)
        with by_blas() as called:
            moved = fc.resolve(made["w"], **HERE)
        assert not called.called
        wanted = -np.repeat(x.reshape(-1, 24).astype("f8").sum(axis=0)[:, None], 20, axis=1)
        np.testing.assert_allclose(moved, wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.compiles
def test_neither_batches_nor_chains_change_a_bit() -> None:
    wanted = value_bytes(fc.resolve(*trained(fc.source(X)), **HERE))
    small = fc.Strategy(batch_bytes=1024)
    with mock.patch("flowcompute.engine.accumulators.kept_records.np.concatenate", side_effect=np.concatenate) as parts:
        assert value_bytes(fc.resolve(*trained(fc.source(X)), strategy=small, **HERE)) == wanted
    assert parts.called
    with mock.patch.multiple("flowcompute.engine.repeats.runs_in_place", JOINED_AFTER=2, SHORT_S=1e9):
        assert value_bytes(fc.resolve(*trained(fc.source(X)), **HERE)) == wanted


def test_a_block_of_records_is_folded() -> None:
    x = fc.source(np.ones((BLOCK, 24), np.float32))
    with by_blas() as called:
        fc.resolve(*trained(x, batch=None, epochs=1), **HERE)
    assert called.called


def kept(folder: Path, step: int) -> None:
    """Freeze a training after so many steps."""
    x = fc.open(folder / "x.npy")
    with pytest.raises(RunError, match="was frozen"):
        fc.run(
            *trained(x),
            checkpoint=folder / "kept",
            on_batch=lambda run: run.freeze() if run.progress.items >= step else None,
            **HERE,
        )


@pytest.mark.compiles
def test_a_training_that_was_kept_before_keeps_its_order(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", X)
    with order_1():
        wanted = value_bytes(fc.resolve(*trained(fc.open(tmp_path / "x.npy")), **HERE))
        kept(tmp_path, 5)
    with CheckpointFolder.peek(tmp_path / "kept") as folder:
        job = folder.job()
    older = {key: value for key, value in job.items() if key != "product_order"}
    assert KeptJob.read(older).shaping == KeptJob.read(job).shaping
    with by_blas() as called:
        run = fc.run(*trained(fc.open(tmp_path / "x.npy")), checkpoint=tmp_path / "kept", **HERE)
    assert called.called
    assert value_bytes(run.values) == wanted


@pytest.mark.compiles
def test_a_training_that_is_kept_now_has_the_bits_of_one_in_one_go(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", X)
    wanted = value_bytes(fc.resolve(*trained(fc.open(tmp_path / "x.npy")), **HERE))
    kept(tmp_path, 5)
    with by_blas() as called:
        run = fc.run(*trained(fc.open(tmp_path / "x.npy")), checkpoint=tmp_path / "kept", **HERE)
    assert not called.called
    assert value_bytes(run.values) == wanted
