"""Kernels tried while a job runs: within their seconds, over the results of the batch in hand, and the better one is taken."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from unittest import mock

import numpy as np
import pytest

import flowcompute as fc
from flowcompute.errors import KernelError
from flowcompute.gpu.device.discovery import select_device
from flowcompute.jobs import job_of
from flowcompute.observe import EventStream, TrialMeasured
from flowcompute.runtime.tuning import kernel_trials as room
from flowcompute.runtime.tuning.kernel_trials import KernelTrials
from flowcompute.runtime.tuning.trial_budget import SHARE, Budget
from flowcompute.runtime.tuning.trial_totals import TrialTotals
from flowcompute.runtime.tuning.tuner import Tuner
from flowcompute.schedule.steps import RegionStep
from flowcompute.strategy.search import Candidate, RandomSearch
from tests.gpu.shapes import job_on_gpu, plan_for_gpu
from tests.support.starting import start

DATA = np.random.default_rng(1).standard_normal((3000, 40), dtype=np.float32)


@pytest.fixture(autouse=True)
def empty_store(tmp_path, monkeypatch):
    """The driver starts before: what it keeps outlives the test."""
    select_device("cpu", needs_float64=False)
    monkeypatch.setenv("FLOWCOMPUTE_CACHE", str(tmp_path / "cache"))


def job():
    x = fc.source(DATA)
    return (x * 2.5 + 1).sum(axis=0), (x * x)[:, 0]


class Seconds:
    """A clock that is set by hand."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


class Device:
    """Launches that take what a function of the knobs says."""

    def __init__(self, clock, seconds):
        self.clock, self.seconds, self.launched = clock, seconds, []

    def __call__(self, kernel):
        took = self.seconds(kernel.knobs)
        self.clock.now += took
        self.launched.append(kernel.knobs)
        return took


def kernel_trials(tune, seconds, pinned=None):
    plan = fc.plan(*job(), device="cpu", strategy=pinned)
    (step,) = [step for step in plan.steps if isinstance(step, RegionStep)][:1]
    clock = Seconds()
    budget = Budget(tune, clock)
    return step, clock, KernelTrials(plan, budget, 1, EventStream()), Device(clock, seconds)


def test_a_better_kernel_is_adopted_while_the_job_runs():
    step, _, trials, device = kernel_trials("quick", lambda knobs: 0.001 if knobs.unroll == 4 else 0.002)
    adopted = trials.launched(step, device)
    assert adopted.name == step.kernel.name
    assert adopted.knobs.unroll == 4
    assert trials.launched(step, device) is None
    assert trials.is_done


def test_the_default_stays_where_nothing_is_better():
    step, _, trials, device = kernel_trials("quick", lambda knobs: 0.002)
    assert trials.launched(step, device) is None
    assert device.launched.count(step.kernel.knobs) >= len(device.launched) // 3
    assert trials.searches[step.kernel.name].best == ()


def test_trials_take_their_share_of_the_time_and_no_more():
    step, clock, trials, device = kernel_trials(True, lambda knobs: 0.001)
    assert trials.launched(step, device) is None
    assert device.launched == []
    for _ in range(50):
        clock.now += 4.0
        trials.launched(step, device)
    assert device.launched
    took = 0.001 * len(device.launched)
    assert took <= room.KERNELS_SHARE * SHARE * clock.now


def test_a_batch_is_not_held_up_for_long():
    step, clock, trials, device = kernel_trials("full", lambda knobs: 0.2)
    before = clock.now
    trials.launched(step, device)
    assert clock.now - before <= room.LIVE_S + 1.0
    assert not trials.is_done
    trials.per_launch_s = float("inf")
    trials.launched(step, device)
    assert clock.now - before > 3 * room.LIVE_S


def test_the_kernel_in_use_is_launched_last():
    step, _, trials, device = kernel_trials("quick", lambda knobs: 0.001 if knobs.unroll == 4 else 0.002)
    adopted = trials.launched(step, device)
    assert device.launched[-1] == step.kernel.knobs
    del device.launched[:]
    trials.searches[step.kernel.name] = RandomSearch({"unroll": (1, 2, 4)}, {"unroll": 1}, seed=0)
    trials.launched(step, device)
    assert device.launched[-1] == adopted.knobs


def test_a_kernel_that_fails_is_told_and_not_tried_again():
    def seconds(knobs):
        if knobs != step.kernel.knobs:
            raise KernelError("out of registers", element="k0")
        return 0.001

    step, _, trials, device = kernel_trials("quick", seconds)
    totals = TrialTotals(trials.stream)
    assert trials.launched(step, device) is None
    assert totals.notes
    assert totals.measured == 0
    assert all(re.fullmatch(r"k0 \w+=\d+(, \w+=\d+)*: out of registers", text) for text in totals.notes)
    assert len(set(totals.notes)) == len(totals.notes)


def test_each_trial_is_an_event():
    step, _, trials, device = kernel_trials("quick", lambda knobs: 0.001 if knobs.unroll == 4 else 0.002)
    told: list[TrialMeasured] = []
    trials.stream.subscribe({TrialMeasured: told.append})
    totals = TrialTotals(trials.stream)
    trials.launched(step, device)
    (search,) = trials.searches.values()
    ratios: dict[Candidate, list[float]] = {}
    for event in told:
        assert (event.where, event.search, event.lost_s) == (step.kernel.name, search, 0.0)
        ratios.setdefault(event.candidate, []).append(math.log(event.ratio))
    assert ratios == {one: pairs for one, pairs in search.ratios.items() if pairs}
    assert totals.measured == len(ratios) > 0
    assert totals.notes == []


def test_what_makes_no_other_kernel_is_not_tried():
    q = fc.source(DATA.reshape(100, 1, 30, 40)[:, :, :10])
    plan = fc.plan(fc.nn.attention(q, q, q), device="cpu")
    (step,) = plan.steps
    clock = Seconds()
    trials, device = KernelTrials(plan, Budget("quick", clock), 1, EventStream()), Device(clock, lambda knobs: 0.002)
    trials.launched(step, device)
    (search,) = trials.searches.values()
    # Keys are brought once for all ten queries, be it for 16 or for 128 of them.
    assert search.same <= {(("block_rows", rows),) for rows in (16, 32, 64)}
    measured = [dict(one) for one, pairs in search.ratios.items() if pairs]
    assert search.same
    assert measured
    assert all("tile_rows" in one for one in measured)


def test_pinned_knobs_are_not_tried():
    step, _, trials, device = kernel_trials("quick", lambda knobs: 0.001, pinned=fc.Strategy(vector_width=4))
    trials.launched(step, device)
    assert {knobs.vector_width for knobs in device.launched} == {4}
    assert len({knobs.unroll for knobs in device.launched}) > 1


def scans():
    """Kernels that carry something from batch to batch, by what they have left themselves."""
    x = fc.source(DATA)
    return fc.cumulative_sum(x[:, 0]) * 2, fc.linear_recurrence(x, 1.0, axis=0)


@pytest.mark.parametrize(
    ("make", "shape", "knobs"),
    [
        (job, "cpu", {"unroll": (1, 2)}),
        (job, "gpu", {"work_group": (64, 256)}),
        (scans, "cpu", {"vector_width": (4, 16), "tile_rows": (2, 4)}),
        pytest.param(scans, "gpu", {"work_group": (64, 256)}, marks=pytest.mark.compiles),
    ],
)
def test_kernels_that_are_tried_store_the_same_bytes(make, shape, knobs):
    def offered(kernel, _):
        return {knob: values for knob, values in knobs.items() if getattr(kernel.knobs, knob) is not None}

    options = {"strategy": fc.Strategy(batch_bytes=64_000)}
    on_gpu = shape == "gpu"
    plan = plan_for_gpu(*make(), **options) if on_gpu else fc.plan(*make(), device="cpu", **options)
    job = job_on_gpu(plan) if on_gpu else job_of(plan)
    first = start(job, progress=False).wait().values
    with mock.patch("flowcompute.lower.candidates", offered):
        tuner = Tuner(job, "full")
        run = start(tuner.job, progress=False).wait()
    measured = [search for search in tuner.trials.searches.values() if search.ratios.keys() - search.same]
    # Where vectors have 256 bits, those of scans have one width.
    narrow = plan.backend.capabilities.lanes_of(8) == 4
    others = knobs.keys() - ({"vector_width"} if narrow else set())
    able = [one for one in plan.kernels if others & one.ir.knobs.plain().keys()]
    assert len(measured) == len(able) > 0
    assert all(len(pairs) > 0 for search in measured for one, pairs in search.ratios.items() if one not in search.same)
    assert narrow or not any(search.same for search in measured)
    assert run.launches == len(plan.kernels) * -(-len(DATA) // plan.batch_items)
    for a, b in zip(first, run.values, strict=True):
        assert a.tobytes() == b.tobytes()


def test_kernels_begin_with_what_is_kept_and_the_default_is_tried_first():
    default, kept = fc.plan(*job(), device="cpu"), fc.plan(*job(), device="cpu", strategy=fc.Strategy(unroll=8))
    (step,) = [step for step in kept.steps if isinstance(step, RegionStep)][:1]
    clock = Seconds()
    trials = KernelTrials(replace(kept, pinned=fc.Strategy()), Budget("quick", clock), 1, EventStream(), default)
    assert trials.launched(step, Device(clock, lambda knobs: 0.001)) is None
    assert next(iter(trials.searches[step.kernel.name].ratios)) == (("unroll", 1),)
    better = KernelTrials(replace(kept, pinned=fc.Strategy()), Budget("quick", clock), 1, EventStream(), default)
    adopted = better.launched(step, Device(clock, lambda knobs: 0.001 if knobs.unroll == 1 else 0.002))
    assert adopted.knobs == default.passes[0].kernels[0].knobs
