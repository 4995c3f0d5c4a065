"""Arrow IPC files: columns are read from where they lie, in any budget, and nulls are filled or refused."""

import importlib.util
import os
import tempfile

import numpy as np

import flowcompute as fc

if importlib.util.find_spec("pyarrow") is None:
    print("left out: pip install 'flowcompute[parquet]'")
    raise SystemExit
import pyarrow as pa

with tempfile.TemporaryDirectory() as folder:
    # What another program may have left: one batch of 400,000 records, with gaps in a column.
    path, target = os.path.join(folder, "sensor.arrow"), os.path.join(folder, "power.npy")
    volts = np.random.default_rng(3).normal(230, 4, 400_000)
    amperes = pa.array(np.full(len(volts), 2.0), mask=np.arange(len(volts)) % 1000 == 7)
    table = pa.table({"volts": volts, "amperes": amperes, "place": ["roof"] * len(volts)})
    with pa.OSFile(path, "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)

    # Nothing but metadata is read here. Text is refused when it is asked for.
    sensor = fc.open(path)
    print(sensor)

    # A null is an error with its column, unless `fill=` says what stands for it.
    try:
        sensor["amperes"].sum().resolve(progress=False)
    except fc.SourceError as error:
        print(str(error).splitlines()[0].split(": ")[-1])
    filled = fc.open(path, fill={"amperes": 0.0})

    # The columns have 6 MiB, and the job as much.
    power = filled["volts"] * filled["amperes"]
    fc.run(power >> fc.save(target), memory="6MiB", progress=False)
    assert np.array_equal(np.load(target), volts * amperes.fill_null(0).to_numpy())
