"""Buffers of kernels, and the ways between host and device."""

from flowcompute.gpu.memory.batch_slots import Slots
from flowcompute.gpu.memory.device_memory import Memory, memory_of
from flowcompute.gpu.memory.streamed_weights import StreamedWeights

__all__ = ["Memory", "Slots", "StreamedWeights", "memory_of"]
