"""Zarr arrays in and out: chunks are decoded once, and a result is an array that is there whole or not at all."""

import json
import os
import tempfile

import numpy as np

import flowcompute as fc

with tempfile.TemporaryDirectory() as folder:
    # What a microscope may have left: an array in chunks of 500 records.
    images = np.random.default_rng(1).standard_normal((5_000, 8, 8), dtype=np.float32)
    raw = os.path.join(folder, "images.zarr")
    fc.run(fc.source(images) >> fc.save(raw, chunk=500), progress=False)

    # A stream like any other. Only its metadata has been read.
    x = fc.open(raw)
    print(x)

    # Two passes in 8 MiB. Chunks have 1,000 records, whatever the batches were.
    mean, std = x.mean(axis=0), x.std(axis=0)
    scaled = os.path.join(folder, "scaled.zarr")
    fc.run((x - mean) / std >> fc.save(scaled, chunk=1_000), memory="8MiB", progress=False)

    with open(os.path.join(scaled, "zarr.json"), encoding="utf-8") as file:
        described = json.load(file)
    print(described["shape"], described["chunk_grid"]["configuration"]["chunk_shape"], sorted(os.listdir(scaled))[:2])
    assert described["shape"] == [5_000, 8, 8]

    # zarr reads it, too: zarr.open_array(scaled)[:].
    made = fc.open(scaled).resolve(progress=False)
    np.testing.assert_allclose(made, (images - images.mean(axis=0)) / images.std(axis=0), atol=1e-4)

    # An array that is there is replaced only when that is said, and then in one moment.
    try:
        fc.run(x >> fc.save(scaled), progress=False)
    except fc.DestinationError as error:
        print(str(error).splitlines()[0].split("/")[-1])
    fc.run(x * 2 >> fc.save(scaled, overwrite=True), progress=False)
