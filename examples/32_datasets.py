"""HDF5 in and out: compressed chunks stream through two passes into a file that any program for HDF5 reads."""

import importlib.util
import os
import tempfile

import numpy as np

import flowcompute as fc

if importlib.util.find_spec("h5py") is None:
    print("left out: pip install 'flowcompute[hdf5]'")
    raise SystemExit
import h5py

with tempfile.TemporaryDirectory() as folder:
    # What an instrument may have left: two datasets, one of them in compressed and checked chunks.
    path, target = os.path.join(folder, "run.h5"), os.path.join(folder, "scaled.h5")
    counts = np.random.default_rng(1).poisson(40, (20_000, 16)).astype(np.uint16)
    with h5py.File(path, "w") as file:
        options = {"compression": "gzip", "shuffle": True, "fletcher32": True}
        file.create_dataset("detector/counts", data=counts, chunks=(1_000, 16), **options)
        file.create_dataset("detector/gain", data=np.linspace(0.9, 1.1, 16))
        gain = file["detector/gain"][:]

    # Only the metadata is read here; each chunk is decoded once a pass, in threads.
    x = fc.open(path, key="detector/counts").astype("float32") * gain.astype("float32")
    mean = x.mean(axis=0)
    job = (x - mean) / x.std(axis=0) >> fc.save(target, key="scaled/counts")
    print(os.path.basename(fc.run(job, memory="16MiB", progress=False).value))

    with h5py.File(target) as file:
        made = file["scaled/counts"]
        print(made.shape, made.dtype, "contiguous" if made.chunks is None else made.chunks)
        assert abs(made[:].mean()) < 1e-3
