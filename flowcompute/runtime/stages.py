"""The three kinds of stages: each is one task, and together they are a pass that runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import NamedTuple

import numpy as np
import trio

from flowcompute.batch import Batch
from flowcompute.elements.destination import Writer
from flowcompute.elements.source import AsyncReader, Reader
from flowcompute.errors import RunError, SourceError
from flowcompute.planner.backend import Executor
from flowcompute.planner.plan import SinkStage, SourceStage
from flowcompute.runtime.buffers import Lease, Ledger, Pool
from flowcompute.runtime.channel import Channel, Parcel
from flowcompute.runtime.failure import attributed
from flowcompute.runtime.record import ComputeRecord, StageRecord, State
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
        batch_items: records in a batch.
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
        batch_items: int,
    ) -> None:
        self._stage = stage
        self._reader = reader
        self._record = record
        self._pool = pool
        self._channel = channel
        self._workers = workers
        self._batch_items = batch_items
        self._gives_views = not isinstance(reader, AsyncReader)
        self._immediate = reader.immediate

    async def run(self) -> None:
        """Read to the end of the stream, then say so."""
        start, length = 0, self._stage.spec.length
        while length is None or start < length:
            stop = start + self._batch_items if length is None else min(start + self._batch_items, length)
            parcel = await self._next(start, stop)
            items = 0 if parcel is None else parcel.stop - start
            if parcel is not None:
                await self._send(parcel)
                start = parcel.stop
            if items < self._batch_items and start != length:
                if length is not None:
                    raise self._too_short(start, length)
                break
        self._channel.finish()
        self._record.enter(State.DONE)

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


class SinkTask:
    """Writes one stream destination, batch by batch.

    Args:
        stage: what the plan says of it.
        writer: the opened destination.
        record: its live record.
        channel: from the compute stage.
        workers: threads to write in.
        ledger: counts results that grow in memory.
    """

    def __init__(
        self,
        stage: SinkStage,
        writer: Writer,
        record: StageRecord,
        channel: Channel,
        *,
        workers: Workers,
        ledger: Ledger,
    ) -> None:
        self.stage = stage
        self.record = record
        self.channel = channel
        self._writer = writer
        self._workers = workers
        self._ledger = ledger
        self._grows = stage.element.in_memory and stage.spec.length is None

    async def run(self) -> None:
        """Write to the end of the stream."""
        while (parcel := await self.channel.receive()) is not None:
            try:
                self.record.enter(State.BUSY, "writing", (parcel.start, parcel.stop))
                self.reserve(len(parcel.array))
                with self._attributed(parcel.start, parcel.stop):
                    if self._writer.immediate:
                        self._writer.write(parcel.array, parcel.start)
                    else:
                        await self._workers.call(self._writer.write, parcel.array, parcel.start)
                self.record.passed(parcel.stop - parcel.start, parcel.array.nbytes, 0)
            finally:
                parcel.release()
        self.record.enter(State.DONE)

    def reserve(self, items: int) -> None:
        """Count the memory of a result that grows.

        Raises:
            RunError: if it outgrows the budget.
        """
        if self._grows:
            with self._attributed(self.record.items, self.record.items + items):
                self._ledger.keep(items * self.stage.spec.item_bytes)

    def place(self, start: int, stop: int) -> np.ndarray | None:
        """The destination's own memory for these records, if it has some; may block.

        Raises:
            RunError: if it is not as large as the records.
        """
        with self._attributed(start, stop):
            array = self._writer.buffer(start, stop)
            if array is not None and len(array) != stop - start:
                raise RunError("more records came than were declared", got=f"{stop} or more")
            return array

    def written_in_place(self, array: np.ndarray, start: int) -> None:
        """Tell the destination that its own memory was filled; may block."""
        stop = start + len(array)
        with self._attributed(start, stop):
            self._writer.write(array, start)
        self.record.passed(stop - start, array.nbytes, 0)

    def _attributed(self, start: int, stop: int) -> AbstractContextManager[None]:
        return attributed(self.stage.name, self.stage.element.site, (start, stop))


class Output(NamedTuple):
    """A stream value that destinations take: its buffers, and the tasks that write it."""

    value: int
    pool: Pool
    sinks: Sequence[SinkTask]


class ComputeTask:
    """Computes the batches of a pass in record order.

    A destination with memory of its own that nobody shares is written in place: the
    executor fills that memory, in the same thread call, and no buffer or task lies between.
    Batches of a source that destinations take as they are go on to them, also without a buffer.

    Args:
        executor: opened.
        record: its live record.
        inputs: the sources with their channels, in order.
        outputs: what is to be computed.
        workers: a thread to compute in.
        batch_items: records in a batch.
        length: records of the pass when there are no sources.
        throttle_s: seconds to pause after each batch.
        after_batch: called in the thread after each batch.
    """

    def __init__(
        self,
        executor: Executor,
        record: ComputeRecord,
        inputs: Sequence[tuple[SourceStage, Channel]],
        outputs: Sequence[Output],
        workers: Workers,
        *,
        batch_items: int,
        length: int,
        throttle_s: float,
        after_batch: Callable[[], object] | None,
    ) -> None:
        self._executor = executor
        self._record = record
        self._inputs = inputs
        self._outputs = outputs
        self._placed: dict[int, SinkTask] = {}
        self._forwarded: list[tuple[int, Output]] = []
        self._pooled: list[Output] = []
        self._workers = workers
        self._batch_items = batch_items
        self._length = length
        self._throttle_s = throttle_s
        self._after_batch = after_batch
        self._channels = [sink.channel for output in outputs for sink in output.sinks]

    async def run(self) -> None:
        """Compute until the sources end, then tell the destinations."""
        seq = start = 0
        while True:
            parcels: list[Parcel] = []
            try:
                stop = await self._receive(parcels, start)
                if stop == start:
                    break
                arrays = {stage.value: parcel.array for (stage, _), parcel in zip(self._inputs, parcels, strict=True)}
                await self._compute(Batch(seq, start, stop, arrays), parcels)
            finally:
                for parcel in parcels:
                    parcel.release()
            if self._throttle_s:
                self._record.enter(State.PAUSED)
                await trio.sleep(self._throttle_s)
            seq, start = seq + 1, stop
        for channel in self._channels:
            channel.finish()
        self._record.enter(State.DONE)

    async def _receive(self, parcels: list[Parcel], start: int) -> int:
        """Take the next parcel of every source into `parcels`; returns where the batch ends."""
        if not self._inputs:
            return min(start + self._batch_items, self._length)
        ends: list[int] = []
        for _, channel in self._inputs:
            parcel = await channel.receive()
            if parcel is not None:
                parcels.append(parcel)
            ends.append(start if parcel is None else parcel.stop)
        if min(ends) != max(ends):
            raise self._unequal(start, ends)
        return ends[0]

    async def _compute(self, batch: Batch, parcels: list[Parcel]) -> None:
        if not batch.seq:
            await self._choose_places(batch)
        outputs: dict[int, np.ndarray] = {}
        unsent: list[tuple[Channel, Parcel]] = []
        try:
            for output in self._pooled:
                lease = await self._credit(output)
                array = outputs[output.value] = lease.array[: batch.items]
                made = Parcel(batch.start, batch.stop, array, lease)
                unsent.extend((sink.channel, made) for sink in output.sinks)
                lease.holders = len(output.sinks)
            for index, output in self._forwarded:
                unsent.extend((sink.channel, parcels[index].share()) for sink in output.sinks)
            for sink in self._placed.values():
                sink.reserve(batch.items)
            self._record.enter(State.BUSY, "computing", (batch.start, batch.stop))
            await self._workers.call(self._work, batch, outputs)
            while unsent:
                await unsent[0][0].send(unsent[0][1])
                del unsent[0]
        finally:
            for _, parcel in unsent:
                parcel.release()

    async def _choose_places(self, batch: Batch) -> None:
        """Find out how each output gets its memory; once, since a destination's records must come in order."""
        self._record.enter(State.BUSY, "placing", (batch.start, batch.stop))
        sources = [stage.value for stage, _ in self._inputs]
        for output in self._outputs:
            sink = output.sinks[0]
            alone = len(output.sinks) == 1
            if alone and await self._workers.call(sink.place, batch.start, batch.stop) is not None:
                self._placed[output.value] = sink
            elif output.value in sources:
                self._forwarded.append((sources.index(output.value), output))
            else:
                self._pooled.append(output)

    async def _credit(self, output: Output) -> Lease:
        lease = output.pool.acquire_nowait()
        if lease is None:
            self._record.enter(State.CREDIT, ", ".join(sink.stage.name for sink in output.sinks))
            lease = await output.pool.acquire()
        return lease

    def _work(self, batch: Batch, outputs: dict[int, np.ndarray]) -> None:
        """Everything that is done for a batch in the thread."""
        record, records = self._record, (batch.start, batch.stop)
        for value, sink in self._placed.items():
            array = sink.place(*records)
            assert array is not None, "a destination that gives memory of its own gives it always"
            outputs[value] = array
        with attributed(record.label, None, records):
            self._executor.process(batch, outputs)
        for value, sink in self._placed.items():
            sink.written_in_place(outputs[value], batch.start)
        record.passed(
            batch.items,
            sum(array.nbytes for array in batch.arrays.values()),
            sum(array.nbytes for array in outputs.values()),
        )
        record.observe(self._executor)
        if self._after_batch is not None:
            record.detail = "running on_batch after"
            with attributed("on_batch", None, records):
                self._after_batch()

    def _unequal(self, start: int, ends: list[int]) -> RunError:
        """The error for sources that do not end together."""
        short, long = ends.index(min(ends)), ends.index(max(ends))
        (ended, _), (other, _) = self._inputs[short], self._inputs[long]
        known = other.spec.length
        # A batch that is not full is the last one, so that its end is the end of the stream.
        open_end = known is None and ends[long] == start + self._batch_items
        more = f"{'at least ' if open_end else ''}{ends[long] if known is None else known}"
        return RunError(
            f"the streams {ended.name!r} and {other.name!r} have different lengths",
            element=ended.name,
            site=ended.element.site,
            records=(ends[short], ends[long]),
            expected=f"as many records from {ended.name!r} as from {other.name!r}: {more}",
            got=f"{ends[short]}",
            hint="make the streams equally long before they meet",
        )
