"""Strategies: knobs that change speed and never a bit, and a tuner that keeps what is better."""

import os
import tempfile

import numpy as np

import flowcompute as fc

rng = np.random.default_rng(25)
x = fc.source(rng.standard_normal((60_000, 16), dtype=np.float32), name="x")


def job() -> tuple[fc.Element, ...]:
    return fc.sqrt(x * x + 1).sum(axis=1), x.var(axis=0)


# Small batches, one at a time, other vectors: the same bytes.
usual = fc.resolve(*job(), device="cpu", progress=False)
small = fc.Strategy(batch_bytes=1 << 16, depth=1, vector_width=8, kernels={"k0": {"unroll": 2}})
for a, b in zip(usual, fc.resolve(*job(), device="cpu", strategy=small, progress=False), strict=True):
    assert a.tobytes() == b.tobytes()
print(fc.plan(*job(), device="cpu", strategy=small).explain())

# A tuned run tells what it tried; the next run of an equal job starts from what was kept.
with tempfile.TemporaryDirectory() as os.environ["FLOWCOMPUTE_CACHE"]:
    run = fc.run(*job(), device="numpy", tune=True, progress=False)
    print(run.tuning)
    again = fc.run(*job(), device="numpy", progress=False)
del os.environ["FLOWCOMPUTE_CACHE"]  # it was a folder for this lesson alone
assert run.tuning.trials >= 3
assert again.tuning.trials == 0
assert again.strategy == run.strategy == fc.Strategy.from_json(run.strategy.to_json())

# A knob out of its range is refused when the strategy is made.
try:
    fc.Strategy(depth=0)
except fc.FlowError as error:
    print(error)
