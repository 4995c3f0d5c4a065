"""The strategy of a run, and who looks for a better one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Protocol

from flowcompute.metrics import NodeMetrics
from flowcompute.planner.chosen import complete_strategy
from flowcompute.planner.plan import Plan
from flowcompute.strategy import Strategy, Tuning


class RunTuner(Protocol):
    """Looks for a better strategy while a run works; `plan` is what is run meanwhile."""

    plan: Plan

    def finish(self, cancelled: Callable[[], bool], rows: Mapping[str, NodeMetrics]) -> tuple[Strategy, Tuning]:
        """After the end of a complete run: the strategy for the next one, and how it was found.

        Args:
            cancelled: whether to stop.
            rows: what the stages of the run did.
        """


class Chosen:
    """The strategy of one run.

    Attributes:
        plan: what is to be run: the plan, or what a tuner has made of it.
        strategy: all knobs; after `finish` those that were kept.
        tuning: how they were found.
    """

    def __init__(self, plan: Plan, tuner: RunTuner | None) -> None:
        self.plan = plan if tuner is None else tuner.plan
        self.strategy, self.tuning = complete_strategy(plan), plan.tuning
        self._tuner = tuner

    def finish(self, cancelled: Callable[[], bool], rows: Mapping[str, NodeMetrics]) -> None:
        """Let the tuner try what is left; the results are there, and nothing that goes wrong now takes them away."""
        if self._tuner is None:
            return
        try:
            self.strategy, self.tuning = self._tuner.finish(cancelled, rows)
        except Exception as error:  # noqa: BLE001 - told in `tuning`
            note = f"tuning failed: {type(error).__name__}: {error}"
            self.tuning = replace(self.tuning, notes=(*self.tuning.notes, note))
