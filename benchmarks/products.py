"""Matrix products in device memory: rates of the kernels alone, beside PyTorch's where it is installed.

    python -m benchmarks.products [--device gpu] [--reps 7]

One kernel at a time over one resident batch, no transfers; medians, interleaved with the peer.
Results are checked against NumPy in float64 on the first 300 rows.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import statistics
from collections.abc import Callable

import numpy as np

import flowcompute as fc
from benchmarks.device import Resident
from benchmarks.interleaved import interleaved


def torch_product(left: np.ndarray, right: np.ndarray) -> Callable[[], None] | None:
    """The product by PyTorch on its GPU, in float32 proper; None where there is none."""
    if importlib.util.find_spec("torch") is None:
        return None
    torch = importlib.import_module("torch")
    if not torch.cuda.is_available():
        return None
    torch.backends.cuda.matmul.allow_tf32 = False
    a, b = (torch.from_numpy(array).cuda() for array in (left, right))

    def run() -> None:
        torch.matmul(a, b)
        torch.cuda.synchronize()

    return run


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="gpu")
    parser.add_argument("--reps", type=int, default=7)
    options = parser.parse_args()
    rng = np.random.default_rng(1)
    for rows, inner, columns in ((8192, 8192, 8192), (2048, 2048, 2048), (1 << 20, 257, 64)):
        left = rng.standard_normal((rows, inner), dtype=np.float32)
        right = rng.standard_normal((inner, columns), dtype=np.float32)
        product = fc.source(left) @ fc.constant(right)
        bias = rng.standard_normal(columns, dtype=np.float32)
        calls = {
            "product": Resident(product, left, options.device).run,
            "tanh(product + bias) / 2": Resident(fc.tanh(product + bias) * 0.5, left, options.device).run,
        }
        peer = torch_product(left, right)
        calls |= {} if peer is None else {"torch product": peer}
        for name, times in interleaved(calls, options.reps, untimed=2).items():
            rate = 2 * rows * inner * columns / statistics.median(times) / 1e12
            print(f"({rows}, {inner}) @ ({inner}, {columns})  {name:26} {rate:7.2f} TFLOP/s")
        part = (fc.source(left[:300]) @ fc.constant(right)).resolve(device=options.device, progress=False)
        exact = left[:300].astype("f8") @ right.astype("f8")
        print(f"    largest error {np.abs(part - exact).max() / np.abs(exact).max():.1e} of the largest number")


if __name__ == "__main__":
    main()
