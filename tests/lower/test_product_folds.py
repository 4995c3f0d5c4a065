"""Kernels of folds of products: tiles for results that are small beside the sums."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from flowcompute.ir import DeviceCapabilities
from flowcompute.lower import KernelStyle, lower_product
from tests.gpu.shapes import gpu_shaped

FLOAT32 = np.dtype(np.float32)


def of_units(units: int) -> DeviceCapabilities:
    return dataclasses.replace(gpu_shaped().device.capabilities, units=units)


@pytest.mark.parametrize(
    ("left", "right", "units", "tile"),
    [
        (128, 384, 132, (32, 32)),
        (128, 384, 2, (128, 128)),
        (4096, 4096, 132, (128, 128)),
        (1024, 1024, 132, (64, 64)),
        (128, 10, 132, (32, 16)),
    ],
)
def test_tiles_are_cut_until_compute_units_have_one_each(
    left: int, right: int, units: int, tile: tuple[int, int]
) -> None:
    knobs = lower_product(FLOAT32, 2048, left, right, KernelStyle(of_units(units))).knobs
    assert (knobs.tile_rows, knobs.tile_columns) == tile
