"""The same graph on another device: device= names it, "numpy" is the reference that needs no driver."""

import numpy as np

import flowcompute as fc

data = np.random.default_rng(10).standard_normal((20_000, 16), dtype=np.float32)
x = fc.source(data)
y = fc.exp(-x * x)
total = x.sum(axis=0)

best = fc.run(y, total, progress=False)  # device="auto": discrete GPU, Intel's CPU runtime, PoCL
print(f"{best.plan.backend.capabilities.name}: {best.launches} launches ({best.plan.backend.capabilities.reason})")

reference = fc.run(y, total, device="numpy", progress=False)
print(f"{reference.plan.backend.capabilities.name}: {len(reference.plan.kernels)} kernels")

# Sums have the same bits everywhere, since their order is part of their meaning; exp agrees to a few ulp.
assert best.values[1].tobytes() == reference.values[1].tobytes()
np.testing.assert_array_max_ulp(best.values[0], reference.values[0], maxulp=8)
print("sums: equal bits; exponentials: within 8 ulp")

try:
    y.plan(device="no such device")
except fc.PlanError as error:
    print(f"\n{error}")  # it lists what there is
else:
    raise AssertionError("there is no such device")
