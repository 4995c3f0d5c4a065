"""Workers of a cluster killed at random while they compute a job: `python -m tests.distributed.many_worker_kills 600`.

Every few seconds another worker is killed, until the time is over; jobs follow each other meanwhile. Each must have the
bytes of one machine, and leave nothing behind. `scripts/nightly` does so for ten minutes.
"""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

import dask
import numpy as np
from distributed import Client, LocalCluster

import flowcompute as fc

EVERY_S = 5.0
RECORDS = 200_003
OPTIONS: dict[str, Any] = {"memory": "16MiB", "progress": False}


def job(folder: Path, out: str) -> tuple[fc.Element, ...]:
    """Two passes, a scan, a window, a selection, and folds."""
    x = fc.open(folder / "x.npy", name="x")
    mean, deviation = x.mean(axis=0), x.std(axis=0)
    return (
        (x - mean) / deviation >> fc.save(folder / out / "z.npy"),
        fc.cumulative_sum(x, axis=0) >> fc.save(folder / out / "c.raw"),
        fc.window(x[:, 1], size=33).max(axis=1) >> fc.save(folder / out / "w.npy"),
        x[x[:, 0] > mean[0]] >> fc.save(folder / out / "k.npy"),
        x * 2 >> fc.save(folder / out / "r.zarr", chunk=5_000),
        x.var(axis=0),
        x[:, 2].argmax(),
    )


def contents(folder: Path) -> dict[str, bytes]:
    """All files in a folder, hidden ones too."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def bits(values: tuple[Any, ...]) -> list[bytes]:
    """The values that are no paths."""
    return [np.asarray(one).tobytes() for one in values[5:]]


class Killer:
    """Kills a random worker every few seconds, until it is stopped."""

    def __init__(self, client: Client, seed: int) -> None:
        self.killed = 0
        self._client, self._random, self._over = client, random.Random(seed), threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Killer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._over.wait(EVERY_S):
            with contextlib.suppress(OSError, IndexError):
                processes = self._client.run(os.getpid, on_error="ignore")
                os.kill(self._random.choice(sorted(processes.values())), signal.SIGKILL)
                self.killed += 1


def main(seconds: float, seed: int = 0) -> None:
    """Run jobs while workers die, for so many seconds."""
    over = threading.Event()
    timer = threading.Timer(seconds, over.set)
    timer.daemon = True
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        x = np.random.default_rng(seed).standard_normal((RECORDS, 24), dtype=np.float32)
        np.save(folder / "x.npy", x)
        for out in "ab":
            (folder / out).mkdir()
        values = bits(fc.run(*job(folder, "a"), **OPTIONS).values)
        files = contents(folder / "a")
        runs = resumed = 0
        # A worker that is away when a local cluster looks for it, 15 s after a kill, would never be started again.
        with (
            dask.config.set({"distributed.deploy.lost-worker-timeout": f"{max(60.0, 2 * seconds)} s"}),
            LocalCluster(
                n_workers=3, threads_per_worker=1, processes=True, host="127.0.0.1", dashboard_address="127.0.0.1:0",
                memory_limit=0, silence_logs=50,
            ) as cluster,
            Client(cluster) as client,
            Killer(client, seed) as killer,
        ):  # fmt: skip
            timer.start()
            while not over.is_set():
                made = fc.run(
                    *job(folder, "b"), cluster=client, shards=12, checkpoint=folder / "kept", checkpoint_every=0.5,
                    throttle=0.05, **OPTIONS,
                )  # fmt: skip
                assert bits(made.values) == values, f"folds have other bits after {killer.killed} kills"
                assert contents(folder / "b") == files, f"files have other bytes after {killer.killed} kills"
                runs, resumed = runs + 1, resumed + made.shards.resumed
                shutil.rmtree(folder / "kept")
                shutil.rmtree(folder / "b")
                (folder / "b").mkdir()
        print(f"{killer.killed} workers killed in {seconds:g} s, {runs} jobs, {resumed} shards went on: no other byte")


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 600.0, int(sys.argv[2]) if len(sys.argv) > 2 else 0)
