"""Random numbers and ranges are made where they are needed: nothing is read, and any part can be made alone."""

import math

import numpy as np

import flowcompute as fc

# A seed and a position give a number, whatever the batch size and the device.
z = fc.random.normal(100_000, shape=fc.Vector(4), seed=12)
values = z.resolve()
print(f"{z!r}\n{values[:2]}")
assert values.tobytes() == z.resolve(strategy=fc.Strategy(batch_bytes=4096)).tobytes()
assert values.tobytes() == z.resolve(device="numpy").tobytes()
assert np.array_equal(fc.random.normal(10, shape=(4,), seed=12).resolve(), values[:10])

# Ten million points in a square, of which the part in the quarter circle tells pi: one kernel, no memory.
count = 10_000_000
x, y = fc.random.uniform(count, seed=1), fc.random.uniform(count, seed=2)
inside = (x * x + y * y < 1).mean()
pi = 4 * inside.resolve()
print(f"pi is about {pi:.4f}")
assert abs(pi - math.pi) < 0.003

# A range counts records: here it gives each its weight.
dice = fc.random.integers(1000, low=1, high=7, dtype="int8", seed=3)
weighted = fc.vecdot(dice.astype("float64"), fc.range(1000.0))
thrown = dice.resolve()
assert thrown.min() == 1
assert thrown.max() == 6
assert math.isclose(weighted.resolve(), thrown @ np.arange(1000.0))

# Without a seed one is drawn when the stream is composed; it is shown, so that the numbers can be had again.
unseeded = fc.random.uniform(3)
print(unseeded)
assert np.array_equal(fc.random.uniform(3, seed=unseeded.seed).resolve(), unseeded.resolve())
