"""Jobs that end in each kind of destination."""

from __future__ import annotations

import numpy as np

import flowcompute as fc
from tests.checkpoint.operands import Build, rows


def twice(batch: np.ndarray) -> np.ndarray:
    return batch * 2


ENDS: dict[str, Build] = {
    "saved": lambda folder: (
        rows() >> fc.save(folder / "y.npy"),
        rows() + 1 >> fc.save(folder / "y.raw", durable=False, name="out"),
        rows("f8").sum() >> fc.save(folder / "z.bin"),
        {"b": rows().sum(axis=0), "a": fc.constant(np.int8(3))} >> fc.save(folder / "w.safetensors"),
        rows("f8").named("x") >> fc.save(folder / "x.safetensors"),
        rows("f8") >> fc.save(folder / "x.zarr", chunk=7, overwrite=True),
        rows().sum(axis=0) >> fc.save(folder / "sum.zarr"),
        rows() >> fc.save(folder / "x.h5", key="a/x"),
        fc.table({"a": rows(), "b": rows("f8")}) >> fc.save(folder / "x.parquet", chunk=2),
    ),
    "objects": lambda _: (
        rows() >> fc.save("memory://ends/x.npy"),
        rows() >> fc.save("memory://ends/x.zarr", chunk=7),
        {"b": rows().sum(axis=0), "a": fc.constant(np.int8(3))} >> fc.save("memory://ends/w.safetensors"),
    ),
    "in memory": lambda _: (rows() >> fc.to_array(name="kept"), rows().sum(axis=0) >> fc.to_array()),
    "called": lambda _: rows() >> fc.callback(twice),
    "discarded": lambda _: rows() >> fc.discard(),
}
