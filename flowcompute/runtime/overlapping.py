"""The compute stage where batches overlap: one is uploaded while another is computed and a third downloaded."""

from __future__ import annotations

from collections.abc import Callable
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


class _Uploaded:
    """A batch on the device, and what its sources lie in."""

    def __init__(self, batch: Batch, parcels: list[Parcel]) -> None:
        self.batch = batch
        self._parcels = parcels

    @property
    def parcels(self) -> list[Parcel]:
        return self._parcels

    def release(self) -> None:
        """Give the sources' buffers back."""
        for parcel in self._parcels:
            parcel.release()
        self._parcels = []


class OverlappedTask(ComputeTask):
    """A compute task of three tasks in a row, for executors with several batches in flight.

    Up to `Executor.in_flight` batches are on their way at a time, in order all the way. Before a
    checkpoint, and before the end, all of them arrive.

    Args:
        executor, record, options: as `ComputeTask`.
    """

    def __init__(self, executor: Executor, record: PassRecord, *args: Any, **options: Any) -> None:
        super().__init__(executor, record, *args, **options)
        self._uploads = record.taker
        self._downloads = record.giver
        self._root = next(clock.id for clock in self._clocks if clock.is_root)
        self._count = self._executor.in_flight
        self._slots = trio.Semaphore(self._count)
        self._enough = trio.CancelScope()

    async def _run_batches(self) -> None:
        # The slots bound what lies in both.
        uploaded, to_compute = trio.open_memory_channel[_Uploaded](self._count)
        computed, to_download = trio.open_memory_channel[tuple[Batch | None, Emission]](self._count)
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._upload_all, uploaded)
                nursery.start_soon(self._compute_all, to_compute, computed)
                nursery.start_soon(self._download_all, to_download)
        finally:
            # Tasks close what they send on only: what lies in a channel that nobody receives from is lost.
            _empty(to_compute, _Uploaded.release)
            _empty(to_download, lambda pair: pair[1].release())

    async def _upload_all(self, uploaded: trio.MemorySendChannel[_Uploaded]) -> None:
        with uploaded, self._enough:
            seq = 0
            while True:
                if self._keeper is not None and self._keeper.is_due():
                    await self._arrived()
                    await self._cut(self._keeper)
                    self._give_slots(self._count)
                await self._slots.acquire()
                parcels: list[Parcel] = []
                try:
                    batch = await self._receive(self._root, seq, parcels)
                    if batch is None:
                        break
                    await self._upload(batch)
                    self._starts[self._root] = batch.stop
                    uploaded.send_nowait(_Uploaded(batch, parcels))
                    parcels = []
                finally:
                    for parcel in parcels:
                        parcel.release()
                seq += 1
        self._uploads.enter(State.DONE)

    async def _upload(self, batch: Batch) -> None:
        records = (batch.start, batch.stop)
        self._uploads.enter(State.BUSY, "uploading", records)
        with attributed(self._record.label, None, records):
            size = await self._workers.call(self._executor.upload, batch)
        self._uploads.passed(batch.items, size, size)

    async def _arrived(self) -> None:
        """Take all slots, once every batch is with its destinations."""
        self._uploads.enter(State.OUTPUT, self._downloads.name)
        for _ in range(self._count):
            await self._slots.acquire()

    def _give_slots(self, count: int) -> None:
        for _ in range(count):
            self._slots.release()

    async def _compute_all(
        self,
        uploaded: trio.MemoryReceiveChannel[_Uploaded],
        computed: trio.MemorySendChannel[tuple[Batch | None, Emission]],
    ) -> None:
        with computed:
            wanted = self._executor.wants()
            while wanted is not None:
                if wanted == DRAIN:
                    await self._send(computed, None, await self._drained())
                elif (one := await self._next(uploaded)) is not None:
                    try:
                        emission = await self._compute(one.batch, one.parcels, settled=False)
                    finally:
                        one.release()
                    await self._send(computed, one.batch, emission)
                    self._done(one.batch)
                    await self._pause()
                else:
                    await self._send(computed, None, await self._ended(self._root))
                wanted = self._executor.wants()
            # Whatever is under way to here is of no use any more.
            self._enough.cancel()

    async def _next(self, uploaded: trio.MemoryReceiveChannel[_Uploaded]) -> _Uploaded | None:
        self._record.enter(State.INPUT, self._uploads.name)
        try:
            return await uploaded.receive()
        except trio.EndOfChannel:
            return None

    async def _send(
        self,
        computed: trio.MemorySendChannel[tuple[Batch | None, Emission]],
        batch: Batch | None,
        emission: Emission,
    ) -> None:
        try:
            await computed.send((batch, emission))
        except BaseException:
            emission.release()
            raise

    async def _download_all(self, computed: trio.MemoryReceiveChannel[tuple[Batch | None, Emission]]) -> None:
        while True:
            self._downloads.enter(State.INPUT, self._record.name)
            try:
                batch, emission = await computed.receive()
            except trio.EndOfChannel:
                break
            if batch is not None:
                await self._download(batch, emission)
            await self._pass_on(emission)
            if batch is not None:
                self._slots.release()
        self._downloads.enter(State.DONE)

    async def _download(self, batch: Batch, emission: Emission) -> None:
        records = (batch.start, batch.stop)
        self._downloads.enter(State.BUSY, "downloading", records)

        def work() -> int:
            with attributed(self._record.label, None, records):
                size = self._executor.download(batch)
            emission.settle()
            return size

        try:
            size = await self._workers.call(work)
        except BaseException:
            emission.release()
            raise
        self._downloads.passed(batch.items, size, size)


def _empty(channel: trio.MemoryReceiveChannel[Any], release: Callable[[Any], None]) -> None:
    """Release what nobody has received."""
    while True:
        try:
            release(channel.receive_nowait())
        except (trio.WouldBlock, trio.EndOfChannel, trio.ClosedResourceError):
            return
