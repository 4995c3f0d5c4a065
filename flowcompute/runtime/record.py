"""The live records of a run: written by its stages, read by metrics, progress and watchdog.

Stages write numbers, other threads read them: each is one assignment, so no lock is needed
and watching costs the stages nothing.
"""

from __future__ import annotations

import enum
import time
from collections.abc import Mapping

import trio

from flowcompute.elements.policy import ErrorPolicy
from flowcompute.elements.tally import Tally, skipped_by_policy
from flowcompute.metrics import Checkpoints, Metrics, NodeKind, NodeMetrics, Progress, Skipped
from flowcompute.planner.backend import Executor
from flowcompute.runtime.buffers import Ledger


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


class StageRecord:
    """What one stage does and has done.

    Attributes:
        name: of the source, of the destination, or "compute".
        label: what errors call it that name no element of their own.
        state, since: what it does now, and since when on trio's clock.
        detail: whom it waits for, or what it is busy with.
        records: the records it is busy with.
    """

    def __init__(self, name: str, label: str | None = None) -> None:
        self.name = name
        self.label = name if label is None else label
        self.state = State.IDLE
        self.detail = ""
        self.records: tuple[int, int] | None = None
        self.since = trio.current_time()
        self.seconds = dict.fromkeys(State, 0.0)
        self.items = 0
        self.batches = 0
        self.bytes_in = 0
        self.bytes_out = 0

    def enter(self, state: State, detail: str = "", records: tuple[int, int] | None = None) -> None:
        """Begin something else; called in the trio thread."""
        now = trio.current_time()
        self.seconds[self.state] += now - self.since
        self.state = state
        self.detail = detail
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

    def row(self, kind: NodeKind) -> NodeMetrics:
        """Its numbers up to its last change of state."""
        seconds = self.seconds
        return NodeMetrics(
            name=self.name,
            kind=kind,
            items=self.items,
            batches=self.batches,
            bytes_in=self.bytes_in,
            bytes_out=self.bytes_out,
            wait_in_s=seconds[State.INPUT],
            busy_s=seconds[State.BUSY],
            wait_out_s=seconds[State.CREDIT] + seconds[State.OUTPUT],
        )


class ComputeRecord(StageRecord):
    """The compute stage of one pass; also knows its steps.

    Attributes:
        steps: step name -> (batches, seconds busy), as of the last batch.
        launches: kernels launched so far.
    """

    def __init__(self, label: str) -> None:
        super().__init__("compute", label)
        self.steps: Mapping[str, tuple[int, float]] = {}
        self.launches = 0

    def observe(self, executor: Executor) -> None:
        """Note what the executor has done; called between its calls, never during one."""
        self.steps = executor.step_seconds()
        self.launches = executor.launches

    def step_rows(self) -> list[NodeMetrics]:
        """A row for each step."""
        seconds = self.seconds
        return [
            NodeMetrics(
                name=name,
                kind="region",
                items=self.items if batches else 0,
                batches=batches,
                bytes_in=self.bytes_in,
                bytes_out=self.bytes_out,
                wait_in_s=seconds[State.INPUT],
                busy_s=busy_s,
                wait_out_s=seconds[State.CREDIT] + seconds[State.OUTPUT],
            )
            for name, (batches, busy_s) in self.steps.items()
        ]


class PassRecord:
    """The stages of one pass, in the order of the plan."""

    def __init__(self, sources: list[StageRecord], compute: ComputeRecord, sinks: list[StageRecord]) -> None:
        self.sources = sources
        self.compute = compute
        self.sinks = sinks

    @property
    def stages(self) -> list[StageRecord]:
        """All stages, upstream first."""
        return [*self.sources, self.compute, *self.sinks]

    def rows(self) -> list[NodeMetrics]:
        """A row for each source, step and destination."""
        return [
            *(record.row("source") for record in self.sources),
            *self.compute.step_rows(),
            *(record.row("destination") for record in self.sinks),
        ]


class CheckpointRecord:
    """What the checkpoints of a run cost.

    Attributes:
        count: checkpoints committed.
        number: of the newest one.
        pause_s: seconds that batches stood still for them, altogether.
        longest_pause_s: of one of them.
        write_s: seconds of writing them beside the batches.
        last_s: when the newest one was committed, on the clock of the run.
    """

    def __init__(self) -> None:
        self.count = 0
        self.number: int | None = None
        self.pause_s = 0.0
        self.longest_pause_s = 0.0
        self.write_s = 0.0
        self.last_s: float | None = None

    def paused(self, seconds: float) -> None:
        """A barrier was made."""
        self.pause_s += seconds
        self.longest_pause_s = max(self.longest_pause_s, seconds)

    def written(self, number: int, seconds: float) -> None:
        """One was committed."""
        self.count += 1
        self.number = number
        self.write_s += seconds
        self.last_s = time.perf_counter()

    def row(self, now_s: float) -> Checkpoints:
        """Its numbers at a time of the clock of the run."""
        age_s = None if self.last_s is None else max(now_s - self.last_s, 0.0)
        return Checkpoints(self.count, self.number, self.pause_s, self.longest_pause_s, self.write_s, age_s)


class RunRecord:
    """Everything that is known of a run while it runs and afterwards.

    Args:
        total_items: records of all passes, None while unknown.
        room_bytes: what results of unknown length may take.
    """

    def __init__(self, total_items: int | None, room_bytes: int) -> None:
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

    def resume(self, items: int, bytes_read: int, seconds: float) -> None:
        """Count on from what earlier runs of the job have done, so that pace and time left are those of the job."""
        self._earlier_items, self._earlier_bytes, self._earlier_s = items, bytes_read, seconds

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
        return Metrics(rows, aliases)

    @property
    def bottleneck(self) -> str | None:
        """Name of the stage that worked most and waited least; None before anything ran."""
        rows = self.metrics({}).values()
        return max(rows, key=lambda row: row.busy_s).name if rows else None


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
    )
