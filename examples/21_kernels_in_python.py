"""Kernels written as Python functions: typed, translated, fused like built-ins, and still Python."""

import math

import numpy as np

import flowcompute as fc

points = np.random.default_rng(0).uniform(-2, 1, (2000, 2)).astype(np.float32)
x = fc.source(points, name="points")


@fc.kernel
def escape(a, b):
    """Steps until z * z + c leaves the circle: a loop, with a number of steps of its own for each point."""
    x, y = 0.0, 0.0
    for step in range(100):
        x, y = x * x - y * y + a, 2.0 * x * y + b
        if x * x + y * y > 4.0:
            return step, math.hypot(x, y)
    return 100, 0.0


steps, size = escape(x[:, 0], x[:, 1])  # two results, computed once
brightness = fc.sqrt(steps / 100)  # fused with what follows
assert len(fc.plan(brightness, size).kernels) == 1
print(steps.resolve().mean(), steps.dtype, size.dtype)
assert escape.python(0.0, 0.0) == (100, 0.0)  # the function itself is the oracle


@fc.kernel(boundary="edge")
def blur(picture, *, i, j):
    """Parameters after * are indices: with them a kernel reads neighbours."""
    return (picture[i - 1, j] + picture[i + 1, j] + picture[i, j - 1] + picture[i, j + 1]) / 4


frames = np.random.default_rng(1).random((20, 16, 16), dtype=np.float32)
assert blur(fc.source(frames)).resolve().var() < frames.var() / 3
print(fc.opencl("float f(float v) { return v * v; }", x).sum().resolve())
