"""Matrix products in device memory: rates of the kernels alone, beside PyTorch's where it is installed.

    python -m benchmarks.device.products [--device gpu] [--dtypes float32 float16 bfloat16 int8] [--precision exact]
        [--reps 7] [--launches 1]

One kernel at a time over one resident batch, no transfers; medians, interleaved with the peer.
Errors are those of the first 300 rows against NumPy in float64: the largest, over the largest
number, and the largest over the sum of |a| |b| that belongs to it. PyTorch multiplies float32
proper, but with --precision tf32x3 its TF32 stands beside it. Products of int8 add up in int32
and take a right factor whose columns lie along k, as PyTorch asks for; rates are TOP/s.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import statistics
from collections.abc import Callable
from functools import partial
from typing import Any

import ml_dtypes
import numpy as np

import flowcompute as fc
from benchmarks.device.bandwidth import Resident
from benchmarks.measuring.interleaved import interleaved

SHAPES = ((8192, 8192, 8192), (4096, 4096, 4096), (2048, 2048, 2048), (1 << 20, 257, 64))
DTYPES = {"float32": np.float32, "float16": np.float16, "bfloat16": ml_dtypes.bfloat16, "int8": np.int8}


def torch_product(
    left: np.ndarray, right: np.ndarray, dtype: str, launches: int, *, tf32: bool
) -> Callable[[], Any] | None:
    """The product by PyTorch on its GPU, so many times; None where there is none."""
    if importlib.util.find_spec("torch") is None:
        return None
    torch = importlib.import_module("torch")
    if not torch.cuda.is_available():
        return None
    a, b = (torch.from_numpy(array.astype("f4")).cuda().to(getattr(torch, dtype)) for array in (left, right))
    multiply = torch.matmul
    if dtype == "int8":
        # It is slower where columns do not lie along k.
        multiply, b = torch._int_mm, b.t().contiguous().t()

    def run() -> Any:
        torch.backends.cuda.matmul.allow_tf32 = tf32
        for _ in range(launches):
            made = multiply(a, b)
        torch.cuda.synchronize()
        return made

    return run


def launched(kernel: Resident, launches: int) -> None:
    """Launch a kernel so many times, and wait for the last one."""
    for _ in range(launches - 1):
        kernel.launch(*kernel.call, deferred=True)
    kernel.run()


def measure(shape: tuple[int, int, int], dtype: str, options: argparse.Namespace) -> None:
    """Rates and errors of a product and of one with an epilogue, interleaved with PyTorch's."""
    rows, inner, columns = shape
    rng, whole = np.random.default_rng(1), dtype == "int8"
    unit = "TOP/s" if whole else "TFLOP/s"

    def drawn(*size: int) -> np.ndarray:
        if whole:
            return rng.integers(-128, 128, size, dtype=np.int8)
        return rng.standard_normal(size, dtype=np.float32).astype(DTYPES[dtype])

    left, right, bias = drawn(rows, inner), drawn(inner, columns), drawn(columns)
    product = fc.matmul(fc.source(left), fc.constant(right), dtype="int32" if whole else None)
    scaled = fc.astype(product, "float32") * 1e-4 if whole else product
    jobs = {"product": product, "tanh(product + bias) / 2": fc.tanh(scaled + bias) * 0.5}
    kernels = {name: Resident(job, left, options.device, options.precision) for name, job in jobs.items()}
    calls: dict[str, Callable[[], Any]] = {
        name: partial(launched, kernel, options.launches) for name, kernel in kernels.items()
    }
    peers = (
        {"torch product": False, "torch product, TF32": True}
        if options.precision == "tf32x3"
        else {"torch product": False}
    )
    for name, tf32 in peers.items():
        if (run := torch_product(left, right, dtype, options.launches, tf32=tf32)) is not None:
            calls[name] = run
    seconds = interleaved(calls, options.reps, untimed=2, twice=True)
    (made,) = kernels["product"].outputs.values()
    results = {"product": made[:300]}
    results |= {name: calls[name]()[:300].float().cpu().numpy() for name in peers if name in calls}
    a, b = left[:300].astype("f8"), right.astype("f8")
    exact, size = a @ b, np.abs(a) @ np.abs(b)
    for name, times in seconds.items():
        rate = 2 * rows * inner * columns * options.launches / statistics.median(times) / 1e12
        line = f"{dtype:8} ({rows}, {inner}) @ ({inner}, {columns})  {name:26} {rate:7.2f} {unit}"
        if name in results:
            error = np.abs(results[name].astype("f8") - exact)
            line += f"  error {error.max() / np.abs(exact).max():.1e}, {(error / size).max():.1e} of |a| |b|"
        print(line, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="gpu")
    parser.add_argument("--dtypes", nargs="+", default=["float32"], choices=DTYPES)
    parser.add_argument("--precision", default="exact", choices=["exact", "tf32x3"])
    parser.add_argument("--reps", type=int, default=7)
    parser.add_argument("--launches", type=int, default=1, help="of which the last one is waited for")
    options = parser.parse_args()
    for dtype in options.dtypes:
        # PyTorch multiplies bytes along multiples of 8 alone.
        for shape in SHAPES if dtype != "int8" else SHAPES[:-1]:
            measure(shape, dtype, options)


if __name__ == "__main__":
    main()
