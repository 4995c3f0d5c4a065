"""Objects in a store: an array is put chunk by chunk, frozen in the middle, and gone on with from its checkpoint."""

import importlib.util
import os
import tempfile

import numpy as np

import flowcompute as fc

if importlib.util.find_spec("obstore") is None:
    print("left out: pip install 'flowcompute[objects]'")
    raise SystemExit

# memory:// lives as long as this process. With s3://, gs:// or az:// credentials come from the environment.
x = np.random.default_rng(6).standard_normal((20_000, 8), dtype=np.float32)
fc.run(fc.source(x) >> fc.save("memory://bucket/x.npy"), progress=False)  # a local draft, and one upload

# Only the header is read here. Each request is refused by the store if the object has changed.
stream = fc.open("memory://bucket/x.npy")
print(stream)
job = fc.tanh(stream) >> fc.save("memory://bucket/y.zarr", chunk=3_000)

with tempfile.TemporaryDirectory() as folder:
    kept = os.path.join(folder, "kept")
    try:
        job.run(checkpoint=kept, on_batch=lambda run: run.freeze(), memory="2MiB", progress=False)
    except fc.RunError as error:
        print(str(error).splitlines()[0])
    # Whole chunks are in the store; there is no array before its metadata, which is put last.
    print(fc.thaw(kept).resolve(progress=False))

try:
    fc.run(stream >> fc.save("memory://bucket/y.zarr"), progress=False)
except fc.DestinationError as error:
    print(str(error).splitlines()[0])  # an array in a store is never replaced

total = fc.open("memory://bucket/y.zarr").sum().resolve(progress=False)
assert np.isclose(total, np.tanh(x).sum(), rtol=1e-3)
