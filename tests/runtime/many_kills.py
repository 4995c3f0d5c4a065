"""Kills jobs at random moments as often as is asked for: `python -m tests.runtime.many_kills 1000`.

Names of pipelines may follow, of which all are meant without any: `python -m tests.runtime.many_kills 100 training`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from tests.runtime.kills import PIPELINES, trial


def main(wanted: int, names: Sequence[str]) -> int:
    """Kill so many jobs of these pipelines; prints what came of it."""
    seed, total, bad = int.from_bytes(os.urandom(3), "little"), 0, 0
    while total < wanted:
        for name in names:
            got = trial(name, 10, seed)
            total += got.kills
            if not got.equal or got.left:
                bad += 1
                print(f"{name}: seed {seed}: {got}")
        seed += 1
        print(f"{total} kills, {bad} jobs with other results", flush=True)
    return bad


if __name__ == "__main__":
    sys.exit(min(main(int(sys.argv[1]) if len(sys.argv) > 1 else 100, sys.argv[2:] or [*PIPELINES]), 1))
