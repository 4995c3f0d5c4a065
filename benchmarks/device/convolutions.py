"""Convolutions over resident images: the kernel alone beside the naive one, a sum of products over windows.

    python -m benchmarks.device.convolutions [--device cpu] [--images 24] [--reps 7]

Medians of interleaved launches, no transfers; both must agree.
"""

from __future__ import annotations

import argparse
import statistics
from typing import Any

import numpy as np

import flowcompute as fc
from benchmarks.device.bandwidth import Resident
from benchmarks.measuring.interleaved import interleaved
from flowcompute.elements.nn.convolution import _naive_convolution
from flowcompute.elements.nn.implicit import implicit_convolution

SHAPES = (
    # what it is; channels, size, output channels, weights, groups, stride
    ("3 x 3", 32, 56, 32, 3, 1, 1),
    ("3 x 3, many channels", 128, 28, 128, 3, 1, 1),
    ("7 x 7, few channels, stride 2", 3, 112, 64, 7, 1, 2),
    ("1 x 1", 128, 28, 128, 1, 1, 1),
    ("depthwise 3 x 3", 64, 56, 64, 3, 64, 1),
    ("depthwise 5 x 5, stride 2", 64, 56, 64, 5, 64, 2),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--images", type=int, default=24)
    parser.add_argument("--reps", type=int, default=7)
    options = parser.parse_args()
    rng = np.random.default_rng(1)
    for name, channels, size, out, kernel, groups, stride in SHAPES:
        x = rng.standard_normal((options.images, channels, size, size), dtype=np.float32)
        weight = rng.standard_normal((out, channels // groups, kernel, kernel), dtype=np.float32)
        how: Any = (fc.source(x), fc.constant(weight), None, (stride, stride), (1, 1), groups)
        made = {"ours": implicit_convolution("conv2d", *how), "naive": _naive_convolution("conv2d", *how)}
        values = [one.resolve(device=options.device, progress=False) for one in made.values()]
        np.testing.assert_allclose(*values, rtol=1e-3, atol=1e-3)
        # Groups become channels by another shape, which takes no time.
        kernels = {key: one.inputs[0] if one.op.name == "reshape" else one for key, one in made.items()}
        residents = {key: Resident(one, x, options.device) for key, one in kernels.items()}
        seconds = interleaved({key: one.run for key, one in residents.items()}, options.reps, untimed=1)
        ours, naive = (statistics.median(seconds[key]) for key in ("ours", "naive"))
        rate = 2e-9 * values[0].size * weight[0].size / ours
        print(f"{name:30} {1e3 * ours:8.2f} ms  {rate:8.1f} GFLOP/s  naive takes {naive / ours:5.1f} times as long")


if __name__ == "__main__":
    main()
