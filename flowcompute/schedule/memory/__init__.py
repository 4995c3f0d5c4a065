"""Memory planning: bytes on the host and on devices, known before anything runs."""

from flowcompute.schedule.memory.buffer_assignment import (
    MOST_KINDS,
    BufferAssignment,
    HostIntermediates,
    assign_host_buffers,
    lasting_values,
    placeholder_array,
)
from flowcompute.schedule.memory.cache_use import cache_reasons, is_uncached
from flowcompute.schedule.memory.device_needs import DeviceTooSmallError, RecordTooLargeError
from flowcompute.schedule.memory.in_flight import (
    PIECE_BYTES,
    STAGING_BLOCKS,
    batches_of_each,
    pinned,
    uploads_at_a_time,
)
from flowcompute.schedule.memory.input_bytes import base_item_bytes, extra_items, padding, span
from flowcompute.schedule.memory.memory_plan import plan_memory
from flowcompute.schedule.memory.pass_sizer import BatchTooLargeError, BudgetError
from flowcompute.schedule.memory.staying_values import StayingValues
from flowcompute.schedule.memory.transfer_plan import TransferPlan, device_buffer_assignment, never_on_host, stored_by
from flowcompute.schedule.memory.worker_needs import not_isolated

__all__ = [
    "MOST_KINDS",
    "PIECE_BYTES",
    "STAGING_BLOCKS",
    "BatchTooLargeError",
    "BudgetError",
    "BufferAssignment",
    "DeviceTooSmallError",
    "HostIntermediates",
    "RecordTooLargeError",
    "StayingValues",
    "TransferPlan",
    "assign_host_buffers",
    "base_item_bytes",
    "batches_of_each",
    "cache_reasons",
    "device_buffer_assignment",
    "extra_items",
    "is_uncached",
    "lasting_values",
    "never_on_host",
    "not_isolated",
    "padding",
    "pinned",
    "placeholder_array",
    "plan_memory",
    "span",
    "stored_by",
    "uploads_at_a_time",
]
