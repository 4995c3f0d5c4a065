"""Pinned slots through which the arrays of small batches go to a discrete device, copied by the thread that has them.

For less than `staging.LEAST_BYTES` the threads of `Staging` would take longer to be told than to copy. The driver's
own way from ordinary memory comes back when the device has read all; here that is left to an event.
"""

from __future__ import annotations

import queue
import threading
from contextlib import ExitStack

import numpy as np

from flowcompute.gpu.device import Device, cl
from flowcompute.gpu.memory.device_buffers import packed
from flowcompute.gpu.memory.staging import LEAST_BYTES


class _Slot:
    """Pinned memory for one array, and when the device is done with it."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array
        self.event: cl.Event | None = None

    def wait(self) -> None:
        """Until then."""
        event, self.event = self.event, None
        if event is not None:
            event.wait()


class SmallStaging:
    """A ring of pinned slots. Any threads may upload, each through the slot that was used longest ago.

    Args:
        device: a discrete one.
        size_bytes: pinned memory, taken with the first upload.
        enqueuing: held by who enqueues.
    """

    def __init__(self, device: Device, size_bytes: int, enqueuing: threading.Lock) -> None:
        self._pinned = device.pinned
        self._count = size_bytes // LEAST_BYTES
        self._ring: queue.SimpleQueue[_Slot] = queue.SimpleQueue()
        self._slots: list[_Slot] = []
        self._making = threading.Lock()
        self._enqueuing = enqueuing

    def takes(self, size_bytes: int) -> bool:
        """Whether an array of this size goes this way."""
        return self._count > 0 and size_bytes < LEAST_BYTES

    def upload(self, lines: np.ndarray, buffer: cl.Buffer, queue: cl.CommandQueue) -> cl.Event:
        """Copy lines of bytes `(lines, bytes)` to the start of a buffer; they may change once this returns.

        Returns:
            When they are there.
        """
        self._make()
        slot = self._ring.get()
        try:
            slot.wait()
            part = slot.array[: lines.size]
            packed(lines, 0, part)
            with self._enqueuing:
                event = slot.event = cl.enqueue_copy(queue, buffer, part, is_blocking=False)
            return event
        finally:
            self._ring.put(slot)

    def _make(self) -> None:
        if len(self._slots) == self._count:
            return
        with self._making:
            while len(self._slots) < self._count:
                slot = _Slot(self._pinned.take(LEAST_BYTES))
                self._ring.put(slot)
                self._slots.append(slot)

    def close(self) -> None:
        """Wait for what is under way and give the slots back; harmless when called twice."""
        slots, self._slots, self._ring = self._slots, [], queue.SimpleQueue()
        with ExitStack() as all_of_it:
            for slot in slots:
                all_of_it.callback(self._pinned.give, slot.array)
                all_of_it.callback(slot.wait)
