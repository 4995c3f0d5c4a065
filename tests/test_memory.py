"""Memory is flat: a file of five budgets and one of twenty take the same, and not much more than the budget."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

ROOT = Path(__file__).parents[1]
BUDGET_BYTES = 8 << 20
ALLOWED_BYTES = 100_000_000
"""Anonymous memory above the budget: the interpreter, NumPy, the driver and its compiler."""
FLAT_BYTES = BUDGET_BYTES
"""Largest difference of runs of several lengths: a busy machine may never fill the budget in a short one."""
ITEM = 64

# A process of its own for each job, since memory that was once freed is not given back to the system. What
# each batch leaves behind is seen after it, when all buffers of the run exist.
JOB = """
import json, sys
import numpy as np
import flowcompute as fc

source, target, budget, kind, read = sys.argv[1:]
x = fc.open(source)
roots = {
    "file": [fc.tanh(x * 0.5 + 1) * x >> fc.save(target)],
    "fold": [x.mean(axis=0), x.max(), fc.vecdot(x, x).sum()],
}[kind]
seen = []

def look(run):
    with open("/proc/self/status") as status:
        seen.append(next(int(line.split()[1]) for line in status if line.startswith("RssAnon:")) << 10)

run = fc.run(*roots, memory=int(budget), strategy=fc.Strategy(input=read), on_batch=look, progress=False)
value = None if kind == "file" else [np.asarray(value).tolist() for value in run.values]
print(json.dumps({"peak": max(seen), "batches": len(seen), "own": run.peak_bytes, "value": value}))
"""

pytestmark = pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="the system does not say RssAnon")


def write(path: Path, budgets: int) -> None:
    """A file of so many budgets, the same small whole numbers over and over."""
    items = budgets * BUDGET_BYTES // (ITEM * 4)
    piece = np.random.default_rng(9).integers(-8, 8, (items // budgets, ITEM)).astype(np.float32)
    array = np.lib.format.open_memmap(path, "w+", np.float32, (items, ITEM))
    for start in range(0, items, len(piece)):
        array[start : start + len(piece)] = piece
    array.flush()


def run(source: Path, target: Path, kind: str, read: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", JOB, str(source), str(target), str(BUDGET_BYTES), kind, read],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def check(kind: str, x: np.ndarray, target: Path, value: Any, budgets: int) -> None:
    """The answer, by the piece that the file repeats, or by the file's end."""
    piece = x[: len(x) // budgets].astype(np.float64)
    if kind == "file":
        y = np.load(target, mmap_mode="r")
        assert y.shape == x.shape
        np.testing.assert_allclose(y[-500:], (np.tanh(piece * 0.5 + 1) * piece)[-500:], rtol=1e-6, atol=1e-6)
        return
    columns, largest, total = value
    np.testing.assert_allclose(columns, piece.mean(axis=0), rtol=1e-6, atol=1e-6)
    assert largest == 7
    np.testing.assert_allclose(total, (piece**2).sum() * budgets, rtol=1e-7)


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "read"), [("file", "read"), ("file", "mapped"), ("fold", "read")])
def test_memory_does_not_grow_with_the_file(tmp_path: Path, kind: str, read: str) -> None:
    # The first run compiles the kernels, so that none of the measured ones holds a compiler's memory alone.
    peaks = []
    for budgets in (1, 5, 20):
        source, target = tmp_path / f"{budgets}.npy", tmp_path / "y.npy"
        write(source, budgets)
        report = run(source, target, kind, read)
        assert report["own"] <= BUDGET_BYTES
        assert report["batches"] > budgets
        check(kind, np.load(source, mmap_mode="r"), target, report["value"], budgets)
        peaks.append(report["peak"])
        source.unlink()
    assert max(peaks[1:]) <= BUDGET_BYTES + ALLOWED_BYTES, peaks
    assert abs(peaks[2] - peaks[1]) <= FLAT_BYTES, peaks
