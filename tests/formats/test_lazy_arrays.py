"""Arrays of other libraries: what would be loaded whole is refused, what is in memory is taken."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import zarr

import flowcompute as fc
from flowcompute.errors import SpecError

X = np.arange(12.0).reshape(4, 3)


def test_arrays_that_would_be_loaded_whole_are_refused(tmp_path: Path) -> None:
    dask = pytest.importorskip("dask.array")
    with h5py.File(tmp_path / "x.h5", "w") as file:
        arrays: list[Any] = [
            zarr.create_array(tmp_path / "x.zarr", data=X),
            file.create_dataset("x", data=X),
            dask.from_array(X, chunks=2),
        ]
        for lazy in arrays:
            with pytest.raises(SpecError, match=r"loaded whole(.|\n)*fc\.open\("):
                fc.source(lazy)


class OfDLPack:
    """An array that is known by DLPack alone."""

    def __init__(self, array: np.ndarray, device: int = 1) -> None:
        self.array, self.device = array, device

    def __dlpack__(self, **options: Any) -> Any:
        if self.device != 1:
            raise BufferError("it is on a device")
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (self.device, 0)


def test_arrays_of_the_host_are_taken_by_dlpack() -> None:
    x = fc.source(OfDLPack(X))  # type: ignore[arg-type]
    assert np.shares_memory(x.array, X)
    result = (x * 2).resolve(progress=False)
    np.testing.assert_array_equal(np.from_dlpack(result), X * 2)


def test_arrays_of_devices_are_refused() -> None:
    with pytest.raises(SpecError, match="cannot make a source of this"):
        fc.source(OfDLPack(X, device=2))  # type: ignore[arg-type]
