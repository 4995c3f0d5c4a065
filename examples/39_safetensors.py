"""Safetensors in and out: one array of a file as a stream, a result that others load, several values at once."""

import os
import tempfile

import numpy as np

import flowcompute as fc

with tempfile.TemporaryDirectory() as folder:
    path, target = os.path.join(folder, "features.safetensors"), os.path.join(folder, "unit.safetensors")
    features = np.random.default_rng(2).standard_normal((20_000, 32), dtype=np.float32)
    fc.run(fc.source(features) >> fc.save(path, key="features"), progress=False)

    # Arrays lie plain behind a header, so that this maps the file and reads the header alone.
    x = fc.open(path, key="features")
    print(x)

    # Records of unknown number can be written, too: the header has room for any length.
    length = fc.sqrt((x * x).sum(axis=1, keepdims=True))
    long = (x / length)[(length > 5.5)[:, 0]]
    fc.run(long >> fc.save(target, key="unit"), memory="8MiB", progress=False)
    made = fc.open(target, key="unit")
    print(made.shape, f"of {len(features)} are longer than 5.5")
    np.testing.assert_allclose((made * made).sum(axis=1).resolve(progress=False), 1, rtol=1e-5)

    # Values without a stream axis go into one file, by name; `fc.weights` reads them.
    kept = os.path.join(folder, "scale.safetensors")
    fc.run({"mean": x.mean(axis=0), "std": x.std(axis=0)} >> fc.save(kept), progress=False)
    print(sorted(fc.weights(kept)))
    assert sorted(fc.weights(kept)) == ["mean", "std"]
