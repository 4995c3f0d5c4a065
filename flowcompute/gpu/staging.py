"""Pinned host memory through which arrays go to a discrete device and come back, copied by several threads.

A device reads and writes pinned memory by itself at the speed of the bus; from ordinary memory
the driver copies in one thread, a fifth as fast on the machine that this was measured on
(PCIe 5: 55 GB/s pinned, 8 and 17 GB/s not; one core copies 7 GB/s, sixteen 46 to 68).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from functools import partial
from queue import SimpleQueue

import numpy as np

from flowcompute.gpu._cl import cl
from flowcompute.gpu.buffers import packed
from flowcompute.gpu.device import Device
from flowcompute.planner.memory import PIECE_BYTES, STAGING_BLOCKS
from flowcompute.planner.run_knobs import COPYING_THREADS

LEAST_BYTES = 2 << 20
"""Arrays below this go through slots (`small_staging`) or the driver: handing them to threads would take longer."""


Copy = Callable[[int, np.ndarray], None]
"""Copies to or from a piece of a block, given where in the block it begins."""


class _Block:
    """Pinned memory that the device reads or writes in one go, and what is under way with it."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array
        self.event: cl.Event | None = None
        self.copies = 0
        self.copied: SimpleQueue[BaseException | None] = SimpleQueue()

    def wait_for_threads(self) -> None:
        """Wait until all pieces are copied.

        Raises:
            BaseException: what a thread raised.
        """
        errors = [self.copied.get() for _ in range(self.copies)]
        self.copies = 0
        for error in errors:
            if error is not None:
                raise error

    def settle(self) -> None:
        """Wait until threads and device are done with it.

        Raises:
            cl.Error: if the device could not read it.
        """
        event, self.event = self.event, None
        try:
            self.wait_for_threads()
        finally:
            if event is not None:
                event.wait()


class _Threads:
    """Threads that copy pieces. A queue is all between them: futures took a fifth of the time."""

    def __init__(self, count: int) -> None:
        self._jobs: SimpleQueue[tuple[_Block, Copy, int, np.ndarray] | None] = SimpleQueue()
        self._threads = [
            threading.Thread(target=self._work, name="flowcompute-copy", daemon=True) for _ in range(count)
        ]
        for thread in self._threads:
            thread.start()

    def share_out(self, block: _Block, size: int, copy: Copy) -> None:
        """Copy so many bytes to or from a block."""
        for start in range(0, size, PIECE_BYTES):
            block.copies += 1
            self._jobs.put((block, copy, start, block.array[start : min(start + PIECE_BYTES, size)]))

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            block, copy, start, piece = job
            try:
                copy(start, piece)
            except BaseException as error:  # noqa: BLE001 - told to whoever waits
                block.copied.put(error)
            else:
                block.copied.put(None)

    def close(self) -> None:
        """Wait for them to end."""
        for _ in self._threads:
            self._jobs.put(None)
        for thread in self._threads:
            thread.join()


class Staging:
    """A ring of pinned blocks and the threads that fill or empty them. One transfer at a time.

    Threads copy pieces of one block while the device reads or writes another: the device is asked
    once for each block, since asking it for each piece took longer than copying them.

    Args:
        device: a discrete one.
        size_bytes: pinned memory; see `planner.memory.staging_bytes`. Taken with the first large transfer.
        enqueuing: held by who enqueues uploads.
    """

    def __init__(self, device: Device, size_bytes: int, enqueuing: threading.Lock) -> None:
        self._device = device
        self._enqueuing = enqueuing
        self._block_bytes = size_bytes // STAGING_BLOCKS // PIECE_BYTES * PIECE_BYTES
        self._blocks: list[_Block] = []
        self._next = 0
        self._threads: _Threads | None = None
        self._lock = threading.Lock()

    def takes(self, size_bytes: int) -> bool:
        """Whether a transfer of this size goes this way."""
        return self._block_bytes > 0 and size_bytes >= LEAST_BYTES

    def upload(self, data: np.ndarray, buffer: cl.Buffer, queue: cl.CommandQueue) -> None:
        """Copy bytes to the start of a buffer, in the queue's order; `data` may change once this returns.

        Args:
            data: bytes, or lines of bytes that lie apart `(lines, bytes)` and are put together.
            buffer: where to.
            queue: of the device.
        """
        lines = np.atleast_2d(data)

        def send(block: _Block, start: int, stop: int) -> None:
            block.wait_for_threads()
            part = block.array[: stop - start]
            with self._enqueuing:
                block.event = cl.enqueue_copy(queue, buffer, part, dst_offset=start, is_blocking=False)
                queue.flush()

        with self._lock:
            threads = self._make_ready()
            filled: tuple[_Block, int, int] | None = None
            try:
                for block, start, stop in self._in_turn(data.size):
                    threads.share_out(block, stop - start, partial(_fill, lines, start))
                    if filled is not None:
                        send(*filled)
                    filled = block, start, stop
                if filled is not None:
                    send(*filled)
            except BaseException:
                # Threads still read `data`, which is the caller's again.
                for block in self._blocks:
                    block.wait_for_threads()
                raise

    def download(self, buffer: cl.Buffer, data: np.ndarray, queue: cl.CommandQueue) -> None:
        """Fill `data` (bytes) from the start of a buffer, in the queue's order; complete on return."""
        with self._lock:
            threads = self._make_ready()
            try:
                for block, start, stop in self._in_turn(len(data)):
                    part = block.array[: stop - start]
                    # One read at a time: NVIDIA's driver lets reads that wait in a queue hold up the other direction.
                    cl.enqueue_copy(queue, part, buffer, src_offset=start, is_blocking=True)
                    threads.share_out(block, stop - start, partial(_empty, data[start:stop]))
            finally:
                for block in self._blocks:
                    block.settle()

    def _in_turn(self, size: int) -> Iterator[tuple[_Block, int, int]]:
        """Blocks for all bytes of a transfer, each once nothing is under way with it."""
        for start in range(0, size, self._block_bytes):
            block = self._blocks[self._next]
            self._next = (self._next + 1) % len(self._blocks)
            block.settle()
            yield block, start, min(start + self._block_bytes, size)

    def _make_ready(self) -> _Threads:
        if self._threads is None:
            while len(self._blocks) < STAGING_BLOCKS:
                self._blocks.append(_Block(self._device.pinned.take(self._block_bytes)))
            self._threads = _Threads(COPYING_THREADS)
        return self._threads

    def close(self) -> None:
        """Wait for what is under way, and leave the blocks to the next run; harmless when called twice."""
        with self._lock:
            threads, self._threads = self._threads, None
            blocks, self._blocks = self._blocks, []
        if threads is not None:
            threads.close()
        for block in blocks:
            try:
                block.settle()
            finally:
                self._device.pinned.give(block.array)


def _fill(lines: np.ndarray, start: int, at: int, piece: np.ndarray) -> None:
    packed(lines, start + at, piece)


def _empty(data: np.ndarray, at: int, piece: np.ndarray) -> None:
    np.copyto(data[at : at + len(piece)], piece)
