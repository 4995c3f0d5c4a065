"""Frozen records of what happens in a run or a flow, and the stream that hands each to those who take its kind."""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol

from flowcompute.elements.policies import ErrorPolicy
from flowcompute.metrics import Skipped, StepTold
from flowcompute.strategy import Candidate, Search


class StageState(enum.Enum):
    """The activity of a stage at a moment."""

    # Members of an enum hash their names in Python, and seconds are looked up by state twenty times a batch.
    __hash__ = object.__hash__

    IDLE = "not started"
    INPUT = "waiting for input from"
    CREDIT = "waiting for a free buffer towards"
    OUTPUT = "waiting for output to be taken by"
    BUSY = "busy"
    PAUSED = "paused"
    DONE = "done"


AT_REST = frozenset({StageState.IDLE, StageState.DONE})
"""States of a stage that has nothing to do."""


class Stage(Protocol):
    """A stage of a pass, which events refer to; two of them are never equal."""

    name: str
    """That of the source or the destination, "compute", "upload" or "download"."""


class PassBegun(NamedTuple):
    """A pass begins, with these stages, upstream first."""

    stages: tuple[Stage, ...]


class StageEntered(NamedTuple):
    """A stage begins something else.

    Attributes:
        stage: which.
        state: what it does now.
        detail: whom it waits for, or what it is busy with.
        records: those it is busy with.
        at_s: when, in seconds since the start of the run.
    """

    stage: Stage
    state: StageState
    detail: str
    records: tuple[int, int] | None
    at_s: float


class BatchPassed(NamedTuple):
    """A batch has been read, moved, computed or written by a stage, which took and gave so many bytes of streams."""

    stage: Stage
    items: int
    bytes_in: int
    bytes_out: int


class BatchComputed(NamedTuple):
    """A batch that ends at record `stop` has left the compute stage, at so many seconds since the start of the run."""

    stop: int
    at_s: float


class StepsComputed(NamedTuple):
    """The work of a pass's steps up to now.

    Attributes:
        stage: the compute stage of the pass.
        steps: batches and seconds busy by step.
        traffic: records, bytes in and bytes out by step.
        launches: kernels launched.
        notes: what was done otherwise than planned.
    """

    stage: Stage
    steps: Mapping[str, tuple[int, float]]
    traffic: Mapping[str, tuple[int, int, int]]
    launches: int
    notes: tuple[str, ...]


class TrainingStepped(NamedTuple):
    """A step of a training has been taken."""

    told: StepTold


class WorkMarked(NamedTuple):
    """Work that lasted from one time to another, in seconds since the start, and that no state of a stage tells."""

    stage: Stage
    name: str
    began_s: float
    ended_s: float


class LaunchTimed(NamedTuple):
    """A kernel has ended that was timed on the device.

    Attributes:
        stage: the compute stage of its pass.
        step: the step it belongs to.
        ended_s: when, in seconds since the start of the run.
        device_s: seconds that it took.
    """

    stage: Stage
    step: str
    ended_s: float
    device_s: float


class CheckpointBegun(NamedTuple):
    """The state of the job has been copied for a checkpoint, for which no batch was computed for so many seconds."""

    pause_s: float


class CheckpointCommitted(NamedTuple):
    """A checkpoint has been committed; writing it took so many seconds."""

    number: int
    write_s: float


class RecordsSkipped(NamedTuple):
    """Records that error policies have dropped; told once when a reading begins, and with each further record.

    Attributes:
        reading: number of the reading of an element's input, in the order in which they began.
        policy: that of the element.
        skipped: all records that this reading has dropped so far, those before a checkpoint included.
    """

    reading: int
    policy: ErrorPolicy
    skipped: Skipped


class TrialMeasured(NamedTuple):
    """A candidate has been measured beside what is in use.

    Attributes:
        where: "run", or the name of a kernel.
        search: that asked for it.
        candidate: the knobs that differ from what is in use.
        ratio: its seconds by those of what is in use.
        lost_s: seconds of the job that it took beyond those of what is in use; 0 for a trial beside the job.
    """

    where: str
    search: Search
    candidate: Candidate
    ratio: float
    lost_s: float


class TrialFailed(NamedTuple):
    """A candidate could not be measured, and what was wrong with it."""

    where: str
    search: Search
    candidate: Candidate
    problem: str


class RunEnded(NamedTuple):
    """A run has ended, or a flow been closed, at so many seconds since its start.

    The error is what it failed with, None where it is complete. Nobody keeps it longer than this call: it holds the
    frames in which it was raised, and all that these refer to.
    """

    at_s: float
    error: BaseException | None


Take = Callable[[Any], object]
"""Takes an event. It is called by whoever emits, must not fail, and costs a microsecond: nobody waits for it."""


class EventStream:
    """Hands each event to those who take its kind, in the order in which they subscribed, in the emitter's thread."""

    def __init__(self) -> None:
        self._takers: dict[type, list[Take]] = {}

    def takers(self, kind: type) -> list[Take]:
        """Return those who take a kind of event; the list stays the same when others subscribe.

        A stage that emits in each batch keeps it, and makes no event that nobody takes.
        """
        return self._takers.setdefault(kind, [])

    def subscribe(self, takes: Mapping[type, Take]) -> None:
        """Hand events on from now on: those of each kind to its function."""
        for kind, take in takes.items():
            self.takers(kind).append(take)

    def emit(self, event: object) -> None:
        """Hand an event to those who take its kind."""
        for take in self._takers.get(type(event), ()):
            take(event)
