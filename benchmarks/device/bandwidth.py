"""In-device bandwidth of generated kernels against the device's own copy: no transfers, one kernel at a time.

    python -m benchmarks.device [--device gpu] [--mib 1024] [--reps 7]

Each kernel runs over one resident batch; bytes are those it must read and write. The copy is
OpenCL's own buffer copy of as many bytes, interleaved with the kernels. Results are checked
against NumPy in float64 on the first million numbers or rows.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

import flowcompute as fc
from benchmarks.measuring.interleaved import interleaved
from flowcompute.batch import Batch
from flowcompute.engine.batch_slice import BatchSlice
from flowcompute.engine.pass_executor import PassExecutor
from flowcompute.gpu.device._cl import cl
from flowcompute.gpu.run.opencl_runner import OpenCLRunner
from flowcompute.jobs import job_of
from flowcompute.schedule.explain.plan_view import Plan
from flowcompute.schedule.steps import RegionStep
from flowcompute.strategy.config import Precision


class Resident:
    """A job whose one batch stays on the device; `run` launches its kernels again."""

    def __init__(
        self,
        job: fc.Element,
        array: np.ndarray,
        device: str,
        precision: Precision = "exact",
        knobs: Mapping[str, int] | None = None,
    ) -> None:
        strategy = fc.Strategy(**{"batch_bytes": array.nbytes, "depth": 1, **(knobs or {})})
        self.plan: Plan = fc.plan(job, device=device, memory="96GiB", strategy=strategy, precision=precision)
        executor = job_of(self.plan).executor(0, {})
        assert isinstance(executor, PassExecutor)
        (runner,) = executor.runners
        assert isinstance(runner, OpenCLRunner)
        self.runner = runner
        executor.open()
        (self.one_pass,) = self.plan.passes
        self.items = self.one_pass.length or 0
        self.value = self.one_pass.sources[0].value
        self.batch = Batch(0, 0, self.items, {self.value: array})
        streams = [sink for sink in self.one_pass.sinks if sink.spec.is_stream]
        self.outputs = {s.value: np.empty((self.items, *s.spec.shape), s.spec.dtype) for s in streams}
        self.calls: list[tuple[Any, ...]] = []
        self.launch = launch = runner._launch

        def noted(*call: Any, timed: bool = False, deferred: bool = False) -> Any:
            self.calls.append(call)
            return launch(*call, timed=timed, deferred=deferred)

        *others, self.step = [s for s in self.one_pass.steps if isinstance(s, RegionStep)]
        if others:
            runner._launch = noted  # type: ignore[method-assign]
            executor.process(self.batch, self.outputs)
            return
        executor.process(self.batch, self.outputs)
        runner._repeated.clear()  # a launch of few records is repeated otherwise
        runner._launch = lambda *call, timed=False, deferred=False: self.calls.append(call)  # type: ignore[method-assign]
        (clock,) = self.one_pass.clocks
        whole = BatchSlice(clock, 0, self.items, 0, {self.value: array}, executor.state.resident)
        runner.run(self.step, whole, self.outputs)

    @property
    def call(self) -> tuple[Any, ...]:
        """The launch of the last kernel."""
        return self.calls[-1]

    def run(self) -> None:
        """The kernels alone, of which the last one is waited for: no transfer, no merging of blocks on the host."""
        *before, last = self.calls
        for call in before:
            self.launch(*call, deferred=True)
        self.launch(*last)


def copy_of(resident: Resident, size_bytes: int) -> Callable[[], None]:
    device = resident.runner.device
    a, b = (cl.Buffer(device.context, cl.mem_flags.READ_WRITE, size_bytes) for _ in range(2))

    def run() -> None:
        cl.enqueue_copy(device.queue, b, a)
        device.queue.finish()

    return run


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="gpu")
    parser.add_argument("--mib", type=int, default=1024)
    parser.add_argument("--reps", type=int, default=7)
    options = parser.parse_args()
    array = np.random.default_rng(1).standard_normal((options.mib << 20) // 4, dtype=np.float32)
    rows, columns = array.reshape(-1, 1024), array.reshape(-1, 512)
    long = array.reshape(-1, 32768)
    x, r, c, w = fc.source(array), fc.source(rows), fc.source(columns), fc.source(long)
    jobs: dict[str, tuple[fc.Element, np.ndarray, float]] = {
        "W1 chain": (fc.nn.sigmoid(1.5 * x - 0.25) * fc.tanh(x) + x * x, array, 2.0),
        "2 x + 1": (2 * x + 1, array, 2.0),
        "sum": (x.sum(), array, 1.0),
        "sum of squares": ((x * x).sum(), array, 1.0),
        "softmax, rows of 1024": (fc.nn.softmax(r, axis=-1), rows, 2.0),
        "softmax, rows of 32768": (fc.nn.softmax(w, axis=-1), long, 2.0),
        "layer norm, rows of 1024": (fc.nn.layer_norm(r, axis=-1), rows, 2.0),
        "row sum, rows of 1024": (r.sum(axis=1), rows, 1.0),
        "column var, (N, 512)": (c.var(axis=0), columns, 1.0),
    }
    residents = {name: Resident(job, data, options.device) for name, (job, data, _) in jobs.items()}
    first = next(iter(residents.values()))
    print(f"{first.plan.backend.capabilities.name}: {options.mib} MiB of float32")
    calls: dict[str, tuple[Callable[[], None], float]] = {
        name: (residents[name].run, jobs[name][2] * array.nbytes) for name in jobs
    }
    calls["copy (read + write)"] = (copy_of(first, array.nbytes), 2.0 * array.nbytes)
    seconds = interleaved({name: run for name, (run, _) in calls.items()}, options.reps)
    medians = {name: calls[name][1] / statistics.median(times) / 1e9 for name, times in seconds.items()}
    limit = medians["copy (read + write)"]
    for name, rate in medians.items():
        print(f"{name:24} {rate:9.1f} GB/s  {rate / limit:5.2f} of the copy")
    check(array, options.device)


def check(array: np.ndarray, device: str) -> None:
    """Answers on a part, against float64."""
    part = array[: 1 << 20]
    x, r = fc.source(part), fc.source(part.reshape(-1, 1024))
    e = fc.exp(r - r.max(axis=1, keepdims=True))
    options = {"device": device, "progress": False}
    total, chain = fc.resolve(x.sum(), fc.nn.sigmoid(1.5 * x - 0.25) * fc.tanh(x) + x * x, **options)
    soft = fc.resolve(e / e.sum(axis=1, keepdims=True), **options)
    wide = part.astype("f8")
    np.testing.assert_allclose(total, wide.sum(), rtol=1e-6)
    np.testing.assert_allclose(chain, np.tanh(wide) / (1 + np.exp(0.25 - 1.5 * wide)) + wide**2, rtol=2e-6, atol=1e-6)
    rows = np.exp(wide.reshape(-1, 1024) - wide.reshape(-1, 1024).max(1, keepdims=True))
    np.testing.assert_allclose(soft, rows / rows.sum(1, keepdims=True), rtol=1e-5, atol=1e-9)
    print("answers agree with NumPy in float64")


if __name__ == "__main__":
    main()
