"""A matrix times a vector in device memory: bytes a second of the kernels alone, beside the device's own copy.

    python -m benchmarks.device.vectors [--device gpu] [--rows 4096] [--columns 4096] [--launches 200] [--reps 7]

A matrix of numbers is the stream; one in blocks of Q8_0 or Q4_0 is resident and multiplied with one record, as models
do. Each is multiplied `--launches` times, one launch right after the other, as layers of a model are; bytes are those
of the matrix. Results are checked against NumPy in float64.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable

import gguf
import numpy as np

import flowcompute as fc
from benchmarks.device.bandwidth import Resident, copy_of
from benchmarks.device.decoding import random_blocks
from benchmarks.measuring.interleaved import interleaved
from flowcompute.gpu.device._cl import cl


class Queued(Resident):
    """A job whose kernel is launched again and again without waiting in between."""

    def __init__(self, job: fc.Element, array: np.ndarray, device: str, launches: int) -> None:
        super().__init__(job, array, device)
        self.launches = launches
        kernel, values, groups, _ = self.call
        self.compiled = self.runner._compiled(kernel)
        self.compiled.set_args(*values)
        self.sizes = (groups * kernel.work_group,), (kernel.work_group,)

    def run(self) -> None:
        """All launches, and the wait for the last."""
        queue = self.runner.device.queue
        for _ in range(self.launches):
            cl.enqueue_nd_range_kernel(queue, self.compiled, *self.sizes)
        queue.finish()


def jobs(rows: int, columns: int) -> dict[str, tuple[fc.Element, np.ndarray, np.ndarray]]:
    """By name: the product, its matrix as it is stored, and what it should be."""
    rng = np.random.default_rng(1)
    x = rng.standard_normal((rows, columns), dtype=np.float32)
    v = rng.standard_normal(columns, dtype=np.float32)
    made: dict[str, tuple[fc.Element, np.ndarray, np.ndarray]] = {}
    for dtype in ("f4", "f2"):
        a, b = x.astype(dtype), v.astype(dtype)
        made[np.dtype(dtype).name] = fc.source(a) @ fc.constant(b), a, a.astype("f8") @ b.astype("f8")
    q, scale = np.clip(np.rint(x * 40), -127, 127).astype("i1"), np.float32(1 / 40)
    weights = fc.source(q).astype("f4") * scale
    made["int8, scaled to float32"] = weights @ fc.constant(v), q, (q * scale).astype("f8") @ v.astype("f8")
    return made


def quantized(rows: int, columns: int) -> dict[str, tuple[fc.Element, np.ndarray, np.ndarray, int]]:
    """By name: one record times weights in blocks, the record, what it should be, and the bytes of the weights."""
    rng = np.random.default_rng(2)
    x = rng.standard_normal((1, columns), dtype=np.float32)
    made: dict[str, tuple[fc.Element, np.ndarray, np.ndarray, int]] = {}
    for kind in ("Q8_0", "Q4_0"):
        raw = random_blocks(rng, kind, rows, columns)
        wanted = x.astype("f8") @ gguf.quants.dequantize(raw, gguf.GGMLQuantizationType[kind]).astype("f8").T
        product = fc.source(x) @ fc.dequantize(fc.constant(raw), kind).T
        made[f"{kind}, one record"] = product, x, wanted, raw.nbytes
    return made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="gpu")
    for name, default in (("rows", 4096), ("columns", 4096), ("launches", 200), ("reps", 7)):
        parser.add_argument(f"--{name}", type=int, default=default)
    options = parser.parse_args()
    calls: dict[str, tuple[Callable[[], None], float]] = {}
    for name, (job, matrix, wanted) in jobs(options.rows, options.columns).items():
        got = job.resolve(device=options.device, progress=False)
        np.testing.assert_allclose(got, wanted, rtol=2e-3, atol=2e-3 * np.abs(wanted).max())
        queued = Queued(job, matrix, options.device, options.launches)
        calls[name] = (queued.run, float(matrix.nbytes * options.launches))
    calls["copy of 1 GiB"] = (copy_of(queued, 1 << 30), float(2 << 30))
    for name, (job, record, wanted, size) in quantized(options.rows, options.columns).items():
        got = job.resolve(device=options.device, progress=False)
        np.testing.assert_allclose(got, wanted, rtol=2e-3, atol=2e-3 * np.abs(wanted).max())
        queued = Queued(job, record, options.device, options.launches)
        calls[name] = (queued.run, float(size * options.launches))
    seconds = interleaved({name: run for name, (run, _) in calls.items()}, options.reps)
    rates = {name: calls[name][1] / statistics.median(times) / 1e9 for name, times in seconds.items()}
    print(f"{queued.plan.backend.capabilities.name}: ({options.rows}, {options.columns}) times a vector")
    for name, rate in rates.items():
        print(f"{name:24} {rate:9.1f} GB/s  {rate / rates['copy of 1 GiB']:5.2f} of the copy")


if __name__ == "__main__":
    main()
