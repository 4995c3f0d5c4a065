"""The live numbers of a flow: written by whoever computes, read by metrics.

One thread at a time writes; others read numbers that are each one assignment, so nobody waits.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from flowcompute.elements.policies import skipped_by_policy
from flowcompute.engine import Executor
from flowcompute.metrics import BatchMetrics, Checkpoints, Metrics, NodeMetrics, Progress, Snapshot, Span, Track
from flowcompute.observe import Observe, Observers
from flowcompute.ring import Ring
from flowcompute.runtime.events.history import BATCHES, Totals, batches_of, launch_track
from flowcompute.runtime.events.report_facts import about
from flowcompute.schedule import LaunchLog
from flowcompute.schedule.explain import Plan


class _Row:
    """Records that a feed was sent, or that were received of a result, with the newest batches."""

    def __init__(self) -> None:
        self.items = 0
        self.batches = 0
        self.bytes = 0
        self.totals: Ring[tuple[int, int, int, float]] = Ring(BATCHES + 1)
        self.totals.add((0, 0, 0, 0.0))

    def count(self, items: int, size_bytes: int, now_s: float) -> None:
        self.items, self.batches, self.bytes = self.items + items, self.batches + 1, self.bytes + size_bytes
        self.totals.add((self.items, self.batches, self.bytes, now_s))


class FlowRecord:
    """What a flow has done since it was opened.

    Seconds in which nobody sent anything count as those that its feeds were waited for.

    Args:
        plan: one pass over feeds.
        executor: what computes; with metrics its launches are counted.
        observe: what is to be known.

    Attributes:
        observers: those who write it elsewhere, from `open` to their `close`.
    """

    def __init__(self, plan: Plan, executor: Executor, observe: Observe) -> None:
        self._plan = plan
        self._executor = executor
        (one,) = plan.passes
        self._feeds = {stage.name: _Row() for stage in one.sources}
        self._results = {sink.name: _Row() for sink in one.sinks}
        self._aliases = plan.aliases
        self._busy_s = 0.0
        self._began_s = time.perf_counter()
        self._ended_s: float | None = None
        self._keeps = observe.metrics
        self._spans: Ring[Span] = Ring(observe.spans // 2)
        self._waiting = 0
        self._peak_bytes = 0
        if observe.metrics:
            executor.log = LaunchLog(observe.spans // 2)
        self.observers = Observers(observe, self.snapshot, self.tracks, self._about)

    # -- written ------------------------------------------------------------------------------------------

    def begin(self) -> None:
        """The flow is open."""
        self._began_s = time.perf_counter()

    def end(self) -> None:
        """It is closed: the clock stands still."""
        self._ended_s = self._ended_s or time.perf_counter()

    def sent(self, arrays: Mapping[str, np.ndarray], began_s: float, doing: str) -> None:
        """Records were computed with since `began_s`, on the clock of `time.perf_counter`."""
        now_s = time.perf_counter()
        self._busy_s += now_s - began_s
        for name, array in arrays.items():
            self._feeds[name].count(len(array), array.nbytes, now_s - self._began_s)
        if self._keeps:
            self._spans.add(Span(doing, began_s - self._began_s, now_s - self._began_s))

    def wait(self, results: int, size_bytes: int) -> None:
        """So many results wait to be received, of so many bytes."""
        self._waiting, self._peak_bytes = results, max(self._peak_bytes, size_bytes)

    def gave(self, name: str, items: int, size_bytes: int) -> None:
        """A result was given away."""
        self._results[name].count(items, size_bytes, self.seconds)

    # -- read ---------------------------------------------------------------------------------------------

    @property
    def seconds(self) -> float:
        """Seconds since it was opened, or from then to its end."""
        return (time.perf_counter() if self._ended_s is None else self._ended_s) - self._began_s

    @property
    def progress(self) -> Progress:
        """How much was computed; nobody knows how much is to come."""
        items = sum(row.items for row in self._feeds.values())
        size_bytes = sum(row.bytes for row in self._feeds.values())
        dropped = sum(one.count for one in skipped_by_policy(self._executor.skip_counters).values())
        return Progress(items, None, size_bytes, self.seconds, self._ended_s is not None, dropped)

    @property
    def metrics(self) -> Metrics:
        """A row for each feed, region and result."""
        wait_s = max(self.seconds - self._busy_s, 0.0)
        rows: dict[str, NodeMetrics] = {}
        for name, row in self._feeds.items():
            recent = self._recent(row, gives=True)
            rows[name] = NodeMetrics(
                name, "source", row.items, row.batches, 0, row.bytes, wait_s, 0.0, 0.0, recent=recent
            )
        log, traffic = self._executor.log, self._executor.step_traffic()
        for name, (batches, busy_s) in self._executor.step_seconds().items():
            items, bytes_in, bytes_out = traffic.get(name, (0, 0, 0))
            made = NodeMetrics(name, "region", items, batches, bytes_in, bytes_out, wait_s, busy_s, 0.0)
            own = None if log is None else log.steps.get(name)
            if own is not None:
                made = replace(made, launches=own.launches, device_s=own.estimate_s, compile_s=own.compile_s)
            rows[name] = made
        for name, row in self._results.items():
            recent = self._recent(row, gives=False)
            made = NodeMetrics(name, "destination", row.items, row.batches, row.bytes, 0, 0.0, 0.0, 0.0, recent=recent)
            rows[name] = replace(made, queued=self._waiting, peak_bytes=self._peak_bytes)
        return Metrics(rows, self._aliases)

    def _recent(self, row: _Row, *, gives: bool) -> tuple[BatchMetrics, ...]:
        if not self._keeps:
            return ()
        noted: list[Totals] = [
            (items, batches, 0 if gives else size, size if gives else 0, 0.0, 0.0, 0.0, now_s)
            for items, batches, size, now_s in row.totals.items()
        ]
        return batches_of(noted)

    @property
    def bottleneck(self) -> str | None:
        """The busiest region; a feed, where nobody has sent anything for longer than was computed."""
        if not self.progress.items:
            return None
        steps = self._executor.step_seconds()
        busiest = max(steps, key=lambda name: steps[name][1], default=None)
        return next(iter(self._feeds)) if busiest is None or self.seconds > 2 * self._busy_s else busiest

    def snapshot(self) -> Snapshot:
        """All of it."""
        given = sum(row.bytes for row in self._results.values())
        return Snapshot(
            self.metrics,
            self.progress,
            Checkpoints(),
            self.bottleneck,
            self._executor.launches,
            given,
            self._peak_bytes,
        )

    def tracks(self) -> Sequence[Track]:
        """For a trace: what was computed when, and the device's queue."""
        tracks = [Track("compute", self._spans.items(), self._spans.lost)]
        log = self._executor.log
        if log is not None and log.kept.count:
            tracks.append(launch_track("device queue", log, self._began_s))
        return tracks

    def _about(self) -> Mapping[str, Any]:
        return about(self._plan, self.metrics, self._plan.strategy, self._plan.tuning)
