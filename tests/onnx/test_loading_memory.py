"""Loading a model takes the memory of its weights, and no more."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest

from tests.onnx.models import model, node, port

# A process of its own, since memory that was once freed is not given back to the system.
LOAD = """
import sys
import flowcompute as fc, flowcompute.onnx, onnx

def anonymous():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("RssAnon:")) << 10

before = anonymous()
loaded = fc.onnx.load(sys.argv[1])
print((anonymous() - before) / loaded.weights_bytes)
"""


@pytest.mark.slow
@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="the system does not say RssAnon")
def test_weights_are_there_once_at_most(tmp_path: Path) -> None:
    """Also where none of them is aligned in the file, and all are copied."""
    values = {f"w{place}": np.full((256, 4096), place, np.float32) for place in range(8)}
    nodes = [node("MatMul" if place == 0 else "Add", f"{'x' if place == 0 else f'y{place}'} {name}", f"y{place + 1}")
             for place, name in enumerate(values)]  # fmt: skip
    made = model(nodes, [port("x", (256, 256))], ("y8",), values=values, doc_string="x")
    onnx.save(made, tmp_path / "m.onnx")
    done = subprocess.run([sys.executable, "-c", LOAD, str(tmp_path / "m.onnx")], capture_output=True, check=True)
    assert float(done.stdout) <= 1.2
