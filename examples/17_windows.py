"""Windows see neighbours: they overlap in memory inside one kernel, and nothing is copied as often as it is seen."""

import numpy as np

import flowcompute as fc

SHADES = " ░▒▓█"

time_s = np.arange(20_000, dtype=np.float32) / 500
rng = np.random.default_rng(17)
noise = rng.standard_normal((len(time_s), 2)).astype(np.float32) * 0.4
data = np.stack([np.sin(time_s), np.sign(np.sin(2 * time_s))], axis=1).astype(np.float32) + noise
x = fc.source(data, name="channels")

windows = fc.window(x, size=101, pad="edge")  # item k: records k - 50 to k + 50
smooth, spread = windows.mean(axis=1), windows.std(axis=1)
assert windows.shape == (20_000, 101, 2)
assert len(smooth.plan().kernels) == 1

taps = np.repeat([-0.02, 0.02], 25).astype(np.float32)
quick = fc.diff(smooth, axis=0)  # differences of neighbours, one record fewer
edges = fc.convolve(x[:, 1], taps, mode="valid")
hops = fc.window(x[:, 0], size=250, step=250).mean(axis=1)  # windows that do not overlap: 80 of them
calm, spreads, slope, edge, coarse = fc.resolve(smooth, spread, quick, edges, hops)

for name, line in (("as it came", data[::250, 0]), ("smooth", calm[::250, 0]), ("square", calm[::250, 1])):
    print(f"{name:10} |{''.join(SHADES[int(np.clip(2 * v + 2.5, 0, 4))] for v in line)}|")

view = np.lib.stride_tricks.sliding_window_view
padded = np.pad(data, ((50, 50), (0, 0)), mode="edge")
np.testing.assert_allclose(calm, view(padded, 101, axis=0).mean(axis=-1, dtype="f8"), atol=1e-5)
np.testing.assert_allclose(spreads, view(padded, 101, axis=0).std(axis=-1, dtype="f8"), atol=1e-5)
np.testing.assert_array_equal(slope, np.diff(calm, axis=0))
np.testing.assert_allclose(edge, np.convolve(data[:, 1].astype("f8"), taps, "valid"), atol=1e-5)
np.testing.assert_allclose(coarse, data[:, 0].reshape(-1, 250).mean(axis=1, dtype="f8"), atol=1e-5)
assert (np.abs(edge) > 0.5).any()
