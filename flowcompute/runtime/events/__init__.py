"""Live records of what stages do."""

from flowcompute.runtime.events.checkpoint_record import CheckpointRecord
from flowcompute.runtime.events.flow_record import FlowRecord
from flowcompute.runtime.events.history import BATCHES, Keep, StageHistory, StepsHistory, launch_track
from flowcompute.runtime.events.report_facts import about
from flowcompute.runtime.events.stage_record import ComputeRecord, StageRecord, State
from flowcompute.runtime.events.watchdog import watch

__all__ = [
    "BATCHES",
    "CheckpointRecord",
    "ComputeRecord",
    "FlowRecord",
    "Keep",
    "StageHistory",
    "StageRecord",
    "State",
    "StepsHistory",
    "about",
    "launch_track",
    "watch",
]
