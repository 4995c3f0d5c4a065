"""Products `X.T @ Y` of short streams on CPUs: the order of products by kernels, however their records come."""

from __future__ import annotations

from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest

import flowcompute as fc
from flowcompute.checkpoint.job.kept import KeptJob
from flowcompute.checkpoint.store.folder import CheckpointFolder
from flowcompute.distributed import ShardedJob
from flowcompute.engine import PlannedJob
from flowcompute.engine.accumulators import products
from flowcompute.errors import RunError
from flowcompute.gpu import OpenCLBackend
from flowcompute.jobs import choose_backend
from flowcompute.schedule import Shaping
from tests.gpu.test_sharing import DEVICES

HERE: dict[str, Any] = {"device": "cpu", "progress": False}
RNG = np.random.default_rng(3)
X, Y = (RNG.standard_normal((700, count), dtype=np.float32) for count in (100, 37))
BLOCK = 4096


def product(x: Any, y: Any, **options: Any) -> bytes:
    return np.asarray(fc.resolve(x.T @ y, **{**HERE, **options})).tobytes()


def by_blas() -> Any:
    """Count the products of BLAS."""
    return mock.patch.object(products, "multiply_blocks", side_effect=products.multiply_blocks)


def order_1() -> Any:
    """Plan as jobs were planned before there was order 2."""
    return mock.patch("flowcompute.jobs.job_planner.Shaping", partial(Shaping, product_order=1))


def of_unknown_length(array: np.ndarray) -> Any:
    return fc.iterate([array], shape=array.shape[1:], dtype=array.dtype)


@pytest.mark.compiles
@pytest.mark.parametrize(
    ("dtype", "records", "left", "right"), [("f4", 700, 100, 37), ("f8", 513, 6, 21), ("f4", 3, 5, 2)]
)
def test_a_short_stream_has_the_bits_of_resident_matrices(dtype: str, records: int, left: int, right: int) -> None:
    x, y = (np.random.default_rng(side).standard_normal((records, side)).astype(dtype) for side in (left, right))
    wanted = product(fc.constant(x), fc.constant(y))
    with by_blas() as called:
        assert product(fc.source(x), fc.source(y)) == wanted
    assert not called.called


@pytest.mark.compiles
def test_rows_of_items_are_rows() -> None:
    x, y = (fc.source(one[:690].reshape(69, 10, -1)) for one in (X, Y))
    w = fc.parameter(np.zeros((100, 37), np.float32), name="w")
    made = fc.resolve(fc.grad((x @ w * y).sum(), w), **HERE)
    assert np.asarray(made).tobytes() == product(fc.source(X[:690]), fc.source(Y[:690]))


@pytest.mark.compiles
def test_nothing_about_how_records_come_changes_a_bit() -> None:
    wanted = product(fc.source(X), fc.source(Y))
    with order_1():
        assert product(fc.source(X), fc.source(Y)) != wanted
    keep = np.arange(BLOCK) < len(X)
    among = (np.concatenate([one, np.ones((BLOCK - len(X), one.shape[1]), one.dtype)]) for one in (X, Y))
    assert product(*(fc.source(one)[keep] for one in among)) == wanted
    assert product(of_unknown_length(X), of_unknown_length(Y)) == wanted
    assert product(fc.source(X), fc.source(Y), strategy=fc.Strategy(batch_bytes=4096)) == wanted
    assert product(fc.source(np.asfortranarray(X)), fc.source(Y)) == wanted
    with mock.patch.object(OpenCLBackend, "select", return_value=DEVICES["cpu", 3]):
        assert product(fc.source(X), fc.source(Y)) == wanted
    elements = fc.source(X).T @ fc.source(Y), fc.source(X)[:, 0].sum()
    plan = fc.plan(*elements, device="cpu")
    job = PlannedJob.of(plan, choose_backend(plan.config.device, plan.asked, isolate=False))
    assert np.asarray(ShardedJob(job, 3).run()[0]).tobytes() == wanted


def test_longer_streams_are_blocks_of_blas() -> None:
    x = np.ones((BLOCK, 24), np.float32)
    with by_blas() as called:
        product(fc.source(x), fc.source(x[:, :3]))
        product(of_unknown_length(x), of_unknown_length(x[:, :3]))
    assert called.call_count == 2
    # A matrix times itself keeps half of the work by BLAS, at any length.
    short = fc.source(x[:9])
    with by_blas() as called:
        product(short, short)
    assert called.called


@pytest.mark.compiles
@pytest.mark.parametrize("order", [1, 2])
def test_a_kept_job_keeps_its_order(tmp_path: Path, order: int) -> None:
    np.save(tmp_path / "x.npy", X)
    np.save(tmp_path / "y.npy", Y)

    def job() -> Any:
        return fc.open(tmp_path / "x.npy").T @ fc.open(tmp_path / "y.npy")

    small: dict[str, Any] = {**HERE, "strategy": fc.Strategy(batch_bytes=4096), "checkpoint": tmp_path / "kept"}
    with order_1() if order == 1 else nullcontext():
        wanted = np.asarray(fc.resolve(job(), **HERE)).tobytes()
        with pytest.raises(RunError, match="was frozen"):
            fc.run(job(), on_batch=lambda run: run.freeze(), **small)
    with CheckpointFolder.peek(tmp_path / "kept") as folder:
        kept = folder.job()
    assert kept["product_order"] == order
    older = {key: value for key, value in kept.items() if key != "product_order"}
    assert KeptJob.read(older).shaping.product_order == 1
    with by_blas() as called:
        (made,) = fc.run(job(), **small).values
    assert called.called == (order == 1)
    assert np.asarray(made).tobytes() == wanted
