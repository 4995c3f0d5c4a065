"""Present state of a stage, and what it tells others of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from flowcompute.engine import Executor
from flowcompute.imports import LateModule
from flowcompute.observe import (
    BatchComputed,
    BatchPassed,
    EventStream,
    StageEntered,
    StageState,
    StepsComputed,
    TrainingStepped,
    WorkMarked,
)

if TYPE_CHECKING:
    import trio
else:
    trio = LateModule("trio")

WAITING = frozenset({StageState.INPUT, StageState.CREDIT, StageState.OUTPUT})


class StageReporter:
    """Tells the stream of events what one stage does, and the watchdog what it does now.

    What others read at any time is one assignment each, so no lock is needed.

    Args:
        name: of the source, of the destination, or "compute".
        label: what errors call it that name no element of their own.
        stream: takes the events; by default nobody does.
        clock: gives seconds, in the thread that calls `enter`.
        zero_s: the start of the run on that clock.

    Attributes:
        state, since: what it does now, and since when on its clock.
        detail: whom it waits for, or what it is busy with.
        records: the records it is busy with.
        parts_done: parts of long work that are done.
    """

    def __init__(
        self,
        name: str,
        label: str | None = None,
        stream: EventStream | None = None,
        *,
        clock: Callable[[], float] = lambda: trio.current_time(),  # noqa: PLW0108 - trio is imported by its first use
        zero_s: float = 0.0,
    ) -> None:
        self.name = name
        self.label = name if label is None else label
        self.state = StageState.IDLE
        self.detail = ""
        self.records: tuple[int, int] | None = None
        self.since = clock()
        self.parts_done = 0
        self.zero_s = zero_s
        self._clock = clock
        self._stream = EventStream() if stream is None else stream
        self._entered = self._stream.takers(StageEntered)
        self._passed = self._stream.takers(BatchPassed)

    def enter(self, state: StageState, detail: str = "", records: tuple[int, int] | None = None) -> None:
        """Begin something else; called in the thread of its clock."""
        self.state = state
        self.detail = detail
        self.records = records
        self.since = now = self._clock()
        if self._entered:
            event = StageEntered(self, state, detail, records, now - self.zero_s)
            for take in self._entered:
                take(event)

    def part_done(self) -> None:
        """Tell that a part of what it is busy with is done; called in any thread, one at a time."""
        self.parts_done += 1

    def passed(self, items: int, bytes_in: int, bytes_out: int) -> None:
        """Tell of a batch; called in any thread, one at a time."""
        event = BatchPassed(self, items, bytes_in, bytes_out)
        for take in self._passed:
            take(event)

    def mark(self, name: str, began_s: float) -> None:
        """Tell of work that began at a time of its clock and ends now, beside what the stage counts."""
        self._stream.emit(WorkMarked(self, name, began_s - self.zero_s, self._clock() - self.zero_s))

    def computed(self, stop: int) -> None:
        """Tell that a batch which ends at record `stop` has left the stage; called in the thread of its clock."""
        self._stream.emit(BatchComputed(stop, self._clock() - self.zero_s))

    def observe(self, executor: Executor) -> None:
        """Tell what the executor has done; called between its calls, never during one."""
        self._stream.emit(
            StepsComputed(self, executor.step_seconds(), executor.step_traffic(), executor.launches, executor.notes)
        )
        for told in executor.told():
            self._stream.emit(TrainingStepped(told))

    def describe(self, now: float) -> str:
        """Return what it does and for how long, in words."""
        text = f"{self.state.value} {self.detail}".rstrip()
        if self.records is not None:
            text += f" records {self.records[0]} to {self.records[1]}"
        if self.state is StageState.BUSY:
            text += " in a worker thread"
        return f"{text} for {now - self.since:.3g} s" if self.state is not StageState.DONE else text
