"""Several results in one reading: fc.resolve takes any number of roots and reads what they share once."""

import os
import tempfile

import numpy as np

import flowcompute as fc

with tempfile.TemporaryDirectory() as folder:
    source, target = os.path.join(folder, "x.npy"), os.path.join(folder, "scaled.npy")
    data = np.random.default_rng(4).standard_normal((30_000, 32), dtype=np.float32)
    np.save(source, data)

    x = fc.open(source, name="x")
    scaled = x * 0.5 + 3
    run = fc.run(scaled >> fc.save(target), x.min(), x.max(), scaled.mean(axis=0), progress=False)
    path, smallest, largest, means = run.values  # in the order of the roots; a saved root's value is its path

    print(run)  # the graph again, now with what each element did
    print(f"\nfrom {smallest:.3f} to {largest:.3f}; {run.bytes_read:,} bytes were read for all four results")
    assert run.bytes_read == data.nbytes
    assert path == target
    assert (smallest, largest) == (data.min(), data.max())
    np.testing.assert_allclose(means, np.load(target).mean(axis=0, dtype=np.float64), rtol=1e-5)
