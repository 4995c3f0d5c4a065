"""Pinned host memory through which arrays go to a discrete device and come back, copied by several threads.

A device reads and writes pinned memory by itself at the speed of the bus; from ordinary memory
the driver copies in one thread, a fifth as fast on the machine that this was measured on
(PCIe 5: 55 GB/s pinned, 9 and 17 GB/s not; one core copies 11 GB/s, sixteen 36).
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np

from flowcompute.gpu._cl import cl
from flowcompute.gpu.buffers import packed
from flowcompute.gpu.device import Device
from flowcompute.planner.memory import PIECE_BYTES

LEAST_BYTES = 2 << 20
"""Arrays below this go through the driver: handing them to threads would take longer."""


class _Slot:
    """One piece of pinned memory."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array
        self.event: cl.Event | None = None

    def wait(self) -> None:
        """Until the device is done with it."""
        event, self.event = self.event, None
        if event is not None:
            event.wait()


class Staging:
    """A ring of pinned pieces and the threads that fill and empty them. One transfer at a time.

    Args:
        device: a discrete one.
        size_bytes: pinned memory; see `planner.memory.staging_bytes`. Taken with the first large transfer.
    """

    def __init__(self, device: Device, size_bytes: int) -> None:
        self._device = device
        self._count = size_bytes // PIECE_BYTES
        # Each thread has two pieces: the device works on one of them while it copies the other.
        self._threads = max(1, min(self._count // 2, os.cpu_count() or 1))
        self._slots: list[_Slot] = []
        self._pool: ThreadPoolExecutor | None = None
        self._lock = threading.Lock()
        # PoCL 3.0 may crash where two threads enqueue to one queue and one of them is refused.
        self._enqueuing = threading.Lock()

    def takes(self, size_bytes: int) -> bool:
        """Whether a transfer of this size goes this way."""
        return self._count > 0 and size_bytes >= LEAST_BYTES

    def upload(self, data: np.ndarray, buffer: cl.Buffer, queue: cl.CommandQueue) -> None:
        """Copy bytes to the start of a buffer, in the queue's order; `data` may change once this returns.

        Args:
            data: bytes, or lines of bytes that lie apart `(lines, bytes)` and are put together.
            buffer: where to.
            queue: of the device.
        """
        lines = np.atleast_2d(data)

        def move(slot: _Slot, start: int, stop: int) -> None:
            slot.wait()
            part = slot.array[: stop - start]
            packed(lines, start, part)
            with self._enqueuing:
                slot.event = cl.enqueue_copy(queue, buffer, part, dst_offset=start, is_blocking=False)
                queue.flush()

        self._share_out(data.size, move)

    def download(self, buffer: cl.Buffer, data: np.ndarray, queue: cl.CommandQueue) -> None:
        """Fill `data` (bytes) from the start of a buffer, in the queue's order; complete on return."""
        pending: dict[int, tuple[int, int]] = {}

        def empty(slot: _Slot) -> None:
            waiting = pending.pop(id(slot), None)
            if waiting is not None:
                slot.wait()
                np.copyto(data[waiting[0] : waiting[1]], slot.array[: waiting[1] - waiting[0]])

        def move(slot: _Slot, start: int, stop: int) -> None:
            empty(slot)
            slot.wait()
            part = slot.array[: stop - start]
            with self._enqueuing:
                slot.event = cl.enqueue_copy(queue, part, buffer, src_offset=start, is_blocking=False)
                queue.flush()
            pending[id(slot)] = (start, stop)

        self._share_out(len(data), move, empty)

    def _share_out(
        self, size: int, move: Callable[[_Slot, int, int], None], end: Callable[[_Slot], None] | None = None
    ) -> None:
        """Let the threads move all pieces, each through slots of its own, in turn."""

        def work(thread: int) -> None:
            mine = self._slots[thread :: self._threads]
            for turn, start in enumerate(range(thread * PIECE_BYTES, size, self._threads * PIECE_BYTES)):
                move(mine[turn % len(mine)], start, min(start + PIECE_BYTES, size))
            if end is not None:
                for slot in mine:
                    end(slot)

        with self._lock:
            pool = self._ready()
            busy = min(self._threads, -(-size // PIECE_BYTES))
            futures: list[Future[None]] = [pool.submit(work, thread) for thread in range(busy)]
            errors = [future.exception() for future in futures]
        for error in errors:
            if error is not None:
                raise error

    def _ready(self) -> ThreadPoolExecutor:
        if self._pool is None:
            while len(self._slots) < self._count:
                self._slots.append(_Slot(self._device.pinned.take(PIECE_BYTES)))
            self._pool = ThreadPoolExecutor(self._threads, thread_name_prefix="flowcompute-copy")
        return self._pool

    def close(self) -> None:
        """Wait for what is under way, and leave the pieces to the next run; harmless when called twice."""
        with self._lock:
            pool, self._pool = self._pool, None
            slots, self._slots = self._slots, []
        if pool is not None:
            pool.shutdown(wait=True)
        for slot in slots:
            try:
                slot.wait()
            finally:
                self._device.pinned.give(slot.array)
