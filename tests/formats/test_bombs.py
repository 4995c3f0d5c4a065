"""Bombs take no memory: what a chunk expands to is bounded by what its metadata says, measured from outside."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import zlib
from pathlib import Path

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zarr

from tests.test_memory import ALLOWED_BYTES, ROOT

BUDGET_BYTES = 32 << 20
BOMB_BYTES = 1 << 28
"""Bytes that a chunk of 64 KiB expands to."""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not os.path.exists("/proc/self/clear_refs"), reason="the system does not tell peaks"),
]

# The peak of resident memory is reset after everything is imported, so that what it grows by is what was taken.
JOB = """
import json, sys
import flowcompute as fc

def now():
    with open("/proc/self/status") as status:
        told = dict(line.split(":", 1) for line in status)
    return {name: int(told[name].split()[0]) << 10 for name in ("VmHWM", "VmRSS", "RssAnon")}

opened = fc.open(sys.argv[1])
x = opened["x"] if isinstance(opened, fc.Table) else opened
fc.resolve(fc.source([1.0, 2.0]) * 2, device="numpy", progress=False)
with open("/proc/self/clear_refs", "w") as peaks:
    peaks.write("5")
before, text = now(), ""
try:
    fc.resolve(x.sum(), memory=int(sys.argv[2]), device="numpy", progress=False)
except fc.SourceError as error:
    text = str(error)
print(json.dumps({"text": text, "peak": before["RssAnon"] + now()["VmHWM"] - before["VmRSS"]}))
"""


def zeros(make: object) -> bytes:
    """A compressed stream of so many zeros, made in parts."""
    made = [make.compress(bytes(1 << 24)) for _ in range(BOMB_BYTES >> 24)]  # type: ignore[attr-defined]
    return b"".join(made) + bytes(make.flush())  # type: ignore[attr-defined]


def zarr_gzip(folder: Path) -> Path:
    path = folder / "x.zarr"
    zarr.create_array(path, data=np.ones((4096, 16), "f4"), chunks=(1024, 16), zarr_format=2, compressors=None)
    said = json.loads((path / ".zarray").read_bytes())
    (path / ".zarray").write_text(json.dumps({**said, "compressor": {"id": "gzip", "level": 9}}))
    for i in range(4):
        (path / f"{i}.0").write_bytes(gzip.compress(np.ones((1024, 16), "f4").tobytes()))
    (path / "2.0").write_bytes(zeros(zlib.compressobj(9, wbits=31)))
    return path


def hdf5_gzip(folder: Path) -> Path:
    with h5py.File(folder / "x.h5", "w") as file:
        x = file.create_dataset("x", data=np.ones((4096, 16), "f4"), chunks=(1024, 16), compression="gzip")
        x.id.write_direct_chunk((2048, 0), zeros(zlib.compressobj(9)))
    return folder / "x.h5"


def varint(number: int) -> bytes:
    """A 32-bit integer as Thrift's compact protocol writes it."""
    number, made = number * 2, bytearray()
    while number >= 0x80:
        made.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*made, number])


def parquet_page(folder: Path) -> Path:
    """A column whose second group begins with a bomb. The footer says what it has said before."""
    x = np.random.default_rng(0).standard_normal(655_360)
    options = {"row_group_size": 400_000, "compression": "gzip", "use_dictionary": False}
    pq.write_table(pa.table({"x": x}), folder / "x.parquet", **options)
    data = bytearray((folder / "x.parquet").read_bytes())
    at = pq.read_metadata(folder / "x.parquet").row_group(1).column(0).data_page_offset
    bomb = zeros(zlib.compressobj(9, wbits=31))
    header = b"\x15\x00\x15" + varint(BOMB_BYTES) + b"\x15" + varint(len(bomb))
    header += b"\x2c\x15" + varint(BOMB_BYTES // 8) + b"\x15\x00\x15\x06\x15\x06\x00\x00"
    data[at : at + len(header) + len(bomb)] = header + bomb
    (folder / "x.parquet").write_bytes(data)
    return folder / "x.parquet"


def parquet_lists(folder: Path) -> Path:
    """A list column of a few hundred bytes whose repetition levels give its first record the numbers of all."""
    count, item = 1 << 26, 64
    lists = pa.FixedSizeListArray.from_arrays(pa.array(np.zeros(count, "i1")), item)
    options = {"compression": "zstd", "data_page_size": 1 << 30, "max_rows_per_page": 1 << 30}
    pq.write_table(pa.table({"x": lists}), folder / "x.parquet", row_group_size=count, **options)
    data = bytearray((folder / "x.parquet").read_bytes())
    chunk = pq.read_metadata(folder / "x.parquet").row_group(0).column(0)
    at = chunk.data_page_offset
    repetition = run(1, 0) + run(count - 1, 1)
    levels = b"".join(len(part).to_bytes(4, "little") + part for part in (repetition, run(count, 3)))
    page = levels + b"\x01" + run(count, 0)
    stored, told = (
        bytes(pa.Codec("zstd").compress(page)),
        b"\x2c\x15" + varint(count) + b"\x15\x10\x15\x06\x15\x06\x00\x00",
    )
    room = chunk.dictionary_page_offset + chunk.total_compressed_size - at
    header = b"\x15\x00\x15" + varint(len(page)) + b"\x15" + varint(99) + told
    # A frame that zstd skips fills the column, so that no other page follows.
    stored += b"\x50\x2a\x4d\x18" + (room - len(header) - len(stored) - 8).to_bytes(4, "little")
    stored = stored.ljust(room - len(header), b"\0")
    header = b"\x15\x00\x15" + varint(len(page)) + b"\x15" + varint(len(stored)) + told
    assert len(header) + len(stored) == room
    data[at : at + len(header) + len(stored)] = header + stored
    (folder / "x.parquet").write_bytes(data)
    assert len(data) < 2000
    return folder / "x.parquet"


def run(count: int, level: int) -> bytes:
    """A run of equal levels or indices, as Parquet's hybrid of runs and packed bits has them."""
    return varint(count) + bytes([level])


BOMBS = {
    zarr_gzip: ("bytes that are expected", "(2, 0)"),
    hdf5_gzip: ("bytes that are expected", "(2, 0)"),
    parquet_page: (f"a page has {BOMB_BYTES} bytes", "column 'x'"),
    parquet_lists: ("a record has more numbers than its type", "column 'x'"),
}


@pytest.mark.parametrize("make", BOMBS, ids=lambda make: make.__name__)
def test_a_chunk_that_expands_to_eight_budgets_takes_what_was_planned(make: object, tmp_path: Path) -> None:
    path = make(tmp_path)  # type: ignore[operator]
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", JOB, str(path), str(BUDGET_BYTES)],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert all(part in told["text"] for part in BOMBS[make]), told["text"]  # type: ignore[index]
    assert told["peak"] <= BUDGET_BYTES + ALLOWED_BYTES, told
