"""There is one NaN in what is stored, so that files of equal results hash equally."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import flowcompute as fc
from flowcompute.elements.element import Element
from tests.gpu.shapes import resolve_on_gpu

QUIET = {"float16": 0x7E00, "bfloat16": 0x7FC0, "float32": 0x7FC00000, "float64": 0x7FF8000000000000}


def made(x: Element) -> list[Element]:
    gap = x - x
    return [
        gap,
        x * x.dtype.type(np.nan),
        gap.sum(axis=1),
        gap.max(axis=0),
        gap.sum(),
        (gap @ fc.constant(np.ones((5, 3), x.dtype))).astype(x.dtype),
        fc.cumulative_sum(gap, axis=0),
    ]


# bfloat16 goes the way of float16, whose kernels take the compiler longest.
@pytest.mark.slow
@pytest.mark.parametrize("dtype", [pytest.param("f2", marks=pytest.mark.compiles), ml_dtypes.bfloat16, "f4", "f8"])
def test_every_backend_stores_the_same_bits(dtype: Any) -> None:
    array = np.full((37, 5), np.inf, dtype)
    roots = made(fc.source(array))
    bits = QUIET[array.dtype.name]
    for results in (fc.resolve(*roots, device="numpy"), fc.resolve(*roots), resolve_on_gpu(*roots)):
        for root, result in zip(roots, results, strict=True):
            found = np.asarray(result).reshape(-1)
            assert (found.view(f"u{found.itemsize}") == bits).all(), root


def test_a_signalling_nan_that_is_only_moved_keeps_its_bits() -> None:
    array = np.full(40, 0x7FA00001, "u4").view("f4")
    x = fc.source(array)
    for device in ("numpy", "cpu"):
        assert fc.where(x == x, x.dtype.type(0), x).resolve(device=device).view("u4").tolist() == [0x7FA00001] * 40
