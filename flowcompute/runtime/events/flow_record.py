"""The numbers of a flow: told by whoever computes, read by metrics.

One thread at a time tells; others read numbers that are each one assignment, so nobody waits.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from flowcompute.engine import Executor
from flowcompute.metrics import Checkpoints, Metrics, NodeMetrics, Progress, Snapshot
from flowcompute.observe import (
    BatchPassed,
    EventStream,
    LaunchTimed,
    Observe,
    Observers,
    PassBegun,
    RunEnded,
    RunView,
    Stage,
    StageEntered,
    StageState,
    WorkMarked,
)
from flowcompute.runtime.events.report_facts import about
from flowcompute.runtime.events.skip_totals import SkipTotals
from flowcompute.runtime.events.stage_reporter import StageReporter
from flowcompute.runtime.events.stage_totals import StageTotals
from flowcompute.schedule import Launch, LaunchLog
from flowcompute.schedule.explain import Plan


class FlowRecord:
    """The numbers of a flow since it was opened, summed up from its events.

    Seconds in which nobody sent anything count as those that its feeds were waited for.

    Args:
        plan: one pass over feeds.
        executor: what computes; with metrics its launches are counted.
        observe: what is to be known.

    Attributes:
        observers: those who write it elsewhere, from `open` to their `close`.
        skips: the records that its elements have dropped.
    """

    def __init__(self, plan: Plan, executor: Executor, observe: Observe) -> None:
        self._plan = plan
        self._executor = executor
        (one,) = plan.passes
        self._stream = EventStream()
        self.skips = SkipTotals(self._stream)
        self._began_s = time.perf_counter()
        self._ended_s: float | None = None
        self._feeds = {stage.name: self._stage(stage.name) for stage in one.sources}
        self._results = {sink.name: self._stage(sink.name) for sink in one.sinks}
        self._compute = self._stage("compute")
        self._metrics = observe.metrics
        seconds = self._seconds if observe.metrics else None
        stages = (*self._feeds.values(), *self._results.values())
        self._totals: dict[Stage, StageTotals] = {stage: StageTotals(stage.name, seconds) for stage in stages}
        self._busy_s = 0.0
        self._waiting = 0
        self._peak_bytes = 0
        self._stream.subscribe(
            {
                StageEntered: lambda event: self._totals[event.stage].entered(event),
                BatchPassed: lambda event: self._totals[event.stage].passed(event),
                WorkMarked: self._worked,
                RunEnded: self._ended,
            }
        )
        view = RunView(snapshot=self.snapshot, seconds=self._seconds, about=self._about, tracks=2)
        self.observers = Observers(observe, view, self._stream)

    def _stage(self, name: str) -> StageReporter:
        return StageReporter(name, stream=self._stream, clock=time.perf_counter, zero_s=self._began_s)

    def _worked(self, event: WorkMarked) -> None:
        self._busy_s += event.ended_s - event.began_s

    # -- told ---------------------------------------------------------------------------------------------

    def open(self) -> None:
        """Begin to tell those who write it elsewhere; called before the executor is opened.

        Raises:
            DestinationError, RunError: if a file cannot be written, or a port not be had.
        """
        self.observers.open()
        self._stream.emit(PassBegun((self._compute,)))
        if self._metrics:
            traced = self._stream.takers(LaunchTimed)
            self._executor.log = LaunchLog(self._launched if traced else None)

    def begin(self) -> None:
        """Start the clock: the flow is open."""
        self._began_s = time.perf_counter()
        for stage in (*self._totals, self._compute):
            assert isinstance(stage, StageReporter)
            stage.zero_s = self._began_s

    def end(self, error: BaseException | None) -> None:
        """Tell that the flow has been closed: after an error, if it failed. Harmless when called again."""
        if self._ended_s is None:
            self._stream.emit(RunEnded(self.seconds, error))

    def _ended(self, event: RunEnded) -> None:
        self._ended_s = self._began_s + event.at_s

    def sent(self, arrays: Mapping[str, np.ndarray], began_s: float, doing: str) -> None:
        """Tell of records that were computed with since `began_s`, on the clock of `time.perf_counter`."""
        self._compute.mark(doing, began_s)
        for name, array in arrays.items():
            self._count(self._feeds[name], len(array), 0, array.nbytes)

    def wait(self, results: int, size_bytes: int) -> None:
        """Note that so many results wait to be received, of so many bytes."""
        self._waiting, self._peak_bytes = results, max(self._peak_bytes, size_bytes)

    def gave(self, name: str, items: int, size_bytes: int) -> None:
        """Tell of a result that was given away."""
        self._count(self._results[name], items, size_bytes, 0)

    @staticmethod
    def _count(stage: StageReporter, items: int, bytes_in: int, bytes_out: int) -> None:
        stage.passed(items, bytes_in, bytes_out)
        # It neither waits nor works: who sends and who receives does.
        stage.enter(StageState.IDLE)

    def _launched(self, launch: Launch) -> None:
        ended_s = launch.ended_s - self._began_s
        self._stream.emit(LaunchTimed(self._compute, launch.step, ended_s, launch.device_s))

    # -- read ---------------------------------------------------------------------------------------------

    @property
    def seconds(self) -> float:
        """Seconds since it was opened, or from then to its end."""
        return (time.perf_counter() if self._ended_s is None else self._ended_s) - self._began_s

    def _seconds(self) -> float:
        return self.seconds

    @property
    def progress(self) -> Progress:
        """The records computed; nobody knows how many are to come."""
        items = sum(self._totals[feed].items for feed in self._feeds.values())
        size_bytes = sum(self._totals[feed].bytes_out for feed in self._feeds.values())
        done, dropped = self._ended_s is not None, self.skips.count
        return Progress(items, None, size_bytes, self.seconds, done, dropped, self._given_bytes)

    @property
    def _given_bytes(self) -> int:
        return sum(self._totals[result].bytes_in for result in self._results.values())

    @property
    def metrics(self) -> Metrics:
        """A row for each feed, region and result."""
        wait_s = max(self.seconds - self._busy_s, 0.0)
        rows: dict[str, NodeMetrics] = {}
        for name, feed in self._feeds.items():
            rows[name] = replace(self._totals[feed].row("source"), wait_in_s=wait_s)
        log, traffic = self._executor.log, self._executor.step_traffic()
        for name, (batches, busy_s) in self._executor.step_seconds().items():
            items, bytes_in, bytes_out = traffic.get(name, (0, 0, 0))
            waited_s = wait_s if batches else 0.0
            made = NodeMetrics(name, "region", items, batches, bytes_in, bytes_out, waited_s, busy_s, 0.0)
            own = None if log is None else log.steps.get(name)
            if own is not None:
                made = replace(made, launches=own.launches, device_s=own.estimate_s, compile_s=own.compile_s)
            rows[name] = made
        for name, result in self._results.items():
            made = self._totals[result].row("destination")
            rows[name] = replace(made, queued=self._waiting, peak_bytes=self._peak_bytes)
        places = self._plan.places
        named = {name: replace(row, place=places.get(name, "")) for name, row in rows.items()}
        return Metrics(named, self._plan.aliases)

    @property
    def bottleneck(self) -> str | None:
        """The busiest region; a feed, where nobody has sent anything for longer than was computed."""
        if not self.progress.items:
            return None
        steps = self._executor.step_seconds()
        busiest = max(steps, key=lambda name: steps[name][1], default=None)
        return next(iter(self._feeds)) if busiest is None or self.seconds > 2 * self._busy_s else busiest

    def snapshot(self) -> Snapshot:
        """Return all of it."""
        return Snapshot(
            self.metrics,
            self.progress,
            Checkpoints(),
            self.bottleneck,
            self._executor.launches,
            self._given_bytes,
            self._peak_bytes,
        )

    def _about(self) -> Mapping[str, Any]:
        return about(self._plan, self.metrics, self._plan.strategy, self._plan.tuning)
