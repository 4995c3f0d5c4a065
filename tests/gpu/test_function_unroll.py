"""How many turns of loops in users' functions are written out: another text, the same bits, the same job."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import flowcompute as fc
from flowcompute.engine.backend import PlannedJob
from flowcompute.ir.kernel import Kernel
from flowcompute.jobs import job_of
from flowcompute.runtime.tuning.kernel_trials import TunedBackend
from flowcompute.schedule.steps import RegionStep
from tests.gpu.shapes import plan_for_gpu, resolve_on_gpu
from tests.support.starting import start

DATA = np.random.default_rng(3).standard_normal(1035).astype(np.float32)


def series(x: Any) -> Any:
    """A loop that all numbers go through, and one that some leave."""
    total = 0.0
    powers = [1.0] * 6
    for i in range(1, 6):
        powers[i] = powers[i - 1] * x
        total += powers[i] / i
    for _ in range(9):
        if abs(total) < 1:
            break
        total /= 2
    return total


open_series, four_turns = fc.kernel(series), fc.kernel(series, unroll=4)


@fc.kernel
def nested(x: Any) -> Any:
    total = four_turns(x)
    for _ in range(3):
        total += x
    return total


def turns(plan: fc.Plan) -> list[str]:
    """What is said before each loop, once for each of the two in `series`."""
    (kernel,) = plan.kernels
    lines = [line.strip() for line in kernel.source.splitlines()]
    return [line.removeprefix("#pragma unroll ") for line in lines if line.startswith("#pragma unroll")]


@pytest.mark.compiles
def test_another_text_and_the_same_bits() -> None:
    x = fc.source(DATA)
    free, pinned = open_series(x), four_turns(x)
    wanted = free.resolve(device="numpy", progress=False).tobytes()
    strategies: list[tuple[fc.Element, Any, list[str]]] = [
        (free, {}, []),
        (free, {"function_unroll": 8}, ["8", "8"]),
        (free, {"function_unroll": 8, "kernels": {"k0": {"function_unroll": 2}}}, ["2", "2"]),
        (pinned, {}, ["4", "4"]),
        (pinned, {"function_unroll": 8}, ["4", "4"]),
    ]
    for element, knobs, said in strategies:
        strategy = fc.Strategy(**knobs)
        assert turns(fc.plan(element, device="cpu", strategy=strategy)) == said
        assert element.resolve(device="cpu", strategy=strategy, progress=False).tobytes() == wanted
    eight = fc.Strategy(function_unroll=8)
    # On a GPU the loop over vectors is unrolled too.
    assert turns(plan_for_gpu(free, strategy=eight)) == ["8", "8", "2"]
    assert [one.tobytes() for one in resolve_on_gpu(free, strategy=eight)] == [wanted]


def test_each_function_says_it_of_its_own_loops() -> None:
    plan = fc.plan(nested(fc.source(DATA)), device="cpu", strategy=fc.Strategy(function_unroll=2))
    assert sorted(turns(plan)) == ["2", "4", "4"]


def test_it_is_of_what_is_tuned_and_not_of_the_job() -> None:
    x = fc.source(DATA)
    free, pinned = open_series(x), four_turns(x)
    assert free.attrs == pinned.attrs
    assert free.hash != pinned.hash
    assert open_series(x).hash == free.hash


def test_which_kernels_have_the_knob() -> None:
    @fc.kernel(boundary="edge")
    def smooth(x: Any, *, i: Any) -> Any:
        total = x[i - 1] + x[i + 1]
        for _ in range(3):
            total /= 2
        return total

    rows = fc.source(DATA.reshape(-1, 9))
    for element in (smooth(rows), open_series(rows).sum(axis=1)):
        plan = fc.plan(element, device="cpu", strategy=fc.Strategy(function_unroll=4))
        assert [kernel.ir.knobs.function_unroll for kernel in plan.kernels] == [4]
        assert "function_unroll=4 (yours) of 1, 2, 8, 16" in plan.explain()
    for element in (four_turns(rows), rows * 2):
        plan = fc.plan(element, device="cpu", strategy=fc.Strategy(function_unroll=4))
        assert "function_unroll: accepted, not applied: no kernel here has it" in plan.explain()


@pytest.mark.parametrize("unroll", [0, 3, 32, True, 2.0])
def test_turns_are_a_power_of_two(unroll: Any) -> None:
    with pytest.raises(fc.KernelError, match="1 or 2 or 4 or 8 or 16"):
        fc.kernel(series, unroll=unroll)


class Tuner:
    """Launches each kernel once more that it is asked about."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def launched(self, step: RegionStep, launch: Callable[[Kernel], float]) -> Kernel | None:
        assert step.kernel is not None
        self.asked.append(step.kernel.work)
        launch(step.kernel)
        return None


@pytest.mark.compiles
def test_what_carries_from_batch_to_batch_is_launched_once_more_from_where_it_began() -> None:
    @fc.kernel
    def step(carry: Any, x: Any) -> Any:
        for _ in range(2):
            carry = carry / 2 + x
        return carry

    x = fc.source(DATA)
    roots = fc.scan(step, x, init=0.0) >> fc.to_array(), open_series(x) >> fc.to_array()
    plan = fc.plan(*roots, device="cpu", strategy=fc.Strategy(batch_bytes=2000))
    tuner: Any = Tuner()
    run = start(PlannedJob(plan, TunedBackend(job_of(plan).backend, tuner)), progress=False)
    run.wait()
    assert set(tuner.asked) == {"flat", "walk"}
    wanted = fc.resolve(fc.scan(step, x, init=0.0), open_series(x), device="numpy", progress=False)
    assert [one.tobytes() for one in run.values] == [one.tobytes() for one in wanted]
