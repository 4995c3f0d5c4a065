"""Real data: how far away the Moon is in the middle of every four days, from NASA's ephemeris."""

import os
import tempfile

import numpy as np

import flowcompute as fc
from flowcompute.demo.ephemeris import find_data
from flowcompute.demo.moon_distance import distance

with tempfile.TemporaryDirectory() as folder:
    data = find_data(offline=True)  # what `flowcompute demo` has fetched, else a Moon on a plain ellipse
    print(data.description)
    moon = fc.open(data.path, name="moon")  # items (3, 13): 13 Chebyshev coefficients for x, y and z
    km = distance(moon)
    near = km < 360_000  # a "supermoon"
    target = os.path.join(folder, "km.npy")
    roots = (km >> fc.save(target), km.min(), km.max(), km.mean(), near.sum())
    run = fc.run(*roots, memory="2MiB", strategy=fc.Strategy(input="read"), progress=False)

    _, nearest, farthest, mean, count = run.values
    print(f"between {nearest:,.0f} and {farthest:,.0f} km, {mean:,.0f} km on average")
    print(f"nearer than 360,000 km at {count} of {len(np.load(target)):,} times")
    print(f"{os.path.getsize(data.path):,} bytes streamed in {run.peak_bytes:,} bytes of buffers")
    assert 356_000 < nearest < farthest < 407_000
    assert count == (np.load(target) < 360_000).sum()
    assert run.peak_bytes < os.path.getsize(data.path)
