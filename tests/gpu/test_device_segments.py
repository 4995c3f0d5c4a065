"""Sums by key whose state lies on a discrete device, in code for GPUs that PoCL runs: the host's, to the bit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flowcompute as fc
from flowcompute.errors import CheckpointWarning, RunError
from flowcompute.strategy.strategy import Strategy
from tests.gpu.shapes import plan_for_gpu, resolve_on_gpu, run_on_gpu

pytestmark = pytest.mark.compiles

RNG = np.random.default_rng(12)
X = RNG.standard_normal((900, 130), dtype=np.float32) * np.float32(10.0) ** RNG.integers(-8, 8, (900, 1))
X = X.astype(np.float32)
X[5, :4] = np.inf, -np.inf, np.nan, -0.0
KEYS = RNG.integers(0, 7, 900)
KEYS[KEYS == 3] = 2


def sums(x: np.ndarray = X, keys: np.ndarray = KEYS) -> Any:
    return fc.segment_sum(-fc.source(x, name="x"), fc.source(keys, name="keys"), 7)


def in_batches(records: int) -> Strategy:
    return Strategy(batch_bytes=records * (X.shape[1] * 4 + 8), joined_batches=1)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_bits_are_those_of_the_host_whatever_the_batch(dtype: str) -> None:
    x = X.astype(dtype)
    wanted = np.asarray(sums(x).resolve(device="numpy", progress=False))
    assert not wanted[3].any()
    for records in (64, 901):
        plan = plan_for_gpu(sums(x), strategy=in_batches(records))
        assert any("rows are added in their order" in reason.text for reason in plan.reasons)
        (made,) = resolve_on_gpu(sums(x), strategy=in_batches(records))
        assert made.tobytes() == wanted.tobytes()


def test_records_of_several_rows_and_none() -> None:
    """The gradient of a table by places of several rows in each record."""
    table = fc.parameter(RNG.standard_normal((11, 3)), name="table")
    for records in (40, 0):
        places, slopes = (
            fc.source(RNG.integers(0, 9, (records, 2, 4))),
            fc.source(RNG.standard_normal((records, 2, 4, 3))),
        )
        made = fc.grad((fc.take(table, places, axis=0) * slopes).sum(axis=0).sum(), table)
        (got,) = resolve_on_gpu(made)
        assert got.tobytes() == np.asarray(made.resolve(device="numpy", progress=False)).tobytes()


def test_a_key_out_of_range_names_its_record() -> None:
    keys = KEYS.copy()
    keys[700] = 7
    with pytest.raises(RunError, match="key that is out of range") as caught:
        resolve_on_gpu(sums(keys=keys), strategy=in_batches(64))
    assert caught.value.records == (700, 701)


@pytest.mark.parametrize("device", ["gpu", "numpy"])
def test_a_job_goes_on_on_the_device_or_the_host(tmp_path: Path, device: str) -> None:
    np.save(tmp_path / "x.npy", X)
    np.save(tmp_path / "keys.npy", KEYS)

    def job() -> Any:
        return fc.segment_sum(-fc.open(tmp_path / "x.npy"), fc.open(tmp_path / "keys.npy"), 7)

    def freeze(run: fc.Run) -> None:
        if run.progress.items >= 300:
            run.freeze()

    options: dict[str, Any] = {"checkpoint": tmp_path / "kept", "strategy": in_batches(64)}
    with pytest.raises(RunError, match="was frozen"):
        run_on_gpu(job(), on_batch=freeze, **options)
    if device == "gpu":
        (made,) = run_on_gpu(job(), **options).values
    else:
        with pytest.warns(CheckpointWarning, match="goes on on numpy"):
            (made,) = fc.run(job(), device="numpy", progress=False, **options).values
    assert np.asarray(made).tobytes() == np.asarray(sums().resolve(device="numpy", progress=False)).tobytes()
