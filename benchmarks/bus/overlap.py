"""Cost of handing batches over where they overlap: uploads, downloads and kernels that only wait.

    python -m benchmarks.bus.overlap [--depth 3] [--batches 96] [--reps 5] [--devices 2] [--times 4]

The devices are PoCL planned as discrete GPUs. An upload sleeps 2 ms and a download 1.3 ms, one of each at a time and
device, as 64 MiB take on a bus of 50 GB/s; a machine that loses nothing in between needs 2 ms a batch. With two devices
half of the graph is on each, and a kernel sleeps 2 ms as well: what crosses is downloaded from the one and uploaded to
the other.
"""

from __future__ import annotations

import argparse
import statistics
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from typing import Any
from unittest import mock

import numpy as np

import flowcompute as fc
from benchmarks.measuring.interleaved import interleaved
from flowcompute.engine.backend import PlannedJob
from flowcompute.gpu.memory.transfers import Transfers
from flowcompute.gpu.worker.launcher import LocalLauncher
from flowcompute.runtime.run.starting import start
from tests.gpu.shapes import gpu_shaped, two_gpus

UPLOAD_S, DOWNLOAD_S, KERNEL_S = 0.002, 0.0013, 0.002

USERS = ("flowcompute.gpu.run.opencl_runner", "flowcompute.runtime.run.driver")
"""Who asks how many batches are uploaded at a time."""


def waiting(seconds: float) -> Callable[..., None]:
    """Something of a device that takes so long; one at a time."""
    locks: defaultdict[int, threading.Lock] = defaultdict(threading.Lock)

    def move(one: Any, *_arguments: Any, **_options: Any) -> None:
        with locks[id(one._device)]:
            time.sleep(seconds)

    return move


def one_device(options: argparse.Namespace) -> dict[str, Callable[[], object]]:
    """Runs on one device, with so many batches uploaded at a time."""
    job = (fc.source(np.zeros(options.batches * 1024, np.float32)) * 2) >> fc.discard()
    with mock.patch("flowcompute.jobs.job_planner.choose_backend", return_value=gpu_shaped()):
        strategy = fc.Strategy(batch_bytes=4096, depth=options.depth, joined_batches=1)
        plan = fc.plan(job, memory=1 << 28, strategy=strategy)

    def run(uploads: int) -> None:
        with (
            mock.patch(f"{USERS[0]}.uploads_at_a_time", return_value=uploads),
            mock.patch(f"{USERS[1]}.uploads_at_a_time", return_value=uploads),
        ):
            start(PlannedJob(plan, gpu_shaped()), progress=False).wait()

    return {f"{count} uploads at a time": lambda count=count: run(count) for count in (1, 2, 3)}


def two_devices(options: argparse.Namespace) -> dict[str, Callable[[], object]]:
    """Runs on two devices that take turns, and on two that compute different batches."""
    job = ((fc.source(np.zeros(options.batches * 1024, np.float32)) * 2).on("gpu") + 1).on("gpu:1") >> fc.discard()
    strategy = fc.Strategy(batch_bytes=4096, depth=options.depth, joined_batches=1)
    with mock.patch("flowcompute.jobs.job_planner.choose_backend", return_value=two_gpus()):
        ahead = fc.plan(job, memory=1 << 28, strategy=strategy)
        with mock.patch("flowcompute.schedule.planner.count_early_steps", return_value=0):
            alone = fc.plan(job, memory=1 << 28, strategy=strategy)
    plans = {"one batch at a time between devices": alone, "computed ahead": ahead}
    return {
        name: lambda plan=plan: start(PlannedJob(plan, two_gpus()), progress=False).wait()
        for name, plan in plans.items()
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--depth", type=int, help="batches in flight; 3 for each device")
    parser.add_argument("--batches", type=int, default=96)
    parser.add_argument("--reps", type=int, default=5)
    parser.add_argument("--devices", type=int, choices=(1, 2), default=1)
    parser.add_argument("--times", type=float, default=1, help="all waits are so many times as long")
    options = parser.parse_args()
    options.depth = options.depth or 3 * options.devices
    upload, download, kernel = (waiting(options.times * seconds) for seconds in (UPLOAD_S, DOWNLOAD_S, KERNEL_S))
    with mock.patch.object(Transfers, "upload", upload), mock.patch.object(Transfers, "download", download):
        if options.devices == 1:
            results = interleaved(one_device(options), options.reps, untimed=1)
        else:
            with mock.patch.object(LocalLauncher, "launch", kernel):
                results = interleaved(two_devices(options), options.reps, untimed=1)
    for name, seconds in results.items():
        print(f"{name}: {statistics.mean(seconds) / options.batches * 1e3:.2f} ms a batch")


if __name__ == "__main__":
    main()
