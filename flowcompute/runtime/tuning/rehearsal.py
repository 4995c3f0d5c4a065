"""Rehearsals: a job's beginning, run again with another strategy and all results dropped, for its time."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace

from flowcompute.elements import Kind
from flowcompute.elements.streams import ScanFunction
from flowcompute.engine import PlannedJob
from flowcompute.errors import FlowError
from flowcompute.metrics import NodeMetrics
from flowcompute.runtime.options import RunOptions
from flowcompute.runtime.run import Run, start
from flowcompute.schedule import Pass, SinkStage, make_plan, policies
from flowcompute.schedule.explain import Plan
from flowcompute.sinks import discard
from flowcompute.sources import IterateSource
from flowcompute.strategy import Strategy

SHORT_S = 0.25
"""Seconds of a rehearsal: long against the start of a run, short against people's patience."""


def why_not_rehearsed(plan: Plan) -> str | None:
    """Why a job is never run again, in words; None where it can be."""
    steps = any(isinstance(node.element, ScanFunction) for node in plan.graph.nodes)
    if steps or policies(plan.graph) or any(node.kind is Kind.HOST for node in plan.graph.nodes):
        return "it calls functions of yours, which are called once for each batch only"
    for source in (source for one in plan.passes for source in one.sources):
        if isinstance(source.element, IterateSource):
            return f"{source.name} iterates over what is yours"
        if not source.element.rereadable:
            return f"{source.name} can be read once"
    return None


class Rehearsals:
    """Times strategies on the first records of a job.

    Args:
        job: as it is run by default.
        cancelled: whether to stop.

    Attributes:
        rows: what the stages did in the first one.
    """

    def __init__(self, job: PlannedJob, cancelled: Callable[[], bool]) -> None:
        self._job = job
        self._cancelled = cancelled
        self._items: int | None = None
        self.rows: Mapping[str, NodeMetrics] = {}

    def seconds(self, strategy: Strategy) -> float:
        """Seconds for a record; the first call settles how many records all of them take.

        Raises:
            FlowError: if the job cannot be run with this strategy.
        """
        job = self.planned(strategy)
        if self._items is None:
            # Once for the programs and the page cache, and to see how far one comes in that time.
            self._items = self.run(job, lambda _, seconds: seconds > SHORT_S)[0]
        limit = self._items
        items, seconds = self.run(job, lambda items, _: items >= limit)
        return seconds / max(items, 1)

    def planned(self, strategy: Strategy) -> PlannedJob:
        """Return the plan of the job with this strategy, whose results are dropped."""
        one = self._job.plan
        config = replace(one.config, resumable=False)
        made = make_plan(one.graph, config, strategy, one.backend, asked=one.asked, shaping=one.shaping)
        return replace(self._job, plan=replace(made, passes=tuple(map(_dropping, made.passes))))

    def run(self, job: PlannedJob, enough: Callable[[int, float], bool]) -> tuple[int, float]:
        """Run until enough records have been computed, or to the end; gives how many, and the seconds.

        Args:
            job: from `planned`.
            enough: of the records so far and the seconds so far, asked after each batch.
        """
        reached: list[tuple[int, float]] = []

        def look(run: Run) -> None:
            so_far = run.progress.items, time.perf_counter() - began
            if not reached and (self._cancelled() or enough(*so_far)):
                reached.append(so_far)
                run.stop()

        began = time.perf_counter()
        run = start(job, RunOptions(progress=False, on_batch=look))
        try:
            run.wait()
        except FlowError:
            if not reached:
                raise
        self.rows = self.rows or run.metrics
        return reached[0] if reached else (run.progress.items, time.perf_counter() - began)


def _dropping(one: Pass) -> Pass:
    """Return a pass whose results are dropped; what later passes read is kept."""
    return replace(one, sinks=tuple(_dropped(sink) for sink in one.sinks))


def _dropped(sink: SinkStage) -> SinkStage:
    return sink if sink.root == SinkStage.NO_ROOT else replace(sink, element=discard(name=sink.name))
