"""Files of other formats, read and written: `python -m benchmarks.formats`.

Each format is read by its own library into memory of ours, 1 MiB at a time where the library reads parts, and by
flowcompute's reader in the same way. Written are the same numbers, from memory to a new file. All take turns in one
process with as many threads. Ratios are flowcompute's rate over the library's; for formats whose bytes lie together
also over its rate for a .npy file. Files are in the page cache.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pyarrow as pa
import zarr
from pyarrow import ipc, parquet
from safetensors import safe_open
from safetensors.numpy import save_file
from zarr.codecs import BloscCodec, ZstdCodec

import flowcompute as fc
from benchmarks.measuring.report import environment, say

MIB = 1 << 20
COLUMNS = 16
CHUNK = 1 << 14  # records of a chunk: 1 MiB
GROUP = 1 << 16  # records of a row group or a record batch: 4 MiB

Call = Callable[[], Any]


def numbers(mib: int) -> np.ndarray:
    """Float32 numbers of 12 significant bits, so that compression has something to do."""
    made = np.random.default_rng(0).standard_normal((mib * MIB // (4 * COLUMNS), COLUMNS), dtype=np.float32)
    made.view(np.uint32)[...] &= 0xFFFFF000
    return made


def own(source: Any, threads: int) -> Call:
    """A call that reads a source of ours to its end, several chunks at a time, as a run does."""
    room = np.empty((4 * CHUNK, *source.spec.shape), source.spec.dtype)

    def read() -> None:
        reader = source.open()
        reader.threads = threads
        try:
            while reader.read(room) == len(room):
                pass
        finally:
            reader.close()

    return read


def readers(folder: Path, x: np.ndarray, threads: int) -> Iterator[tuple[str, Call, Call]]:
    """Yield a row's name, how its library reads, and how flowcompute does."""
    room = np.empty((CHUNK, COLUMNS), np.float32)
    starts = range(0, len(x), CHUNK)

    def plain() -> None:
        with (folder / "x.npy").open("rb", buffering=0) as file:
            file.seek(128)
            while file.readinto(memoryview(room).cast("B")):
                pass

    np.save(folder / "x.npy", x)
    yield "npy, beside read()", plain, own(fc.open(folder / "x.npy"), threads)

    save_file({"x": x}, folder / "x.safetensors")

    def slices() -> None:
        with safe_open(folder / "x.safetensors", "numpy") as file:
            part = file.get_slice("x")
            for start in starts:
                room[: len(x) - start] = part[start : start + CHUNK]

    yield "safetensors", slices, own(fc.open(folder / "x.safetensors", key="x"), threads)
    yield from hdf5_readers(folder, x, threads, room)
    yield from zarr_readers(folder, x, threads)
    yield from column_readers(folder, x, threads)


def hdf5_readers(folder: Path, x: np.ndarray, threads: int, room: np.ndarray) -> Iterator[tuple[str, Call, Call]]:
    """Datasets that h5py reads by `read_direct`."""

    layouts: dict[str, dict[str, Any]] = {
        "contiguous": {},
        "chunks": {"chunks": (CHUNK, COLUMNS)},
        "gzip, shuffle": {"chunks": (CHUNK, COLUMNS), "compression": "gzip", "shuffle": True},
    }
    for i, (name, options) in enumerate(layouts.items()):
        path = folder / f"{i}.h5"
        with h5py.File(path, "w") as file:
            file.create_dataset("x", data=x, **options)

        def read(path: Path = path) -> None:
            with h5py.File(path) as file:
                for start in range(0, len(x), CHUNK):
                    stop = min(start + CHUNK, len(x))
                    file["x"].read_direct(room, np.s_[start:stop], np.s_[: stop - start])

        yield f"HDF5, {name}", read, own(fc.open(path, key="x"), threads)


def zarr_readers(folder: Path, x: np.ndarray, threads: int) -> Iterator[tuple[str, Call, Call]]:
    """Arrays that zarr reads chunk by chunk, or some at a time where it has threads for them."""

    zarr.config.set({"threading.max_workers": threads, "async.concurrency": threads})
    lz4 = BloscCodec(cname="lz4")
    layouts: dict[str, dict[str, Any]] = {
        "raw": {"compressors": None},
        "lz4": {"compressors": lz4},
        "zstd": {"compressors": ZstdCodec()},
        "shards of zstd": {"compressors": ZstdCodec(), "shards": (8 * CHUNK, COLUMNS)},
    }
    for i, (name, options) in enumerate(layouts.items()):
        path = folder / f"{i}.zarr"
        zarr.create_array(path, data=x, chunks=(CHUNK, COLUMNS), **options)

        def read(path: Path = path) -> None:
            array = zarr.open_array(path, mode="r")
            step = CHUNK * max(threads, 8 if array.shards else 1)
            for start in range(0, len(x), step):
                array[start : start + step]

        yield f"Zarr, {name}", read, own(fc.open(path), threads)


def column_readers(folder: Path, x: np.ndarray, threads: int) -> Iterator[tuple[str, Call, Call]]:
    """Columns that pyarrow decodes, all of them, batch by batch."""

    columns = [f"c{i}" for i in range(COLUMNS)]
    table = pa.table({name: x[:, i] for i, name in enumerate(columns)})
    for name, options in (
        ("plain", {"compression": "none", "use_dictionary": False}),
        ("zstd", {"compression": "zstd"}),
    ):
        path = folder / f"{name}.parquet"
        parquet.write_table(table, path, row_group_size=GROUP, **options)

        def read(path: Path = path) -> None:
            for batch in parquet.ParquetFile(path, pre_buffer=False).iter_batches(GROUP, use_threads=threads > 1):
                for column in batch.columns:
                    column.to_numpy(zero_copy_only=False)

        yield f"Parquet, {name}", read, all_columns(fc.open(path))
    path = folder / "x.arrow"
    with pa.OSFile(str(path), "wb") as file, ipc.new_file(file, table.schema) as writer:
        writer.write_table(table, max_chunksize=GROUP)

    def read_batches() -> None:
        with ipc.open_file(pa.OSFile(str(path))) as file:
            for i in range(file.num_record_batches):
                for column in file.get_batch(i).columns:
                    column.to_numpy(zero_copy_only=False)

    yield "Arrow", read_batches, all_columns(fc.open(path))


def all_columns(table: fc.Table) -> Call:
    """A call that reads every column, a batch of each in turn, as a job does."""
    room = np.empty(GROUP, np.float32)

    def read() -> None:
        opened = [table[name].open() for name in table]  # type: ignore[attr-defined]
        try:
            while sum([reader.read(room) for reader in opened]) == len(room) * len(opened):
                pass
        finally:
            for reader in opened:
                reader.close()

    return read


def writers(folder: Path, x: np.ndarray) -> Iterator[tuple[str, Call, Call]]:
    """Yield a row's name, how its library writes, and how a job of ours does; nobody waits for the disk."""

    def job(path: Path, **options: Any) -> Call:
        source = fc.source(x)
        if path.suffix == ".parquet":
            table = fc.table({f"c{i}": source[:, i] for i in range(COLUMNS)})
            made = table >> fc.save(path, durable=False, overwrite=True, **options)
        else:
            made = source >> fc.save(path, durable=False, **options)
        return lambda: made.run(progress=False)

    yield "npy", lambda: np.save(folder / "peer.npy", x), job(folder / "own.npy")

    yield "safetensors", lambda: save_file({"x": x}, folder / "peer.safetensors"), job(folder / "own.safetensors")

    def hdf5() -> None:
        with h5py.File(folder / "peer.h5", "w") as file:
            file.create_dataset("x", data=x)

    yield "HDF5, contiguous", hdf5, job(folder / "own.h5", key="x")

    def chunks() -> None:
        array = zarr.create_array(
            folder / "peer.zarr", shape=x.shape, dtype=x.dtype, chunks=(CHUNK, COLUMNS), compressors=None,
            overwrite=True,
        )  # fmt: skip
        for start in range(0, len(x), CHUNK):
            array[start : start + CHUNK] = x[start : start + CHUNK]

    yield "Zarr, raw", chunks, job(folder / "own.zarr", chunk=CHUNK, overwrite=True)

    def parts() -> None:
        shutil.rmtree(folder / "peer.parquet", ignore_errors=True)
        (folder / "peer.parquet").mkdir()
        for start in range(0, len(x), 4 * CHUNK):
            part = x[start : start + 4 * CHUNK]
            table = pa.table({f"c{i}": part[:, i] for i in range(COLUMNS)})
            parquet.write_table(table, folder / "peer.parquet" / f"{start}.parquet", use_dictionary=False)

    yield "Parquet, parts of 4 MiB", parts, job(folder / "own.parquet", chunk=4 * CHUNK)


def timed(call: Call) -> tuple[float, float]:
    """Seconds by the wall and of the processor."""
    began, processor = time.perf_counter(), time.process_time()
    call()
    return time.perf_counter() - began, time.process_time() - processor


def row(name: str, peer: Call, ours: Call, mib: int, reps: int, rate_of_npy: float | None) -> tuple[str, float]:
    """Return a row of the table, and our rate in MiB/s."""
    peer(), ours()
    pairs = [(timed(peer), timed(ours)) for _ in range(reps)]
    theirs, mine = [statistics.median(pair[side][0] for pair in pairs) for side in (0, 1)]
    ratios = sorted(a[0] / b[0] for a, b in pairs)
    processor = statistics.median(a[1] / b[1] for a, b in pairs)
    rate = mib / mine
    beside = "" if rate_of_npy is None else f"{rate / rate_of_npy:.2f}"
    spread = f"{ratios[len(ratios) // 2]:.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f})"
    return f"| {name} | {mib / theirs:,.0f} | {rate:,.0f} | {spread} | {processor:.2f} | {beside} |", rate


def main() -> None:
    """Print a table for reading with one thread and with several, and one for writing."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.formats", description=__doc__)
    parser.add_argument("--mib", type=int, default=128)
    parser.add_argument("--reps", type=int, default=7)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--rows", default="", help="measure only rows that have this in their names")
    parser.add_argument("--data", default=None, help="folder for the files (a temporary one by default)")
    options = parser.parse_args()
    x = numbers(options.mib)
    found = environment()
    say(
        f"{found['date']}, {found['processor']}, {found['cores']} cores, load {found['load']:.1f}. {options.mib} MiB.\n"
    )
    heading = "| {} | library, MiB/s | flowcompute, MiB/s | ratio | ratio of processor time | over our .npy |\n"
    for threads in (*options.threads, 0):
        print("\n" + heading.format(f"read by {threads} threads" if threads else "written") + "| --- |" + " --- |" * 5)
        npy = None
        with tempfile.TemporaryDirectory(dir=options.data) as folder:
            rows = readers(Path(folder), x, threads) if threads else writers(Path(folder), x)
            for name, peer, ours in rows:
                if options.rows not in name and not name.startswith("npy"):
                    continue
                text, rate = row(name, peer, ours, options.mib, options.reps, npy if _lies_together(name) else None)
                npy = rate if name.startswith("npy") else npy
                print(text, flush=True)


def _lies_together(name: str) -> bool:
    return name in ("safetensors", "HDF5, contiguous")


if __name__ == "__main__":
    os.environ.setdefault("POCL_MAX_PTHREAD_COUNT", str(len(os.sched_getaffinity(0))))
    main()
