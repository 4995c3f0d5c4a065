"""Tuning: knobs of kernels while a job runs, knobs of the run after its end, within a stated budget.

No trial can change an answer. A kernel's candidate is launched over the results of the batch in
hand, and stores the same bytes; a run's candidate is a rehearsal, which drops its results.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Literal

import numpy as np

from flowcompute.errors import DeviceError, DeviceFullError, FlowError, PlanError
from flowcompute.metrics import NodeMetrics
from flowcompute.planner.backend import Backend, Executor
from flowcompute.planner.chosen import complete_strategy, variant
from flowcompute.planner.kernel import Kernel
from flowcompute.planner.knob_table import candidates
from flowcompute.planner.plan import Plan
from flowcompute.planner.planner import make_plan
from flowcompute.planner.rooflines import rooflines
from flowcompute.planner.run_knobs import DEFAULT_BATCH_BYTES
from flowcompute.planner.steps import RegionStep
from flowcompute.planner.stored import job_key, keep
from flowcompute.runtime.rehearsal import Rehearsals, why_not_rehearsed
from flowcompute.sources.stored import StoredSource
from flowcompute.strategy import KernelKnobs, Limits, Stored, Strategy, Trial, Tuning, load_limits, save_limits
from flowcompute.strategy.search import Candidate, Climb, Search, Space

Tune = bool | Literal["quick", "full"]

SHARE = 0.02
"""What trials may take of a job's seconds with `tune=True`."""

LEAST_TRIALS = 3
"""Candidates that are measured with `tune=True` however short the job is."""

LIVE_S = 1.0
"""Seconds that kernels may be tried for on one batch, while the job runs."""

LEAST_S = 3.0
"""Seconds in which what these promise may then be confirmed."""

FIRST_S = 0.5
"""What a measurement is expected to take before there was one: compiling is the most of it."""

LIMITS_S: Mapping[str, float] = {"quick": 10.0, "full": 120.0}
"""Seconds that trials may take otherwise."""

KERNELS_SHARE = 0.5
"""What of it kernels may have; the rest is for the run."""

_BATCHES = (1 / 16, 1 / 4, 1 / 2, 2, 4)
"""Batches that are tried, in default ones."""

Clock = Callable[[], float]


def check_tune(tune: object) -> Tune:
    """`tune=` as it was given.

    Raises:
        PlanError: if it is something else.
    """
    if tune is True or tune is False:
        return tune
    if isinstance(tune, str) and tune in LIMITS_S:
        return "quick" if tune == "quick" else "full"
    raise PlanError(
        "tune= is not what it should be", element="tune", expected='False, True, "quick" or "full"', got=repr(tune)
    )


class Budget:
    """Seconds for trials.

    Args:
        tune: as asked for.
        clock: gives seconds.

    Attributes:
        spent_s: what trials have taken so far.
    """

    def __init__(self, tune: Tune, clock: Clock) -> None:
        self.spent_s = 0.0
        self._tune = tune
        self._clock = clock
        self._began = clock()
        self._ended: float | None = None
        self._dearest_s = FIRST_S

    def end(self) -> None:
        """The job has ended: what is left is left for after it."""
        self._ended = self._clock()

    @property
    def limit_s(self) -> float:
        """What trials may take so far."""
        if isinstance(self._tune, str):
            return LIMITS_S[self._tune]
        return SHARE * ((self._clock() if self._ended is None else self._ended) - self._began)

    def is_open(self, share: float = 1.0) -> bool:
        """Whether one more measurement, as long as the longest so far, fits in a share of it."""
        return self.spent_s + self._dearest_s < share * self.limit_s

    def measure(self, work: Callable[[], float]) -> float:
        """What `work` gives; its seconds are spent."""
        began = self._clock()
        try:
            return work()
        finally:
            spent = self._clock() - began
            self.spent_s += spent
            self._dearest_s = max(self._dearest_s, spent)


class KernelTrials:
    """Looks for better knobs of each kernel of a plan, on the batches that it computes; a `KernelTuner`.

    Attributes:
        searches: by the kernel's name.
        problems: what could not be tried, and why.
        per_launch_s: seconds of trials after a launch; more would look like a stage that makes no progress.
    """

    def __init__(self, plan: Plan, budget: Budget, seed: int) -> None:
        self.searches: dict[str, Search] = {}
        self.problems: list[str] = []
        self.per_launch_s = LIVE_S
        self._plan = plan
        self._budget = budget
        self._seed = seed
        self._kernels: dict[tuple[str, Candidate], Kernel] = {}
        self._warm: set[tuple[str, Candidate]] = set()
        self._adopted: dict[str, Candidate] = {}
        self._turn = False

    @property
    def is_done(self) -> bool:
        """Whether nothing is left to be learnt of the kernels that have worked."""
        return all(search.ask() is None for search in self.searches.values())

    def launched(self, step: RegionStep, launch: Callable[[Kernel], float]) -> Kernel | None:
        """See `KernelTuner.launched`."""
        kernel = step.kernel
        assert kernel is not None
        search, spent_s = self._search(kernel), self._budget.spent_s
        tried = False
        while self._budget.is_open(KERNELS_SHARE) and self._budget.spent_s - spent_s < self.per_launch_s:
            candidate = search.ask()
            if candidate is None:
                break
            tried = True
            try:
                search.tell(candidate, self._budget.measure(partial(self._ratio, step, candidate, launch)))
            except FlowError as error:
                if isinstance(error, DeviceError) and not isinstance(error, DeviceFullError):
                    raise
                search.fail(candidate)
                self.problems.append(f"{kernel.name} {said(candidate)}: {error.message}")
        if tried:
            # The batch goes on with what the kernel in use has stored, not with what a candidate has.
            launch(self._variant(step, self._adopted.get(kernel.name, ())))
        best = search.best
        if best == self._adopted.get(kernel.name, ()):
            return None
        self._adopted[kernel.name] = best
        return self._variant(step, best)

    def _search(self, kernel: Kernel) -> Search:
        if kernel.name not in self.searches:
            pinned = self._plan.pinned.of_kernel(kernel.name).plain()
            space = {
                name: values
                for name, values in candidates(kernel.family, self._plan.backend.traits).items()
                if name not in pinned
            }
            default = {name: value for name, value in kernel.knobs.plain().items() if name in space}
            self.searches[kernel.name] = Climb(space, default, self._seed + len(self.searches))
        return self.searches[kernel.name]

    def _variant(self, step: RegionStep, candidate: Candidate) -> Kernel:
        assert step.kernel is not None
        key = (step.kernel.name, candidate)
        if key not in self._kernels:
            self._kernels[key] = variant(self._plan, step, KernelKnobs.from_plain(dict(candidate)))
        return self._kernels[key]

    def _ratio(self, step: RegionStep, candidate: Candidate, launch: Callable[[Kernel], float]) -> float:
        """Seconds of the candidate by those of the default, launched in turns."""
        kernel = self._variant(step, candidate)
        assert step.kernel is not None
        for key, one in (((kernel.name, ()), step.kernel), ((kernel.name, candidate), kernel)):
            if key not in self._warm:
                # A first launch also makes machine code on some drivers.
                launch(one)
                self._warm.add(key)
        # Who goes first finds other caches: that changes with each pair.
        self._turn = not self._turn
        pair = (kernel, step.kernel) if self._turn else (step.kernel, kernel)
        first, second = map(launch, pair)
        seconds, default_s = (first, second) if self._turn else (second, first)
        return max(seconds, 1e-9) / max(default_s, 1e-9)


class TunedBackend(Backend):
    """A backend whose executors ask a tuner."""

    def __init__(self, backend: Backend, tuner: KernelTrials) -> None:
        self.traits = backend.traits
        self._backend = backend
        self._tuner = tuner

    def source_text(self, kernel: Any) -> str:
        """See `Backend.source_text`."""
        return self._backend.source_text(kernel)

    def executor(self, plan: Plan, pass_index: int, resident: dict[int, np.ndarray]) -> Executor:
        """See `Backend.executor`."""
        made = self._backend.executor(plan, pass_index, resident)
        made.tuner = self._tuner
        return made


class Tuner:
    """Tunes one run.

    Args:
        plan: what is run.
        tune: as asked for, not False.
        clock: gives seconds.
    """

    def __init__(self, plan: Plan, tune: Tune, clock: Clock = time.perf_counter) -> None:
        self._key = job_key(plan.asked, plan.config, plan.backend.traits)
        self._plan = plan
        self._tune = tune
        self._clock = clock
        self._seed = int(self._key.what[:12], 16)
        self._budget = Budget(tune, clock)
        self.trials = KernelTrials(plan, self._budget, self._seed)
        self._notes: list[str] = []
        self._turn = False
        self.plan = replace(plan, backend=TunedBackend(plan.backend, self.trials))
        """The plan to be run: it tries kernels on the way."""

    def finish(
        self, cancelled: Callable[[], bool], rows: Mapping[str, NodeMetrics] | None = None
    ) -> tuple[Strategy, Tuning]:
        """Try what is left to be tried after the end of the job, and keep what is best.

        Args:
            cancelled: whether to stop.
            rows: what the stages of the run did, if it ran.

        Returns:
            The strategy for the next run, complete, and how it was found.
        """
        self._budget.end()
        why_not = why_not_rehearsed(self._plan)
        run = self._run_search()
        rehearsed: Mapping[str, NodeMetrics] = {}
        if why_not is not None:
            self._notes.append(f"nothing was tried after the end: {why_not}")
        else:
            rehearsals = Rehearsals(self._plan, cancelled)
            if self._tune is not True:
                self._rehearse_kernels(rehearsals)
            self._try_run(run, rehearsals, cancelled)
            rehearsed = rehearsals.rows
        found = self._strategy(run)
        tuning = replace(self._tuning(run), rooflines=rooflines(self._plan, rows or rehearsed, self._limits(cancelled)))
        return found, self._keep(found, tuning, cancelled)

    def _limits(self, cancelled: Callable[[], bool]) -> Limits | None:
        """What the device can do at most; measured where that was never done, and there is time and room for it."""
        backend = self._plan.backend
        known = load_limits(backend.traits.kind)
        if known is not None or self._tune is True or cancelled():
            return known
        limits = backend.measure(self._plan.config.memory_bytes)
        if limits is not None:
            save_limits(backend.traits.kind, limits)
        return limits

    # -- knobs of kernels ---------------------------------------------------------------------------------

    def _rehearse_kernels(self, rehearsals: Rehearsals) -> None:
        """Let the kernels work on the job's first batches once more, with half of the seconds left."""
        plan = rehearsals.planned(self._plan.strategy)
        self.trials.per_launch_s = math.inf
        tuned = replace(plan, backend=TunedBackend(plan.backend, self.trials))
        try:
            rehearsals.run(tuned, lambda *_: self.trials.is_done or not self._budget.is_open(KERNELS_SHARE))
        except FlowError as error:
            self._notes.append(f"a rehearsal failed: {error.message}")

    # -- knobs of the run ---------------------------------------------------------------------------------

    def _run_search(self) -> Search:
        plan = self._plan
        bytes_ = DEFAULT_BATCH_BYTES[plan.backend.traits.code_shape]
        values: dict[str, tuple[int | str, ...]] = {
            "batch_bytes": tuple(int(bytes_ * factor) for factor in _BATCHES),
            "depth": (1, 2, 3, 4),
            "input": ("mapped", "read"),
            "reader_threads": (1, 2, 4),
        }
        sources = [source.element for one in plan.passes for source in one.sources]
        if not any(isinstance(source, StoredSource) for source in sources):
            # Neither has anything to say then.
            del values["input"], values["reader_threads"]
        complete = complete_strategy(plan)
        space: Space = {name: tried for name, tried in values.items() if getattr(plan.pinned, name) is None}
        default = {name: getattr(complete, name) for name in space}
        if self._tune is True:
            return Climb(space, default, self._seed, pool=LEAST_TRIALS, dry=1)
        return Climb(space, default, self._seed)

    def _try_run(self, search: Search, rehearsals: Rehearsals, cancelled: Callable[[], bool]) -> None:
        default = self._with_kernels(complete_strategy(self._plan))
        while not cancelled() and (candidate := search.ask()) is not None:
            if not self._budget.is_open() and not self._is_owed(search, new=candidate not in search.ratios):
                break
            try:
                search.tell(candidate, self._budget.measure(partial(self._pair, rehearsals, default, candidate)))
            except FlowError as error:
                search.fail(candidate)
                self._notes.append(f"run {said(candidate)}: {error.message}")

    def _is_owed(self, search: Search, *, new: bool) -> bool:
        """Whether the least that was promised is still to be done, beyond the budget."""
        if self._tune is not True:
            return False
        return len(search.ratios) < LEAST_TRIALS if new else self._budget.spent_s < LEAST_S

    def _pair(self, rehearsals: Rehearsals, default: Strategy, candidate: Candidate) -> float:
        knobs: dict[str, Any] = dict(candidate)
        other = replace(default, **knobs)
        self._turn = not self._turn
        pair = (other, default) if self._turn else (default, other)
        first, second = map(rehearsals.seconds, pair)
        seconds, default_s = (first, second) if self._turn else (second, first)
        return max(seconds, 1e-12) / max(default_s, 1e-12)

    # -- what comes of it ---------------------------------------------------------------------------------

    def _with_kernels(self, strategy: Strategy) -> Strategy:
        """The strategy with the best knobs of kernels so far."""
        kernels = strategy.by_kernel()
        for name, search in self.trials.searches.items():
            kernels[name] = KernelKnobs.from_plain(dict(search.best)).over(kernels[name])
        return replace(strategy, kernels=kernels)

    def _strategy(self, run: Search) -> Strategy:
        knobs: dict[str, Any] = dict(run.best)
        chosen = replace(self._with_kernels(complete_strategy(self._plan)), **knobs)
        # As the next run will have it: a knob may have become another one's business.
        plan = self._plan
        made = make_plan(plan.graph, plan.config, chosen, plan.backend, asked=plan.asked, shaping=plan.shaping)
        return complete_strategy(made)

    def _tuning(self, run: Search) -> Tuning:
        searches = {"run": run, **self.trials.searches}
        tried = [trial for where, search in searches.items() for trial in _trials(where, search)]
        gain = max([trial.gain for trial in tried if trial.outcome == "kept"], default=0.0)
        notes = (*self.trials.problems, *self._notes)
        return Tuning("tuned", len(tried), self._budget.spent_s, gain, tuple(tried), notes)

    def _keep(self, found: Strategy, tuning: Tuning, cancelled: Callable[[], bool]) -> Tuning:
        if cancelled():
            return replace(tuning, notes=(*tuning.notes, "not kept: the run was stopped"))
        if self._plan.pinned != Strategy():
            return replace(tuning, notes=(*tuning.notes, "not kept for later runs: some knobs were pinned"))
        about = ", ".join(self._plan.graph.nodes[root].name for root in self._plan.graph.roots)
        stored = Stored(self._key, about, found, tuning, int(time.time()))
        keep(self._plan, found, stored, self._plan)
        return tuning


def _trials(where: str, search: Search) -> list[Trial]:
    trials = []
    for candidate in search.ratios:
        judged = search.judge(candidate)
        noise = judged.noise if np.isfinite(judged.noise) else None
        trial = Trial(where, said(candidate), judged.gain, noise, judged.pairs, "not better")
        if candidate in search.failed:
            trial = replace(trial, outcome="failed")
        elif candidate == search.best:
            trial = replace(trial, outcome="kept")
        elif judged.gain > 0:
            trial = replace(trial, outcome="not confirmed" if judged.pairs < 3 else "within the noise")
        trials.append(trial)
    return trials


def said(candidate: Candidate) -> str:
    """A candidate in words."""
    return ", ".join(f"{name}={value}" for name, value in candidate)
