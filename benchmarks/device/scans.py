"""Running sums in device memory as fractions of the device's own copy: no transfers, one kernel at a time.

    python -m benchmarks.device.scans [--device gpu] [--mib 512] [--reps 9] [--knobs]

Each kernel runs over one resident batch, in turns with the others; bytes are those it must read and write. With
`--knobs` a few variants of each run too. Answers are checked against NumPy in float64.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import flowcompute as fc
from benchmarks.device.bandwidth import Resident, copy_of
from benchmarks.measuring.interleaved import interleaved

ALLOWED = 1e-5
"""Of the root of the length: what rounding may come to."""

Knobs = dict[str, int]

VARIANTS: dict[str, list[Knobs]] = {
    "column scan": [{"work_group": 1024, "tile_columns": 32}, {"work_group": 1024}, {"work_group": 256}],
    "tiled walk": [{"work_group": 64}, {"work_group": 64, "tile_columns": 64}, {"tile_columns": 16}],
    "number scan": [{"unroll": 2}, {"unroll": 8}],
    "scan": [{"work_group": 512}, {"work_group": 128}],
}
"""By family."""


class Scan(Resident):
    """A running sum. Tiles believe what was handed on in their own launch, so each needs a number of its own."""

    def run(self) -> None:
        """The kernel alone."""
        kernel, values, *sizes = self.call
        if kernel.work == "scan":
            values[-4] += 1
        self.launch(kernel, values, *sizes)


def cases(array: np.ndarray) -> Iterator[tuple[str, np.ndarray, int]]:
    """Name, records and axis."""
    yield "numbers", array, 0
    for width in (128, 256, 512, 1024):
        yield f"records of {width}, along the stream", array.reshape(-1, width), 0
    for width in (128, 1024):
        yield f"inside records of {width}", array.reshape(-1, width), 1


def check(data: np.ndarray, axis: int, got: np.ndarray) -> None:
    """The first and the last records."""
    first = data[: max(1, (1 << 20) // data[0].size)].astype("f8")
    tail = data[-1000:].astype("f8")
    last = data.sum(axis=0, dtype="f8") if axis == 0 else np.cumsum(tail, axis=1)
    scale = ALLOWED * np.sqrt(data.shape[axis])
    np.testing.assert_allclose(got[: len(first)], np.cumsum(first, axis=axis), rtol=0, atol=scale)
    np.testing.assert_allclose(got[-1] if axis == 0 else got[-1000:], last, rtol=0, atol=scale)


def prepared(options: argparse.Namespace) -> dict[str, Scan]:
    """The kernels, checked."""
    array = np.random.default_rng(1).standard_normal((options.mib << 20) // 4, dtype=np.float32)
    made: dict[str, Scan] = {}
    for name, data, axis in cases(array):
        job = fc.cumulative_sum(fc.source(data), axis=axis)
        tried: list[Knobs] = [{}]
        for knobs in tried:
            scan = Scan(job, data, options.device, knobs=knobs)
            kernel = scan.step.kernel
            assert kernel is not None
            if options.knobs and not knobs:
                tried += VARIANTS.get(kernel.family, [])
            check(data, axis, *scan.outputs.values())
            scan.outputs.clear()
            made[f"{name} ({kernel.family}: {kernel.knobs})"] = scan
    return made


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="gpu")
    parser.add_argument("--mib", type=int, default=512)
    parser.add_argument("--reps", type=int, default=9)
    parser.add_argument("--knobs", action="store_true", help="variants too")
    options = parser.parse_args()
    scans = prepared(options)
    first = next(iter(scans.values()))
    calls: dict[str, Callable[[], Any]] = {name: scan.run for name, scan in scans.items()}
    calls["copy"] = copy_of(first, options.mib << 20)
    print(f"{first.plan.backend.capabilities.name}: {options.mib} MiB of float32")
    seconds = {name: statistics.median(times) for name, times in interleaved(calls, options.reps).items()}
    for name, time in seconds.items():
        rate = 2 * (options.mib << 20) / time / 1e9
        print(f"{name:110} {rate:8.1f} GB/s  {seconds['copy'] / time:5.2f} of the copy")


if __name__ == "__main__":
    main()
