"""The numbers of a run, summed up from its events; read by metrics, progress and checkpoints."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from flowcompute.elements.policies import ErrorPolicy
from flowcompute.engine import Executor
from flowcompute.imports import LateModule
from flowcompute.metrics import (
    Checkpoints,
    Metrics,
    NodeMetrics,
    PassProgress,
    Progress,
    Skipped,
    Snapshot,
)
from flowcompute.observe import (
    BatchPassed,
    EventStream,
    LaunchTimed,
    PassBegun,
    RunEnded,
    Stage,
    StageEntered,
    StepsComputed,
)
from flowcompute.runtime.channels.batch_pool import MemoryTracker
from flowcompute.runtime.channels.pass_record import PassRecord
from flowcompute.runtime.events import BATCHES, CheckpointTotals, ComputeTotals, SkipTotals, StageReporter, StageTotals
from flowcompute.schedule import Launch, LaunchLog

if TYPE_CHECKING:
    import trio
else:
    trio = LateModule("trio")


class RunRecord:
    """Everything that is known of a run while it runs and afterwards.

    Args:
        total_items: records of all passes, None while unknown.
        lengths: records of each pass, None of one while unknown.
        streams: that nothing joins, of each pass; 1 of all by default.
        weights: records that a record of each pass stands for; 1 of all by default.
        room_bytes: what results of unknown length may take.
        metrics: whether the last batches of each stage are kept, and launches counted.
        places: the user's lines of each stage, by its name.
        stream: the events of the run, where others tell of it too.

    Attributes:
        stream: the events of the run.
        skips: the records that its elements have dropped.
    """

    def __init__(
        self,
        total_items: int | None,
        room_bytes: int,
        *,
        metrics: bool = False,
        places: Mapping[str, str] | None = None,
        lengths: Sequence[int | None] = (),
        streams: Sequence[int] = (),
        weights: Sequence[float] = (),
        stream: EventStream | None = None,
    ) -> None:
        self._metrics = metrics
        self._places = places or {}
        self._lengths = tuple(lengths) or (total_items,)
        self._streams = tuple(streams) or (1,) * len(self._lengths)
        self._weights = tuple(weights) or (1.0,) * len(self._lengths)
        self._pass = 0
        self.stream = EventStream() if stream is None else stream
        self.tracker = MemoryTracker(room_bytes)
        self.passes: list[PassRecord] = []
        self.skips = SkipTotals(self.stream)
        self._checkpoints = CheckpointTotals()
        self._totals: dict[Stage, StageTotals] = {}
        self._steps: dict[Stage, ComputeTotals] = {}
        self._earlier_items = 0
        self._earlier_bytes = 0
        self._earlier_written = 0
        self._earlier_s = 0.0
        self.total_items = total_items
        self._began_s = time.perf_counter()
        self._ended_s: float | None = None
        self.stream.subscribe(
            {
                StageEntered: lambda event: self._totals[event.stage].entered(event),
                BatchPassed: lambda event: self._totals[event.stage].passed(event),
                StepsComputed: lambda event: self._steps[event.stage].computed(event),
                RunEnded: self._ended,
                **self._checkpoints.takes(),
            }
        )

    def begin_pass(
        self,
        sources: Sequence[str],
        label: str,
        sinks: Sequence[str],
        executor: Executor,
        index: int = 0,
        clock: Callable[[], float] = lambda: trio.current_time(),  # noqa: PLW0108 - trio is imported by its first use
    ) -> PassRecord:
        """Begin a pass, and return its stages; called in the thread of its clock.

        Args:
            index: of the pass, from 0.
            sources, sinks: names of stages.
            label: what errors call the compute stage.
            executor: what computes.
            clock: of its stages, in seconds.
        """
        zero_s = clock() - self.seconds

        def stage(name: str, label: str | None = None) -> StageReporter:
            return StageReporter(name, label, self.stream, clock=clock, zero_s=zero_s)

        transfers = (stage("upload"), stage("download")) if executor.in_flight > 1 else None
        seconds = self._seconds if self._metrics else None
        one = PassRecord([*map(stage, sources)], stage("compute", label), [*map(stage, sinks)], transfers, seconds)
        self._totals.update(one.totals.items())
        self._steps[one.compute] = one.steps
        self.passes.append(one)
        self._pass = index
        self.stream.emit(PassBegun(tuple(one.stages)))
        if self._metrics:
            traced = self.stream.takers(LaunchTimed)
            executor.log = one.steps.log = LaunchLog(partial(self._launched, one.compute) if traced else None)
        return one

    def _launched(self, stage: StageReporter, launch: Launch) -> None:
        self.stream.emit(LaunchTimed(stage, launch.step, launch.ended_s - self._began_s, launch.device_s))

    def _seconds(self) -> float:
        return self.seconds

    def resume(self, before: Progress) -> None:
        """Count on from what earlier runs of the job have done, so that pace and time left are those of the job."""
        self._earlier_items, self._earlier_bytes, self._earlier_s = before.items, before.bytes_read, before.seconds
        self._earlier_written, self._pass = before.bytes_written, before.current.number - 1 if before.current else 0

    def end(self, error: BaseException | None) -> None:
        """Tell that the run has ended: completely, or with an error."""
        self.stream.emit(RunEnded(self.seconds, error))

    def _ended(self, event: RunEnded) -> None:
        """Stop the clock; a complete run knows how many items there were."""
        self._ended_s = self._began_s + event.at_s
        if event.error is None:
            self.total_items = self.items

    @property
    def items(self) -> int:
        """Records computed."""
        return self._earlier_items + sum(each.steps.items for each in tuple(self.passes))

    @property
    def launches(self) -> int:
        """Kernels launched."""
        return sum(each.steps.launches for each in tuple(self.passes))

    @property
    def notes(self) -> tuple[str, ...]:
        """The differences from the plan, in words."""
        return tuple(dict.fromkeys(note for each in tuple(self.passes) for note in each.steps.notes))

    @property
    def bytes_read(self) -> int:
        """Bytes that sources gave."""
        return self._earlier_bytes + sum(
            each.totals[one].bytes_out for each in tuple(self.passes) for one in each.sources
        )

    @property
    def bytes_written(self) -> int:
        """Bytes that destinations took."""
        return sum(each.totals[one].bytes_in for each in tuple(self.passes) for one in each.sinks)

    @property
    def seconds(self) -> float:
        """Seconds since the start, or from start to end."""
        return self._now_s - self._began_s

    @property
    def job_s(self) -> float:
        """Seconds of this run and of the earlier ones of the job."""
        return self._earlier_s + self.seconds

    @property
    def kept(self) -> Checkpoints:
        """The cost of its checkpoints."""
        return self._checkpoints.row(self._now_s)

    @property
    def _now_s(self) -> float:
        return time.perf_counter() if self._ended_s is None else self._ended_s

    @property
    def progress(self) -> Progress:
        """The progress."""
        current = self._current
        return Progress(
            self.items,
            self.total_items,
            self.bytes_read,
            self.job_s,
            self._ended_s is not None,
            self.skips.count,
            self._earlier_written + self.bytes_written,
            current,
            self._share(current),
        )

    def _share(self, current: PassProgress) -> float | None:
        """Return the fraction computed by the weights of passes; None where these are equal, and after the end."""
        lengths = [length for length in self._lengths if length is not None]
        if len({*self._weights}) == 1 or len(lengths) < len(self._lengths) or self.total_items == self.items:
            return None
        before = current.number - 1
        works = [length * weight for length, weight in zip(lengths, self._weights, strict=True)]
        done = sum(works[:before]) + current.items * self._weights[before]
        return min(done / sum(works), 1.0)

    @property
    def _current(self) -> PassProgress:
        """The progress of the pass that it is in."""
        index = min(self._pass, len(self._lengths) - 1)
        before, total = self._lengths[:index], self._lengths[index]
        if None not in before:
            items = self.items - sum(length for length in before if length is not None)
        else:
            items = self.passes[-1].steps.items if self.passes else 0
        if len(self._lengths) == 1:
            total = self.total_items
        return PassProgress(index + 1, len(self._lengths), max(items, 0), total, self._streams[index])

    def skipped(self) -> dict[ErrorPolicy, Skipped]:
        """Return what each element has dropped that has begun."""
        return self.skips.by_policy()

    def metrics(self, aliases: Mapping[str, str]) -> Metrics:
        """Return a row for each stage of the plan; a stage that ran in several passes has the sum."""
        rows: dict[str, NodeMetrics] = {}
        for each in tuple(self.passes):
            for row in each.rows():
                earlier = rows.get(row.name)
                named = replace(row, place=self._places.get(row.name, ""))
                rows[row.name] = named if earlier is None else _sum(earlier, named)
        edges = tuple(edge for each in tuple(self.passes) for edge in each.edge_rows())
        return Metrics(rows, aliases, edges)

    @property
    def bottleneck(self) -> str | None:
        """Name of the stage that the others waited for most; None before anything ran."""
        loads: dict[str, float] = {}
        for each in tuple(self.passes):
            for name, seconds in each.loads.items():
                loads[name] = loads.get(name, 0.0) + seconds
        return max(loads, key=lambda name: loads[name], default=None)

    def snapshot(self, aliases: Mapping[str, str]) -> Snapshot:
        """Return all of it."""
        return Snapshot(
            self.metrics(aliases),
            self.progress,
            self.kept,
            self.bottleneck,
            self.launches,
            self.bytes_written,
            self.tracker.peak_bytes,
        )


def _sum(a: NodeMetrics, b: NodeMetrics) -> NodeMetrics:
    return NodeMetrics(
        name=a.name,
        kind=a.kind,
        items=a.items + b.items,
        batches=a.batches + b.batches,
        bytes_in=a.bytes_in + b.bytes_in,
        bytes_out=a.bytes_out + b.bytes_out,
        wait_in_s=a.wait_in_s + b.wait_in_s,
        busy_s=a.busy_s + b.busy_s,
        wait_out_s=a.wait_out_s + b.wait_out_s,
        launches=a.launches + b.launches,
        device_s=a.device_s + b.device_s,
        compile_s=a.compile_s + b.compile_s,
        queued=a.queued + b.queued,
        credits=a.credits + b.credits,
        peak_bytes=max(a.peak_bytes, b.peak_bytes),
        passes=a.passes + b.passes,
        uneven=a.uneven or b.uneven or a.items * b.passes != b.items * a.passes,
        place=a.place,
        recent=(*a.recent, *b.recent)[-BATCHES:],
    )
