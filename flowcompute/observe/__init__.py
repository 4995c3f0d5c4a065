"""Reports of a run to others while it works: Prometheus, JSON lines, a trace. They only read, and drive nothing."""

from flowcompute.observe.consumer import Consumer, RunView
from flowcompute.observe.events import (
    BatchComputed,
    BatchPassed,
    CheckpointBegun,
    CheckpointCommitted,
    EventStream,
    LaunchTimed,
    PassBegun,
    RecordsSkipped,
    RunEnded,
    Stage,
    StageEntered,
    StageState,
    StepsComputed,
    Take,
    TrainingStepped,
    TrialFailed,
    TrialMeasured,
    WorkMarked,
)
from flowcompute.observe.observers import Observe, Observers
from flowcompute.observe.report_page import write_report

__all__ = [
    "BatchComputed",
    "BatchPassed",
    "CheckpointBegun",
    "CheckpointCommitted",
    "Consumer",
    "EventStream",
    "LaunchTimed",
    "Observe",
    "Observers",
    "PassBegun",
    "RecordsSkipped",
    "RunEnded",
    "RunView",
    "Stage",
    "StageEntered",
    "StageState",
    "StepsComputed",
    "Take",
    "TrainingStepped",
    "TrialFailed",
    "TrialMeasured",
    "WorkMarked",
    "write_report",
]
