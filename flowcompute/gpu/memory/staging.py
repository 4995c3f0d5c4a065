"""Pinned host memory through which arrays go to a discrete device and come back, copied by several threads.

A device reads and writes pinned memory by itself at the speed of the bus; from ordinary memory
the driver copies in one thread, a fifth as fast on the machine that this was measured on
(PCIe 5: 55 GB/s pinned, 8 and 17 GB/s not; one core copies 7 GB/s, sixteen 46 to 68).
"""

from __future__ import annotations

import contextlib
import threading
from collections import deque
from collections.abc import Callable
from functools import partial
from queue import Empty, SimpleQueue

import numpy as np

from flowcompute.gpu.device import Device, cl
from flowcompute.gpu.memory.device_buffers import packed
from flowcompute.schedule import COPYING_THREADS
from flowcompute.schedule.memory import PIECE_BYTES, STAGING_BLOCKS
from flowcompute.thread_pool import PendingCalls, ThreadPool

LEAST_BYTES = 2 << 20
"""Arrays below this go through slots (`small_staging`) or the driver: handing them to threads would take longer."""


_AHEAD = STAGING_BLOCKS // 2
"""Blocks of one transfer that threads may copy at a time; the others are for the device and for its neighbours."""


class _Block:
    """Pinned memory that the device reads or writes in one go, and what is under way with it."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array
        self.event: cl.Event | None = None
        self.copies: PendingCalls[None] = PendingCalls(0)

    def settle(self) -> None:
        """Wait until the device is done with it.

        Raises:
            cl.Error: if the device could not read it.
        """
        event, self.event = self.event, None
        if event is not None:
            event.wait()


_Step = Callable[[_Block, int, int], None]
"""Does something with a block and the bytes of a transfer, from and to, that go through it."""


class Staging:
    """A ring of pinned blocks and the threads that fill or empty them, for any number of transfers at a time.

    Threads copy pieces of some blocks while the device reads or writes another: the device is asked
    once for each block, since asking it for each piece took longer than copying them.

    Args:
        device: a discrete one.
        size_bytes: pinned memory; see `schedule.memory.memory_plan.staging_bytes`. Taken with the first large transfer.
        asking: held by who asks the device for a copy.
    """

    def __init__(self, device: Device, size_bytes: int, asking: threading.Lock) -> None:
        # A device that is lost has another one from then on; what was taken here is given back here.
        self._pinned = device.pinned
        self._asking = asking
        self._block_bytes = size_bytes // STAGING_BLOCKS // PIECE_BYTES * PIECE_BYTES
        self._ring: SimpleQueue[_Block] = SimpleQueue()
        self._blocks: list[_Block] = []
        self._threads = ThreadPool("flowcompute-copy")
        self._making = threading.Lock()

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
            try:
                block.copies.wait()
                part = block.array[: stop - start]
                with self._asking:
                    block.event = cl.enqueue_copy(queue, buffer, part, dst_offset=start, is_blocking=False)
                    queue.flush()
            finally:
                self._ring.put(block)

        def fill(block: _Block, start: int, stop: int) -> None:
            block.copies = self._threads.begin(
                [partial(packed, lines, start + at, piece) for at, piece in _pieces(block, stop - start)],
                COPYING_THREADS,
            )

        self._through_blocks(data.size, fill, send)

    def download(self, buffer: cl.Buffer, data: np.ndarray, queue: cl.CommandQueue) -> None:
        """Fill `data` (bytes) from the start of a buffer, in the queue's order; complete on return."""

        def bring(block: _Block, start: int, stop: int) -> None:
            part = block.array[: stop - start]
            with self._asking:
                read_buffer(queue, buffer, part, start)
            pieces = _pieces(block, stop - start)
            block.copies = self._threads.begin(
                [partial(np.copyto, data[start + at : start + at + len(piece)], piece) for at, piece in pieces],
                COPYING_THREADS,
            )

        def give(block: _Block, _start: int, _stop: int) -> None:
            try:
                block.copies.wait()
            finally:
                self._ring.put(block)

        self._through_blocks(len(data), bring, give)

    def _through_blocks(self, size: int, begin: _Step, end: _Step) -> None:
        """Take all bytes through blocks: each is begun as soon as there is one, and ended before it is waited for.

        Who waits for a block holds none, so that transfers which share a ring cannot wait for each other.
        """
        self._make_ready()
        begun: deque[tuple[_Block, int, int]] = deque()
        try:
            for start in range(0, size, self._block_bytes):
                block = self._free(begun, end)
                begun.append((block, start, min(start + self._block_bytes, size)))
                block.settle()
                begin(*begun[-1])
            while begun:
                end(*begun.popleft())
        finally:
            # Threads still read or write what is the caller's again.
            for block, _, _ in begun:
                block.copies.forget()
                self._ring.put(block)

    def _free(self, begun: deque[tuple[_Block, int, int]], end: _Step) -> _Block:
        """The block that was used longest ago; the transfer's own are ended while there is none."""
        while begun:
            with contextlib.suppress(Empty):
                if len(begun) <= _AHEAD:
                    return self._ring.get_nowait()
            end(*begun.popleft())
        return self._ring.get()

    def _make_ready(self) -> None:
        if len(self._blocks) == STAGING_BLOCKS:
            return
        with self._making:
            while len(self._blocks) < STAGING_BLOCKS:
                block = _Block(self._pinned.take(self._block_bytes))
                self._ring.put(block)
                self._blocks.append(block)

    def close(self) -> None:
        """Wait for what is under way, and leave the blocks to the next run; harmless when called twice."""
        self._threads.close()
        blocks, self._blocks, self._ring = self._blocks, [], SimpleQueue()
        with contextlib.ExitStack() as all_of_it:
            for block in blocks:
                all_of_it.callback(self._pinned.give, block.array)
                all_of_it.callback(block.settle)


def read_buffer(queue: cl.CommandQueue, buffer: cl.Buffer, array: np.ndarray, start: int = 0) -> None:
    """Fill bytes from those of a buffer, in the queue's order; complete on return.

    A blocking read would keep NVIDIA's driver to itself until the bytes are there: uploads asked for
    meanwhile wait, and where one read follows another they get 1 to 10 of 50 GB/s.
    """
    event = cl.enqueue_copy(queue, array, buffer, src_offset=start, is_blocking=False)
    queue.flush()
    event.wait()


def _pieces(block: _Block, size: int) -> list[tuple[int, np.ndarray]]:
    """The first bytes of a block in pieces, each with where it begins."""
    return [(at, block.array[at : min(at + PIECE_BYTES, size)]) for at in range(0, size, PIECE_BYTES)]
