"""Tiles of products: whatever their size, the bits are those of the default."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import flowcompute as fc
from flowcompute.gpu import OpenCLBackend
from tests.gpu.shapes import gpu_shaped, plan_for_gpu, resolve_on_gpu, run_on_gpu, twin

pytestmark = pytest.mark.compiles

RANDOM = np.random.default_rng(7)
LEFT = RANDOM.standard_normal((43, 520), dtype=np.float32)
RIGHT = RANDOM.standard_normal((520, 40), dtype=np.float32)
BIAS = RANDOM.standard_normal(40, dtype=np.float32)


def product() -> fc.Element:
    return fc.source(LEFT) @ RIGHT + BIAS


def pairs() -> fc.Element:
    """A product for each record, of numbers that take eight bytes."""
    wide = LEFT.astype(np.float64)
    return fc.source(wide[:40].reshape(10, 4, 520)) @ fc.source(wide.reshape(-1)[: 10 * 520 * 2].reshape(10, 520, 2))


@pytest.mark.parametrize("make", [product, pairs])
@pytest.mark.parametrize("tile", [(2, 64), (8, 32)])
def test_on_cpus(make, tile) -> None:
    strategy = fc.Strategy(tile_rows=tile[0], tile_columns=tile[1])
    plan = fc.plan(make(), device="cpu", strategy=strategy)
    assert any((k.ir.knobs.tile_rows, k.ir.knobs.tile_columns) == tile for k in plan.kernels)
    found = fc.resolve(make(), device="cpu", strategy=strategy, progress=False)
    assert found.tobytes() == fc.resolve(make(), device="cpu", progress=False).tobytes()


@pytest.mark.parametrize("tile", [(16, 32)])
def test_on_gpus(tile) -> None:
    strategy = fc.Strategy(tile_rows=tile[0], tile_columns=tile[1])
    plan = plan_for_gpu(product(), strategy=strategy)
    assert [(k.ir.knobs.tile_rows, k.ir.knobs.tile_columns) for k in plan.kernels] == [tile]
    (found,), (wanted,) = resolve_on_gpu(product(), strategy=strategy), resolve_on_gpu(product())
    assert found.tobytes() == wanted.tobytes()


def test_few_rows_have_smaller_tiles() -> None:
    """Take smaller tiles where most units had none. The device of the other tests has 2 units."""
    device = twin(gpu_shaped().device)
    device.capabilities = dataclasses.replace(device.capabilities, units=8)
    run = run_on_gpu(product(), backend=OpenCLBackend(device))
    (kernel,) = (one.ir for one in run.plan.kernels)
    assert [kernel.of_items(rows).tile for rows in (1, 256, 257)] == [(32, 2), (32, 2), (128, 1)]
    (wanted,) = resolve_on_gpu(product())
    assert np.asarray(run.values[0]).tobytes() == wanted.tobytes()


def test_a_tile_that_is_too_large_is_told() -> None:
    wide = fc.source(LEFT.astype(np.float64)) @ RIGHT.astype(np.float64)
    plan = plan_for_gpu(wide, strategy=fc.Strategy(tile_rows=128))
    assert plan.kernels[0].ir.knobs.tile_rows == 64
    assert "knob at tile_rows: accepted, not applied: 128 is none of its values" in plan.explain()
