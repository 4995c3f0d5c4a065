"""Pinned host memory through which arrays go to a discrete device and come back, copied by several threads.

A device reads and writes pinned memory by itself at the speed of the bus; from ordinary memory
the driver copies in one thread, a fifth as fast on the machine that this was measured on
(PCIe 5: 55 GB/s pinned, 8 and 17 GB/s not; one core copies 7 GB/s, sixteen 46 to 68).
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import partial

import numpy as np

from flowcompute.gpu._cl import cl
from flowcompute.gpu.buffers import packed
from flowcompute.gpu.device import Device
from flowcompute.planner.memory import MOST_COPYING_THREADS, PIECE_BYTES, STAGING_BLOCKS

LEAST_BYTES = 2 << 20
"""Arrays below this go through the driver: handing them to threads would take longer."""


class _Block:
    """Pinned memory that the device reads or writes in one go, and what is under way with it."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array
        self.event: cl.Event | None = None
        self.copies: list[Future[None]] = []

    def settle(self) -> None:
        """Wait until threads and device are done with it.

        Raises:
            cl.Error: if the device could not read it.
        """
        event, self.event = self.event, None
        copies, self.copies = self.copies, []
        wait(copies)
        if event is not None:
            event.wait()
        for copy in copies:
            copy.result()


class Staging:
    """A ring of pinned blocks and the threads that fill or empty them. One transfer at a time.

    Threads copy pieces of one block while the device reads or writes another: the device is asked
    once for each block, since asking it for each piece took longer than copying them.

    Args:
        device: a discrete one.
        size_bytes: pinned memory; see `planner.memory.staging_bytes`. Taken with the first large transfer.
    """

    def __init__(self, device: Device, size_bytes: int) -> None:
        self._device = device
        self._block_bytes = size_bytes // STAGING_BLOCKS // PIECE_BYTES * PIECE_BYTES
        self._threads = min(MOST_COPYING_THREADS, os.cpu_count() or 1)
        self._blocks: list[_Block] = []
        self._next = 0
        self._pool: ThreadPoolExecutor | None = None
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
            copies, block.copies = block.copies, []
            for copy in copies:
                copy.result()
            part = block.array[: stop - start]
            block.event = cl.enqueue_copy(queue, buffer, part, dst_offset=start, is_blocking=False)
            queue.flush()

        with self._lock:
            filled: tuple[_Block, int, int] | None = None
            try:
                for block, start, stop in self._in_turn(data.size):
                    self._share_out(block, stop - start, partial(_fill, lines, start))
                    if filled is not None:
                        send(*filled)
                    filled = block, start, stop
                if filled is not None:
                    send(*filled)
            except BaseException:
                # Threads still read `data`, which is the caller's again.
                wait([copy for block in self._blocks for copy in block.copies])
                raise

    def download(self, buffer: cl.Buffer, data: np.ndarray, queue: cl.CommandQueue) -> None:
        """Fill `data` (bytes) from the start of a buffer, in the queue's order; complete on return."""
        with self._lock:
            try:
                for block, start, stop in self._in_turn(len(data)):
                    part = block.array[: stop - start]
                    cl.enqueue_copy(queue, part, buffer, src_offset=start, is_blocking=True)
                    self._share_out(block, stop - start, partial(_empty, data[start:stop]))
            finally:
                for block in self._blocks:
                    block.settle()

    def _in_turn(self, size: int) -> Iterator[tuple[_Block, int, int]]:
        """Blocks for all bytes of a transfer, each once nothing is under way with it."""
        self._make_ready()
        for start in range(0, size, self._block_bytes):
            block = self._blocks[self._next]
            self._next = (self._next + 1) % len(self._blocks)
            block.settle()
            yield block, start, min(start + self._block_bytes, size)

    def _share_out(self, block: _Block, size: int, copy: Callable[[int, np.ndarray], None]) -> None:
        """Let the threads copy to or from a block, in pieces: `copy(where it begins, piece)`."""
        assert self._pool is not None
        piece = max(LEAST_BYTES, min(PIECE_BYTES, -(-size // self._threads)))
        for start in range(0, size, piece):
            block.copies.append(self._pool.submit(copy, start, block.array[start : min(start + piece, size)]))

    def _make_ready(self) -> None:
        if self._pool is None:
            while len(self._blocks) < STAGING_BLOCKS:
                self._blocks.append(_Block(self._device.pinned.take(self._block_bytes)))
            self._pool = ThreadPoolExecutor(self._threads, thread_name_prefix="flowcompute-copy")

    def close(self) -> None:
        """Wait for what is under way, and leave the blocks to the next run; harmless when called twice."""
        with self._lock:
            pool, self._pool = self._pool, None
            blocks, self._blocks = self._blocks, []
        if pool is not None:
            pool.shutdown(wait=True)
        for block in blocks:
            try:
                block.settle()
            finally:
                self._device.pinned.give(block.array)


def _fill(lines: np.ndarray, start: int, at: int, piece: np.ndarray) -> None:
    packed(lines, start + at, piece)


def _empty(data: np.ndarray, at: int, piece: np.ndarray) -> None:
    np.copyto(data[at : at + len(piece)], piece)
