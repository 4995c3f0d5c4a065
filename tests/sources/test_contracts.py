"""Every source against the contract that all sources keep."""

import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any, ClassVar

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zarr
from safetensors.numpy import save_file

from flowcompute.elements.source import Source
from flowcompute.sinks.save_sink import save
from flowcompute.sources.array_source import MemorySource
from flowcompute.sources.iterate_source import IterateSource
from flowcompute.sources.npy_source import NpySource
from flowcompute.sources.open_source import open as fc_open
from flowcompute.sources.raw_source import RawSource
from flowcompute.spec import BFLOAT16, SUPPORTED_DTYPES
from flowcompute.testing.contracts import SourceContract


def settled(path: Path) -> Path:
    """A file that was last changed long ago and by its owner only, so that it may be mapped."""
    os.utime(path, (1e9, 1e9))
    path.chmod(0o644)
    return path


class TestMemory(SourceContract):
    def make(self, records: np.ndarray, folder: Path) -> Source:
        return MemorySource(records)


class TestMemoryStrided(SourceContract):
    def make(self, records: np.ndarray, folder: Path) -> Source:
        return MemorySource(np.repeat(records, 2, axis=0)[::2])


class TestMemoryReversed(SourceContract):
    def make(self, records: np.ndarray, folder: Path) -> Source:
        return MemorySource(records[::-1].copy()[::-1])


class TestMemoryFortran(SourceContract):
    def make(self, records: np.ndarray, folder: Path) -> Source:
        return MemorySource(np.asfortranarray(records))


class TestMemorySwapped(SourceContract):
    dtypes = tuple(dtype for dtype in SUPPORTED_DTYPES if dtype != BFLOAT16)

    def make(self, records: np.ndarray, folder: Path) -> Source:
        return MemorySource(records.astype(records.dtype.newbyteorder(">")))


class TestMemoryUnaligned(SourceContract):
    def make(self, records: np.ndarray, folder: Path) -> Source:
        room = np.empty(records.nbytes + 1, np.uint8)
        array = room[1:].view(records.dtype).reshape(records.shape)
        array[...] = records
        return MemorySource(array)


NUMPY_DTYPES = tuple(dtype for dtype in SUPPORTED_DTYPES if dtype != BFLOAT16)


class TestNpy(SourceContract):
    dtypes = NUMPY_DTYPES

    def make(self, records: np.ndarray, folder: Path) -> Source:
        np.save(folder / "x.npy", records)
        return NpySource(settled(folder / "x.npy"))


class TestNpyFresh(SourceContract):
    dtypes = NUMPY_DTYPES

    def make(self, records: np.ndarray, folder: Path) -> Source:
        np.save(folder / "x.npy", records)
        return NpySource(folder / "x.npy")


class TestNpyFortran(SourceContract):
    dtypes = NUMPY_DTYPES

    def make(self, records: np.ndarray, folder: Path) -> Source:
        np.save(folder / "x.npy", np.asfortranarray(records))
        return NpySource(settled(folder / "x.npy"))


class TestNpySwapped(SourceContract):
    dtypes = NUMPY_DTYPES

    def make(self, records: np.ndarray, folder: Path) -> Source:
        np.save(folder / "x.npy", records.astype(records.dtype.newbyteorder(">")))
        return NpySource(settled(folder / "x.npy"))


class TestNpyFortranSwapped(SourceContract):
    dtypes = NUMPY_DTYPES

    def make(self, records: np.ndarray, folder: Path) -> Source:
        np.save(folder / "x.npy", np.asfortranarray(records.astype(records.dtype.newbyteorder(">"))))
        return NpySource(settled(folder / "x.npy"))


class TestNpyBfloat16(SourceContract):
    dtypes = (BFLOAT16,)

    def make(self, records: np.ndarray, folder: Path) -> Source:
        np.save(folder / "x.npy", records)
        return NpySource(settled(folder / "x.npy"), dtype="bfloat16" if records.dtype == BFLOAT16 else None)


class TestRaw(SourceContract):
    def make(self, records: np.ndarray, folder: Path) -> Source:
        (folder / "x.raw").write_bytes(records.tobytes())
        return RawSource(settled(folder / "x.raw"), dtype=records.dtype, shape=records.shape[1:])


class TestRawAfterHeader(SourceContract):
    def make(self, records: np.ndarray, folder: Path) -> Source:
        (folder / "x.raw").write_bytes(b"h" * 64 + records.tobytes())
        return RawSource(settled(folder / "x.raw"), dtype=records.dtype, shape=records.shape[1:], offset=64)


class TestRawUnaligned(SourceContract):
    def make(self, records: np.ndarray, folder: Path) -> Source:
        (folder / "x.raw").write_bytes(b"h" * 5 + records.tobytes())
        return RawSource(settled(folder / "x.raw"), dtype=records.dtype, shape=records.shape[1:], offset=5)


class TestSeveral(SourceContract):
    dtypes = NUMPY_DTYPES

    def make(self, records: np.ndarray, folder: Path) -> Source:
        for k, (start, stop) in enumerate([(0, 1), (1, 1), (1, 9), (9, 16), (16, 20)]):
            part = records[start:stop]
            np.save(folder / f"x{k}.npy", np.asfortranarray(part) if k % 2 else part)
        return fc_open(os.path.join(folder, "x*.npy"))


class TestIterateList(SourceContract):
    def make(self, records: np.ndarray, folder: Path) -> Source:
        batches = [records[:3], records[3:3], records[3:11], *(records[k : k + 1] for k in range(11, len(records)))]
        return IterateSource(batches, shape=records.shape[1:], dtype=records.dtype)


class TestIterateItems(SourceContract):
    def make(self, records: np.ndarray, folder: Path) -> Source:
        return IterateSource(list(records), shape=records.shape[1:], dtype=records.dtype, items=True)


class TestIterateGenerator(SourceContract):
    def make(self, records: np.ndarray, folder: Path) -> Source:
        def batches() -> Iterator[np.ndarray]:
            # One array used again and again, as readers of devices and sockets do.
            room = np.empty((4, *records.shape[1:]), records.dtype)
            for start in range(0, len(records), 4):
                batch = room[: len(records[start : start + 4])]
                batch[...] = records[start : start + 4]
                yield batch
                room[...] = 0

        return IterateSource(batches(), shape=records.shape[1:], dtype=records.dtype)


class TestIterateAsync(SourceContract):
    def make(self, records: np.ndarray, folder: Path) -> Source:
        async def batches() -> AsyncIterator[np.ndarray]:
            for start in range(0, len(records), 3):
                yield records[start : start + 3]

        return IterateSource(batches(), shape=records.shape[1:], dtype=records.dtype)


class Reopened:
    def __init__(self, records: np.ndarray) -> None:
        self.records = records

    async def __aiter__(self) -> AsyncIterator[np.ndarray]:
        for item in self.records:
            yield item


class TestIterateAsyncItems(SourceContract):
    def make(self, records: np.ndarray, folder: Path) -> Source:
        return IterateSource(Reopened(records), shape=records.shape[1:], dtype=records.dtype, items=True)


@pytest.mark.parametrize("suite", [TestMemory, TestNpy, TestRaw, TestRawAfterHeader, TestNpyBfloat16])
def test_the_suites_that_should_see_views_do(suite: type[SourceContract], tmp_path: Path) -> None:
    dtype = suite.dtypes[-1]
    reader = suite().make(np.ones((4, 3), dtype), tmp_path).open(mapped=True)
    view = reader.view(2)
    assert view is not None
    del view
    reader.close()


class ZarrContract(SourceContract):
    dtypes = tuple(dtype for dtype in SUPPORTED_DTYPES if dtype != BFLOAT16)
    options: ClassVar[dict[str, Any]] = {}

    def make(self, records: np.ndarray, folder: Path) -> Source:
        chunks = tuple(max(1, min(3, size)) for size in records.shape)
        path = folder / "x.zarr"
        zarr.create_array(path, data=records, chunks=chunks, overwrite=True, **self.options)
        return fc_open(path)


class TestZarr(ZarrContract):
    pass


class TestZarrOfVersion2(ZarrContract):
    options: ClassVar[dict[str, Any]] = {"zarr_format": 2}


class TestZarrWritten(SourceContract):
    dtypes = ZarrContract.dtypes

    def make(self, records: np.ndarray, folder: Path) -> Source:
        writer = save(folder / "x.zarr", chunk=3, overwrite=True).open(MemorySource(records).spec)
        writer.write(records, 0)
        writer.commit()
        return fc_open(folder / "x.zarr")


class TestSafetensorsSource(SourceContract):
    dtypes = ZarrContract.dtypes

    def make(self, records: np.ndarray, folder: Path) -> Source:
        save_file({"pad": np.ones(5, "u1"), "x": np.ascontiguousarray(records)}, folder / "x.safetensors")
        return fc_open(folder / "x.safetensors", key="x")


class TestHdf5Whole(SourceContract):
    dtypes = ZarrContract.dtypes

    def make(self, records: np.ndarray, folder: Path) -> Source:
        with h5py.File(folder / "x.h5", "w") as file:
            file.create_dataset("a/x", data=records)
        return fc_open(folder / "x.h5", key="a/x")


class TestHdf5Chunks(SourceContract):
    dtypes = ZarrContract.dtypes

    def make(self, records: np.ndarray, folder: Path) -> Source:
        chunks = tuple(max(1, min(3, size)) for size in records.shape)
        with h5py.File(folder / "x.h5", "w") as file:
            options = {
                "compression": "gzip",
                "shuffle": True,
                "fletcher32": True,
                "maxshape": (None, *records.shape[1:]),
            }
            file.create_dataset("x", data=records, chunks=chunks, **options)
        return fc_open(folder / "x.h5")


class ColumnContract(SourceContract):
    dtypes = ZarrContract.dtypes

    def table(self, records: np.ndarray) -> pa.Table:
        if records.ndim > 2 or (records.ndim == 2 and records.shape[1] == 0):
            pytest.skip("a column has no items of so many axes")
        flat = pa.array(records.reshape(-1))
        column = flat if records.ndim == 1 else pa.FixedSizeListArray.from_arrays(flat, records.shape[1])
        return pa.table({"pad": pa.nulls(len(records)), "x": column})


class TestParquet(ColumnContract):
    options: ClassVar[dict[str, Any]] = {}

    def make(self, records: np.ndarray, folder: Path) -> Source:
        pq.write_table(self.table(records), folder / "x.parquet", row_group_size=3, **self.options)
        return fc_open(folder / "x.parquet")["x"]


class TestParquetPlain(TestParquet):
    dtypes = tuple(map(np.dtype, ("i1", "f4", "bool")))
    options: ClassVar[dict[str, Any]] = {"use_dictionary": False, "data_page_size": 1}


class TestArrow(ColumnContract):
    def make(self, records: np.ndarray, folder: Path) -> Source:
        table = self.table(records)
        with pa.OSFile(str(folder / "x.arrow"), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table, max_chunksize=3)
        return fc_open(folder / "x.arrow")["x"]
