"""GPUs in the host's memory compute where the arrays lie: code for GPUs, and no transfers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import flowcompute as fc
from tests.gpu.faulty_driver import FaultyDriver
from tests.gpu.shapes import gpu_shaped, run_on_gpu

DATA = np.random.default_rng(5).standard_normal((3000, 7), dtype=np.float32)


def roots(x: fc.Element) -> list[fc.Element]:
    """A map, folds, a scan, a product with what stays, rows, and something that the host computes between kernels."""
    weights = np.random.default_rng(6).standard_normal((7, 5), dtype=np.float32)
    shifted = fc.host(lambda row: row + 1, fc.tanh(x), name="shift", dtype="float32", shape=(7,))
    return [
        fc.exp(x) * 2,
        x.var(axis=0),
        fc.cumulative_sum(x, axis=0),
        fc.tanh(x @ weights),
        fc.nn.softmax(x, axis=1).max(axis=1),
        (shifted * 3).sum(),
    ]


@pytest.fixture(scope="module")
def discrete() -> fc.Run:
    return run_on_gpu(*roots(fc.source(DATA)))


@pytest.mark.parametrize("batch_bytes", [None, 7 * 4 * 129])
def test_what_a_discrete_gpu_computes(discrete: fc.Run, tmp_path: Path, batch_bytes: int | None) -> None:
    np.save(tmp_path / "x.npy", DATA)
    for source in (fc.source(DATA), fc.open(tmp_path / "x.npy")):
        strategy = fc.Strategy(batch_bytes=batch_bytes)
        run = run_on_gpu(*roots(source), backend=gpu_shaped(in_place=True), strategy=strategy)
        for got, wanted in zip(run.values, discrete.values, strict=True):
            assert np.asarray(got).tobytes() == np.asarray(wanted).tobytes()
        assert not {"upload", "download"} & run.metrics.keys()
        assert not run.plan.memory.device_items
    assert {"upload", "download"} <= discrete.metrics.keys()


def test_files_are_read_into_memory_that_every_driver_takes(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", DATA)
    run = run_on_gpu(fc.open(tmp_path / "x.npy") * 2, backend=gpu_shaped(in_place=True))
    assert "(read) x" in str(run.plan)


def test_memory_that_a_driver_refuses_is_copied() -> None:
    backend, x = gpu_shaped(in_place=True), fc.source(DATA) * 2
    with FaultyDriver() as sound:
        run_on_gpu(x, backend=backend)
    with FaultyDriver(sound.calls.index("Buffer"), -37) as failing:
        assert run_on_gpu(x, backend=backend).value.tobytes() == (DATA * 2).tobytes()
    # How often a run waits depends on which batches are there together.
    assert failing.calls.count("Buffer") == sound.calls.count("Buffer") + 1
