"""Buffers of kernels, and transfers between host and device."""

from flowcompute.gpu.memory.batch_slots import Slots
from flowcompute.gpu.memory.device_memory import make_memory
from flowcompute.gpu.memory.kernel_memory import Memory, Rows
from flowcompute.gpu.memory.recording import Push, Recording
from flowcompute.gpu.memory.streamed_weights import StreamedWeights

__all__ = ["Memory", "Push", "Recording", "Rows", "Slots", "StreamedWeights", "make_memory"]
