"""Blocks of every format, of any bytes, and what `gguf` says that they mean."""

from __future__ import annotations

from typing import Any

import numpy as np
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType
from gguf.quants import dequantize

import flowcompute as fc
from flowcompute.elements.quantized import BLOCK_FORMATS

NAMES = tuple(BLOCK_FORMATS)


def sizes(name: str) -> tuple[int, int]:
    """Numbers and bytes of a block, as gguf has them."""
    numbers, size = GGML_QUANT_SIZES[GGMLQuantizationType[name]]
    return numbers, size


def meant(raw: np.ndarray, name: str) -> np.ndarray:
    """The numbers that these bytes mean, every NaN the canonical one."""
    if not raw.size:
        numbers, size = sizes(name)
        return np.empty((*raw.shape[:-1], raw.shape[-1] // size * numbers), np.float32)
    with np.errstate(all="ignore"):
        numbers = np.array(dequantize(np.ascontiguousarray(raw), GGMLQuantizationType[name]), np.float32)
    numbers[np.isnan(numbers)] = np.nan
    return numbers


def any_bytes(name: str, rows: int, blocks: int, seed: int = 0) -> np.ndarray:
    """Rows of blocks of any bytes: scales that are NaN, infinite, zero or subnormal among them."""
    rng = np.random.default_rng(seed)
    return rng.integers(0, 256, (rows, blocks * sizes(name)[1]), dtype=np.uint8)


def tame(name: str, rows: int, blocks: int, seed: int = 0) -> np.ndarray:
    """Rows of blocks whose numbers are finite and below 100."""
    rng, size = np.random.default_rng(seed), sizes(name)[1]
    made = np.empty((0, size), np.uint8)
    while len(made) < rows * blocks:
        drawn = rng.integers(0, 256, (4 * rows * blocks, size), dtype=np.uint8)
        numbers = meant(drawn, name)
        made = np.concatenate([made, drawn[(np.isfinite(numbers) & (np.abs(numbers) < 100)).all(axis=1)]])
    return made[: rows * blocks].reshape(rows, -1)


def assert_bits(got: Any, expected: np.ndarray, what: object = "") -> None:
    """Check that two arrays have the same bits."""
    got = np.asarray(got)
    assert (got.dtype, got.shape) == (expected.dtype, expected.shape), what
    different = np.flatnonzero(got.reshape(-1).view(np.uint32) != expected.reshape(-1).view(np.uint32))
    assert not len(different), (
        what,
        different[:5],
        got.reshape(-1)[different[:5]],
        expected.reshape(-1)[different[:5]],
    )


def kernels(*elements: fc.Element, **options: Any) -> int:
    """The number of kernels of a plan."""
    return len(fc.plan(*elements, **options).kernels)
