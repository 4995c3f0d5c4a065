"""Data that is no file: Python iterables in, Python functions in the middle, callbacks at the end."""

import numpy as np

import flowcompute as fc


def readings():
    """A sensor: batches of any size, as they come; its end is not known beforehand."""
    rng = np.random.default_rng(6)
    for size in (3, 1000, 0, 17, 2500):
        yield rng.normal(20, 5, (size, 2)).astype(np.float32)


def median(batch):
    """Something that has no kernel, on whole batches."""
    return np.median(batch, axis=1)


seen = []
x = fc.iterate(readings(), shape=(2,), dtype="float32", name="sensor")
middle = fc.host(median, x * 1.8 + 32, shape=())  # dtype and item shape are declared, never tried out
run = fc.run(middle >> fc.callback(seen.append), x.max(axis=0), progress=False)
nothing, hottest = run.values  # a callback's value is None

print(f"{sum(map(len, seen)):,} medians in {len(seen)} call(s); hottest: {hottest}")
data = np.concatenate(list(readings()))
assert nothing is None
np.testing.assert_allclose(np.concatenate(seen), np.median(data * 1.8 + 32, axis=1), rtol=1e-6)
np.testing.assert_array_equal(hottest, data.max(axis=0))
