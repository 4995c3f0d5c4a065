"""Transforms by `fc.fft` against NumPy's, from an array in memory to one, on one device.

    python -m benchmarks.device.fourier [--device cpu] [--lengths 64 256 1000 1021 4096] [--numbers 4000000]
        [--repeats 5]

Repetitions are interleaved, and medians are given as numbers transformed per second. NumPy's transforms of float32 give
complex64. `bound` is the error in the 2-norm against NumPy's in float64, in eps of float32.
"""

from __future__ import annotations

import argparse

import numpy as np

import flowcompute as fc
from benchmarks.measuring.interleaved import interleaved


def main() -> None:
    """Print a line for each length."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--lengths", type=int, nargs="+", default=[64, 256, 1000, 1021, 4096])
    parser.add_argument("--numbers", type=int, default=4_000_000)
    parser.add_argument("--repeats", type=int, default=5)
    given = parser.parse_args()
    for n in given.lengths:
        array = np.random.default_rng(n).standard_normal((given.numbers // n, n), dtype=np.float32)
        pair = fc.fft.rfft(fc.source(array))
        work = {
            "flowcompute": lambda pair=pair: fc.run(*pair, device=given.device, progress=False).values,
            "numpy": lambda array=array: np.fft.rfft(array),
        }
        real, imag = work["flowcompute"]()
        want = np.fft.rfft(array.astype("f8"))
        error = np.linalg.norm(real + 1j * imag - want) / np.linalg.norm(want) / np.finfo("f4").eps
        median = {name: np.median(times) for name, times in interleaved(work, given.repeats).items()}
        speeds = ", ".join(f"{name} {array.size / seconds / 1e6:.1f} M/s" for name, seconds in median.items())
        print(f"rfft of {n}: {speeds}, ratio {median['numpy'] / median['flowcompute']:.2f}, error {error:.1f} eps")


if __name__ == "__main__":
    main()
