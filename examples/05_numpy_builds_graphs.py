"""NumPy's own functions, operators, promotion and broadcasting build the same graph."""

import numpy as np

import flowcompute as fc

data = np.linspace(-2, 2, 600, dtype=np.float32).reshape(100, 6)
x = fc.source(data)


def soft_clip(values, gain):
    """Written for NumPy arrays; works on streams as it is."""
    return np.tanh(values * gain) / gain + np.maximum(values, 0)


gain = np.arange(1, 7, dtype=np.float32)  # an array becomes a constant; one number for each column
lazy = soft_clip(x, gain)
print(lazy)
assert isinstance(lazy, fc.Compute)
assert lazy.dtype == np.float32, "float32 stays float32, as in NumPy"
np.testing.assert_allclose(lazy.resolve(), soft_clip(data, gain), rtol=1e-5, atol=1e-6)

# Functions chain from left to right by .pipe; equal graphs have equal hashes, whatever they read.
again = fc.source(data * 2).pipe(soft_clip, gain)
assert again.hash == lazy.hash
print(f"\nstructural hash of both: {lazy.hash}")

# Integers promote as in NumPy 2: a mean is float64, a comparison is bool.
n = fc.source(np.arange(10, dtype=np.int16))
assert (n * 3).dtype == np.int16
assert n.mean().dtype == np.float64
assert (n > 4).dtype == np.bool_
