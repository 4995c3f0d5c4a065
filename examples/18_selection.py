"""Selection: the records where a mask is true, parts, each n-th, and the head of a stream without an end."""

import itertools
import os
import tempfile

import numpy as np

import flowcompute as fc


def primes():
    """All of them."""
    found = []
    for number in itertools.count(2):
        if all(number % prime for prime in found):
            found.append(number)
            yield np.array([number])


endless = fc.iterate(primes(), shape=(), dtype="int64", name="primes")
first = endless[:60].resolve(progress=False)  # asks for sixty, no more
print("primes", *first)
assert first[-1] == 281

quakes = np.random.default_rng(18).exponential(1.0, (300_000, 2)).astype(np.float32)
with tempfile.TemporaryDirectory() as folder:
    np.save(os.path.join(folder, "quakes.npy"), quakes)
    x = fc.open(os.path.join(folder, "quakes.npy"), name="quakes")  # strength, depth
    mask = x[:, 0] > 5
    assert x[mask].shape == (None, 2)  # nobody knows how many before it has run
    where = fc.range(len(quakes))[mask]  # another stream, by the same mask
    strong, records, deepest = fc.resolve(x[mask], where, x[mask].max(axis=0))
    part = (x[200_000:200_100:10] + 1).run(progress=False)  # a file is read from there, and no further
print(f"{len(strong)} of {len(quakes):,} are strong, the first at {records[:3]}; none is above {deepest[0]:.2f}")
print(f"a part of the file: {part.bytes_read:,} bytes of {quakes.nbytes:,} were read")
np.testing.assert_array_equal(records, np.flatnonzero(quakes[:, 0] > 5))
np.testing.assert_array_equal(strong, quakes[records])
np.testing.assert_array_equal(deepest, strong.max(axis=0))
np.testing.assert_array_equal(part.value, quakes[200_000:200_100:10] + 1)
