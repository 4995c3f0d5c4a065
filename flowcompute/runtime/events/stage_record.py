"""The live record of one stage: written by it, read by metrics, progress and watchdog.

Stages write numbers, other threads read them: each is one assignment, so no lock is needed
and watching costs the stages nothing.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import replace

import trio

from flowcompute.engine import Executor
from flowcompute.metrics import NodeKind, NodeMetrics, Span, Track
from flowcompute.runtime.events.history import StageHistory, StepsHistory
from flowcompute.schedule import LaunchLog


class State(enum.Enum):
    """What a stage does at a moment."""

    # Members of an enum hash their names in Python, and seconds are looked up by state twenty times a batch.
    __hash__ = object.__hash__

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
