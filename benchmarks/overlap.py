"""What handing batches over costs where they overlap: uploads and downloads that only wait, so many at a time.

    python -m benchmarks.overlap [--depth 3] [--batches 96] [--reps 5]

The device is PoCL planned as a discrete GPU. An upload sleeps 2 ms and a download 1.3 ms, one of each at a time, as
64 MiB take on a bus of 50 GB/s; a machine that loses nothing in between needs 2 ms a batch.
"""

from __future__ import annotations

import argparse
import statistics
import threading
import time
from collections.abc import Callable
from typing import Any
from unittest import mock

import numpy as np

import flowcompute as fc
from benchmarks.interleaved import interleaved
from flowcompute.gpu.backend import OpenCLBackend
from flowcompute.gpu.transfers import Transfers
from flowcompute.runtime.starting import start
from tests.gpu.shapes import gpu_shaped

UPLOAD_S, DOWNLOAD_S = 0.002, 0.0013

USERS = ("flowcompute.gpu.executor", "flowcompute.runtime.driver")
"""Who asks how many trips are uploaded at a time."""


def waiting(seconds: float) -> Callable[..., None]:
    """A transfer that takes so long; one at a time."""
    lock = threading.Lock()

    def move(*_arguments: Any, **_options: Any) -> None:
        with lock:
            time.sleep(seconds)

    return move


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--depth", type=int, default=3, help="batches in flight")
    parser.add_argument("--batches", type=int, default=96)
    parser.add_argument("--reps", type=int, default=5)
    options = parser.parse_args()
    job = (fc.source(np.zeros(options.batches * 1024, np.float32)) * 2) >> fc.discard()
    with mock.patch.object(OpenCLBackend, "select", return_value=gpu_shaped()):
        plan = fc.plan(job, memory=1 << 28, strategy=fc.Strategy(batch_bytes=4096, depth=options.depth))

    def run(trips: int) -> None:
        with (
            mock.patch(f"{USERS[0]}.uploads_at_a_time", return_value=trips),
            mock.patch(f"{USERS[1]}.uploads_at_a_time", return_value=trips),
            mock.patch.object(Transfers, "upload", waiting(UPLOAD_S)),
            mock.patch.object(Transfers, "download", waiting(DOWNLOAD_S)),
        ):
            start(plan, progress=False).wait()

    calls = {f"{trips} trips": lambda trips=trips: run(trips) for trips in (1, 2, 3)}
    for name, seconds in interleaved(calls, options.reps, untimed=1).items():
        print(f"{name} at a time: {statistics.median(seconds) / options.batches * 1e3:.2f} ms a batch")


if __name__ == "__main__":
    main()
