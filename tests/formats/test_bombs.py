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
import pytest
import zarr

from tests.test_memory import ALLOWED_BYTES, ROOT

BUDGET_BYTES = 32 << 20
BOMB_BYTES = 1 << 30
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

x = fc.open(sys.argv[1])
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


@pytest.mark.parametrize("make", [zarr_gzip, hdf5_gzip], ids=lambda make: make.__name__)
def test_a_chunk_that_expands_to_a_gigabyte_takes_what_was_planned(make: object, tmp_path: Path) -> None:
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
    assert "bytes that are expected" in told["text"]
    assert "(2, 0)" in told["text"]
    assert told["peak"] <= BUDGET_BYTES + ALLOWED_BYTES, told
