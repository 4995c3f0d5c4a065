"""Runs tests on another OpenCL runtime for the CPU than the one that is taken by default.

python -m tests.support.first_runtime                     the others, by name of their device= ("cpu:1")
python -m tests.support.first_runtime cpu:1 tests/gpu -x  runs pytest with that one as the first
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile

from flowcompute.gpu.device import describe_devices
from flowcompute.strategy import RuntimeTrial, save_runtime_trial


def main(words: list[str]) -> int:
    others = {row.spec: row for row in describe_devices() if row.type == "cpu" and row.spec != "cpu:0"}
    if not words:
        print("\n".join(others))
        return 0
    spec, *arguments = words
    with tempfile.TemporaryDirectory() as cache:
        os.environ["FLOWCOMPUTE_CACHE"] = cache
        if not save_runtime_trial(others[spec].identity, RuntimeTrial("", 0.0)):
            print(f"cannot keep that {spec} comes first in {cache}", file=sys.stderr)
            return 1
        print(f"tests on {others[spec].identity}")
        return subprocess.call([sys.executable, "-m", "pytest", *arguments])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
