"""Without an extra each format and each kind of URL is refused in a line that names it; the others work."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import zarr
from safetensors.numpy import save_file

from tests.test_memory import ROOT

X = np.arange(60, dtype="f4").reshape(20, 3)

# None in place of a module makes its import fail, as if it were not installed.
JOB = """
import json, sys
for name in ("h5py", "pyarrow", "numcodecs", "google_crc32c", "obstore", "zarr", "safetensors", "netCDF4"):
    sys.modules[name] = None
import flowcompute as fc

def told(make):
    try:
        return make()
    except fc.FlowError as error:
        return str(error)

x = fc.source([1.0, 2.0])
read = lambda name, **options: lambda: fc.open(name, **options).resolve(device="numpy", progress=False).tolist()
column = lambda name: lambda: fc.open(name)["x"].resolve(device="numpy", progress=False).tolist()
write = lambda name, **options: lambda: fc.run(x >> fc.save(name, **options), device="numpy", progress=False).value
print(json.dumps({
    "parquet": told(column("x.parquet")), "arrow": told(column("x.arrow")), "feather": told(column("x.feather")),
    "h5": told(read("x.h5", key="x")), "nc": told(read("x.nc", key="x")), "zstd": told(read("zstd.zarr")),
    "npy": told(read("x.npy")), "safetensors": told(read("x.safetensors", key="x")), "plain": told(read("plain.zarr")),
    "raw": told(read("x.raw", dtype="f4", shape=(3,))),
    "table": told(lambda: (fc.table({"x": x}) >> fc.save("y.parquet")).run(device="numpy", progress=False).value),
    **{f"to {name}": told(write(f"y.{name}", **({"key": "x"} if name in ("h5", "safetensors") else {})))
       for name in ("npy", "raw", "zarr", "h5", "safetensors")},
    **{scheme: told(read(f"{scheme}://b/x.npy")) for scheme in ("s3", "gs", "az", "http", "https", "memory")},
    **{f"to {scheme}": told(write(f"{scheme}://b/y.npy")) for scheme in ("s3", "gs", "az", "memory")},
}))
"""

EXTRAS = {
    "parquet": ("parquet", "arrow", "feather", "table"),
    "hdf5": ("h5", "nc"),
    "zarr": ("zstd",),
    "objects": ("s3", "gs", "az", "http", "https", "memory", "to s3", "to gs", "to az", "to memory"),
}


def test_without_an_extra_a_line_names_it_and_nothing_else_needs_it(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", X)
    X.tofile(tmp_path / "x.raw")
    save_file({"x": X}, tmp_path / "x.safetensors")
    for name in ("x.h5", "x.nc"):
        with h5py.File(tmp_path / name, "w") as file:
            file["x"] = X
    table = pa.table({"x": X[:, 0]})
    pq.write_table(table, tmp_path / "x.parquet")
    for name in ("x.arrow", "x.feather"):
        with pa.OSFile(str(tmp_path / name), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table)
    zarr.create_array(tmp_path / "plain.zarr", data=X, chunks=(7, 3), compressors=None)
    zarr.create_array(tmp_path / "zstd.zarr", data=X, chunks=(7, 3), compressors=zarr.codecs.ZstdCodec())
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", JOB],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT), "AWS_ENDPOINT_URL": "http://127.0.0.1:9"},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    for extra, cases in EXTRAS.items():
        for case in cases:
            lines = [line for line in str(told.pop(case)).splitlines() if "flowcompute[" in line]
            assert len(lines) == 1, (case, lines)
            assert re.search(rf"pip install ['\"]flowcompute\[{extra}\]['\"]$", lines[0]), (case, lines)
    assert {name: value for name, value in told.items() if not name.startswith("to ")} == {
        name: X.tolist() for name in ("npy", "safetensors", "plain", "raw")
    }
    assert {name: Path(value).name for name, value in told.items() if name.startswith("to ")} == {
        f"to {name}": f"y.{name}" for name in ("npy", "raw", "zarr", "h5", "safetensors")
    }
