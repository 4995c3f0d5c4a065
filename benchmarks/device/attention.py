"""Attention in one kernel against its definition (a product, a softmax, a product) and PyTorch's, on one device.

    python -m benchmarks.device.attention [--device cpu] [--heads 8] [--size 64] [--lengths 512 1024 2048]
        [--dtype float16] [--causal] [--gradient]

Kernels run over one resident batch of one item, without transfers; repetitions are interleaved,
medians are given as TFLOP/s of 4 * heads * length^2 * size operations (half of them if causal).
The answers of all are compared with float64 at the shortest length. PyTorch takes part where it
can be imported: on its CUDA device with --device gpu, else on the CPU. `--gradient` computes attention
and its gradient in one run, of 3.5 times as many operations, and compares it with PyTorch's.
"""

from __future__ import annotations

import argparse
import math
import statistics
import time
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

import flowcompute as fc
from benchmarks.measuring.interleaved import interleaved
from flowcompute.batch import Batch
from flowcompute.elements.nn.dot_product_attention import _naive_attention, attention_of
from flowcompute.engine.pass_executor import PassExecutor
from flowcompute.gpu.run.opencl_runner import OpenCLRunner
from flowcompute.jobs import job_of

try:
    import torch
except ImportError:
    torch = None

MEMORY = "96GiB"
DTYPES = {"float32": np.float32, "float16": np.float16, "bfloat16": ml_dtypes.bfloat16}


class Recorded:
    """A job of one item whose launches are recorded; `run` launches its kernels again."""

    def __init__(self, job: fc.Element, array: np.ndarray, device: str) -> None:
        self.plan = fc.plan(job, device=device, memory=MEMORY, strategy=fc.Strategy(depth=1))
        executor = job_of(self.plan).executor(0, {})
        assert isinstance(executor, PassExecutor)
        (runner,) = executor.runners
        assert isinstance(runner, OpenCLRunner)
        began = time.perf_counter()
        executor.open()
        self.build_s = time.perf_counter() - began
        (one_pass,) = self.plan.passes
        (sink,) = one_pass.sinks
        self.output = np.empty((1, *sink.spec.shape), sink.spec.dtype)
        self.launch = runner._launch
        self.calls: list[tuple[Any, ...]] = []
        runner._launch = self._record  # type: ignore[method-assign]
        executor.process(Batch(0, 0, 1, {one_pass.sources[0].value: array}), {sink.value: self.output})

    def _record(self, *call: Any, timed: bool = False, deferred: bool = False) -> None:
        del timed, deferred
        self.calls.append(call)
        self.launch(*call)

    def run(self) -> None:
        """All kernels, in order."""
        for call in self.calls:
            self.launch(*call)


def torch_run(array: np.ndarray, device: str, *, causal: bool) -> Callable[[], Any]:
    where = "cuda" if device.startswith("gpu") else "cpu"
    # PyTorch takes no bfloat16 from NumPy.
    q, k, v = torch.from_numpy(array.astype("f4")).to(where, getattr(torch, array.dtype.name)).unbind(1)

    def run() -> Any:
        made = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)
        if where == "cuda":
            torch.cuda.synchronize()
        return made

    return run


def sloped(form: Callable[..., Any], x: Any, *, causal: bool) -> Any:
    """The gradient of half the sum of squares of attention, by all three operands side by side."""
    made = form(*(x[:, i] for i in range(3)), causal=causal).astype("float32")
    return fc.grad((made * fc.stop_gradient(made)).sum(), x)


def torch_gradient(array: np.ndarray, device: str, *, causal: bool) -> Callable[[], Any]:
    where = "cuda" if device.startswith("gpu") else "cpu"
    x = torch.from_numpy(array.astype("f4")).to(where, getattr(torch, array.dtype.name)).requires_grad_()

    def run() -> Any:
        made = torch.nn.functional.scaled_dot_product_attention(*x.unbind(1), is_causal=causal)
        (slopes,) = torch.autograd.grad(made, x, made.detach())
        if where == "cuda":
            torch.cuda.synchronize()
        return slopes

    return run


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--heads", type=int, default=8)
    parser.add_argument("--size", type=int, default=64)
    parser.add_argument("--lengths", type=int, nargs="+", default=[512, 1024, 2048])
    parser.add_argument("--dtype", default="float32", choices=DTYPES)
    parser.add_argument("--causal", action="store_true")
    parser.add_argument("--gradient", action="store_true")
    parser.add_argument("--without-naive", action="store_true")
    parser.add_argument("--reps", type=int, default=5)
    options = parser.parse_args()
    rng = np.random.default_rng(1)
    for length in options.lengths:
        shape = (1, 3, options.heads, length, options.size)
        array = rng.standard_normal(shape, dtype=np.float32).astype(DTYPES[options.dtype])
        measure(array, options, check=length == min(options.lengths))


def measure(array: np.ndarray, options: argparse.Namespace, *, check: bool) -> None:
    x = fc.source(array)
    q, k, v = (x[:, i] for i in range(3))
    forms: dict[str, Callable[..., Any]] = {"one kernel": fc.nn.attention, "naive": _naive_attention}
    if options.without_naive:
        del forms["naive"]
    roots = {
        name: sloped(form, x, causal=options.causal) if options.gradient else form(q, k, v, causal=options.causal)
        for name, form in forms.items()
    }
    jobs = {name: Recorded(root, array, options.device) for name, root in roots.items()}
    calls: dict[str, Callable[[], Any]] = {name: job.run for name, job in jobs.items()}
    results = {name: job.output for name, job in jobs.items()}
    if torch is not None:
        calls["torch"] = (
            torch_gradient(array, options.device, causal=options.causal)
            if options.gradient
            else torch_run(array, options.device, causal=options.causal)
        )
        results["torch"] = calls["torch"]().float().cpu().numpy()
    seconds = interleaved(calls, options.reps, twice=options.device.startswith("gpu"))
    heads, length, size = array.shape[2:]
    operations = 4 * heads * length**2 * size / (2 if options.causal else 1) * (3.5 if options.gradient else 1)
    print(
        f"length {length}, {heads} heads of {size}, {array.dtype}{', causal' if options.causal else ''}"
        f"{', with its gradient' if options.gradient else ''}"
    )
    for name, times in seconds.items():
        rate, fastest = operations / statistics.median(times) / 1e12, operations / min(times) / 1e12
        line = f"  {name:10} {rate:8.3f} TFLOP/s, best {fastest:8.3f}"
        if name in jobs:
            job = jobs[name]
            line += (
                f", {len(job.calls)} kernels built in {job.build_s:.1f} s, {job.plan.memory.host_bytes} bytes planned"
            )
        print(line, flush=True)
    if options.gradient:
        slopes = results.pop("torch", None)
        for name, result in results.items() if slopes is not None else ():
            found = np.abs(result.astype("f4") - slopes).max() / np.abs(slopes).max()
            print(f"  {name:10} largest difference from PyTorch's, of its largest number: {found:.1e}")
    elif check:
        wide = (one[0].astype("f8") for one in np.moveaxis(array, 1, 0))
        wanted = attention_of(*wide, causal=options.causal, window=None, scale=1 / math.sqrt(size))
        for name, result in results.items():
            print(f"  {name:10} largest error {np.abs(result[0].astype('f8') - wanted).max():.1e}")


if __name__ == "__main__":
    main()
