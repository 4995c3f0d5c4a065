"""The live records of a run: written by its stages, read by metrics, progress and watchdog.

Stages write numbers, other threads read them: each is one assignment, so no lock is needed
and watching costs the stages nothing.
"""

from __future__ import annotations

import enum
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import trio

from flowcompute.elements.policy import ErrorPolicy
from flowcompute.elements.tally import Tally, skipped_by_policy
from flowcompute.metrics import (
    Checkpoints,
    EdgeMetrics,
    Metrics,
    NodeKind,
    NodeMetrics,
    Progress,
    Skipped,
    Snapshot,
    Span,
    Track,
)
from flowcompute.planner.backend import Executor
from flowcompute.planner.launch_log import LaunchLog
from flowcompute.runtime.buffers import Ledger, Pool
from flowcompute.runtime.checkpoint_record import CheckpointRecord
from flowcompute.runtime.history import BATCHES, Keep, StageHistory, StepsHistory, launch_track

if TYPE_CHECKING:
    from flowcompute.runtime.channel import Channel


class State(enum.Enum):
    """What a stage does at a moment."""

    IDLE = "not started"
    INPUT = "waiting for input from"
    CREDIT = "waiting for a free buffer towards"
    OUTPUT = "waiting for output to be taken by"
    BUSY = "busy"
    PAUSED = "paused"
    DONE = "done"


WAITING = frozenset({State.INPUT, State.CREDIT, State.OUTPUT})

_REST = frozenset({State.IDLE, State.DONE})


class StageRecord:
    """What one stage does and has done.

    Attributes:
        name: of the source, of the destination, or "compute".
        label: what errors call it that name no element of their own.
        state, since: what it does now, and since when on trio's clock.
        detail: whom it waits for, or what it is busy with.
        records: the records it is busy with.
        history: what it did lately, where that is kept.
    """

    def __init__(self, name: str, label: str | None = None) -> None:
        self.name = name
        self.label = name if label is None else label
        self.state = State.IDLE
        self.detail = self._entered = ""
        self.records: tuple[int, int] | None = None
        self.since = trio.current_time()
        self.seconds = dict.fromkeys(State, 0.0)
        self.items = 0
        self.batches = 0
        self.bytes_in = 0
        self.bytes_out = 0
        self.history: StageHistory | None = None

    def enter(self, state: State, detail: str = "", records: tuple[int, int] | None = None) -> None:
        """Begin something else; called in the trio thread."""
        now = trio.current_time()
        self.seconds[self.state] += now - self.since
        if self.history is not None:
            self._note(self.history, now)
        self.state = state
        self.detail = self._entered = detail
        self.records = records
        self.since = now

    def passed(self, items: int, bytes_in: int, bytes_out: int) -> None:
        """Count a batch."""
        self.items += items
        self.batches += 1
        self.bytes_in += bytes_in
        self.bytes_out += bytes_out

    def describe(self, now: float) -> str:
        """What it does and for how long, in words."""
        text = f"{self.state.value} {self.detail}".rstrip()
        if self.records is not None:
            text += f" records {self.records[0]} to {self.records[1]}"
        if self.state is State.BUSY:
            text += " in a worker thread"
        return f"{text} for {now - self.since:.3g} s" if self.state is not State.DONE else text

    def _note(self, history: StageHistory, now: float) -> None:
        if history.traces and self.state not in _REST:
            history.spans.add(self._span(history, now))
        if self.batches != history.batches:
            counts = self.items, self.batches, self.bytes_in, self.bytes_out
            history.note((*counts, *_three(self.seconds), now - history.zero_s))

    def mark(self, name: str, began_s: float) -> None:
        """Show in the trace what was done until now, beside what the stage counts; called in the trio thread."""
        if self.history is not None and self.history.traces:
            self.history.spans.add(self.history.span(name, began_s, trio.current_time(), None))

    def _span(self, history: StageHistory, now: float) -> Span:
        """The state that it is in."""
        name = self._entered if self.state is State.BUSY else f"{self.state.value} {self.detail}".rstrip()
        return history.span(name, self.since, now, self.records)

    def track(self, where: str) -> Track | None:
        """Its spans, with the one that a failed run ended in."""
        history = self.history
        if history is None or not history.traces:
            return None
        open_end = () if self.state in _REST else (self._span(history, history.now_s),)
        return Track(self.name + where, (*history.spans.items(), *open_end), history.spans.lost)

    def spent(self) -> tuple[float, float, float]:
        """Seconds waiting for input, busy and waiting for output, where a history is kept up to now."""
        seconds, state, since = self.seconds.copy(), self.state, self.since
        if self.history is not None:
            seconds[state] += max(self.history.now_s - since, 0.0)
        return _three(seconds)

    def row(self, kind: NodeKind) -> NodeMetrics:
        """Its numbers."""
        wait_in_s, busy_s, wait_out_s = self.spent()
        return NodeMetrics(
            name=self.name,
            kind=kind,
            items=self.items,
            batches=self.batches,
            bytes_in=self.bytes_in,
            bytes_out=self.bytes_out,
            wait_in_s=wait_in_s,
            busy_s=busy_s,
            wait_out_s=wait_out_s,
            recent=() if self.history is None else self.history.recent,
        )


def _three(seconds: Mapping[State, float]) -> tuple[float, float, float]:
    return seconds[State.INPUT], seconds[State.BUSY], seconds[State.CREDIT] + seconds[State.OUTPUT]


class ComputeRecord(StageRecord):
    """The compute stage of one pass; also knows its steps.

    Attributes:
        steps: step name -> (batches, seconds busy), as of the last batch.
        launches: kernels launched so far.
        notes: what was done otherwise than planned.
        log: the launches of each step, where they are counted.
    """

    def __init__(self, label: str) -> None:
        super().__init__("compute", label)
        self.steps: Mapping[str, tuple[int, float]] = {}
        self.launches = 0
        self.notes: tuple[str, ...] = ()
        self.log: LaunchLog | None = None
        self._traffic: Mapping[str, tuple[int, int, int]] = {}
        self._recent: StepsHistory | None = None

    def keep(self, recent: StepsHistory, log: LaunchLog) -> None:
        """Keep a history of each step, and count launches."""
        self._recent = recent
        self.log = log

    def observe(self, executor: Executor) -> None:
        """Note what the executor has done; called between its calls, never during one."""
        self.steps = executor.step_seconds()
        self.launches = executor.launches
        self.notes = executor.notes
        self._traffic = executor.step_traffic()
        if self._recent is not None:
            self._recent.note(self.steps, self._traffic)

    def _passed(self, step: str) -> tuple[int, int, int]:
        """Records, bytes in and bytes out of a step; those of the pass where the executor does not tell."""
        return self._traffic.get(step, (self.items, self.bytes_in, self.bytes_out))

    def step_rows(self) -> list[NodeMetrics]:
        """A row for each step."""
        wait_in_s, _, wait_out_s = self.spent()
        return [
            self._step_row(name, batches, wait_in_s, busy_s, wait_out_s)
            for name, (batches, busy_s) in self.steps.items()
        ]

    def _step_row(self, name: str, batches: int, wait_in_s: float, busy_s: float, wait_out_s: float) -> NodeMetrics:
        items, bytes_in, bytes_out = self._passed(name) if batches else (0, 0, 0)
        row = NodeMetrics(name, "region", items, batches, bytes_in, bytes_out, wait_in_s, busy_s, wait_out_s)
        log = None if self.log is None else self.log.steps.get(name)
        if log is not None:
            row = replace(row, launches=log.launches, device_s=log.estimate_s, compile_s=log.compile_s)
        return row if self._recent is None else replace(row, recent=self._recent.recent(name))

    @property
    def load_s(self) -> float:
        """Seconds at work: of its thread, or of its steps if these know more."""
        return max(self.spent()[1], sum(busy_s for _, busy_s in self.steps.values()))


class PassRecord:
    """The stages of one pass, in the order of the plan.

    Attributes:
        sources, compute, sinks: the live records.
        transfers: of the two ends of the compute stage, where its batches overlap.
        edges: the channels, with the buffers that go through them.
    """

    def __init__(
        self,
        sources: list[StageRecord],
        compute: ComputeRecord,
        sinks: list[StageRecord],
        transfers: tuple[StageRecord, StageRecord] | None = None,
    ) -> None:
        self.sources = sources
        self.compute = compute
        self.sinks = sinks
        self.transfers = transfers
        self.edges: list[tuple[Channel, Pool]] = []

    @property
    def stages(self) -> list[StageRecord]:
        """All stages, upstream first."""
        uploads, downloads = ([], []) if self.transfers is None else ([self.taker], [self.giver])
        return [*self.sources, *uploads, self.compute, *downloads, *self.sinks]

    @property
    def taker(self) -> StageRecord:
        """Who takes what sources give."""
        return self.compute if self.transfers is None else self.transfers[0]

    @property
    def giver(self) -> StageRecord:
        """Who gives destinations what they take."""
        return self.compute if self.transfers is None else self.transfers[1]

    def rows(self) -> list[NodeMetrics]:
        """A row for each source, step and destination, and for the transfers between them."""
        rows = [self._at_edges(record, record, record.row("source")) for record in self.sources]
        if self.transfers is not None:
            rows.append(self.taker.row("transfer"))
        rows += [self._at_edges(self.taker, self.giver, row) for row in self.compute.step_rows()]
        if self.transfers is not None:
            rows.append(self.giver.row("transfer"))
        return rows + [self._at_edges(record, record, record.row("destination")) for record in self.sinks]

    def _at_edges(self, taker: StageRecord, giver: StageRecord, row: NodeMetrics) -> NodeMetrics:
        """A row with what lies before its stage and what holds its output."""
        pools = {id(pool): pool for channel, pool in self.edges if channel.producer is giver}.values()
        queued = sum(channel.queued for channel, _ in self.edges if channel.consumer is taker)
        lent, peak_bytes = sum(pool.lent for pool in pools), sum(pool.peak_bytes for pool in pools)
        return replace(row, queued=queued, credits=lent, peak_bytes=peak_bytes)

    def edge_rows(self) -> list[EdgeMetrics]:
        """A row for each edge."""
        return [
            EdgeMetrics(
                channel.producer.name,
                channel.consumer.name,
                channel.queued,
                channel.capacity,
                pool.lent,
                pool.count,
                pool.peak_bytes,
            )
            for channel, pool in self.edges
        ]

    @property
    def loads(self) -> dict[str, float]:
        """Seconds in which each stage kept the others waiting; the compute stage under the name of its busiest step."""
        steps = self.compute.steps
        busiest = max(steps, key=lambda name: steps[name][1], default=None)
        loads = {} if busiest is None else {busiest: self.compute.load_s}
        # What a source waits for lies outside of the run, and is its own affair.
        loads |= {record.name: sum(record.spent()[:2]) for record in self.sources}
        loads |= {record.name: record.spent()[1] for record in self.transfers or ()}
        return loads | {record.name: record.spent()[1] for record in self.sinks}


class RunRecord:
    """Everything that is known of a run while it runs and afterwards.

    Args:
        total_items: records of all passes, None while unknown.
        room_bytes: what results of unknown length may take.
        keep: how much history is kept of each stage; None for none, and launches are not counted.
    """

    def __init__(self, total_items: int | None, room_bytes: int, keep: Keep | None = None) -> None:
        self._keep = keep
        self.ledger = Ledger(room_bytes)
        self.passes: list[PassRecord] = []
        self.tallies: list[Tally] = []
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
        return skipped_by_policy(tuple(self.tallies))

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
            self.ledger.peak_bytes,
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
