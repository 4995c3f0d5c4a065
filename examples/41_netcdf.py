"""NetCDF-4: a variable of a climate file is a stream along its first axis, here a field for each hour."""

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
    # A NetCDF-4 file is an HDF5 file with named dimensions. This one has a year of hours on a small grid.
    path, target = os.path.join(folder, "t2m.nc"), os.path.join(folder, "warm.zarr")
    hours = np.arange(8760, dtype=np.float32)[:, None, None]
    kelvin = 288 - 12 * np.cos(2 * np.pi * hours / 8760) + np.linspace(-3, 3, 64, dtype=np.float32).reshape(8, 8)
    with h5py.File(path, "w") as file:
        time = file.create_dataset("time", data=hours[:, 0, 0])
        t2m = file.create_dataset("t2m", data=kelvin, chunks=(730, 8, 8), compression="gzip", shuffle=True)
        time.make_scale("time")
        t2m.dims[0].attach_scale(time)

    # `key=` names the variable. Its chunks are decoded in threads, each once a pass.
    celsius = fc.open(path, key="t2m") - 273.15
    print(celsius.shape, celsius.dtype)

    # What a month would ask: the mean field, the warmest hour of each place, and all hours above 25 degrees.
    mean, warmest = fc.run(celsius.mean(axis=0), celsius.argmax(axis=0), memory="16MiB", progress=False).values
    print(mean.round(1)[0, :3], warmest[0, :3])
    warm = celsius[celsius.max(axis=(1, 2)) > 25]
    fc.run(warm >> fc.save(target, chunk=100), memory="16MiB", progress=False)
    assert np.allclose(fc.open(target).resolve(progress=False), kelvin[kelvin.max(axis=(1, 2)) > 298.15] - 273.15)
