"""Jobs of sources: files of each format, values in memory, iterables, generated numbers."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import ml_dtypes
import numpy as np

import flowcompute as fc
from flowcompute.spec import BFLOAT16, SUPPORTED_DTYPES
from tests.checkpoint.foreign_files import hdf5_file, named_arrays, parquet_file, zarr_file
from tests.checkpoint.operands import Build, numbers, rows
from tests.models.files import write_model


class Batches:
    """An iterable that begins anew."""

    def __iter__(self) -> Iterator[np.ndarray]:
        yield np.arange(6.0).reshape(3, 2)
        yield np.zeros((0, 2))
        yield np.ones((2, 2))


def _npy(folder: Path, array: np.ndarray, name: str = "x.npy") -> str:
    np.save(folder / name, array)
    return str(folder / name)


def _raw(folder: Path, array: np.ndarray, head: int = 0) -> str:
    (folder / "x.raw").write_bytes(b"h" * head + array.tobytes())
    return str(folder / "x.raw")


def _several(folder: Path) -> str:
    for day in range(3):
        _npy(folder, np.full((4, 2), day, "f4"), f"day-{day}.npy")
    return str(folder / "day-*.npy")


def _texts(folder: Path) -> str:
    (folder / "t.jsonl").write_text('{"text": "the sing"}\n{"text": "12"}\n')
    return str(folder / "t.jsonl")


def _model(folder: Path) -> fc.models.Model:
    return fc.models.load(write_model(folder / "m.gguf", block_count=1))


SOURCES: dict[str, Build] = {
    "npy": lambda folder: fc.open(_npy(folder, np.arange(12.0).reshape(6, 2))) * 2,
    "npy, bfloat16": lambda folder: fc.open(_npy(folder, np.ones((5, 2), ml_dtypes.bfloat16)), dtype="bfloat16") * 2,
    "npy, other order": lambda folder: fc.open(_npy(folder, np.asfortranarray(np.ones((5, 3), ">i4"))), name="x") + 1,
    "raw": lambda folder: fc.open(_raw(folder, np.ones((5, 3), ">f4"), 8), dtype=">f4", shape=(3,), offset=8) * 2,
    "raw, bfloat16": lambda folder: fc.open(_raw(folder, np.ones(5, BFLOAT16)), dtype="bfloat16") * 2,
    "raw vectors": lambda folder: fc.open(_raw(folder, np.ones((5, 3), "f8")), shape=fc.Vector(3, "float64")) * 2,
    "hdf5": lambda folder: fc.open(hdf5_file(folder), key="whole") * 2,
    "hdf5 in chunks": lambda folder: fc.open(hdf5_file(folder), key="chunks", name="h") * 2,
    "column": lambda folder: fc.open(parquet_file(folder), fill=1.5)["b"] * 2,
    "safetensors": lambda folder: fc.open(named_arrays(folder), key="x") * 2,
    "zarr": lambda folder: fc.open(zarr_file(folder, np.arange(12.0).reshape(6, 2)), name="z") * 2,
    "several": lambda folder: fc.open(_several(folder)) + 1,
    "several raw": lambda folder: fc.open([_raw(folder, np.arange(6, dtype="i2"))] * 2, dtype="i2", shape=(2,)) + 1,
    "memory": lambda _: (fc.source(np.arange(6.0), name="x") - fc.source(np.arange(6.0)), fc.source(np.eye(3)[::-1])),
    "memory, other order": lambda _: fc.source(np.arange(40_000, dtype=">f8").reshape(200, 200).T) * 2,
    "memory, empty": lambda _: fc.source(np.empty((0, 3), "i1")) * 2,
    "constants": lambda _: tuple(
        fc.constant(np.array([[0, 1]]).astype(dtype), name=f"c{i}") for i, dtype in enumerate(SUPPORTED_DTYPES)
    ),
    "special constants": lambda _: tuple(
        numbers() * one for one in (math.nan, math.inf, -0.0, 0, 1, True, 0.1, np.float16(3), np.ones(12))
    ),
    "large constant": lambda _: rows() @ fc.constant(np.ones((6, 4000), "f4")),
    "iterate": lambda _: fc.iterate(Batches(), shape=(2,), dtype="f8", name="it") * 2,
    "iterate items": lambda _: fc.iterate([1, 2, 3], shape=(), dtype="i4", items=True, on_error="skip") * 2,
    "tokens": lambda folder: _model(folder).tokens(fc.models.texts(_texts(folder), key="text", longest=99)) * 2,
    "tokens, iterated": lambda folder: _model(folder).tokens(fc.models.texts(["the", "sing"], longest=99)) * 2,
    "range": lambda _: (fc.range(10), fc.range(3, 30, 4, dtype="u1"), fc.range(0.5, 3, 0.25), fc.range(9.0, 0, -1.5)),
    "random": lambda _: (
        fc.random.uniform(9, seed=1),
        fc.random.uniform(9, low=-2, high=3, dtype="f2", shape=(2,), seed=2),
        fc.random.uniform(9, dtype="f8", seed=2**64 - 1),
        fc.random.normal(9, mean=1, std=2, seed=3),
        fc.random.normal(9, dtype="f8", shape=fc.Matrix(2, 2), seed=3) + 1,
        fc.random.integers(9, low=-5, high=5, seed=4),
        fc.random.integers(9, low=0, high=2**60, seed=4),
    ),
}
