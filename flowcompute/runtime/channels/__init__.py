"""Buffers, channels and barriers between stages, and their records."""

from flowcompute.runtime.channels.barrier import CheckpointBarrier
from flowcompute.runtime.channels.batch_pool import MemoryTracker, Pool, SharedBuffer
from flowcompute.runtime.channels.channel import Channel, Message
from flowcompute.runtime.channels.failure import attributed, first_failure
from flowcompute.runtime.channels.pass_record import PassRecord
from flowcompute.runtime.channels.progress_line import Display
from flowcompute.runtime.channels.run_pace import pace_of
from flowcompute.runtime.channels.run_record import RunRecord
from flowcompute.runtime.channels.workers import OwnThread, Workers, WorkerThreads

__all__ = [
    "Channel",
    "CheckpointBarrier",
    "Display",
    "MemoryTracker",
    "Message",
    "OwnThread",
    "PassRecord",
    "Pool",
    "RunRecord",
    "SharedBuffer",
    "WorkerThreads",
    "Workers",
    "attributed",
    "first_failure",
    "pace_of",
]
