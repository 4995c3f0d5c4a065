"""Knobs of kernels, tried on the batches that a job computes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from flowcompute.engine import Backend, Executor
from flowcompute.imports import LateModule
from flowcompute.ir import Kernel
from flowcompute.observe import EventStream
from flowcompute.runtime.tuning.trial_budget import Budget
from flowcompute.runtime.tuning.trial_loop import try_candidates
from flowcompute.schedule import ExecutionPlan, RegionStep
from flowcompute.schedule.explain import Plan, variant
from flowcompute.strategy import Candidate, Climb, KernelKnobs, Limits, PairedTrials, Search, differing

if TYPE_CHECKING:
    from flowcompute import lower
else:
    lower = LateModule("flowcompute.lower")

LIVE_S = 1.0
"""Seconds that kernels may be tried for on one batch, while the job runs."""

KERNELS_SHARE = 0.5
"""Share of these seconds that kernels may have; the rest is for the run."""


class KernelTrials:
    """Looks for better knobs of each kernel of a plan, on the batches that it computes; a `KernelTuner`.

    Args:
        plan: what is run.
        budget: seconds for it.
        seed: of the searches.
        stream: is told of each trial.
        default: the plan by defaults, where `plan` begins with what is kept.

    Attributes:
        searches: by the kernel's name.
        per_launch_s: seconds of trials after a launch; more would look like a stage that makes no progress.
    """

    def __init__(self, plan: Plan, budget: Budget, seed: int, stream: EventStream, default: Plan | None = None) -> None:
        self.searches: dict[str, Search] = {}
        self.per_launch_s = LIVE_S
        self._plan = plan
        self._budget = budget
        self.stream = stream
        self._seed = seed
        by_default = () if default is None else (kernel for one in default.passes for kernel in one.kernels)
        self._default = {kernel.name: kernel.knobs.plain() for kernel in by_default}
        self._kernels: dict[tuple[str, Candidate], Kernel] = {}
        self._warm: set[tuple[str, Candidate]] = set()
        self._adopted: dict[str, Candidate] = {}
        self._pairs = PairedTrials(least_s=1e-9)

    @property
    def is_done(self) -> bool:
        """True when nothing is left to be learnt of the kernels that have worked."""
        return all(search.ask() is None for search in self.searches.values())

    def launched(self, step: RegionStep, launch: Callable[[Kernel], float]) -> Kernel | None:
        """See `KernelTuner.launched`."""
        kernel = step.kernel
        assert kernel is not None
        search, spent_s = self._search(step, kernel), self._budget.spent_s

        def may_try(_: Candidate) -> bool:
            return self._budget.is_open(KERNELS_SHARE) and self._budget.spent_s - spent_s < self.per_launch_s

        tried = try_candidates(
            kernel.name,
            search,
            self._pairs,
            self._budget,
            partial(self._seconds, step, launch),
            self.stream,
            may_try=may_try,
            is_same=partial(self._is_same, step),
            loses_device=True,
        )
        if tried:
            # The batch goes on with what the kernel in use has stored, not with what a candidate has.
            launch(self._variant(step, self._adopted.get(kernel.name, ())))
        best = search.best
        if best == self._adopted.get(kernel.name, ()):
            return None
        self._adopted[kernel.name] = best
        return self._variant(step, best)

    def _search(self, step: RegionStep, kernel: Kernel) -> Search:
        if kernel.name not in self.searches:
            pinned = self._plan.pinned.of_kernel(kernel.name).plain()
            capabilities = self._plan.backend.placements[step.placement].capabilities
            space = {k: values for k, values in lower.candidates(kernel, capabilities).items() if k not in pinned}
            default = {name: value for name, value in kernel.knobs.plain().items() if name in space}
            first = differing(default, self._default.get(kernel.name, {}))
            self.searches[kernel.name] = Climb(space, default, self._seed + len(self.searches), first=[first])
        return self.searches[kernel.name]

    def _variant(self, step: RegionStep, candidate: Candidate) -> Kernel:
        assert step.kernel is not None
        key = (step.kernel.name, candidate)
        if key not in self._kernels:
            self._kernels[key] = variant(self._plan, step, KernelKnobs.from_plain(dict(candidate)))
        return self._kernels[key]

    def _is_same(self, step: RegionStep, candidate: Candidate) -> bool:
        """Check whether a candidate's kernel is the default one, launched alike: as where a tile is never full."""
        kernel, default = self._variant(step, candidate), step.kernel
        assert default is not None
        beside = (getattr(kernel.knobs, name) == getattr(default.knobs, name) for name in lower.KNOBS_BESIDE_BODIES)
        return replace(kernel, knobs=default.knobs) == default and all(beside)

    def _seconds(self, step: RegionStep, launch: Callable[[Kernel], float], candidate: Candidate) -> float:
        """Return the seconds of a launch with a candidate."""
        kernel = self._variant(step, candidate) if candidate else step.kernel
        assert kernel is not None
        if (kernel.name, candidate) not in self._warm:
            # A first launch also makes machine code on some drivers.
            launch(kernel)
            self._warm.add((kernel.name, candidate))
        return launch(kernel)


class TunedBackend(Backend):
    """A backend whose executors ask a tuner."""

    def __init__(self, backend: Backend, tuner: KernelTrials) -> None:
        self.description = backend.description
        self._backend = backend
        self._tuner = tuner

    @property
    def placements(self) -> Sequence[Backend]:
        """See `Backend.placements`."""
        return self._backend.placements

    def prepare(self, plan: ExecutionPlan, placement: int = 0) -> None:
        """Compile for the tuned backend; see `Backend.prepare`."""
        self._backend.prepare(plan, placement)

    def measure(self, room_bytes: int) -> Limits | None:
        """See `Backend.measure`."""
        return self._backend.measure(room_bytes)

    def executor(self, plan: ExecutionPlan, pass_index: int, resident: dict[int, np.ndarray]) -> Executor:
        """See `Backend.executor`."""
        made = self._backend.executor(plan, pass_index, resident)
        made.tuner = self._tuner
        return made
