"""The numbers of a stage, summed up from its events.

The stage's own thread writes them, other threads read them: each is one assignment, so no lock is needed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from flowcompute.metrics import NodeKind, NodeMetrics
from flowcompute.observe import BatchPassed, StageEntered, StageState, StepsComputed
from flowcompute.ring import Ring
from flowcompute.runtime.events.recent_batches import BATCHES, NOTHING, StepsHistory, Totals, batches_of
from flowcompute.schedule import LaunchLog


class StageTotals:
    """The numbers of one stage, summed up from its events.

    A batch is what was counted between two changes of state, with the seconds since the batch
    before it. So the wait for taking over a batch's output is found with the next batch. Only
    totals are noted, in the stage's own time; who reads them takes the differences.

    Args:
        name: of the stage.
        seconds: gives the seconds since the start of the run, which stand still when it has ended.
            With it the last batches are kept, and what the stage does now counts; None for neither.

    Attributes:
        items, batches, bytes_in, bytes_out: of all batches.
        seconds: spent in each state that has ended.
    """

    def __init__(self, name: str, seconds: Callable[[], float] | None = None) -> None:
        self.name = name
        self.seconds = dict.fromkeys(StageState, 0.0)
        self.items = 0
        self.batches = 0
        self.bytes_in = 0
        self.bytes_out = 0
        self._now_s = seconds
        self._state = StageState.IDLE
        self._since_s = 0.0 if seconds is None else seconds()
        self._noted_batches = 0
        self._noted: Ring[Totals] = Ring(BATCHES + 1)
        self._noted.add(NOTHING)

    def entered(self, event: StageEntered) -> None:
        """Count the seconds of the state that has ended."""
        self.seconds[self._state] += event.at_s - self._since_s
        if self._now_s is not None and self.batches != self._noted_batches:
            self._noted_batches = self.batches
            counts = self.items, self.batches, self.bytes_in, self.bytes_out
            self._noted.add((*counts, *_three(self.seconds), event.at_s))
        self._state, self._since_s = event.state, event.at_s

    def passed(self, event: BatchPassed) -> None:
        """Count a batch."""
        self.items += event.items
        self.batches += 1
        self.bytes_in += event.bytes_in
        self.bytes_out += event.bytes_out

    def spent(self) -> tuple[float, float, float]:
        """Return the seconds waiting for input, busy and waiting for output."""
        seconds, state, since_s = self.seconds.copy(), self._state, self._since_s
        if self._now_s is not None:
            seconds[state] += max(self._now_s() - since_s, 0.0)
        return _three(seconds)

    def row(self, kind: NodeKind) -> NodeMetrics:
        """Return its numbers."""
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
            recent=batches_of(self._noted.items()),
        )


def _three(seconds: Mapping[StageState, float]) -> tuple[float, float, float]:
    waiting_out_s = seconds[StageState.CREDIT] + seconds[StageState.OUTPUT]
    return seconds[StageState.INPUT], seconds[StageState.BUSY], waiting_out_s


class ComputeTotals(StageTotals):
    """The numbers of the compute stage of a pass, and of its steps.

    Args:
        name, seconds: as of `StageTotals`.

    Attributes:
        steps: step name -> (batches, seconds busy), as of the last batch.
        launches: kernels launched so far.
        notes: what was done otherwise than planned.
        log: the launches of each step, where they are counted.
    """

    def __init__(self, name: str, seconds: Callable[[], float] | None = None) -> None:
        super().__init__(name, seconds)
        self.steps: Mapping[str, tuple[int, float]] = {}
        self.launches = 0
        self.notes: tuple[str, ...] = ()
        self.log: LaunchLog | None = None
        self._traffic: Mapping[str, tuple[int, int, int]] = {}
        self._recent = None if seconds is None else StepsHistory(seconds)

    def computed(self, event: StepsComputed) -> None:
        """Take the numbers of the steps."""
        self.steps, self._traffic = event.steps, event.traffic
        self.launches, self.notes = event.launches, event.notes
        if self._recent is not None:
            self._recent.note(event.steps, event.traffic)

    def step_rows(self) -> list[NodeMetrics]:
        """Return a row for each step."""
        wait_in_s, _, wait_out_s = self.spent()
        return [
            self._step_row(name, batches, wait_in_s, busy_s, wait_out_s)
            for name, (batches, busy_s) in self.steps.items()
        ]

    def _step_row(self, name: str, batches: int, wait_in_s: float, busy_s: float, wait_out_s: float) -> NodeMetrics:
        items, bytes_in, bytes_out = self._step_passed(name) if batches else (0, 0, 0)
        if not batches:
            # What runs once, before or after the batches, waits for none of them.
            wait_in_s = wait_out_s = 0.0
        row = NodeMetrics(name, "region", items, batches, bytes_in, bytes_out, wait_in_s, busy_s, wait_out_s)
        log = None if self.log is None else self.log.steps.get(name)
        if log is not None:
            row = replace(row, launches=log.launches, device_s=log.estimate_s, compile_s=log.compile_s)
        return row if self._recent is None else replace(row, recent=self._recent.recent(name))

    def _step_passed(self, step: str) -> tuple[int, int, int]:
        """Return records, bytes in and bytes out of a step; those of the pass where the executor does not tell."""
        return self._traffic.get(step, (self.items, self.bytes_in, self.bytes_out))

    @property
    def load_s(self) -> float:
        """Seconds at work: of its thread, or of its steps if these know more."""
        return max(self.spent()[1], sum(busy_s for _, busy_s in self.steps.values()))
