"""The compute stage where batches overlap: some are uploaded while another is computed and others downloaded."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from flowcompute.batch import Batch
from flowcompute.engine import DRAIN, Executor
from flowcompute.imports import LateModule
from flowcompute.observe import StageState
from flowcompute.runtime.channels import Message, PassRecord, attributed
from flowcompute.runtime.stages.computing import ComputeTask
from flowcompute.runtime.stages.turn import ComputedBatch

if TYPE_CHECKING:
    import trio
else:
    trio = LateModule("trio")


class _UploadingBatch:
    """A batch on its way to be computed, and what its sources lie in; `there` once it has been uploaded.

    Attributes:
        batch: all records.
        messages: of each batch that was joined, by source.
    """

    def __init__(self, batch: Batch, messages: list[Message]) -> None:
        self.batch = batch
        self.messages = [messages]
        self.there = trio.Event()

    def join(self, other: _UploadingBatch) -> bool:
        """Add the batch that follows, if it also follows in memory; `other` has nothing then."""
        joined: dict[int, np.ndarray] = {}
        for value, array in self.batch.arrays.items():
            both = _joined(array, other.batch.arrays[value])
            if both is None:
                return False
            joined[value] = both
        self.batch = replace(self.batch, stop=other.batch.stop, arrays=joined)
        self.messages += other.messages
        other.messages = []
        return True

    def release(self) -> None:
        """Give the sources' buffers back."""
        for messages in self.messages:
            while messages:
                messages.pop().release()


def _joined(first: np.ndarray, second: np.ndarray) -> np.ndarray | None:
    """Two arrays as one, if the second begins where the first one ends; both are C-contiguous."""
    same = first.base is not None and first.base is second.base
    if not same or first.ctypes.data + first.nbytes != second.ctypes.data:
        return None
    shape = (len(first) + len(second), *first.shape[1:])
    return np.lib.stride_tricks.as_strided(first, shape, writeable=False)


class _DownloadingBatch:
    """A computed batch on its way; `there` once it has been downloaded, `sent` once passed on.

    Of an end of a stream there is no batch, but what it has let others compute.
    """

    def __init__(self, batch: Batch | None, outgoing: ComputedBatch) -> None:
        self.batch = batch
        self.outgoing = outgoing
        self.there = trio.Event()
        self.sent = trio.Event()

    def release(self) -> None:
        """Drop what nobody takes any more."""
        self.outgoing.release()


class OverlappedTask(ComputeTask):
    """A compute task of four tasks in a row, for executors with several batches in flight.

    Up to `Executor.in_flight` batches are on their way at a time. They are begun, computed and sent in record
    order; up to `Executor.lanes` are uploaded at a time, and as many downloaded. Small ones of a stream that comes
    little by little are joined where they are there. To hand one to a thread and back takes longer than to compute it.
    Before a checkpoint, and before the end, all batches arrive.

    Args:
        executor, record, options: as `ComputeTask`.
    """

    def __init__(self, executor: Executor, record: PassRecord, *args: Any, **options: Any) -> None:
        super().__init__(executor, record, *args, **options)
        self._uploads = record.taker
        self._downloads = record.giver
        self._root = next(clock.id for clock in self._clocks if clock.is_root)
        self._count = executor.in_flight
        self._slots = trio.Semaphore(self._count)
        self._up = trio.Semaphore(executor.lanes)
        self._down = trio.Semaphore(executor.lanes)
        self._enough = trio.CancelScope()
        self._next: _UploadingBatch | None = None
        # Held while the state changes without a batch, until what comes of it is sent, and while it is copied.
        self._state = trio.Lock()

    async def _run_batches(self) -> None:
        # The slots bound what lies in all three.
        coming, to_compute = trio.open_memory_channel[_UploadingBatch](math.inf)
        computed, to_download = trio.open_memory_channel[_DownloadingBatch](0)
        going, to_send = trio.open_memory_channel[_DownloadingBatch](math.inf)
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._upload_all, coming)
                nursery.start_soon(self._compute_all, to_compute, computed)
                nursery.start_soon(self._download_all, to_download, going)
                nursery.start_soon(self._send_all, to_send)
        finally:
            # Tasks close what they send on only: what lies in a channel that nobody receives from is lost.
            for channel in (to_compute, to_send):
                _empty(channel)
            if self._next is not None:
                self._next.release()

    # -- before ---------------------------------------------------------------------------------

    async def _upload_all(self, coming: trio.MemorySendChannel[_UploadingBatch]) -> None:
        with coming, self._enough:
            async with trio.open_nursery() as uploads:
                seq = 0
                while (one := await self._begin(seq, coming)) is not None:
                    seq += 1
                    await self._up.acquire()
                    uploads.start_soon(self._upload, one)
        self._uploads.enter(StageState.DONE)

    async def _begin(self, seq: int, coming: trio.MemorySendChannel[_UploadingBatch]) -> _UploadingBatch | None:
        """Let the next batch come, joined with those behind it that are there; None after the last."""
        if self._coordinator is not None and self._coordinator.is_due():
            await self._arrived()
            async with self._state:
                await self._cut(self._coordinator)
            for _ in range(self._count):
                self._slots.release()
        await self._slots.acquire()
        one = await self._take_in(seq)
        if one is None:
            return None
        try:
            while True:
                self._starts[self._root] = one.batch.stop
                following = await self._take_in(seq) if self._may_join(one.batch) else None
                if following is None:
                    break
                if not one.join(following):
                    # It begins where the sources go on, should they be asked to before it is taken.
                    self._next = following
                    break
            coming.send_nowait(one)
        except BaseException:
            one.release()
            raise
        return one

    async def _take_in(self, seq: int) -> _UploadingBatch | None:
        """Return the next of what the sources give; None after the last."""
        one, self._next = self._next, None
        if one is not None:
            one.batch = replace(one.batch, seq=seq)
            return one
        messages: list[Message] = []
        batch = None
        try:
            batch = await self._receive(self._root, seq, messages)
        finally:
            while batch is None and messages:
                messages.pop().release()
        return None if batch is None else _UploadingBatch(batch, messages)

    def _may_join(self, batch: Batch) -> bool:
        """Check whether what comes next can be computed with a batch, and need not be waited for."""
        clock, most = self._clocks[self._root], self._boundaries[self._root].most_items
        if self._next is not None or self._after_batch is not None or self._throttle_s:
            return False
        if not clock.sources or batch.items + most > clock.batch_items:
            return False
        return all(self._sources[stage.value].queued for stage in clock.sources)

    async def _arrived(self) -> None:
        """Take all slots, once every batch is with its destinations."""
        self._uploads.enter(StageState.OUTPUT, self._downloads.name)
        for _ in range(self._count):
            await self._slots.acquire()

    async def _upload(self, one: _UploadingBatch) -> None:
        batch = one.batch
        self._uploads.enter(StageState.BUSY, "uploading", (batch.start, batch.stop))
        size = await self._move(self._executor.upload, self._executor.uploads_at_once, batch)
        self._uploads.passed(batch.items, size, size)
        one.there.set()
        self._up.release()

    async def _move(self, move: Callable[[Batch], int], is_at_once: Callable[[Batch], bool], batch: Batch) -> int:
        """Move a batch, in a thread where that takes any time; gives the bytes."""
        with attributed(self._record.label, None, (batch.start, batch.stop)):
            return move(batch) if is_at_once(batch) else await self._workers.call(move, batch)

    # -- between --------------------------------------------------------------------------------

    async def _compute_all(
        self, coming: trio.MemoryReceiveChannel[_UploadingBatch], computed: trio.MemorySendChannel[_DownloadingBatch]
    ) -> None:
        with computed:
            while (wanted := self._wanted()) is not None:
                if wanted == DRAIN:
                    async with self._state:
                        going = await self._give(computed, None, await self._drained())
                        await going.sent.wait()
                elif not await self._compute_next(coming, computed):
                    await self._give(computed, None, await self._ended(self._root))
            # Whatever is under way to here is of no use any more.
            self._enough.cancel()

    async def _compute_next(
        self, coming: trio.MemoryReceiveChannel[_UploadingBatch], computed: trio.MemorySendChannel[_DownloadingBatch]
    ) -> bool:
        """Compute the next batch; False after the last."""
        self._record.enter(StageState.INPUT, self._uploads.name)
        try:
            one = await coming.receive()
        except trio.EndOfChannel:
            return False
        try:
            await one.there.wait()
            outgoing = await self._compute(one.batch, one.messages, settled=False)
        finally:
            one.release()
        await self._give(computed, one.batch, outgoing)
        self._done(one.batch)
        await self._pause()
        return True

    async def _give(
        self, computed: trio.MemorySendChannel[_DownloadingBatch], batch: Batch | None, outgoing: ComputedBatch
    ) -> _DownloadingBatch:
        going = _DownloadingBatch(batch, outgoing)
        try:
            await computed.send(going)
        except BaseException:
            going.release()
            raise
        return going

    # -- behind ---------------------------------------------------------------------------------

    async def _download_all(
        self, computed: trio.MemoryReceiveChannel[_DownloadingBatch], going: trio.MemorySendChannel[_DownloadingBatch]
    ) -> None:
        with going:
            async with trio.open_nursery() as downloads:
                async for one in computed:
                    going.send_nowait(one)
                    if one.batch is None:
                        one.there.set()
                        continue
                    await self._down.acquire()
                    downloads.start_soon(self._download, one, one.batch)

    async def _download(self, one: _DownloadingBatch, batch: Batch) -> None:
        self._downloads.enter(StageState.BUSY, "downloading", (batch.start, batch.stop))
        size = await self._move(self._executor.download, self._executor.downloads_at_once, batch)
        self._downloads.passed(batch.items, size, size)
        self._downloads.enter(StageState.INPUT, self._record.name)
        one.there.set()
        self._down.release()

    async def _send_all(self, going: trio.MemoryReceiveChannel[_DownloadingBatch]) -> None:
        async for one in going:
            try:
                await one.there.wait()
                if one.outgoing.placed:
                    await self._workers.call(one.outgoing.settle)
                await one.outgoing.send()
            finally:
                one.release()
            one.sent.set()
            if one.batch is not None:
                self._slots.release()
        self._downloads.enter(StageState.DONE)


def _empty(channel: trio.MemoryReceiveChannel[Any]) -> None:
    """Release what nobody has received."""
    while True:
        try:
            channel.receive_nowait().release()
        except (trio.WouldBlock, trio.EndOfChannel, trio.ClosedResourceError):
            return
