"""The stage that computes, between the sources and the destinations of a pass."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import trio

from flowcompute.batch import Batch
from flowcompute.errors import RunError
from flowcompute.planner.backend import Executor
from flowcompute.planner.plan import SourceStage
from flowcompute.runtime.buffers import Lease, Pool
from flowcompute.runtime.channel import Channel, Parcel
from flowcompute.runtime.failure import attributed
from flowcompute.runtime.record import ComputeRecord, State
from flowcompute.runtime.workers import Workers
from flowcompute.runtime.writing import SinkTask


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
