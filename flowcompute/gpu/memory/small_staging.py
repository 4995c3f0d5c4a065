"""Pinned slots for the uploads of small batches to a discrete device. The calling thread copies into them.

Below `staging.MIN_BYTES`, signalling the threads of `Staging` would take longer than the copy. The driver's own
upload from ordinary memory returns when the device has read all. Here an event signals that, so that the thread
goes on.
"""

from __future__ import annotations

import queue
import threading
from contextlib import ExitStack

import numpy as np

from flowcompute.gpu.device import Device, cl
from flowcompute.gpu.memory.device_buffers import copy_lines
from flowcompute.gpu.memory.staging import MIN_BYTES, PinnedSlot


class SmallStaging:
    """A ring of pinned slots. Any thread may upload, through the slot that was used longest ago.

    Args:
        device: a discrete one.
        size_bytes: pinned memory, allocated at the first upload.
        enqueuing: lock that a thread holds while it enqueues.
    """

    def __init__(self, device: Device, size_bytes: int, enqueuing: threading.Lock) -> None:
        self._pinned = device.pinned
        self._count = size_bytes // MIN_BYTES
        self._ring: queue.SimpleQueue[PinnedSlot] = queue.SimpleQueue()
        self._slots: list[PinnedSlot] = []
        self._making = threading.Lock()
        self._enqueuing = enqueuing

    def takes(self, size_bytes: int) -> bool:
        """Check whether an array of this size is uploaded through a slot."""
        return self._count > 0 and size_bytes < MIN_BYTES

    def upload(self, lines: np.ndarray, buffer: cl.Buffer, queue: cl.CommandQueue) -> cl.Event:
        """Copy lines of bytes `(lines, bytes)` to the start of a buffer. They may change once this returns.

        Returns:
            The event that signals that they have arrived.
        """
        self._allocate()
        slot = self._ring.get()
        try:
            slot.settle()
            part = slot.array[: lines.size]
            copy_lines(lines, 0, part)
            with self._enqueuing:
                event = slot.event = cl.enqueue_copy(queue, buffer, part, is_blocking=False)
            return event
        finally:
            self._ring.put(slot)

    def _allocate(self) -> None:
        if len(self._slots) == self._count:
            return
        with self._making:
            while len(self._slots) < self._count:
                slot = PinnedSlot(self._pinned.take(MIN_BYTES))
                self._ring.put(slot)
                self._slots.append(slot)

    def close(self) -> None:
        """Wait for the uploads in progress and free the slots. Calling it twice does nothing."""
        slots, self._slots, self._ring = self._slots, [], queue.SimpleQueue()
        with ExitStack() as all_of_it:
            for slot in slots:
                all_of_it.callback(self._pinned.give, slot.array)
                all_of_it.callback(slot.settle)
