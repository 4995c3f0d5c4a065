"""`python -m benchmarks.costs.checkpoints`: what checkpoints cost a job, in time and in pauses; see README.md."""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import tempfile

import numpy as np

import flowcompute as fc
from benchmarks.measuring.interleaved import interleaved
from benchmarks.measuring.report import say

COLUMNS = 16


def jobs(folder: str) -> dict[str, list[fc.Element]]:
    """A file that is mapped to a file, folds beside it, and a result that is kept in memory."""
    x = fc.open(os.path.join(folder, "x.npy"))
    y = fc.tanh(x) * 2 + x
    return {
        "map to a file, and sums": [y >> fc.save(os.path.join(folder, "y.npy")), x.sum(axis=0)],
        "two passes to a file": [(x - x.mean(axis=0)) >> fc.save(os.path.join(folder, "z.npy"))],
        "a result in memory": [y.sum(axis=1)],
    }


def main() -> None:
    """Print a row for each job."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.costs.checkpoints", description=__doc__)
    parser.add_argument("--mib", type=int, default=1024, help="size of the input, MiB")
    parser.add_argument("--reps", type=int, default=5, help="repetitions")
    parser.add_argument("--every", type=float, default=1.0, help="seconds between checkpoints")
    parser.add_argument("--data", default=None, help="folder for the files (a temporary one by default)")
    parser.add_argument("--checkpoints", default=None, help="folder for the checkpoints (a temporary one by default)")
    options = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(dir=options.data) as folder,
        tempfile.TemporaryDirectory(dir=options.checkpoints) as kept,
    ):
        records = (options.mib << 20) // (4 * COLUMNS)
        data = np.lib.format.open_memmap(os.path.join(folder, "x.npy"), "w+", "f4", (records, COLUMNS))
        generator = np.random.default_rng(0)
        for start in range(0, records, 1 << 18):
            data[start : start + (1 << 18)] = generator.random(data[start : start + (1 << 18)].shape, np.float32)
        del data
        say(f"{options.mib} MiB in, a checkpoint every {options.every:g} s\n")
        print("| job | without, s | with, s | ratio | checkpoints | longest pause, ms | writing, ms each |")
        print("| --- | --- | --- | --- | --- | --- | --- |")
        for name, roots in jobs(folder).items():
            print(row(name, roots, os.path.join(kept, "checkpoint"), options), flush=True)


def row(name: str, roots: list[fc.Element], path: str, options: argparse.Namespace) -> str:
    """Both kinds of run in turn; medians."""
    runs: list[fc.Run] = []

    def keep() -> None:
        shutil.rmtree(path, ignore_errors=True)
        runs.append(fc.run(*roots, progress=False, checkpoint=path, checkpoint_every=options.every))

    seconds = interleaved({"without": lambda: fc.run(*roots, progress=False), "with": keep}, options.reps, untimed=1)
    ratio = statistics.median(b / a for a, b in zip(seconds["without"], seconds["with"], strict=True))
    taken = [run.checkpoints for run in runs[1:]]
    without, kept = (statistics.median(seconds[kind]) for kind in ("without", "with"))
    count = statistics.median(one.count for one in taken)
    pause_ms = 1e3 * max(one.longest_pause_s for one in taken)
    write_ms = 1e3 * statistics.median(one.write_s / max(one.count, 1) for one in taken)
    return f"| {name} | {without:.3g} | {kept:.3g} | {ratio:.3f} | {count:g} | {pause_ms:.2g} | {write_ms:.2g} |"


if __name__ == "__main__":
    main()
