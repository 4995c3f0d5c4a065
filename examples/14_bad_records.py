"""Records at which your own code fails: dropped, counted, named, and written down for later."""

import json
import os
import tempfile

import numpy as np

import flowcompute as fc

volts = np.random.default_rng(14).normal(5, 1, (50_000, 2))
volts[::9999] = np.nan  # a sensor was off six times


def watts(batch):
    """Refuses what it cannot answer for; called with whole batches, and with parts of those that fail."""
    if np.isnan(batch).any():
        raise ValueError("no voltage")
    return batch[:, 0] ** 2 / 50 + batch[:, 1] ** 2 / 75


with tempfile.TemporaryDirectory() as folder:
    failed = os.path.join(folder, "failed.jsonl")
    x = fc.source(volts, name="volts")
    power = fc.host(watts, x, shape=(), name="power", on_error="dead_letter", dead_letter=failed)
    run = fc.run(power - power.mean(axis=0), power.max(), progress=False)  # two passes, one dead-letter file
    with open(failed) as lines:
        dead_letters = [json.loads(line) for line in lines]

above, most = run.values
print(f"{len(above):,} records, at most {most:.2f} W; {run.skipped['power']}")
print(dead_letters[-1])

expected = watts(volts[~np.isnan(volts[:, 0])])
np.testing.assert_allclose(above, expected - expected.mean(), atol=1e-12)
assert most == expected.max()
assert run.skipped["power"].count == 6
assert [letter["record"] for letter in dead_letters] == list(range(0, 50_000, 9999))
assert dead_letters[0]["inputs"] == [["nan", "nan"]]  # what JSON has no number for is text
