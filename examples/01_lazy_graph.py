"""An expression is a graph; nothing runs until you resolve it."""

import numpy as np

import flowcompute as fc

# A source is a stream of items along axis 0: here four points of three coordinates.
points = fc.source(np.array([[3, 4, 0], [1, 2, 2], [0, 0, 0], [2, 3, 6]], np.float32), name="points")
length = fc.sqrt((points * points).sum(axis=1))

print(length)  # the graph, unresolved: what it is made of, with dtypes and shapes
assert isinstance(length, fc.Compute)
assert length.shape == (4,)

# What looks like a question about its value is refused, so that no work happens by accident.
try:
    bool(length)
except TypeError as error:
    print(f"\nrefused: {error}\n")
else:
    raise AssertionError("a lazy graph has no truth value")

value = length.resolve()
print(f"lengths: {value}")
np.testing.assert_allclose(value, [5, 3, 0, 7])
