"""The compute stage where batches overlap: some are uploaded while another is computed and others downloaded."""

from __future__ import annotations

import math
from typing import Any

import trio

from flowcompute.batch import Batch
from flowcompute.planner.backend import Executor
from flowcompute.planner.clockwork import DRAIN
from flowcompute.runtime.channel import Parcel
from flowcompute.runtime.computing import ComputeTask, Emission
from flowcompute.runtime.failure import attributed
from flowcompute.runtime.pass_record import PassRecord
from flowcompute.runtime.stage_record import State


class _Coming:
    """A batch on its way to be computed, and what its sources lie in; `there` once it has been uploaded."""

    def __init__(self, batch: Batch, parcels: list[Parcel]) -> None:
        self.batch = batch
        self.parcels = parcels
        self.there = trio.Event()

    def release(self) -> None:
        """Give the sources' buffers back."""
        while self.parcels:
            self.parcels.pop().release()


class _Going:
    """What has been computed on its way to destinations; `there` once it has been downloaded."""

    def __init__(self, batch: Batch | None, emission: Emission) -> None:
        self.batch = batch
        self.emission = emission
        self.there = trio.Event()

    def release(self) -> None:
        """Drop what nobody takes any more."""
        self.emission.release()


class OverlappedTask(ComputeTask):
    """A compute task of four tasks in a row, for executors with several batches in flight.

    Up to `Executor.in_flight` batches are on their way at a time. They are begun, computed and sent in record
    order; up to `Executor.lanes` of them are uploaded at a time, and as many downloaded. Before a checkpoint, and
    before the end, all of them arrive.

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

    async def _run_batches(self) -> None:
        # The slots bound what lies in all three.
        coming, to_compute = trio.open_memory_channel[_Coming](math.inf)
        computed, to_download = trio.open_memory_channel[_Going](0)
        going, to_send = trio.open_memory_channel[_Going](math.inf)
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

    # -- before ---------------------------------------------------------------------------------

    async def _upload_all(self, coming: trio.MemorySendChannel[_Coming]) -> None:
        with coming, self._enough:
            async with trio.open_nursery() as uploads:
                seq = 0
                while (batch := await self._begin(seq, coming, uploads)) is not None:
                    self._starts[self._root] = batch.stop
                    seq += 1
        self._uploads.enter(State.DONE)

    async def _begin(self, seq: int, coming: trio.MemorySendChannel[_Coming], uploads: trio.Nursery) -> Batch | None:
        """Let the next batch come; None after the last."""
        if self._keeper is not None and self._keeper.is_due():
            await self._arrived()
            await self._cut(self._keeper)
            for _ in range(self._count):
                self._slots.release()
        await self._slots.acquire()
        parcels: list[Parcel] = []
        try:
            batch = await self._receive(self._root, seq, parcels)
            if batch is None:
                return None
            one = _Coming(batch, parcels)
            coming.send_nowait(one)
            parcels = []
        finally:
            for parcel in parcels:
                parcel.release()
        await self._up.acquire()
        uploads.start_soon(self._upload, one)
        return batch

    async def _arrived(self) -> None:
        """Take all slots, once every batch is with its destinations."""
        self._uploads.enter(State.OUTPUT, self._downloads.name)
        for _ in range(self._count):
            await self._slots.acquire()

    async def _upload(self, one: _Coming) -> None:
        batch = one.batch
        records = (batch.start, batch.stop)
        self._uploads.enter(State.BUSY, "uploading", records)
        with attributed(self._record.label, None, records):
            size = await self._workers.call(self._executor.upload, batch)
        self._uploads.passed(batch.items, size, size)
        one.there.set()
        self._up.release()

    # -- between --------------------------------------------------------------------------------

    async def _compute_all(
        self, coming: trio.MemoryReceiveChannel[_Coming], computed: trio.MemorySendChannel[_Going]
    ) -> None:
        with computed:
            while (wanted := self._executor.wants()) is not None:
                if wanted == DRAIN:
                    await self._give(computed, None, await self._drained())
                elif not await self._compute_next(coming, computed):
                    await self._give(computed, None, await self._ended(self._root))
            # Whatever is under way to here is of no use any more.
            self._enough.cancel()

    async def _compute_next(
        self, coming: trio.MemoryReceiveChannel[_Coming], computed: trio.MemorySendChannel[_Going]
    ) -> bool:
        """Compute the next batch; False after the last."""
        self._record.enter(State.INPUT, self._uploads.name)
        try:
            one = await coming.receive()
        except trio.EndOfChannel:
            return False
        try:
            await one.there.wait()
            emission = await self._compute(one.batch, one.parcels, settled=False)
        finally:
            one.release()
        await self._give(computed, one.batch, emission)
        self._done(one.batch)
        await self._pause()
        return True

    async def _give(self, computed: trio.MemorySendChannel[_Going], batch: Batch | None, emission: Emission) -> None:
        try:
            await computed.send(_Going(batch, emission))
        except BaseException:
            emission.release()
            raise

    # -- behind ---------------------------------------------------------------------------------

    async def _download_all(
        self, computed: trio.MemoryReceiveChannel[_Going], going: trio.MemorySendChannel[_Going]
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

    async def _download(self, one: _Going, batch: Batch) -> None:
        records = (batch.start, batch.stop)
        self._downloads.enter(State.BUSY, "downloading", records)

        with attributed(self._record.label, None, records):
            size = await self._workers.call(self._executor.download, batch)
        self._downloads.passed(batch.items, size, size)
        self._downloads.enter(State.INPUT, self._record.name)
        one.there.set()
        self._down.release()

    async def _send_all(self, going: trio.MemoryReceiveChannel[_Going]) -> None:
        async for one in going:
            try:
                await one.there.wait()
                if one.emission.placed:
                    await self._workers.call(one.emission.settle)
                await one.emission.send()
            finally:
                one.release()
            if one.batch is not None:
                self._slots.release()
        self._downloads.enter(State.DONE)


def _empty(channel: trio.MemoryReceiveChannel[Any]) -> None:
    """Release what nobody has received."""
    while True:
        try:
            channel.receive_nowait().release()
        except (trio.WouldBlock, trio.EndOfChannel, trio.ClosedResourceError):
            return
