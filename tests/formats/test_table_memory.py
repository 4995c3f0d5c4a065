"""Memory that pyarrow decodes and encodes with is given back: a process takes little more than the plan says."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytestmark = pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="the system does not say RssAnon")

# A process of its own for each job: memory that others have freed would hide what it takes. A short table is passed
# first, so that all is imported.
JOB = """
import gc, sys
import flowcompute as fc

kind, small, large, target = sys.argv[1:]
seen = []

def look(run):
    with open("/proc/self/status") as status:
        seen.append(next(int(line.split()[1]) for line in status if line.startswith("RssAnon:")) << 10)

def run(path, target):
    table = fc.open(path, fill=0)
    jobs = [(table[name] * 1.5).sum() for name in table]
    if kind == "written":
        jobs = [table[["a"]] >> fc.save(target, chunk=200_000)]
    strategy = fc.Strategy(batch_bytes=100_000, depth=1) if kind == "written" else None
    return fc.run(*jobs, memory="40MiB", device="numpy", strategy=strategy, on_batch=look, progress=False)

run(small, target + "/small.parquet")
gc.collect()
before = seen[-1]
seen.clear()
plan = run(large, target + "/large.parquet").plan
print(max(seen) - before - plan.memory.host_bytes)
"""


@pytest.mark.parametrize(("kind", "most"), [("read", 32_000_000), ("written", 6_000_000)])
def test_tables_take_little_more_than_the_plan_says(tmp_path: Path, kind: str, most: int) -> None:
    for name, rows in (("small", 5_000), ("large", 2_000_000)):
        numbers = pa.table({"a": np.arange(rows), "b": np.arange(rows) % 999 / 7, "c": np.arange(rows) % 50})
        pq.write_table(numbers, tmp_path / f"{name}.parquet", row_group_size=200_000, use_dictionary=kind == "read")
    paths = [str(tmp_path / f"{name}.parquet") for name in ("small", "large")]
    (tmp_path / "made").mkdir()
    command = [sys.executable, "-c", JOB, kind, *paths, str(tmp_path / "made")]
    made = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    assert made.returncode == 0, made.stderr
    assert int(made.stdout) < most
