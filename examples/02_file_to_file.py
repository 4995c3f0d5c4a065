"""From a file to a file in less memory than the file takes."""

import os
import tempfile

import numpy as np

import flowcompute as fc

with tempfile.TemporaryDirectory() as folder:
    source, target = os.path.join(folder, "x.npy"), os.path.join(folder, "y.npy")
    data = np.random.default_rng(1).standard_normal((100_000, 64), dtype=np.float32)
    np.save(source, data)

    x = fc.open(source)  # reads the header, no numbers
    y = fc.nn.sigmoid(2 * x + 1) * x
    job = y >> fc.save(target)  # composes; y.npy appears when everything has succeeded
    assert not os.path.exists(target)

    run = job.run(memory="8MiB", progress=False)

    size_mb = os.path.getsize(source) / 1e6
    print(f"{size_mb:.1f} MB through {len(run.plan.kernels)} kernel in {run.launches} launches, 8 MiB of memory")
    print(f"peak of our own buffers: {run.peak_bytes / 1e6:.1f} MB, bottleneck: {run.bottleneck}")
    assert len(run.plan.kernels) == 1
    assert run.peak_bytes <= 8 << 20
    assert run.value == target
    np.testing.assert_allclose(np.load(target), data / (1 + np.exp(-(2 * data + 1))), rtol=1e-5, atol=1e-6)
