"""Events of stages, and what is made of them: rows of metrics, the watchdog, the numbers of flows."""

from flowcompute.runtime.events.checkpoint_totals import CheckpointTotals
from flowcompute.runtime.events.flow_record import FlowRecord
from flowcompute.runtime.events.recent_batches import BATCHES
from flowcompute.runtime.events.report_facts import about, picture_of
from flowcompute.runtime.events.skip_totals import SkipTotals
from flowcompute.runtime.events.stage_reporter import StageReporter
from flowcompute.runtime.events.stage_totals import ComputeTotals, StageTotals
from flowcompute.runtime.events.watchdog import watch

__all__ = [
    "BATCHES",
    "CheckpointTotals",
    "ComputeTotals",
    "FlowRecord",
    "SkipTotals",
    "StageReporter",
    "StageTotals",
    "about",
    "picture_of",
    "watch",
]
