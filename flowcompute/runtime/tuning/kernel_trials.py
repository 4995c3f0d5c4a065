"""Knobs of kernels, tried on the batches that a job computes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from flowcompute.engine import Backend, Executor
from flowcompute.errors import DeviceError, DeviceFullError, FlowError
from flowcompute.ir import Kernel
from flowcompute.lower import KNOBS_BESIDE_BODIES, candidates
from flowcompute.runtime.tuning.trial_budget import Budget
from flowcompute.schedule import ExecutionPlan, RegionStep
from flowcompute.schedule.explain import Plan, variant
from flowcompute.strategy import Candidate, Climb, KernelKnobs, Limits, Search

LIVE_S = 1.0
"""Seconds that kernels may be tried for on one batch, while the job runs."""

KERNELS_SHARE = 0.5
"""What of it kernels may have; the rest is for the run."""


class KernelTrials:
    """Looks for better knobs of each kernel of a plan, on the batches that it computes; a `KernelTuner`.

    Args:
        plan: what is run.
        budget: seconds for it.
        seed: of the searches.
        default: the plan by defaults, where `plan` begins with what is kept.

    Attributes:
        searches: by the kernel's name.
        problems: what could not be tried, and why.
        per_launch_s: seconds of trials after a launch; more would look like a stage that makes no progress.
    """

    def __init__(self, plan: Plan, budget: Budget, seed: int, default: Plan | None = None) -> None:
        self.searches: dict[str, Search] = {}
        self.problems: list[str] = []
        self.per_launch_s = LIVE_S
        self._plan = plan
        self._budget = budget
        self._seed = seed
        by_default = () if default is None else (kernel for one in default.passes for kernel in one.kernels)
        self._default = {kernel.name: kernel.knobs.plain() for kernel in by_default}
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
        search, spent_s = self._search(step, kernel), self._budget.spent_s
        tried = False
        while self._budget.is_open(KERNELS_SHARE) and self._budget.spent_s - spent_s < self.per_launch_s:
            candidate = search.ask()
            if candidate is None:
                break
            try:
                if self._budget.measure(partial(self._is_same, step, candidate)):
                    search.skip(candidate)
                    continue
                tried = True
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

    def _search(self, step: RegionStep, kernel: Kernel) -> Search:
        if kernel.name not in self.searches:
            pinned = self._plan.pinned.of_kernel(kernel.name).plain()
            capabilities = self._plan.backend.placements[step.placement].capabilities
            space = {k: values for k, values in candidates(kernel, capabilities).items() if k not in pinned}
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
        """Whether a candidate's kernel is the default one, launched in the same way: as where a tile is never full."""
        kernel, default = self._variant(step, candidate), step.kernel
        assert default is not None
        beside = (getattr(kernel.knobs, name) == getattr(default.knobs, name) for name in KNOBS_BESIDE_BODIES)
        return replace(kernel, knobs=default.knobs) == default and all(beside)

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


def differing(knobs: Mapping[str, Any], others: Mapping[str, Any]) -> Candidate:
    """What others have in place of these knobs."""
    return tuple(sorted((name, others[name]) for name in knobs if others.get(name, knobs[name]) != knobs[name]))


def said(candidate: Candidate) -> str:
    """A candidate in words."""
    return ", ".join(f"{name}={value}" for name, value in candidate)
