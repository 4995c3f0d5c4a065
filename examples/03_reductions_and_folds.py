"""Axis 0 is the stream: a reduction that leaves it alone gives a stream, one over it gives a single value."""

import numpy as np

import flowcompute as fc

data = np.random.default_rng(2).integers(0, 100, (50_000, 8))
x = fc.source(data, name="scores")

per_item = x.max(axis=1)  # inside each item: a stream of 50,000 numbers
per_column = x.mean(axis=0)  # over the stream: a fold, 8 numbers
overall = x.sum()  # over everything: one number
print(f"max in items  {per_item!r}\nmean of columns {per_column!r}\nsum of all    {overall!r}")
assert per_item.shape == (50_000,)
assert per_column.shape == (8,)
assert overall.shape == ()

np.testing.assert_array_equal(per_item.resolve(), data.max(axis=1))
np.testing.assert_allclose(per_column.resolve(), data.mean(axis=0), rtol=1e-12)
assert overall.resolve() == data.sum()

# The order of every sum is fixed by its length and dtype: the batch size cannot change a bit.
y = fc.source(np.random.default_rng(3).standard_normal((50_000, 8), dtype=np.float32))
small = y.sum(axis=0).resolve(strategy=fc.Strategy(batch_bytes=1 << 15))
large = y.sum(axis=0).resolve(strategy=fc.Strategy(batch_bytes=1 << 24))
print(f"\nsums in small batches {small[:3]}\nsums in large batches {large[:3]}: the same bits")
assert small.tobytes() == large.tobytes()
