"""Cost of a small batch in a flow that stays open, beside a hand-written loop over the same kernel."""

from __future__ import annotations

import statistics
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import numpy as np
import trio

import flowcompute as fc
from flowcompute.engine.pass_executor import PassExecutor
from flowcompute.gpu.device._cl import cl
from flowcompute.gpu.device.programs import build
from flowcompute.gpu.render.renderer import render
from flowcompute.gpu.run.opencl_runner import OpenCLRunner
from flowcompute.gpu.run.work_division import division
from flowcompute.jobs import job_of
from flowcompute.schedule.steps import RegionStep

ITEMS, NUMBERS = 8, 4
WARM_UP = 200


@dataclass
class Latency:
    """Microseconds of single calls: the median and the 99th percentile of each round."""

    medians: list[float] = field(default_factory=list)
    tails: list[float] = field(default_factory=list)

    def add(self, seconds: list[float]) -> None:
        """One round of calls."""
        boundaries = statistics.quantiles(seconds, n=100)
        self.medians.append(boundaries[49] * 1e6)
        self.tails.append(boundaries[98] * 1e6)


class RawLoop:
    """The kernel of a flow in buffers of its own, as one would write it with pyopencl."""

    def __init__(self, plan: fc.Plan, items: int) -> None:
        executor = job_of(plan).executor(0, {})
        assert isinstance(executor, PassExecutor)
        (runner,) = executor.runners
        assert isinstance(runner, OpenCLRunner)
        (kernel,) = [step.kernel for step in plan.steps if isinstance(step, RegionStep) and step.kernel]
        assert [argument.kind for argument in kernel.arguments] == ["input", "output"]
        device = runner.device
        self._queue = cl.CommandQueue(device.context, device.handle)
        self._kernel = cl.Kernel(build(device, render(kernel)), kernel.name)
        self._kernel.set_scalar_arg_dtypes([None, None, *[np.dtype(np.int64)] * 5])
        flags = cl.mem_flags
        self._input = cl.Buffer(device.context, flags.READ_ONLY, items * NUMBERS * 4)
        self._output = cl.Buffer(device.context, flags.WRITE_ONLY, items * 4)
        self._result = np.empty(items, np.float32)
        count, chunk, groups = division(plan, device.capabilities, kernel, items, 0)
        self._kernel.set_args(self._input, self._output, count, chunk, 0, 0, 0)
        self._size, self._group = (groups * kernel.work_group,), (kernel.work_group,)

    def call(self, batch: np.ndarray) -> np.ndarray:
        """Write, launch, read."""
        cl.enqueue_copy(self._queue, self._input, batch, is_blocking=False)
        cl.enqueue_nd_range_kernel(self._queue, self._kernel, self._size, self._group)
        cl.enqueue_copy(self._queue, self._result, self._output, is_blocking=True)
        return self._result

    def launch(self, batch: np.ndarray) -> None:
        """The kernel alone, on what was written last, until it is done."""
        cl.enqueue_nd_range_kernel(self._queue, self._kernel, self._size, self._group)
        self._queue.finish()


def measure_latency(rounds: int, calls: int) -> dict[str, Latency]:
    """Calls one by one, in rounds that are interleaved; a round of each that does not count comes first.

    Raises:
        SystemExit: if an answer is wrong.
    """
    feed = fc.feed(shape=(NUMBERS,), dtype="float32")
    length = fc.sqrt(fc.vecdot(feed, feed))
    batch = np.random.default_rng(0).standard_normal((ITEMS, NUMBERS), dtype=np.float32)
    wanted = np.sqrt((batch.astype("f8") ** 2).sum(axis=1))
    names = ("kernel alone", "raw pyopencl loop", "flow: send, receive", "flow in trio: send, receive")
    found = {name: Latency() for name in names}
    with length.flow() as flow:
        raw = RawLoop(flow.plan, ITEMS)

        def exchange(batch: np.ndarray) -> np.ndarray:
            flow.send(batch)
            return flow.receive()

        for call in (raw.call, exchange):
            if not np.allclose(call(batch), wanted, rtol=1e-6):
                raise SystemExit(f"wrong answer: {call(batch)} where {wanted} was expected")
        for one_round in range(-1, rounds):
            count = WARM_UP if one_round < 0 else calls
            seconds = [_timed(call, batch, count) for call in (raw.launch, raw.call, exchange)]
            seconds.append(trio.run(_timed_in_trio, length, batch, count))
            if one_round >= 0:
                for name, times in zip(names, seconds, strict=True):
                    found[name].add(times)
    return found


def _timed(call: Callable[[np.ndarray], object], batch: np.ndarray, calls: int) -> list[float]:
    seconds = []
    for _ in range(calls):
        began = time.perf_counter()
        call(batch)
        seconds.append(time.perf_counter() - began)
    return seconds


async def _timed_in_trio(element: fc.Element, batch: np.ndarray, calls: int) -> list[float]:
    async with element.flow() as flow:

        async def exchange() -> None:
            await flow.send(batch)
            await flow.receive()

        await _repeated(exchange, WARM_UP)
        return await _repeated(exchange, calls)


async def _repeated(call: Callable[[], Awaitable[None]], calls: int) -> list[float]:
    seconds = []
    for _ in range(calls):
        began = time.perf_counter()
        await call()
        seconds.append(time.perf_counter() - began)
    return seconds


def latency_table(found: dict[str, Latency]) -> str:
    """Medians of rounds as a Markdown table, with what is above the kernel in the same round."""
    kernel = found["kernel alone"].medians
    lines = [
        f"\n### S8: one batch of ({ITEMS}, {NUMBERS}) float32 numbers through `sqrt(vecdot(x, x))`\n",
        "| what | microseconds, median | spread of the rounds | above the kernel | 99 % under |",
        "| --- | --- | --- | --- | --- |",
    ]
    for name, latency in found.items():
        above = statistics.median(mine - alone for mine, alone in zip(latency.medians, kernel, strict=True))
        lines.append(
            f"| {name} | {statistics.median(latency.medians):.0f} "
            f"| {min(latency.medians):.0f} to {max(latency.medians):.0f} | {above:.0f} "
            f"| {statistics.median(latency.tails):.0f} |"
        )
    return "\n".join(lines)
