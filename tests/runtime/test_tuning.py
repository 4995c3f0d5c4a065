"""Tuning: answers stay, budgets hold, what is better is kept and found again, and what is yours is called once."""

from __future__ import annotations

import itertools
from unittest import mock

import numpy as np
import pytest

import flowcompute as fc
from flowcompute.cli.command import main
from flowcompute.errors import PlanError
from flowcompute.gpu import OpenCLBackend
from flowcompute.gpu.device.discovery import select_device
from flowcompute.jobs import job_of
from flowcompute.observe import TrialMeasured
from flowcompute.runtime.channels.run_pace import pace_of
from flowcompute.runtime.tuning.rehearsal import Rehearsals
from flowcompute.runtime.tuning.tuner import Tuner
from flowcompute.schedule.stored_strategies import job_key
from flowcompute.strategy.knobs import KernelKnobs
from flowcompute.strategy.pace import Pace
from flowcompute.strategy.paired_trials import PairedTrials
from flowcompute.strategy.roofline import Limits, load_limits
from flowcompute.strategy.search import RandomSearch
from flowcompute.strategy.strategy_store import Stored, StrategyStore
from tests.runtime.test_kernel_trials import DATA, Seconds, job

LIMITS = Limits(1e9, {"float32": 1e9}, 1)


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """An empty store, and a device that is measured at once. The driver starts before: what it keeps outlives the test."""
    select_device("cpu", needs_float64=False)
    monkeypatch.setenv("FLOWCOMPUTE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(OpenCLBackend, "measure", lambda *_: LIMITS)


def store(*roots, **knobs):
    """Keep a strategy for a job."""
    plan = fc.plan(*roots, device="numpy")
    key = job_key(plan.asked, plan.config, plan.backend.capabilities)
    assert StrategyStore().save(Stored(key, "by hand", fc.Strategy(**knobs)))


def rated(**better):
    """Every candidate takes as long as the default, but those that are better take half of it.

    Args:
        better: says so of the knobs of the "run" or of "kernels"; what is not named is measured.
    """
    measure = PairedTrials.ratio

    def ratio(self, candidate, seconds):
        knobs = dict(candidate)
        is_better = better.get(
            "run" if knobs.keys() <= {"batch_bytes", "depth", "input", "reader_threads"} else "kernels"
        )
        return measure(self, candidate, seconds) if is_better is None else 0.5 if is_better(knobs) else 1.0

    return mock.patch.object(PairedTrials, "ratio", ratio)


@pytest.mark.parametrize("device", ["cpu", "numpy"])
def test_what_is_found_is_kept_and_used_without_trials(device):
    first = fc.run(*job(), device=device, progress=False)
    with rated(run=lambda knobs: len(knobs) == 1, kernels=lambda knobs: knobs.get("unroll") == 2):
        run = fc.run(*job(), device=device, tune="quick", progress=False)
    again = fc.run(*job(), device=device, progress=False)
    for values in (run.values, again.values):
        for a, b in zip(first.values, values, strict=True):
            np.testing.assert_array_equal(a.view(np.uint32), b.view(np.uint32))
    assert run.tuning.trials == len(run.tuning.tried) >= 3
    assert run.strategy != first.strategy
    assert again.strategy == run.strategy == fc.Strategy.from_json(run.strategy.to_json())
    assert (again.tuning.origin, again.tuning.trials) == ("stored", 0)
    (best,) = [trial for trial in run.tuning.tried if (trial.where, trial.outcome) == ("run", "kept")]
    assert f"run {best.knobs} (50 % faster)" in str(run.tuning)
    explained = again.plan.explain()
    assert "stored by an earlier run" in explained
    assert best.knobs in explained
    if device == "cpu":
        assert "takes 160 and gives " in explained
        assert load_limits(again.plan.backend.capabilities.kind) == LIMITS
        first, *_ = again.plan.tuning.rooflines
        assert first.bytes_s == pytest.approx(len(DATA) * 160 / LIMITS.bytes_per_s, rel=0.05)
        assert f"when tuned, {first}" in explained
        assert again.plan.passes[0].kernels[0].knobs.unroll == 2
        assert "unroll=2 of 1, 4, 8" in explained
        assert "50 % faster" in explained


def test_the_command_tunes_ahead_and_writes_nothing(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "tuned_jobs.py").write_text(
        "import numpy as np\nimport flowcompute as fc\n"
        "x = fc.source(np.ones((50, 4), np.float32))\n"
        "saved = x * 2 >> fc.save('y.npy')\n"
        "once = fc.host(lambda batch: batch, x)\n"
    )
    with rated(run=lambda knobs: len(knobs) == 1):
        assert main(["tune", "tuned_jobs:saved", "--quick", "--device", "numpy"]) == 0
    assert "kept: run " in capsys.readouterr().out
    assert not (tmp_path / "y.npy").exists()
    assert len(StrategyStore().every()) == 1
    assert main(["plan", "tuned_jobs:saved", "--explain", "--device", "numpy"]) == 0
    assert "strategy on numpy: stored by an earlier run" in capsys.readouterr().out
    assert main(["run", "tuned_jobs:saved", "--tune", "--device", "numpy", "--no-progress"]) == 0
    assert "candidates in " in capsys.readouterr().err
    assert main(["tune", "tuned_jobs:once", "--quick", "--device", "numpy"]) == 2
    assert "functions of yours" in capsys.readouterr().err


def test_equal_kernels_of_other_jobs_share_what_was_found():
    with rated(kernels=lambda knobs: knobs.get("unroll") == 8):
        fc.run(*job(), device="cpu", tune="quick", progress=False)
    x = fc.source(DATA[:2000], name="other")
    plan = fc.plan((x * 3.5 + 1).sum(axis=0), device="cpu")
    assert plan.tuning.origin == "stored"
    assert "equal kernels" in plan.explain()
    assert plan.passes[0].kernels[0].knobs.unroll == 8
    assert fc.plan((x * 2.5 - 1).sum(axis=0), device="cpu").tuning.origin == "defaults"


def test_short_jobs_measure_three_candidates_that_differ():
    with mock.patch("flowcompute.runtime.tuning.tuner._BATCHES", (1 / 4, 1 / 2, 2, 4, 8)):
        run = fc.run(*job(), device="numpy", tune=True, progress=False)
    assert run.tuning.trials >= 3
    # All records are in one batch of any larger size.
    batches = {one for trial in run.tuning.tried for one in trial.knobs.split(", ") if "batch" in one}
    assert batches <= {"batch_bytes=262144"}
    assert run.tuning.origin == "tuned"
    (stored,) = StrategyStore().every()
    assert stored.strategy == run.strategy


@pytest.mark.parametrize("before", [2, 3])
def test_what_was_measured_while_the_job_ran_is_not_owed_after_it(before):
    plan = fc.plan(*job(), device="cpu")
    tuner = Tuner(job_of(plan), True, Seconds())
    tuner.trials.searches["k0"] = search = RandomSearch({"unroll": (1, 2, 4, 8)}, {"unroll": 1}, seed=0)
    for unroll in (2, 4, 8)[:before]:
        search.tell((("unroll", unroll),), 1.0)
        tuner.stream.emit(TrialMeasured("k0", search, (("unroll", unroll),), 1.0, 0.0))
    search.fail((("unroll", 16),))
    with rated(run=lambda _: False), mock.patch.object(Tuner, "_limits"):
        _, tuning = tuner.finish(lambda: False)
    assert len([trial for trial in tuning.tried if trial.where == "run"]) == 3 - before


def test_pins_are_kept_and_their_results_are_not_stored():
    run = fc.run(*job(), device="numpy", tune=True, progress=False, strategy=fc.Strategy(depth=3))
    assert run.strategy.depth == 3
    assert all("depth" not in trial.knobs for trial in run.tuning.tried)
    assert StrategyStore().every() == []
    assert "pinned" in run.tuning.notes[-1]


def test_a_pin_goes_before_what_is_stored():
    store(*job(), depth=1)
    assert fc.plan(*job(), device="numpy").depth == 1
    plan = fc.plan(*job(), device="numpy", strategy=fc.Strategy(depth=4))
    assert plan.depth == 4
    assert "depth=4 (yours)" in plan.explain()


@pytest.mark.parametrize(("better", "tune"), [(False, "quick"), (True, "quick"), (False, True)])
def test_a_tuned_run_begins_with_what_is_kept_and_holds_the_default_against_it(better, tune):
    store(*job(), depth=3)
    with rated(run=lambda knobs: better and knobs == {"depth": 2}):
        run = fc.run(*job(), device="numpy", tune=tune, progress=False)
    assert run.plan.depth == 3
    first = next(trial for trial in run.tuning.tried if trial.where == "run")
    assert "depth=2" in first.knobs
    assert run.strategy.depth == (2 if better else 3)
    (kept,) = StrategyStore().every()
    assert kept.strategy == run.strategy


def paced(record_s):
    """Runs in which a record takes so long."""
    return mock.patch("flowcompute.runtime.run.run_strategy.pace_of", return_value=Pace(record_s, 0.01))


def test_what_is_kept_and_drifts_is_told_and_searched_for_again():
    store(*job(), depth=3)
    with paced(1e-6):
        fresh = fc.run(*job(), device="numpy", progress=False)
    assert fresh.tuning.notes == ()
    with paced(1.1e-6):
        fc.run(*job(), device="numpy", progress=False)
    with paced(5e-6):
        # Its pauses are not the job's.
        assert fc.run(*job(), device="numpy", progress=False, throttle=1e-6).tuning.notes == ()
    (kept,) = StrategyStore().every()
    assert (kept.pace, kept.drift) == (Pace(1e-6, 0.01), None)
    with paced(3e-6):
        slow = fc.run(*job(), device="numpy", progress=False)
    assert "3.00 times as long" in slow.tuning.notes[0]
    assert slow.plan.depth == 3
    (kept,) = StrategyStore().every()
    assert kept.drift == pytest.approx(3)
    with rated(run=lambda _: False):
        again = fc.run(*job(), device="numpy", tune=True, progress=False)
    assert again.plan.depth == 2
    assert "searched for again" in again.tuning.notes[0]
    (kept,) = StrategyStore().every()
    assert (kept.strategy.depth, kept.pace, kept.drift) == (2, None, None)


def test_a_tuned_job_compiles_before_its_checkpoint_appears(tmp_path):
    with mock.patch.object(OpenCLBackend, "prepare") as prepare:
        fc.run(*job(), device="cpu", tune=True, progress=False, checkpoint=tmp_path / "kept", throttle=1e-9)
    prepare.assert_called_once()


def test_the_pace_of_a_run_is_that_of_its_batches():
    run = fc.run(*job(), device="numpy", progress=False, strategy=fc.Strategy(batch_bytes=4000))
    recent = next(row.recent for row in run.metrics.values() if row.kind == "region")
    each = [(new.ended_s - old.ended_s) / new.items for old, new in itertools.pairwise(recent)]
    assert 0 < min(each) <= pace_of(run._record).record_s <= max(each)
    assert pace_of(fc.run(*job(), device="numpy", progress=False)._record) is None
    assert pace_of(fc.run(*job(), device="numpy", progress=False, metrics=False)._record) is None


def test_what_does_not_fit_here_is_told_and_not_used():
    root = fc.source(DATA) * 2 >> fc.discard()
    store(root, depth=64)
    assert fc.plan(root, device="numpy").depth == 64
    least = fc.plan(root, device="numpy", memory=5000)
    assert least.depth == 2
    assert least.memory.host_bytes <= 5000
    assert "the stored strategy does not fit here" in least.explain()


def test_functions_of_yours_are_called_once_for_each_batch():
    calls = []

    def look(batch):
        calls.append(len(batch))
        return batch

    def step(carry, row):
        calls.append(1)
        return carry + row[0]

    x = fc.source(DATA)
    for root in (fc.host(look, x).sum(axis=0), fc.scan(step, x, init=np.float32(0))):
        del calls[:]
        run = fc.run(root, device="numpy", tune=True, progress=False)
        assert sum(calls) == len(DATA)
        assert run.tuning.trials == 0
        assert "functions of yours" in run.tuning.notes[0]


def test_callbacks_and_files_see_one_run(tmp_path):
    seen = []
    x = fc.source(DATA)
    run = fc.run(
        x >> fc.callback(lambda array: seen.append(len(array))),
        x * 2 >> fc.save(tmp_path / "y.npy"),
        device="numpy",
        tune=True,
        progress=False,
    )
    assert run.tuning.trials >= 3
    assert sum(seen) == len(DATA)
    assert [path.name for path in tmp_path.iterdir() if path.suffix] == ["y.npy"]


def test_what_is_read_once_is_not_rehearsed():
    run = fc.run(
        fc.iterate(iter([DATA]), dtype="float32", shape=(40,)).sum(axis=0), device="numpy", tune=True, progress=False
    )
    assert run.tuning.trials == 0
    assert run.tuning.notes


def test_a_stopped_run_ends_its_trials_and_keeps_its_results():
    asked = []

    def stop(self, strategy):
        asked.append(strategy)
        run.stop()
        return 1.0

    with mock.patch.object(Rehearsals, "seconds", stop):
        run = fc.start(*job(), device="numpy", tune=True, progress=False)
        run.wait()
    assert len(asked) <= 2
    assert len(run.values) == 2
    assert StrategyStore().every() == []


def test_what_goes_wrong_in_tuning_takes_no_result_away():
    with mock.patch.object(Rehearsals, "seconds", side_effect=RuntimeError("boom")):
        run = fc.run(*job(), device="numpy", tune=True, progress=False)
    assert len(run.values) == 2
    assert "boom" in run.tuning.notes[-1]


@pytest.mark.parametrize("tune", [1, "slow", None, 0.5])
def test_other_values_of_tune_are_refused(tune):
    with pytest.raises(PlanError, match="tune: cannot use this value"):
        fc.run(*job(), device="numpy", tune=tune, progress=False)


def test_complete_strategies_make_the_same_plan():
    for device in ("cpu", "numpy"):
        for strategy in (
            None,
            fc.Strategy(batch_bytes=5000, depth=1, unroll=2),
            fc.Strategy(kernels={"k0": {"unroll": 4}}),
        ):
            run = fc.run(*job(), device=device, strategy=strategy, progress=False)
            again = fc.run(*job(), device=device, strategy=run.strategy, progress=False)
            assert again.strategy == run.strategy
            assert again.plan.batch_items == run.plan.batch_items
            assert [k.source for k in again.plan.kernels] == [k.source for k in run.plan.kernels]
            assert all(own.plain() for own in run.strategy.by_kernel().values())
    assert KernelKnobs() not in run.strategy.by_kernel().values()
