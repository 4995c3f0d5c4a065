"""The stage that reads a source."""

from __future__ import annotations

import contextlib

import numpy as np
import trio

from flowcompute.elements.source import AsyncReader, Reader
from flowcompute.errors import SourceError
from flowcompute.planner.plan import SourceStage
from flowcompute.runtime.buffers import Pool
from flowcompute.runtime.channel import Channel, Parcel
from flowcompute.runtime.cuts import Cuts
from flowcompute.runtime.failure import attributed
from flowcompute.runtime.stage_record import StageRecord, State
from flowcompute.runtime.workers import Workers


class SourceTask:
    """Reads one source, batch by batch.

    Args:
        stage: what the plan says of it.
        reader: the opened source.
        record: its live record.
        channel: towards the compute stage.
        pool: buffers to read into; not touched when the reader gives views.
        workers: threads to read in.
        cuts: where batches end.
        wanted: of a stream of unknown length, the most records that are of use; None for all.
        start: the record at which the reader was opened.
    """

    def __init__(
        self,
        stage: SourceStage,
        reader: Reader,
        record: StageRecord,
        channel: Channel,
        pool: Pool,
        *,
        workers: Workers,
        cuts: Cuts,
        wanted: int | None = None,
        start: int = 0,
    ) -> None:
        self._stage = stage
        self._reader = reader
        self._record = record
        self._pool = pool
        self._channel = channel
        self._workers = workers
        self._cuts = cuts
        self._wanted = wanted
        self._start = start
        self._gives_views = not isinstance(reader, AsyncReader)
        self._immediate = reader.immediate

    async def run(self) -> None:
        """Read to the end of the stream, or until no more is wanted, then say so."""
        with contextlib.suppress(trio.BrokenResourceError):
            await self._read_all()
        self._channel.finish()
        self._record.enter(State.DONE)

    async def _read_all(self) -> None:
        start, length = self._start, self._stage.spec.length
        end = self._wanted if length is None else length
        while end is None or start < end:
            cut = self._cuts.stop(start)
            stop, full = cut if end is None else min(cut, end), cut - start
            parcel = await self._next(start, stop)
            items = 0 if parcel is None else parcel.stop - start
            if parcel is not None:
                await self._send(parcel)
                start = parcel.stop
            if items < full and start != end:
                if length is not None:
                    raise self._too_short(start, length)
                break

    async def _next(self, start: int, stop: int) -> Parcel | None:
        """Records `start` to at most `stop`, or None when there are no more."""
        if self._gives_views:
            array = await self._view(start, stop)
            if array is not None:
                return Parcel(start, start + len(array), array, None) if len(array) else None
            self._gives_views = False
        lease = self._pool.acquire_nowait()
        if lease is None:
            self._record.enter(State.CREDIT, "compute")
            lease = await self._pool.acquire()
        try:
            items = await self._read(lease.array[: stop - start], start, stop)
        except BaseException:
            lease.release()
            raise
        if not items:
            lease.release()
            return None
        return Parcel(start, start + items, lease.array[:items], lease)

    async def _view(self, start: int, stop: int) -> np.ndarray | None:
        self._record.enter(State.BUSY, "reading", (start, stop))
        with attributed(self._stage.name, self._stage.element.site, (start, stop)):
            if self._immediate:
                return self._reader.view(stop - start)
            return await self._workers.call(self._reader.view, stop - start)

    async def _read(self, out: np.ndarray, start: int, stop: int) -> int:
        with attributed(self._stage.name, self._stage.element.site, (start, stop)):
            if isinstance(self._reader, AsyncReader):
                self._record.enter(State.INPUT, "what it iterates over,", (start, stop))
                return await self._reader.read_async(out)
            self._record.enter(State.BUSY, "reading", (start, stop))
            return await self._workers.call(self._reader.read, out)

    async def _send(self, parcel: Parcel) -> None:
        items, size_bytes = parcel.stop - parcel.start, parcel.array.nbytes
        try:
            await self._channel.send(parcel)
        except BaseException:
            parcel.release()
            raise
        self._record.passed(items, 0, size_bytes)

    def _too_short(self, got: int, length: int) -> SourceError:
        return SourceError(
            "the source ended early",
            element=self._stage.name,
            site=self._stage.element.site,
            expected=f"{length} records",
            got=f"{got}",
            hint="see whether what it reads was cut short since the job was composed",
        )
