"""Files on the disk that nobody has cached: `python -m benchmarks.costs.cold`.

A file is read once, and one is written, by flowcompute in little memory, by NumPy over a mapping and by `dd` around the
page cache. Each runs in a process of its own, in turns. Told are also the MiB of the file that the page cache holds
afterwards, and of a neighbour that somebody else had read before. `--base` names another checkout, measured in turns.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks.measuring.harness import ROOT
from benchmarks.measuring.report import environment

MIB = 1 << 20
MEMORY = "256MiB"
NEIGHBOUR_MIB = 64
BLOCK = "bs=4M"

OURS = """
import json, sys, time
import numpy as np
import flowcompute as fc
what, path, small, strategy = sys.argv[1:5]
options = {"device": "cpu", "memory": sys.argv[5], "progress": False, "strategy": fc.Strategy(**json.loads(strategy))}
def run(path, count):
    if what == "write":
        # One row again and again, as `dd` takes zeros: numbers that cost something would be timed with the disk.
        (fc.source(np.broadcast_to(np.ones(256, np.float32), (count // 256, 256))) >> fc.save(path)).run(**options)
    else:
        x = fc.open(path)
        (x.sum(axis=0) if what == "sum" else x.var(axis=0)).resolve(**options)
run(small, 1 << 24)
began, processor = time.perf_counter(), time.process_time()
run(path, int(sys.argv[6]))
print(json.dumps([time.perf_counter() - began, time.process_time() - processor]))
"""
"""A job, after a small one that compiles its kernels."""

NUMPY = """
import json, sys, time
import numpy as np
began, processor = time.perf_counter(), time.process_time()
x = np.load(sys.argv[2], mmap_mode="r")
x.sum(axis=0) if sys.argv[1] == "sum" else x.var(axis=0)
print(json.dumps([time.perf_counter() - began, time.process_time() - processor]))
"""


def make(path: Path, mib: int) -> None:
    """Write a .npy file of normal numbers of this size, and wait until the disk has it."""
    piece = np.random.default_rng(0).standard_normal((MIB // 1024, 256), dtype=np.float32)
    with path.open("wb") as file:
        shape = (mib * MIB // 1024, 256)
        np.lib.format.write_array_header_1_0(file, {"descr": "<f4", "fortran_order": False, "shape": shape})
        for _ in range(mib):
            file.write(piece.data)
        file.flush()
        os.fsync(file.fileno())
    os.utime(path, (0, 0))


def forget(path: Path) -> None:
    """Take a file out of the page cache."""
    with path.open("rb") as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def cached_mib(path: Path) -> float:
    """Return how much of a file the page cache holds."""
    done = subprocess.run(["fincore", "-b", "-n", "-o", "RES", str(path)], capture_output=True, text=True, check=True)
    return int(done.stdout) / MIB


def commands(what: str, path: Path, mib: int, base: str | None) -> dict[str, tuple[str, list[str]]]:
    """Return the checkout and the command line of each peer."""
    small = str(path.with_name("small.npy"))
    ways = {"": {}, ", read by 4 threads": {"input": "read", "reader_threads": 4}} if what != "write" else {"": {}}
    found = {}
    for name, root in {"flowcompute before": base, "flowcompute": ROOT}.items():
        for way, strategy in ways.items():
            line = [sys.executable, "-c", OURS, what, str(path), small, json.dumps(strategy), MEMORY]
            if root is not None:
                found[name + way] = (root, [*line, str(mib * MIB // 4)])
    if what == "write":
        found["`dd oflag=direct`"] = (ROOT, ["dd", "if=/dev/zero", f"of={path}", "oflag=direct", BLOCK])
        found["`dd oflag=direct`"][1].append(f"count={mib // 4}")
        return found
    found["NumPy over a mapping"] = (ROOT, [sys.executable, "-c", NUMPY, what, str(path)])
    found["`dd iflag=direct`"] = (ROOT, ["dd", f"if={path}", "of=/dev/null", "iflag=direct", BLOCK])
    return found


def measure(root: str, line: list[str]) -> tuple[float, float]:
    """Return the seconds on the wall and of the processor: a job's own, or all of a process."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(line, env=dict(os.environ, PYTHONPATH=root), cwd=root, capture_output=True, check=True)
    seconds = time.perf_counter() - began
    if done.stdout:
        wall, processor = json.loads(done.stdout)
        return wall, processor
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return seconds, after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def row(name: str, seen: list[tuple[float, ...]], gigabytes: float) -> str:
    """Return a line of a Markdown table: rates, processor seconds, MiB cached of the file and of its neighbour."""
    walls, processors, mine, others = zip(*seen, strict=True)
    rates = [gigabytes / wall for wall in walls]
    cells = [f"{statistics.median(each):.2f} ({min(each):.2f} to {max(each):.2f})" for each in (rates, processors)]
    cells += [f"{statistics.median(each):.0f}" for each in (mine, others)]
    return "| " + " | ".join([name, *cells]) + " |"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.costs.cold", description=__doc__)
    parser.add_argument("--mib", type=int, default=4096, help="size of the file (a multiple of 4)")
    parser.add_argument("--reps", type=int, default=3)
    parser.add_argument("--base", help="another checkout, measured in turns with this one")
    parser.add_argument("--what", default="sum,var,write")
    parser.add_argument("--data", help="folder for the files, on the disk that is measured")
    options = parser.parse_args()
    machine = environment()
    print(f"{machine['processor']}, {machine['cores']} cores, {machine['date']}, load {machine['load']:.1f}")
    with tempfile.TemporaryDirectory(dir=options.data) as folder:
        path, neighbour = Path(folder, "x.npy"), Path(folder, "neighbour.npy")
        make(neighbour, NEIGHBOUR_MIB)
        for what in options.what.split(","):
            seen: dict[str, list[tuple[float, ...]]] = {}
            for repetition in range(options.reps):
                for name, (root, line) in commands(what, path, options.mib, options.base).items():
                    if what == "write":
                        path.unlink(missing_ok=True)
                    elif not repetition and not seen:
                        make(path.with_name("small.npy"), 64)
                        make(path, options.mib)
                    if what != "write":
                        forget(path)
                    neighbour.read_bytes()
                    times = measure(root, line)
                    seen.setdefault(name, []).append((*times, cached_mib(path), cached_mib(neighbour)))
            print(f"\n| {what}, {options.mib} MiB | GB/s | processor s | MiB cached | of the neighbour's |")
            print("|" + " --- |" * 5)
            for name, each in seen.items():
                print(row(name, each, options.mib * MIB / 1e9), flush=True)
            path.unlink()


if __name__ == "__main__":
    main()
