"""Cost of metrics: W1, W6 and single batches with and without them, in turns: `python -m benchmarks.costs.metrics`.

Each pair is one repetition with and one without, in changing order, so that what else the machine does falls on
both. Besides seconds there are seconds of the processor, which others on the machine move less. What a batch costs
more is measured on thousands of them that do next to nothing: it is what metrics cost whatever the batches do.
"""

from __future__ import annotations

import argparse
import math
import os
import tempfile
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import flowcompute as fc
from benchmarks.measuring.chunks import tiny_batches
from benchmarks.measuring.workloads import WORKLOADS, make_inputs, make_job

ALLOWED = 0.01
"""What metrics may take of a run's time."""

TINY_BATCHES = 300

Ways = dict[str, dict[str, Any]]


def calls(name: str, folder: str, options: argparse.Namespace) -> Callable[[dict[str, Any]], None]:
    """Runs a workload, given the options of metrics."""
    workload = WORKLOADS[name]
    make_inputs(workload, folder, options.mib, options.batches)
    job = make_job(workload, "metrics", folder, options.mib, options.batches)
    common: dict[str, Any] = {"device": options.device, "progress": False}
    if name == "W6":
        data = tiny_batches(job)
        memory = data.nbytes + (64 << 20)

        def tiny(more: dict[str, Any]) -> None:
            x = fc.iterate(iter(data), shape=(), dtype=np.float32)
            (x * 2 + 1).resolve(memory=memory, **common, **more)

        return tiny

    def chain(more: dict[str, Any]) -> None:
        x = fc.open(job.inputs[0])
        y = fc.nn.sigmoid(1.5 * x - 0.25) * fc.tanh(x) + x * x
        (y >> fc.save(job.output, durable=False)).run(memory="64MiB", **common, **more)

    return chain


def pairs(run: Callable[[dict[str, Any]], None], more: dict[str, Any], count: int) -> tuple[np.ndarray, np.ndarray]:
    """Logarithms of the time with `more` by the time without metrics: seconds, and seconds of the processor."""
    ratios = []
    for turn in range(-2, count):
        both = ((more, 1), ({"metrics": False}, -1))
        taken = np.zeros(2)
        for options, sign in both if turn % 2 else both[::-1]:
            began = time.perf_counter(), time.process_time()
            run(options)
            taken += sign * np.log([time.perf_counter() - began[0], time.process_time() - began[1]])
        if turn >= 0:
            ratios.append(taken)
    wall, processor = np.array(ratios).T
    return wall, processor


def batch(device: str, more: dict[str, Any], count: int) -> tuple[float, float]:
    """Microseconds that a batch takes more with metrics: by the clock, and of the processor."""
    x = fc.source(np.ones((TINY_BATCHES, 64), np.float32))
    taken: dict[bool, list[tuple[float, float]]] = {True: [], False: []}
    for turn in range(-1, count):
        for on in (True, False) if turn % 2 else (False, True):
            began = time.perf_counter(), time.process_time()
            options = more if on else {"metrics": False}
            strategy = fc.Strategy(batch_bytes=1, input="read")
            run = (x * 2 + 1 >> fc.discard()).run(device=device, progress=False, strategy=strategy, **options)
            spent = time.perf_counter() - began[0], time.process_time() - began[1]
            if turn >= 0:
                taken[on].append((spent[0] / run.launches, spent[1] / run.launches))
    # The least of many: whatever else goes on makes it longer.
    least = {on: np.array(pairs).min(axis=0) for on, pairs in taken.items()}
    wall, processor = 1e6 * (least[True] - least[False])
    return float(wall), float(processor)


def said(ratios: np.ndarray) -> str:
    """Median of the pairs as a share, and two standard errors of it."""
    middle = float(np.median(ratios))
    error = 2 * 1.2533 * 1.4826 * float(np.median(np.abs(ratios - middle))) / math.sqrt(len(ratios))
    return f"{math.expm1(middle):+7.2%} +- {error:.2%}"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.costs.metrics", description=__doc__)
    parser.add_argument("--device", default="auto", help="as in run(device=)")
    parser.add_argument("--pairs", type=int, default=40)
    parser.add_argument("--mib", type=int, default=256)
    parser.add_argument("--batches", type=int, default=200_000, help="of W6")
    parser.add_argument("--data", help="a folder for inputs; by default a temporary one")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.data) as folder:
        ways: Ways = {
            "metrics": {},
            "and a log": {"metrics_log": os.path.join(folder, "m.jsonl")},
            "and Prometheus": {"metrics_port": 0},
            "and a page": {"page": 0},
            "and a trace": {"trace": os.path.join(folder, "t.json")},
        }
        print(f"load {os.getloadavg()[0]:.1f}; {options.pairs} pairs, allowed {ALLOWED:.0%}")
        for label, more in ways.items():
            wall, processor = batch(options.device, more, 2 * options.pairs)
            print(f"a batch   {label:<16} {wall:+.1f} us, {processor:+.1f} us of the processor", flush=True)
        print("workload  with             seconds              of the processor")
        for name in ("W1", "W6"):
            run = calls(name, folder, options)
            for label, more in ways.items():
                wall, processor = pairs(run, more, options.pairs)
                print(f"{name:<9} {label:<16} {said(wall):<20} {said(processor)}", flush=True)


if __name__ == "__main__":
    main()
