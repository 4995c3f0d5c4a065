"""Tuning: knobs of kernels and of the run while a job runs, and after its end, within a stated budget.

No trial can change an answer. A kernel's candidate is launched over the results of the batch in hand, and stores the
same bytes. A run's candidate cuts the stream elsewhere, which no answer depends on, or is a rehearsal, which drops its
results.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from flowcompute.engine import PlannedJob
from flowcompute.errors import FlowError
from flowcompute.metrics import NodeMetrics
from flowcompute.observe import EventStream
from flowcompute.runtime.run import LiveTrials
from flowcompute.runtime.tuning.kernel_trials import KERNELS_SHARE, KernelTrials, TunedBackend
from flowcompute.runtime.tuning.rehearsal import Rehearsals, why_not_rehearsed
from flowcompute.runtime.tuning.trial_budget import Budget, Clock
from flowcompute.runtime.tuning.trial_loop import try_candidates
from flowcompute.runtime.tuning.trial_totals import TrialTotals
from flowcompute.schedule import default_batch_bytes, job_key, keep, make_plan
from flowcompute.schedule.explain import Plan, batch_sizes, complete_strategy, limits_of, rooflines
from flowcompute.sources import StoredSource
from flowcompute.strategy import (
    Candidate,
    Climb,
    KernelKnobs,
    Limits,
    PairedTrials,
    Search,
    Space,
    Stored,
    Strategy,
    Tune,
    Tuning,
    differing,
    load_limits,
    save_limits,
    trials_of,
)

LEAST_TRIALS = 3
"""Candidates that are measured with `tune=True`: after the end of a job that was too short for so many."""

LEAST_S = 3.0
"""Seconds in which what these promise may then be confirmed, and no others."""

_BATCHES = (1 / 16, 1 / 4, 1 / 2, 2, 4)
"""Batches that are tried, in default ones."""


class Tuner:
    """Tunes one run.

    Args:
        job: what is run.
        tune: as asked for, not False.
        clock: gives seconds.

    Attributes:
        stream: the events of the run, trials among them.
    """

    def __init__(self, job: PlannedJob, tune: Tune, clock: Clock = time.perf_counter) -> None:
        plan = job.plan
        self._key = job_key(plan.asked, plan.config, plan.backend.capabilities)
        self._plan = plan
        self._backend = job.backend
        self._tune = tune
        self._clock = clock
        self._seed = int(self._key.what[:12], 16)
        self._budget = Budget(tune, clock)
        kept = plan.tuning.origin == "stored"
        self._default = _planned(plan, plan.pinned) if kept else plan
        self.stream = EventStream()
        self._totals = TrialTotals(self.stream)
        self.trials = KernelTrials(plan, self._budget, self._seed, self.stream, self._default if kept else None)
        self.live = LiveTrials(plan, self._budget, self._seed, self._batches, self.stream)
        self._owes = False
        self.job = PlannedJob(plan, TunedBackend(job.backend, self.trials))
        """Job that is to be run: it tries kernels on the way."""

    def finish(
        self,
        cancelled: Callable[[], bool],
        rows: Mapping[str, NodeMetrics] | None = None,
        drift: float | None = None,
    ) -> tuple[Strategy, Tuning]:
        """Try what is left to be tried after the end of the job, and keep what is best.

        Args:
            cancelled: whether to stop.
            rows: what the stages of the run did, if it ran.
            drift: as for `RunTuner.finish`.

        Returns:
            The strategy for the next run, complete, and how it was found.
        """
        self._budget.end()
        self._owes = self._tune is True and self._totals.measured < LEAST_TRIALS
        why_not = why_not_rehearsed(self._plan)
        run = self._run_search(thorough=drift is not None or self._tune is not True)
        rehearsed: Mapping[str, NodeMetrics] = {}
        if why_not is not None:
            self._totals.notes.append(f"nothing was tried after the end: {why_not}")
        else:
            rehearsals = Rehearsals(PlannedJob(self._plan, self._backend), cancelled)
            if self._tune is not True:
                self._rehearse_kernels(rehearsals)
            self._try_run(run, rehearsals, cancelled)
            rehearsed = rehearsals.rows
        found = self._strategy(run)
        tuning = replace(self._tuning(run), rooflines=rooflines(self._plan, rows or rehearsed, self._limits(cancelled)))
        return found, self._keep(found, tuning, cancelled)

    def _limits(self, cancelled: Callable[[], bool]) -> tuple[Limits | None, ...]:
        """Return what each device can do at most; it is measured once, where there is time and room for it."""
        for placement in self._backend.placements:
            if load_limits(placement.capabilities.kind) is not None or self._tune is True or cancelled():
                continue
            limits = placement.measure(self._plan.config.memory_bytes)
            if limits is not None:
                save_limits(placement.capabilities.kind, limits)
        return limits_of(self._plan)

    # -- knobs of kernels ---------------------------------------------------------------------------------

    def _rehearse_kernels(self, rehearsals: Rehearsals) -> None:
        """Let the kernels work on the job's first batches once more, with half of the seconds left."""
        job = rehearsals.planned(self._plan.strategy)
        self.trials.per_launch_s = math.inf
        tuned = replace(job, backend=TunedBackend(job.backend, self.trials))
        try:
            rehearsals.run(tuned, lambda *_: self.trials.is_done or not self._budget.is_open(KERNELS_SHARE))
        except FlowError as error:
            self._totals.notes.append(f"a rehearsal failed: {error.message}")

    # -- knobs of the run ---------------------------------------------------------------------------------

    @property
    def _batches(self) -> tuple[int, ...]:
        bytes_ = default_batch_bytes(self._plan.backend.capabilities, self._plan.passes)
        return tuple(int(bytes_ * factor) for factor in _BATCHES)

    def _other_batches(self) -> tuple[int, ...]:
        """Return those of `_batches` that cut the job otherwise than what is in use, and than each other."""
        in_use = self._in_use.batch_bytes
        assert in_use is not None
        by_cuts = {self._boundaries(bytes_): bytes_ for bytes_ in reversed(self._batches)}
        by_cuts.pop(self._boundaries(in_use), None)
        return tuple(reversed(by_cuts.values()))

    def _boundaries(self, batch_bytes: int) -> tuple[int, ...]:
        """Return the records in a batch of each pass; as many as there are where all of them are in one."""
        sizes = zip(batch_sizes(self._plan, batch_bytes), self._plan.passes, strict=True)
        return tuple(size if one.length is None else min(size, one.length) for size, one in sizes)

    def _run_search(self, *, thorough: bool) -> Search:
        plan = self._plan
        values: dict[str, tuple[int | str, ...]] = {
            "batch_bytes": self._other_batches(),
            "depth": (1, 2, 3, 4),
            "input": ("mapped", "read"),
            "reader_threads": (1, 2, 4),
        }
        sources = [source.element for one in plan.passes for source in one.sources]
        if not any(isinstance(source, StoredSource) for source in sources):
            # Neither has anything to say then.
            del values["input"], values["reader_threads"]
        in_use, by_default = self._in_use, complete_strategy(self._default)
        space: Space = {name: tried for name, tried in values.items() if getattr(plan.pinned, name) is None}
        default = {name: getattr(in_use, name) for name in space}
        first = [differing(default, {name: getattr(by_default, name) for name in space})]
        if thorough:
            return Climb(space, default, self._seed, first=first)
        return Climb(space, default, self._seed, first=first, pool=LEAST_TRIALS, dry=1)

    @property
    def _in_use(self) -> Strategy:
        """The knobs, as the job has gone on with them."""
        knobs: dict[str, Any] = dict(self.live.best)
        return replace(complete_strategy(self._plan), **knobs)

    def _try_run(self, search: Search, rehearsals: Rehearsals, cancelled: Callable[[], bool]) -> None:
        in_use = self._with_kernels(self._in_use)

        def seconds(candidate: Candidate) -> float:
            knobs: dict[str, Any] = dict(candidate)
            return rehearsals.seconds(replace(in_use, **knobs))

        def may_try(candidate: Candidate) -> bool:
            owed = self._budget.is_open() or self._is_owed(new=candidate not in search.ratios)
            return owed and not cancelled()

        try_candidates("run", search, PairedTrials(), self._budget, seconds, self.stream, may_try=may_try)

    def _is_owed(self, *, new: bool) -> bool:
        """Check whether the least that was promised is still to be done, beyond the budget."""
        if not self._owes:
            return False
        return self._totals.measured < LEAST_TRIALS if new else self._budget.spent_s < LEAST_S

    # -- what comes of it ---------------------------------------------------------------------------------

    def _with_kernels(self, strategy: Strategy) -> Strategy:
        """Return the strategy with the best knobs of kernels so far."""
        kernels = strategy.by_kernel()
        for name, search in self.trials.searches.items():
            kernels[name] = KernelKnobs.from_plain(dict(search.best)).over(kernels[name])
        return replace(strategy, kernels=kernels)

    def _strategy(self, run: Search) -> Strategy:
        knobs: dict[str, Any] = dict(run.best)
        chosen = replace(self._with_kernels(self._in_use), **knobs)
        # As the next run will have it: a knob may have become another one's business.
        return complete_strategy(_planned(self._plan, chosen))

    def _tuning(self, run: Search) -> Tuning:
        live = [("run", search) for search in self.live.searches]
        tried = [trial for pair in (*live, ("run", run), *self.trials.searches.items()) for trial in trials_of(*pair)]
        gain = max([trial.gain for trial in tried if trial.outcome == "kept"], default=0.0)
        # What is kept of an earlier run still saves what it did.
        gain = 1 - (1 - gain) * (1 - self._plan.tuning.gain)
        notes = (*self._plan.tuning.notes, *self.live.notes, *self._totals.notes)
        return Tuning("tuned", len(tried), self._budget.spent_s, gain, tuple(tried), notes)

    def _keep(self, found: Strategy, tuning: Tuning, cancelled: Callable[[], bool]) -> Tuning:
        if cancelled():
            return replace(tuning, notes=(*tuning.notes, "not kept: the run was stopped"))
        if self._plan.pinned != Strategy():
            return replace(tuning, notes=(*tuning.notes, "not kept for later runs: some knobs were pinned"))
        about = ", ".join(self._plan.graph.nodes[root].name for root in self._plan.graph.roots)
        stored = Stored(self._key, about, found, tuning, int(time.time()))
        keep(self._plan, found, stored, self._default)
        return tuning


def _planned(plan: Plan, strategy: Strategy) -> Plan:
    """Plan the same job with other knobs."""
    return make_plan(plan.graph, plan.config, strategy, plan.backend, asked=plan.asked, shaping=plan.shaping)
