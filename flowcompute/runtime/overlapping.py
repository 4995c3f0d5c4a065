"""The compute stage where batches overlap: some are uploaded while another is computed and others downloaded."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import trio

from flowcompute.batch import Batch
from flowcompute.planner.backend import Executor
from flowcompute.planner.clockwork import DRAIN
from flowcompute.runtime.channel import Parcel
from flowcompute.runtime.computing import ComputeTask
from flowcompute.runtime.failure import attributed
from flowcompute.runtime.pass_record import PassRecord
from flowcompute.runtime.stage_record import State
from flowcompute.runtime.turn import Emission

TRIPS = 6
"""Small batches in flight go together as so many trips: some are uploaded, one is computed, one downloaded."""

TRIP_BYTES = 16 << 20
"""Batches go together up to so many bytes: handing over as much costs little beside moving it."""


class _Coming:
    """Neighbouring batches on their way to be computed, and what their sources lie in; `there` once uploaded."""

    def __init__(self) -> None:
        self.batches: list[Batch] = []
        self.parcels: list[list[Parcel]] = []
        self.there = trio.Event()

    @property
    def records(self) -> tuple[int, int]:
        """Those of all batches."""
        return self.batches[0].start, self.batches[-1].stop

    def release(self) -> None:
        """Give the sources' buffers back."""
        for parcels in self.parcels:
            while parcels:
                parcels.pop().release()


class _Going:
    """What has been computed on its way to destinations; `there` once it has been downloaded.

    Of an end of a stream there is no batch, but what it has let others compute.
    """

    def __init__(self, batches: Sequence[Batch], emissions: Sequence[Emission]) -> None:
        self.batches = batches
        self.emissions = emissions
        self.there = trio.Event()

    def settle(self) -> None:
        """Tell destinations what lies in their own memory; may block."""
        for emission in self.emissions:
            emission.settle()

    def release(self) -> None:
        """Drop what nobody takes any more."""
        for emission in self.emissions:
            emission.release()


class OverlappedTask(ComputeTask):
    """A compute task of four tasks in a row, for executors with several batches in flight.

    Up to `Executor.in_flight` batches are on their way at a time. They are begun, computed and sent in record
    order. Small ones that are there make trips together, as handing one to a thread and back takes longer than
    computing it; up to `Executor.lanes` trips are uploaded at a time, and as many downloaded. Before a checkpoint,
    and before the end, all batches arrive.

    Args:
        executor, record, options: as `ComputeTask`.
    """

    def __init__(self, executor: Executor, record: PassRecord, *args: Any, **options: Any) -> None:
        super().__init__(executor, record, *args, **options)
        self._uploads = record.taker
        self._downloads = record.giver
        self._root = next(clock.id for clock in self._clocks if clock.is_root)
        self._record_bytes = self._bytes_of_record()
        self._count = executor.in_flight
        self._slots = trio.Semaphore(self._count)
        self._up = trio.Semaphore(executor.lanes)
        self._down = trio.Semaphore(executor.lanes)
        self._enough = trio.CancelScope()

    def _bytes_of_record(self) -> int:
        """What a record takes of sources or of destinations, whichever is more."""
        clock = self._clocks[self._root]
        made = (output.sinks[0].stage.spec.item_bytes for output in self._outputs if output.clock is clock)
        return max(sum(stage.spec.item_bytes for stage in clock.sources), sum(made), 1)

    @property
    def _together(self) -> int:
        """Batches that make a trip together at most."""
        if self._throttle_s:
            return 1
        return max(1, min(self._count // TRIPS, TRIP_BYTES // (self._record_bytes * self._cuts[self._root].items)))

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
                while (one := await self._begin(seq, coming)) is not None:
                    seq += len(one.batches)
                    await self._up.acquire()
                    uploads.start_soon(self._upload, one)
        self._uploads.enter(State.DONE)

    async def _begin(self, seq: int, coming: trio.MemorySendChannel[_Coming]) -> _Coming | None:
        """Let the next batches come, those that are there and may go together; None after the last."""
        if self._keeper is not None and self._keeper.is_due():
            await self._arrived()
            await self._cut(self._keeper)
            for _ in range(self._count):
                self._slots.release()
        await self._slots.acquire()
        one, most = _Coming(), self._together
        try:
            if not await self._take_in(one, seq):
                return None
            for _ in range(min(most - 1, self._waiting(), self._slots.value)):
                self._slots.acquire_nowait()
                if not await self._take_in(one, seq + len(one.batches)):
                    self._slots.release()
                    break
            coming.send_nowait(one)
        except BaseException:
            one.release()
            raise
        return one

    async def _take_in(self, one: _Coming, seq: int) -> bool:
        """Add the next batch; False after the last."""
        one.parcels.append([])
        batch = await self._receive(self._root, seq, one.parcels[-1])
        if batch is None:
            return False
        one.batches.append(batch)
        self._starts[self._root] = batch.stop
        return True

    def _waiting(self) -> int:
        """Batches that need not be waited for."""
        clock = self._clocks[self._root]
        if not clock.sources:
            left = (clock.length or 0) - self._starts[self._root]
            return -(-left // self._cuts[self._root].items)
        return min(self._sources[stage.value].queued for stage in clock.sources)

    async def _arrived(self) -> None:
        """Take all slots, once every batch is with its destinations."""
        self._uploads.enter(State.OUTPUT, self._downloads.name)
        for _ in range(self._count):
            await self._slots.acquire()

    async def _upload(self, one: _Coming) -> None:
        self._uploads.enter(State.BUSY, "uploading", one.records)
        sizes = await self._move(self._executor.upload, self._executor.uploads_at_once, one.batches)
        for batch, size in zip(one.batches, sizes, strict=True):
            self._uploads.passed(batch.items, size, size)
        one.there.set()
        self._up.release()

    async def _move(
        self, move: Callable[[Batch], int], is_at_once: Callable[[Batch], bool], batches: Sequence[Batch]
    ) -> list[int]:
        """Move batches; in a thread, where that takes any time."""
        if all(map(is_at_once, batches)):
            return self._each(move, batches)
        return await self._workers.call(self._each, move, batches)

    def _each(self, move: Callable[[Batch], int], batches: Sequence[Batch]) -> list[int]:
        """Move batches; gives the bytes of each."""
        sizes = []
        for batch in batches:
            with attributed(self._record.label, None, (batch.start, batch.stop)):
                sizes.append(move(batch))
        return sizes

    # -- between --------------------------------------------------------------------------------

    async def _compute_all(
        self, coming: trio.MemoryReceiveChannel[_Coming], computed: trio.MemorySendChannel[_Going]
    ) -> None:
        with computed:
            while (wanted := self._executor.wants()) is not None:
                if wanted == DRAIN:
                    await self._give(computed, [], [await self._drained()])
                elif not await self._compute_next(coming, computed):
                    await self._give(computed, [], [await self._ended(self._root)])
            # Whatever is under way to here is of no use any more.
            self._enough.cancel()

    async def _compute_next(
        self, coming: trio.MemoryReceiveChannel[_Coming], computed: trio.MemorySendChannel[_Going]
    ) -> bool:
        """Compute the next batches; False after the last."""
        self._record.enter(State.INPUT, self._uploads.name)
        try:
            one = await coming.receive()
        except trio.EndOfChannel:
            return False
        try:
            await one.there.wait()
            emissions = await self._compute(one.batches, one.parcels, settled=False)
        finally:
            one.release()
        await self._give(computed, one.batches, emissions)
        for batch in one.batches:
            self._done(batch)
        await self._pause()
        return True

    async def _give(
        self, computed: trio.MemorySendChannel[_Going], batches: Sequence[Batch], emissions: Sequence[Emission]
    ) -> None:
        going = _Going(batches, emissions)
        try:
            await computed.send(going)
        except BaseException:
            going.release()
            raise

    # -- behind ---------------------------------------------------------------------------------

    async def _download_all(
        self, computed: trio.MemoryReceiveChannel[_Going], going: trio.MemorySendChannel[_Going]
    ) -> None:
        with going:
            async with trio.open_nursery() as downloads:
                async for one in computed:
                    going.send_nowait(one)
                    if not one.batches:
                        one.there.set()
                        continue
                    await self._down.acquire()
                    downloads.start_soon(self._download, one)

    async def _download(self, one: _Going) -> None:
        self._downloads.enter(State.BUSY, "downloading", (one.batches[0].start, one.batches[-1].stop))
        sizes = await self._move(self._executor.download, self._executor.downloads_at_once, one.batches)
        for batch, size in zip(one.batches, sizes, strict=True):
            self._downloads.passed(batch.items, size, size)
        self._downloads.enter(State.INPUT, self._record.name)
        one.there.set()
        self._down.release()

    async def _send_all(self, going: trio.MemoryReceiveChannel[_Going]) -> None:
        async for one in going:
            try:
                await one.there.wait()
                if any(emission.placed for emission in one.emissions):
                    await self._workers.call(one.settle)
                for emission in one.emissions:
                    await emission.send()
            finally:
                one.release()
            for _ in one.batches:
                self._slots.release()
        self._downloads.enter(State.DONE)


def _empty(channel: trio.MemoryReceiveChannel[Any]) -> None:
    """Release what nobody has received."""
    while True:
        try:
            channel.receive_nowait().release()
        except (trio.WouldBlock, trio.EndOfChannel, trio.ClosedResourceError):
            return
