"""The live record of a run: written by its stages, read by metrics, progress and watchdog."""

from __future__ import annotations

import time
from collections.abc import Mapping

import trio

from flowcompute.elements.policies import ErrorPolicy, SkipCounter, skipped_by_policy
from flowcompute.engine import Executor
from flowcompute.metrics import (
    Checkpoints,
    Metrics,
    NodeMetrics,
    Progress,
    Skipped,
    Snapshot,
    Track,
)
from flowcompute.runtime.channels.batch_pool import MemoryTracker
from flowcompute.runtime.channels.pass_record import PassRecord
from flowcompute.runtime.events import BATCHES, CheckpointRecord, Keep, StageHistory, StepsHistory, launch_track
from flowcompute.schedule import LaunchLog


class RunRecord:
    """Everything that is known of a run while it runs and afterwards.

    Args:
        total_items: records of all passes, None while unknown.
        room_bytes: what results of unknown length may take.
        keep: how much history is kept of each stage; None for none, and launches are not counted.
    """

    def __init__(self, total_items: int | None, room_bytes: int, keep: Keep | None = None) -> None:
        self._keep = keep
        self.tracker = MemoryTracker(room_bytes)
        self.passes: list[PassRecord] = []
        self.skip_counters: list[SkipCounter] = []
        self.checkpoints = CheckpointRecord()
        self._earlier_items = 0
        self._earlier_bytes = 0
        self._earlier_s = 0.0
        self.total_items = total_items
        self._began_s = time.perf_counter()
        self._ended_s: float | None = None

    def begin_pass(self, one: PassRecord, executor: Executor) -> None:
        """A pass begins; called in the trio thread."""
        self.passes.append(one)
        if self._keep is None:
            return
        keep, zero_s = self._keep, trio.current_time() - self.seconds
        for stage in one.stages:
            stage.history = StageHistory(keep, zero_s, lambda: self.seconds)
        executor.log = LaunchLog(keep.spans)
        one.compute.keep(StepsHistory(keep, lambda: self.seconds), executor.log)

    def resume(self, before: Progress) -> None:
        """Count on from what earlier runs of the job have done, so that pace and time left are those of the job."""
        self._earlier_items, self._earlier_bytes, self._earlier_s = before.items, before.bytes_read, before.seconds

    def end(self, *, complete: bool) -> None:
        """Stop the clock; a complete run knows how many items there were."""
        self._ended_s = time.perf_counter()
        if complete:
            self.total_items = self.items

    @property
    def items(self) -> int:
        """Records computed."""
        return self._earlier_items + sum(each.compute.items for each in tuple(self.passes))

    @property
    def launches(self) -> int:
        """Kernels launched."""
        return sum(each.compute.launches for each in tuple(self.passes))

    @property
    def notes(self) -> tuple[str, ...]:
        """What was done otherwise than planned."""
        return tuple(dict.fromkeys(note for each in tuple(self.passes) for note in each.compute.notes))

    @property
    def bytes_read(self) -> int:
        """Bytes that sources gave."""
        return self._earlier_bytes + sum(record.bytes_out for each in tuple(self.passes) for record in each.sources)

    @property
    def bytes_written(self) -> int:
        """Bytes that destinations took."""
        return sum(record.bytes_in for each in tuple(self.passes) for record in each.sinks)

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
        """What its checkpoints have cost."""
        return self.checkpoints.row(self._now_s)

    @property
    def _now_s(self) -> float:
        return time.perf_counter() if self._ended_s is None else self._ended_s

    @property
    def progress(self) -> Progress:
        """How far it is."""
        dropped = sum(one.count for one in self.skipped().values())
        return Progress(self.items, self.total_items, self.bytes_read, self.job_s, self._ended_s is not None, dropped)

    def skipped(self) -> dict[ErrorPolicy, Skipped]:
        """What each element has dropped that has begun."""
        return skipped_by_policy(tuple(self.skip_counters))

    def metrics(self, aliases: Mapping[str, str]) -> Metrics:
        """One row for each stage of the plan; a stage that ran in several passes has the sum."""
        rows: dict[str, NodeMetrics] = {}
        for each in tuple(self.passes):
            for row in each.rows():
                earlier = rows.get(row.name)
                rows[row.name] = row if earlier is None else _sum(earlier, row)
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
        """All of it."""
        return Snapshot(
            self.metrics(aliases),
            self.progress,
            self.kept,
            self.bottleneck,
            self.launches,
            self.bytes_written,
            self.tracker.peak_bytes,
        )

    def tracks(self) -> list[Track]:
        """For a trace: a track for each stage of each pass and for the device's queue, as far as spans are kept."""
        tracks = []
        passes = tuple(self.passes)
        for number, each in enumerate(passes, 1):
            where = f" (pass {number})" if len(passes) > 1 else ""
            tracks += [track for stage in each.stages if (track := stage.track(where)) is not None]
            if each.compute.log is not None and each.compute.log.kept.count:
                tracks.append(launch_track(f"device queue{where}", each.compute.log, self._began_s))
        return tracks


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
        recent=(*a.recent, *b.recent)[-BATCHES:],
    )
