"""Two passes: what needs the whole stream before its first output reads it again, in bounded memory."""

import os
import tempfile

import numpy as np

import flowcompute as fc


def readings():
    """A sensor that cannot be asked twice: batches as they come."""
    rng = np.random.default_rng(15)
    for _ in range(25):
        yield (rng.standard_normal((2000, 3)) * [1, 20, 0.1] + [15, 1000, 7]).astype(np.float32)


with tempfile.TemporaryDirectory() as folder:
    data = np.concatenate(list(readings()))
    np.save(os.path.join(folder, "x.npy"), data)
    x = fc.open(os.path.join(folder, "x.npy"), name="x")
    z = (x - x.mean(axis=0)) / x.std(axis=0)  # mean and deviation share the first pass
    job = z >> fc.save(os.path.join(folder, "z.npy"))
    print(plan := job.plan(memory="1MiB"))
    run = job.run(memory="1MiB", progress=False)
    assert len(plan.passes) == 2
    assert run.bytes_read == 2 * data.nbytes
    print(f"read {run.bytes_read:,} bytes, twice the file, in buffers of {run.peak_bytes:,}\n")
    expected = (data - data.mean(axis=0, dtype="f8")) / data.std(axis=0, dtype="f8")
    np.testing.assert_allclose(np.load(run.value), expected, rtol=1e-4, atol=1e-4)

once = fc.iterate(readings(), shape=(3,), dtype="float32", name="sensor")
try:
    (once - once.mean(axis=0)).plan()
except fc.PlanError as error:
    print(f"refused: {error}\n")
kept = fc.spool(once)  # the first pass leaves it in a temporary file, for the second
farthest = fc.abs(kept - kept.mean(axis=0)).max(axis=0).resolve(progress=False)
np.testing.assert_allclose(farthest, np.abs(data - data.mean(axis=0, dtype="f8")).max(axis=0), rtol=1e-4)
print(f"farthest from the mean: {farthest}")
