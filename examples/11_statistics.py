"""Statistics of a stream: covariance, histograms, sums by key, the largest, quantiles; all in one reading."""

import numpy as np

import flowcompute as fc

rng = np.random.default_rng(11)
trips = rng.gamma(2.0, 3.0, (200_000, 3)).astype(np.float32)  # minutes, kilometres, euros
zones = rng.integers(0, 5, 200_000)
x, zone = fc.source(trips, name="trips"), fc.source(zones, name="zones")
euros = (x * np.array([0, 0, 1], np.float32)).sum(axis=1)

counts, edges = fc.histogram(euros, bins=4, range=(0, 20))  # edges are known at once, counts when resolved
best, where = fc.top_k(euros, 3)
made = [
    x.T @ x,  # contracts the stream axis of both: a fold
    fc.corrcoef(x),
    counts,
    fc.segment_mean(euros, zone, num_segments=5),
    best,
    where,
    fc.quantile(euros, [0.5, 0.99]),
]
gram, correlation, binned, by_zone, largest, at, (median, rare) = fc.resolve(*made)
print(f"correlation\n{correlation.round(3)}")
print(f"{binned} trips between {edges.value} euros; mean by zone {by_zone.round(2)}")
print(f"dearest {largest} at {at}; median {median:.2f}, one in a hundred above {rare:.2f}")

paid = trips[:, 2]
np.testing.assert_allclose(gram, trips.T.astype("f8") @ trips, rtol=1e-5)
np.testing.assert_allclose(correlation, np.corrcoef(trips, rowvar=False), atol=1e-6)
np.testing.assert_array_equal(binned, np.histogram(paid, 4, (0, 20))[0])
np.testing.assert_allclose(by_zone, [paid[zones == k].mean(dtype="f8") for k in range(5)], rtol=1e-6)
np.testing.assert_array_equal(largest, paid[at])

# Quantiles of more than 8192 records come from a sketch: at most 0.02 % of a million places off, never more.
assert abs((paid <= median).mean() - 0.5) < 0.0002
assert abs((paid <= rare).mean() - 0.99) < 0.0002
