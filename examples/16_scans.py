"""Scans carry something along the stream: running sums and maxima, moving averages, a step of your own."""

import numpy as np

import flowcompute as fc

BARS = "▁▂▃▄▅▆▇█"


def bars(values):
    """Thousands of numbers as a line of 60 letters."""
    some = values[:: len(values) // 60][:60].astype(float)
    return "".join(BARS[int(7 * k)] for k in (some - some.min()) / (np.ptp(some) or 1))


gains = np.random.default_rng(16).integers(-5, 6, 60_000).astype(np.float64)
x = fc.source(gains, name="gains")
balance = fc.cumulative_sum(x)
best = fc.cumulative_max(balance)
trend = fc.ema(balance, alpha=0.001)
drawdown = (best - balance).max()  # scans feed maps, folds and other scans, in the same reading


def bounded(level, gain):
    """A tank: what it cannot hold spills, and below nothing it cannot go."""
    return min(max(level + gain, 0), 300)


tank = fc.scan(bounded, x, init=150.0)  # one call a record; with @fc.kernel above the function, a kernel
walk, top, smooth, worst, level = fc.resolve(balance, best, trend, drawdown, tank)
for name, line in (("balance", walk), ("best", top), ("trend", smooth), ("tank", level)):
    print(f"{name:8} {bars(line)} {line.min():8.0f} .. {line.max():.0f}")
print(f"largest fall {worst:.0f}")

np.testing.assert_array_equal(walk, np.cumsum(gains))
np.testing.assert_array_equal(top, np.maximum.accumulate(np.cumsum(gains)))
assert worst == (top - walk).max()
np.testing.assert_allclose(smooth[1:], 0.999 * smooth[:-1] + 0.001 * walk[1:], rtol=1e-9, atol=1e-9)
assert (level[1:] == np.clip(level[:-1] + gains[1:], 0, 300)).all()
assert (trend.resolve(strategy=fc.Strategy(batch_bytes=4096)) == smooth).all(), "no batch size changes a bit"
