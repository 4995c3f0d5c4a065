"""One job over several worker processes of this machine: `python -m benchmarks.cluster`.

The job standardises 64 columns of a file (two readings, one file written) and takes a variance. It runs by `fc.run` in
a process with as many cores as a worker has, and on clusters of 1, 2, 4, ... workers with `checkpoint=`. Told are
seconds, the ratio to `fc.run` and to `fc.run` divided by the number of workers, the processor time of the client, its
share of all processor time less what dask's scheduler takes in it when idle, and the most memory without a file behind
it that a worker had. `CLUSTER_WORK=100` in
the environment makes it a job of arithmetic, of a minute for some 100 MiB.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
from distributed import Client, LocalCluster

import flowcompute as fc
from benchmarks.measuring.report import environment, say

COLUMNS = 64
WORK = int(os.environ.get("CLUSTER_WORK", "0"))
"""Hyperbolic tangents of each number, in each reading: the processes of a benchmark inherit it."""

OPTIONS = {"memory": "256MiB", "device": "cpu", "progress": False}

ALONE = """
import json, sys, time
import flowcompute as fc
from benchmarks.cluster import OPTIONS, job
fc.run(*job(sys.argv[1], sys.argv[2] + "-warm", 1 << 16), **OPTIONS)
began = time.perf_counter()
fc.run(*job(sys.argv[1], sys.argv[2]), **OPTIONS, checkpoint=sys.argv[2] + "-kept", checkpoint_every=10)
print(json.dumps(time.perf_counter() - began))
"""


def job(path: str, target: str, records: int | None = None) -> tuple[fc.Element, fc.Element]:
    """Two readings, one file unless the target's name begins with "drop", and a fold."""
    x = fc.open(path)[:records]
    for _ in range(WORK):
        x = fc.tanh(x * 1.5)
    dropped = os.path.basename(target).startswith("drop")
    out = fc.discard() if dropped else fc.save(f"{target}.npy", durable=False)
    return (x - x.mean(axis=0)) / x.std(axis=0) >> out, x.var(axis=0)


def alone(path: str, target: str, cores: int) -> float:
    """Seconds of `fc.run` in a process of its own."""
    command = [sys.executable, "-c", ALONE, path, target]
    environ = os.environ | {"POCL_MAX_PTHREAD_COUNT": str(cores)}
    return float(json.loads(subprocess.run(command, env=environ, check=True, capture_output=True).stdout))


def anonymous() -> float:
    """MiB of memory without a file behind it that this process has."""
    status = Path("/proc/self/status").read_text()
    return int(status.split("RssAnon:")[1].split()[0]) / 1024


class Watch:
    """The most that workers' processes have, looked at every fifth of a second until the end of the block."""

    def __init__(self, client: Client) -> None:
        self.most = 0.0
        self._client, self._over = client, threading.Event()
        self._thread = threading.Thread(target=self._look)

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._over.wait(0.2):
            self.most = max(self.most, *self._client.run(anonymous).values())


def on_workers(
    client: Client, path: str, target: str, shards: int, records: int | None = None
) -> tuple[float, float, float]:
    """Seconds of a run on a cluster, of the client's processor, and of its workers' processors."""
    before = sum(client.run(time.process_time).values())
    began, processor = time.perf_counter(), time.process_time()
    fc.run(*job(path, target, records), cluster=client, shards=shards, checkpoint=f"{target}-kept", **OPTIONS)
    wall, own = time.perf_counter() - began, time.process_time() - processor
    return wall, own, sum(client.run(time.process_time).values()) - before


def idle_share() -> float:
    """Seconds of the processor that this process takes in a second of nothing: dask's scheduler is in it."""
    began, processor = time.perf_counter(), time.process_time()
    time.sleep(5)
    return (time.process_time() - processor) / (time.perf_counter() - began)


def main() -> None:
    """Print a row for each number of workers."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cluster", description=__doc__)
    parser.add_argument("--mib", type=int, default=2048)
    parser.add_argument("--reps", type=int, default=5)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--cores", type=int, default=1, help="cores of a worker")
    parser.add_argument("--drop", action="store_true", help="write no file: the disk is not measured")
    parser.add_argument("--data", default=None, help="folder for the files (a temporary one by default)")
    options = parser.parse_args()
    prefix = "drop-" if options.drop else ""
    found = environment()
    say(
        f"{found['date']}, {found['processor']}, {found['cores']} cores, load {found['load']:.1f}. {options.mib} MiB.\n"
    )
    with tempfile.TemporaryDirectory(dir=options.data) as folder:
        path = os.path.join(folder, "x.npy")
        records = (options.mib << 20) // (4 * COLUMNS)
        x = np.lib.format.open_memmap(path, "w+", "f4", (records, COLUMNS))
        for start in range(0, records, 1 << 16):
            part = x[start : start + (1 << 16)]
            part[:] = np.random.default_rng(start).standard_normal(part.shape, dtype=np.float32)
        del part, x
        print(
            "| workers | fc.run, s | cluster, s | fc.run over cluster | of n times | client's processor, s "
            "| its share | a worker's memory, MiB |"
        )
        print("| --- " * 8 + "|")
        for count in options.workers:
            with (
                LocalCluster(
                    n_workers=count, threads_per_worker=1, processes=True, host="127.0.0.1", memory_limit=0,
                    dashboard_address="127.0.0.1:0", silence_logs=50, local_directory=folder,
                    env={"POCL_MAX_PTHREAD_COUNT": str(options.cores)},
                ) as cluster,
                Client(cluster) as client,
            ):  # fmt: skip
                with Watch(client) as watch:
                    on_workers(client, path, os.path.join(folder, f"{prefix}warm{count}"), 4 * count, 1 << 19)
                idle = idle_share()
                pairs = []
                for number in range(options.reps):
                    taken: dict[str, tuple[float, ...]] = {}
                    # Who writes second waits for memory that the machine has to find: each goes first in turn.
                    for who in ("ab", "ba")[number % 2]:
                        target = os.path.join(folder, f"{prefix}{who}{number}")
                        if who == "a":
                            taken[who] = (alone(path, target, options.cores),)
                        else:
                            taken[who] = on_workers(client, path, target, 4 * count)
                        for left in Path(folder).glob(f"{prefix}[ab]*"):
                            shutil.rmtree(left) if left.is_dir() else left.unlink()
                    pairs.append((*taken["a"], *taken["b"]))
            one, many, processor, theirs = (statistics.median(pair[i] for pair in pairs) for i in range(4))
            ratio = statistics.median(pair[0] / pair[1] for pair in pairs)
            share = (processor - idle * many) / (processor + theirs)
            row = (f"{one:.2f}", f"{many:.2f}", f"{ratio:.2f}", f"{ratio / count:.2f}", f"{processor:.2f}")
            print(f"| {count} |", " | ".join(row), f"| {share:.1%} | {watch.most:.0f} |", flush=True)


if __name__ == "__main__":
    main()
