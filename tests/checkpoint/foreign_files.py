"""Files in formats that others write, for sources that read them."""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import zarr
from safetensors.numpy import save_file


def hdf5_file(folder: Path) -> Path:
    with h5py.File(folder / "x.h5", "w") as file:
        file.create_dataset("whole", data=np.arange(12.0).reshape(6, 2))
        file.create_dataset("chunks", data=np.arange(12.0).reshape(6, 2), chunks=(4, 1), compression="gzip")
    return folder / "x.h5"


def named_arrays(folder: Path) -> Path:
    save_file({"pad": np.ones(3, "f4"), "x": np.arange(12.0).reshape(6, 2)}, folder / "x.safetensors")
    return folder / "x.safetensors"


def zarr_file(folder: Path, array: np.ndarray) -> Path:
    zarr.create_array(folder / "x.zarr", data=array, chunks=(4, 1), overwrite=True)
    return folder / "x.zarr"


def parquet_file(folder: Path) -> Path:
    table = pa.table({"a": np.arange(9), "b": pa.array([None, *range(8)], pa.float64())})
    pq.write_table(table, folder / "x.parquet", row_group_size=4)
    return folder / "x.parquet"
