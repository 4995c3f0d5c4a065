"""What a run tells others while it works: Prometheus, JSON lines, a trace. It only reads, and drives nothing."""

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
    "TrialFailed",
    "TrialMeasured",
    "WorkMarked",
    "write_report",
]
