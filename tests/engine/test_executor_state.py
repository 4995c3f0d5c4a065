"""An executor that continues from another one's snapshot gives the bits of one that never stopped."""

from __future__ import annotations

import math
from typing import Any
from unittest import mock

import numpy as np
import pytest

import flowcompute as fc
from flowcompute.batch import Batch
from flowcompute.engine.backend import Executor
from flowcompute.engine.pass_executor import PassExecutor
from flowcompute.engine.step_runner import StepRunner
from flowcompute.jobs import job_of
from flowcompute.schedule.explain.plan_view import Plan


def job(x: fc.Element, v: fc.Element) -> tuple[fc.Element, ...]:
    return x.sum(axis=0), x.var(axis=0), x.argmax(axis=0), x.max(), x.var(), fc.exp(v).sum(), v.argmin(), v.var()


def process(plan: Plan, executor: Executor, arrays: dict[int, np.ndarray], start: int, stop: int) -> None:
    (one_pass,) = plan.passes
    for clock in one_pass.clocks:
        mine = [stage.value for stage in clock.sources]
        for seq, begin in enumerate(range(start, stop, clock.batch_items)):
            end = min(stop, begin + clock.batch_items)
            executor.process(Batch(seq, begin, end, {i: arrays[i][begin:end] for i in mine}, clock.id), {})


def results(
    plan: Plan, arrays: dict[int, np.ndarray], cut: int | None, length: int, first: Plan | None = None
) -> dict[int, np.ndarray]:
    first = first or plan
    executor = job_of(first).executor(0, {})
    executor.open()
    if cut is not None:
        process(first, executor, arrays, 0, cut)
        state: dict[str, Any] = executor.snapshot()
        executor.close()
        executor = job_of(plan).executor(0, {})
        executor.open()
        executor.restore(state)
    process(plan, executor, arrays, cut or 0, length)
    values = executor.finish()
    executor.close()
    return values


@pytest.mark.parametrize("device", ["cpu", "numpy"])
def test_continuing_changes_no_bit(device: str) -> None:
    rng = np.random.default_rng(3)
    length = 5000
    data, numbers = rng.standard_normal((length, 40), dtype=np.float32), rng.standard_normal(length, dtype=np.float32)
    x, v = fc.source(data), fc.source(numbers)
    plan = fc.plan(*job(x, v), device=device, strategy=fc.Strategy(batch_bytes=1024 * 160))
    (one_pass,) = plan.passes
    arrays = {stage.value: data if stage.element is x else numbers for stage in one_pass.sources}
    whole = results(plan, arrays, None, length)
    step = math.lcm(*(clock.batch_items for clock in one_pass.clocks))
    for cut in range(step, length, step):
        parted = results(plan, arrays, cut, length)
        assert {value: array.tobytes() for value, array in parted.items()} == {
            value: array.tobytes() for value, array in whole.items()
        }


@pytest.mark.parametrize("devices", [("cpu", "numpy"), ("numpy", "cpu")])
def test_another_backend_continues_inside_a_block(devices: tuple[str, str]) -> None:
    # Items of three numbers are folded in blocks of 4096 records, so that every cut below lies inside one.
    rng = np.random.default_rng(5)
    length = 9000
    data = rng.standard_normal((length, 3), dtype=np.float32)
    data[4500, 1] = np.nan
    data[1500, 2] = data[700, 2] = 9
    x = fc.source(data)
    roots = (x.sum(axis=0), x.prod(axis=0), x.var(axis=0), x.argmax(axis=0), x.min(axis=0), (x * x).mean(axis=0))
    counts = (x.astype("int16").sum(axis=0), fc.all(x > -3, axis=0))
    dot = fc.vecdot(x, x + 1, axis=0)  # kernels round products and sums once, NumPy twice
    strategy = fc.Strategy(batch_bytes=1024 * 12)
    first, second = (fc.plan(*roots, *counts, dot, device=device, strategy=strategy) for device in devices)
    arrays = {stage.value: data for stage in first.passes[0].sources}
    whole = results(second, arrays, None, length)
    for cut in (1024, 3072, 4096, 5120, 8192):
        parted = results(second, arrays, cut, length, first)
        for value, array in whole.items():
            name = first.graph.nodes[value].name
            if name == "vecdot":
                np.testing.assert_allclose(parted[value], array, rtol=1e-5)
            else:
                assert parted[value].tobytes() == array.tobytes(), (cut, name)


def test_closing_releases_the_rest_where_one_fails() -> None:
    x = fc.source(np.zeros((10, 4), np.float32))
    executor = job_of(fc.plan(x.sum(axis=0), device="cpu")).executor(0, {})
    assert isinstance(executor, PassExecutor)
    executor.open()
    runners = list(executor.runners)
    with (
        mock.patch.object(StepRunner, "close", side_effect=OSError("a disk that went")),
        mock.patch.object(type(runners[0]), "close", autospec=True, side_effect=type(runners[0]).close) as closed,
        pytest.raises(OSError, match="a disk that went"),
    ):
        executor.close()
    assert [call.args[0] for call in closed.call_args_list] == runners
