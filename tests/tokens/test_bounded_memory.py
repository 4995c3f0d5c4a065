"""Texts of any number take the memory of a few: what a file of 300 MB takes, a file of 30 MB takes, too."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.models.files import write_model

ROOT = Path(__file__).parents[2]
PLANNED_BYTES = 32 << 20
FLAT_BYTES = 16 << 20
"""Anonymous memory by which two runs may differ. All texts would take ten times that, and their tokens again."""

# The tokenizer is as fast as a copy, so that most of the time is reading.
JOB = """
import sys
import numpy as np
import flowcompute as fc
from flowcompute.tokens.token_source import FileTokens

class Quarters:
    def encode(self, text):
        return np.zeros(len(text) // 4, np.int32)

path, model, budget = sys.argv[1:]
texts, seen = fc.models.texts(path), []
pairs = FileTokens(texts, Quarters(), fc.weights(model).file)

def look(run):
    with open("/proc/self/status") as status:
        seen.append(next(int(line.split()[1]) for line in status if line.startswith("RssAnon:")) << 10)

run = fc.run(
    fc.bincount(pairs[:, 1], texts.count()), device="numpy", memory=int(budget), on_batch=look, progress=False
)
assert (run.values[0] == 250).all()
assert run.plan.memory.host_bytes <= int(budget)
print(max(seen) - seen[0], max(seen), len(seen))
"""

pytestmark = pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="the system does not say RssAnon")


@pytest.mark.slow
def test_memory_does_not_grow_with_the_texts(tmp_path: Path) -> None:
    model, path = write_model(tmp_path / "m.gguf", block_count=1), tmp_path / "t.txt"
    peaks = []
    for megabytes in (30, 300):
        with path.open("wb") as out:
            for _ in range(megabytes):
                out.write((b"x" * 1000 + b"\n") * 1000)
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", JOB, str(path), str(model), str(PLANNED_BYTES)],
            env=os.environ | {"PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        grown, peak, batches = map(int, done.stdout.split())
        assert batches > megabytes
        assert grown <= PLANNED_BYTES
        peaks.append(peak)
    assert abs(peaks[1] - peaks[0]) <= FLAT_BYTES, peaks
