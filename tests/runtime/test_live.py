"""Knobs of the run that change while it works: bits and memory stay, and what is better is found at little cost."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flowcompute as fc
from flowcompute.errors import RunError
from flowcompute.observe import BatchComputed, EventStream, TrialMeasured
from flowcompute.runtime.run import live_trials as room
from flowcompute.runtime.run.live_trials import LiveTrials
from flowcompute.runtime.stages.batch_boundaries import BatchBoundaries
from flowcompute.runtime.tuning.trial_budget import Budget
from flowcompute.runtime.tuning.tuner import Tuner
from flowcompute.schedule.run_knobs import DEFAULT_BATCH_BYTES as DEFAULTS
from flowcompute.strategy.pace import LEAST_PARTS, DriftWatch, Pace
from tests.properties.cases import cases
from tests.runtime.changing import Changing, run_changing

DATA = np.random.default_rng(1).standard_normal((6000, 8), dtype=np.float32)


@cases(40)
@given(st.lists(st.integers(1, 9), max_size=30), st.integers(2, 3), st.randoms())
def test_all_readers_of_a_clock_cut_at_the_same_records(sizes, readers, random):
    boundaries, ends = BatchBoundaries(9), [[0] for _ in range(readers)]
    sizes = list(sizes)
    while min(one[-1] for one in ends) < 100:
        one = random.choice(ends)
        # As channels have it, nobody is far ahead.
        if one[-1] <= min(each[-1] for each in ends) + 18:
            one.append(boundaries.stop(one[-1]))
        if sizes and random.random() < 0.3:
            begins, size = max(each[-1] for each in ends), sizes.pop()
            assert boundaries.change(size) == begins
            assert boundaries.items == size
        boundaries.passed(min(each[-1] for each in ends))
    shortest = min(map(len, ends))
    assert len({tuple(one[:shortest]) for one in ends}) == 1
    assert all(0 < stop - start <= 9 for one in ends for start, stop in itertools.pairwise(one))
    assert len(boundaries._parts) <= 20


def test_a_size_without_buffers_is_refused():
    with pytest.raises(AssertionError, match="larger than its buffers"):
        BatchBoundaries(9).change(10)


def jobs():
    x, y = fc.source(DATA, name="x"), fc.source(DATA * 2, name="y")
    return (
        fc.exp(x * y).sum(axis=1),
        (x + y).var(axis=0),
        fc.cumulative_sum(x[:, 0], axis=0),
        fc.window(y[:, 1], size=5).mean(axis=1),
        x[x[:, 2] > 0].mean(axis=0),
        (x[:, 3] - x[:, 3].mean(axis=0)).max(),
    )


@pytest.mark.parametrize("device", ["cpu", "numpy"])
def test_no_bit_depends_on_where_batches_are_cut_while_they_run(device):
    wanted = fc.resolve(*jobs(), device=device, progress=False)
    run = run_changing(*jobs(), device=device, seed=4, strategy=fc.Strategy(batch_bytes=1 << 16, depth=2))
    assert len({batch.items for batch in run.metrics["x"].recent}) > 2
    for a, b in zip(run.values, wanted, strict=True):
        assert np.asarray(a).tobytes() == np.asarray(b).tobytes()
    assert run.peak_bytes <= run.plan.memory.host_bytes


def test_streams_of_unknown_length_end_where_they_end():
    pieces = [DATA[:7], DATA[7:1000], DATA[1000:]]
    x = fc.iterate(pieces, dtype="float32", shape=(8,))
    y = fc.iterate(pieces[:2], dtype="float32", shape=(8,))
    run = run_changing(x * 2 >> fc.callback(len), device="numpy", strategy=fc.Strategy(batch_bytes=4096))
    assert run.metrics["iterate"].items == len(DATA)
    with pytest.raises(RunError, match="different lengths"):
        run_changing(x + y, device="numpy", strategy=fc.Strategy(batch_bytes=4096))


def test_a_frozen_run_goes_on_with_any_batches(tmp_path):
    def job():
        x = fc.source(DATA, name="x")
        return fc.cumulative_sum(x, axis=0).sum(axis=1) >> fc.save(tmp_path / "y.npy"), x.mean(axis=0)

    wanted = fc.resolve(*job(), device="cpu", progress=False)
    wanted = np.load(wanted[0]).tobytes(), wanted[1].tobytes()
    strategy, count = fc.Strategy(batch_bytes=1 << 14), itertools.count(1)
    kept = tmp_path / "kept"

    def freeze(run):
        if next(count) % 5 == 0:
            run.freeze()

    for seed in range(40):
        # The job goes on with another seed each time, and with other batches all the time.
        with mock.patch("flowcompute.runtime.tuning.Tuner", partial(changing, seed)):
            run = fc.start(*job(), device="cpu", progress=False, checkpoint=str(kept), strategy=strategy, tune=True,
                           on_batch=freeze)  # fmt: skip
            try:
                values = run.wait().values
                break
            except RunError as error:
                assert "frozen" in str(error)
    assert next(count) > 10
    assert (np.load(values[0]).tobytes(), values[1].tobytes()) == wanted


def changing(seed, plan, tune):
    return Changing(plan, seed)


class World:
    """A pass whose records take what a function of batch size, record and threads says."""

    def __init__(self, seconds, *, tune="full", most=64, values=(1, 2, 4)):
        self.now, self.seconds = 0.0, seconds
        self.boundaries = BatchBoundaries(most)
        self.readers = [SimpleNamespace(threads=1)]
        self.budget = Budget(tune, lambda: self.now)
        plan = fc.plan(fc.source(DATA[:, :1], name="x") * 2, device="numpy", strategy=fc.Strategy(batch_bytes=4 * most))
        assert plan.batch_items == most
        plan = replace(plan, pinned=fc.Strategy())
        self.told: list[TrialMeasured] = []
        stream = EventStream()
        stream.subscribe({TrialMeasured: self.told.append})
        self.trials = LiveTrials(plan, self.budget, 1, [4 * most // value for value in (8, 4, 2, 1)], stream)
        self.position = 0
        self.items = []

    def run(self, records):
        """Sources are two batches ahead."""
        if not self.items:
            self.trials.begin(0, [self.boundaries], self.readers)
            self.ahead = [0]
        while self.position < records:
            while len(self.ahead) < 4:
                self.ahead.append(self.boundaries.stop(self.ahead[-1]))
            start, stop = self.ahead[0], self.ahead[1]
            del self.ahead[0]
            self.items.append(stop - start)
            self.now += (stop - start) * self.seconds(stop - start, start)
            self.position = stop
            self.boundaries.passed(stop)
            self.trials.computed(BatchComputed(stop, self.now))
        return self


def test_better_batches_are_found_while_the_job_runs_and_used_from_then_on():
    world = World(lambda items, _: 0.5e-3 if items == 16 else 1e-3).run(40_000)
    assert dict(world.trials.best)["batch_bytes"] == 64
    assert set(world.items[-200:]) == {16}
    assert set(world.items) == {8, 16, 32, 64}
    # Batches that were read before a change, of the other size, have no part in a measurement.
    ratios = world.trials.searches[0].ratios
    assert {round(math.exp(ratio), 6) for ratio in ratios[("batch_bytes", 64),]} == {0.5}


def test_nothing_is_kept_and_little_is_lost_where_all_else_is_slower():
    world = World(lambda items, _: 1e-3 if items == 64 else 20e-3, tune=True).run(400_000)
    assert world.trials.best == ()
    assert set(world.items[-500:]) == {64}
    assert set(world.items) == {8, 16, 32, 64}
    # Nothing is tried before it can be afforded, and what is much slower is given up.
    assert world.items[: int(0.01 * len(world.items))] == [64] * int(0.01 * len(world.items))
    assert 401 < world.now < 1.02 * 400
    assert world.budget.spent_s > 0.5 * (world.now - 400)
    assert sum(event.lost_s for event in world.told) == pytest.approx(world.budget.spent_s)
    assert {(event.where, event.search) for event in world.told} == {("run", world.trials.searches[0])}


def test_parts_in_which_something_else_was_tried_do_not_count():
    world = World(lambda *_: 1e-3)
    launches = iter(range(10_000))

    def seconds(items, start):
        world.budget.spent_s += 1e-6 * next(launches)
        return 1e-3

    world.seconds = seconds
    world.run(5000)
    assert world.trials.searches[0].ratios == {}
    assert len(set(world.items)) > 1


def test_records_that_begin_to_take_longer_open_the_search_again():
    def seconds(items, start):
        if start < 200_000:
            return 1e-3 if items == 64 else 1.5e-3
        return 3e-3 if items == 64 else 1.5e-3

    world = World(seconds).run(190_000)
    assert world.trials.best == ()
    assert len(world.trials.searches) == 1
    world.run(400_000)
    assert len(world.trials.searches) == 2
    assert "3.00 times as long" in world.trials.notes[0]
    assert world.trials.best != ()
    assert 64 not in world.items[-100:]


def test_a_plan_that_has_no_smaller_batches_and_a_pass_of_several_paces_try_nothing():
    world = World(lambda *_: 1e-3)
    world.trials.begin(0, [BatchBoundaries(64), BatchBoundaries(64)], [])
    world.trials.computed(BatchComputed(10, 1.0))
    pinned = fc.plan(fc.source(DATA), device="numpy", strategy=fc.Strategy(batch_bytes=4096))
    trials = LiveTrials(pinned, world.budget, 1, [1024], EventStream())
    trials.begin(0, [BatchBoundaries(64)], [])
    trials.computed(BatchComputed(10, 1.0))
    assert trials.best == ()
    assert trials.searches[0].ask() is None


def test_a_job_that_is_not_run_twice_is_tuned_while_it_runs(monkeypatch, tmp_path):
    monkeypatch.setenv("FLOWCOMPUTE_CACHE", str(tmp_path))
    for name, value in {"PART_S": 0.0, "PART_BATCHES": 1, "WARM_BATCHES": 1}.items():
        monkeypatch.setattr(room, name, value)
    monkeypatch.setattr(Tuner, "_batches", (1 << 9, 1 << 10))
    for name in DEFAULTS:
        monkeypatch.setitem(DEFAULTS, name, 1 << 11)
    seen = []

    def look(batch):
        seen.append(len(batch))
        return batch * 2

    wanted = DATA * 2
    run = fc.run(fc.host(look, fc.source(DATA)), device="numpy", tune="full", progress=False)
    assert np.array_equal(run.value, wanted)
    assert sum(seen) == len(DATA)
    assert len(set(seen)) > 2
    assert run.tuning.trials > 0
    assert {trial.where for trial in run.tuning.tried} == {"run"}
    with mock.patch.object(LiveTrials, "best", (("batch_bytes", 512),)):
        run = fc.run(fc.host(look, fc.source(DATA)), device="numpy", tune="full", progress=False)
    assert run.strategy.batch_bytes == 512
    throttled = fc.run(
        fc.host(look, fc.source(DATA[:2000])), device="numpy", tune="full", progress=False, throttle=1e-6
    )
    assert throttled.tuning.trials == 0


def test_a_pace_is_a_median_and_drift_is_beyond_noise():
    assert Pace.of([1.0] * (LEAST_PARTS - 1)) is None
    steady = Pace.of([1.0] * LEAST_PARTS)
    assert steady == Pace(1.0, 0.0)
    assert steady.drift(Pace(1.1, 0.0)) is None
    assert steady.drift(Pace(1.3, 0.0)) == pytest.approx(1.3)
    assert steady.drift(Pace(0.5, 0.0)) == pytest.approx(0.5)
    assert steady.drift(Pace(1.3, 0.4)) is None
    watch = DriftWatch()
    assert [watch.drift(1.0) for _ in range(3 * LEAST_PARTS)] == [None] * 3 * LEAST_PARTS
    found = [watch.drift(2.0) for _ in range(LEAST_PARTS)]
    assert found[0] is None
    assert found[-1] == pytest.approx(2.0)
