"""Columns in, columns out: a Parquet table is read by column, computed, and written as a folder of parts."""

import importlib.util
import os
import tempfile

import numpy as np

import flowcompute as fc

if importlib.util.find_spec("pyarrow") is None:
    print("left out: pip install 'flowcompute[parquet]'")
    raise SystemExit
import pyarrow as pa
import pyarrow.parquet as pq

with tempfile.TemporaryDirectory() as folder:
    # What a data pipeline may have left: one file, three columns, of which two are of use here.
    path, target = os.path.join(folder, "trips.parquet"), os.path.join(folder, "speeds.parquet")
    rng = np.random.default_rng(4)
    km, hours = rng.gamma(2, 3, 50_000).astype("f4"), rng.gamma(2, 0.2, 50_000).astype("f4") + 0.05
    pq.write_table(pa.table({"km": km, "hours": hours, "note": ["-"] * len(km)}), path, row_group_size=8_000)

    # Each column is a stream. Only the columns that a job uses are read.
    trips = fc.open(path)
    print(trips)
    speed = trips["km"] / trips["hours"]
    table = fc.table({"speed": speed, "fast": speed > 50})

    # Parts are cut at multiples of chunk= records, whatever the batches and the budget are.
    print(os.path.basename(fc.run(table >> fc.save(target, chunk=20_000), memory="16MiB", progress=False).value))
    print(sorted(os.listdir(target)))

    # Every reader of Parquet takes the folder as one table, ours too.
    assert np.array_equal(pq.read_table(target)["speed"].to_numpy(), km / hours)
    print(fc.open(target)["fast"].astype("float32").mean().resolve(progress=False))
