"""The stage that reads a source."""

from __future__ import annotations

import contextlib
import math
from collections import deque
from typing import TYPE_CHECKING

import numpy as np

from flowcompute.elements import AsyncReader, Reader
from flowcompute.errors import SourceError
from flowcompute.imports import LateModule
from flowcompute.observe import StageState
from flowcompute.runtime.channels import Channel, Message, Pool, SharedBuffer, Workers, attributed
from flowcompute.runtime.events import StageReporter
from flowcompute.runtime.stages.batch_boundaries import BatchBoundaries
from flowcompute.schedule import SourceStage

if TYPE_CHECKING:
    import trio
else:
    trio = LateModule("trio")


class _PendingRead:
    """Records that are being read into a buffer; `there` once they have been, or could not be."""

    def __init__(self, start: int, array: np.ndarray, buffer: SharedBuffer) -> None:
        self.message = Message(start, start + len(array), array, buffer)
        self.error: Exception | None = None
        self.there = trio.Event()


class SourceTask:
    """Reads one source, batch by batch.

    Args:
        stage: what the plan says of it.
        reader: the opened source.
        record: its live record.
        channel: towards the compute stage.
        pool: buffers to read into, of one batch or several; not touched when the reader gives views.
        workers: threads to read in.
        boundaries: where batches end.
        wanted: of a stream of unknown length, the most records that are of use; None for all.
        start: the record at which the reader was opened.
    """

    def __init__(
        self,
        stage: SourceStage,
        reader: Reader,
        record: StageReporter,
        channel: Channel,
        pool: Pool,
        *,
        workers: Workers,
        boundaries: BatchBoundaries,
        wanted: int | None = None,
        start: int = 0,
    ) -> None:
        self._stage = stage
        self._reader = reader
        self._record = record
        self._pool = pool
        self._channel = channel
        self._workers = workers
        self._boundaries = boundaries
        self._wanted = wanted
        self._start = start
        self._gives_views = not isinstance(reader, AsyncReader)
        self._buffer: SharedBuffer | None = None
        self._filled = 0
        self._immediate = reader.immediate

    async def run(self) -> None:
        """Read to the end of the stream, or until no more is wanted, then say so."""
        try:
            with contextlib.suppress(trio.BrokenResourceError):
                if self._stage.spec.length is None or self._reader.reads_at_a_time == 1:
                    await self._read_all()
                else:
                    await self._read_ahead(self._stage.spec.length)
        finally:
            self._leave()
        self._channel.finish()
        self._record.enter(StageState.DONE)

    async def _read_all(self) -> None:
        start, length = self._start, self._stage.spec.length
        end = self._wanted if length is None else length
        while end is None or start < end:
            cut = self._boundaries.stop(start)
            stop, full = cut if end is None else min(cut, end), cut - start
            message = await self._next(start, stop)
            items = 0 if message is None else message.stop - start
            if message is not None:
                await self._send(message)
                start = message.stop
            if items < full and start != end:
                if length is not None:
                    raise self._too_short(start, length)
                break

    async def _next(self, start: int, stop: int) -> Message | None:
        """Return records `start` to at most `stop`, or None when there are no more."""
        if self._gives_views:
            array = await self._view(start, stop)
            if array is not None:
                return Message(start, start + len(array), array, None) if len(array) else None
            self._gives_views = False
        array, buffer = await self._room(stop - start)
        try:
            items = await self._read(array, start, stop)
        except BaseException:
            buffer.release()
            raise
        if not items:
            buffer.release()
            return None
        return Message(start, start + items, array[:items], buffer)

    async def _room(self, items: int) -> tuple[np.ndarray, SharedBuffer]:
        """Room for records, behind those before where the buffer has it: batches of one buffer may be joined."""
        if self._buffer is None or self._filled + items > len(self._buffer.array):
            self._leave()
            self._buffer, self._filled = await self._credit(), 0
        buffer, first = self._buffer, self._filled
        buffer.holders += 1
        self._filled += items
        if self._filled + self._boundaries.items > len(buffer.array):
            self._leave()
        return buffer.array[first : first + items], buffer

    def _leave(self) -> None:
        """Fill the buffer no further."""
        buffer, self._buffer = self._buffer, None
        if buffer is not None:
            buffer.release()

    async def _credit(self) -> SharedBuffer:
        buffer = self._pool.acquire_nowait()
        if buffer is None:
            self._record.enter(StageState.CREDIT, "compute")
            buffer = await self._pool.acquire()
        return buffer

    async def _view(self, start: int, stop: int) -> np.ndarray | None:
        self._record.enter(StageState.BUSY, "reading", (start, stop))
        with attributed(self._stage.name, self._stage.element.site, (start, stop)):
            if self._immediate:
                return self._reader.view(stop - start)
            return await self._workers.call(self._reader.view, stop - start)

    async def _read(self, out: np.ndarray, start: int, stop: int) -> int:
        with attributed(self._stage.name, self._stage.element.site, (start, stop)):
            if isinstance(self._reader, AsyncReader):
                self._record.enter(StageState.INPUT, "what it iterates over,", (start, stop))
                return await self._reader.read_async(out)
            self._record.enter(StageState.BUSY, "reading", (start, stop))
            return await self._workers.call(self._reader.read, out)

    # -- several reads at a time ----------------------------------------------------------------

    async def _read_ahead(self, end: int) -> None:
        """Read a stream of known length: a batch is read while the one before it still is."""
        coming: deque[_PendingRead] = deque()
        begun, to_send = trio.open_memory_channel[_PendingRead](math.inf)
        try:
            async with trio.open_nursery() as reads:
                reads.start_soon(self._begin_reads, end, coming, begun, reads)
                async for one in to_send:
                    await one.there.wait()
                    if one.error is not None:
                        raise one.error
                    coming.popleft()
                    try:
                        await self._send(one.message)
                    except trio.BrokenResourceError:
                        # Nobody wants more; within a nursery the error would become a group.
                        reads.cancel_scope.cancel()
        finally:
            for one in coming:
                one.message.release()

    async def _begin_reads(
        self, end: int, coming: deque[_PendingRead], begun: trio.MemorySendChannel[_PendingRead], reads: trio.Nursery
    ) -> None:
        free, start = trio.Semaphore(self._reader.reads_at_a_time), self._start
        with begun:
            while start < end:
                stop = min(self._boundaries.stop(start), end)
                await free.acquire()
                one = _PendingRead(start, *await self._room(stop - start))
                coming.append(one)
                begun.send_nowait(one)
                reads.start_soon(self._bring, one, end, free)
                start = stop

    async def _bring(self, one: _PendingRead, end: int, free: trio.Semaphore) -> None:
        """Read a batch. An error is told when it is its turn, after what was read before it."""
        start, stop = one.message.start, one.message.stop
        self._record.enter(StageState.BUSY, "reading", (start, stop))
        try:
            with attributed(self._stage.name, self._stage.element.site, (start, stop)):
                items = await self._workers.call(self._reader.read_at, start, one.message.array)
            if items < stop - start:
                raise self._too_short(start + items, end)
        except Exception as error:  # noqa: BLE001 - raised by the task that sends
            one.error = error
        free.release()
        one.there.set()

    async def _send(self, message: Message) -> None:
        items, size_bytes = message.stop - message.start, message.array.nbytes
        try:
            await self._channel.send(message)
        except BaseException:
            message.release()
            raise
        self._record.passed(items, 0, size_bytes)

    def _too_short(self, got: int, length: int) -> SourceError:
        return SourceError(
            "cannot go on: the source ended early",
            element=self._stage.name,
            site=self._stage.element.site,
            expected=f"{length} records",
            got=f"{got}",
            hint="see whether what it reads was cut short since the job was composed",
        )
