"""The stage that computes, between the sources and the destinations of a pass."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from functools import partial

import trio

from flowcompute.batch import Batch
from flowcompute.engine import DRAIN, MOVED, Executor
from flowcompute.errors import RunError
from flowcompute.observe import StageState
from flowcompute.runtime.channels import (
    Channel,
    CheckpointBarrier,
    Message,
    PassRecord,
    SharedBuffer,
    Workers,
    attributed,
)
from flowcompute.runtime.checkpoints import CheckpointCoordinator
from flowcompute.runtime.stages.batch_boundaries import BatchBoundaries
from flowcompute.runtime.stages.turn import BatchTurn, ComputedBatch, Output
from flowcompute.runtime.stages.writing import SinkTask
from flowcompute.schedule import Clock


class ComputeTask:
    """Computes the batches of a pass in record order.

    A destination with memory of its own that nobody shares is written in place. The executor fills that memory, in the
    same thread call, and no buffer or task lies between. Batches of a source that destinations take as they are go on
    to them, also without a buffer. Both hold for root clocks only, whose batches are as long as what was read.

    Args:
        executor: opened.
        record: of the pass.
        clocks: of the pass.
        channels: from the sources, by value.
        outputs: what is to be computed.
        workers: a thread to compute in.
        throttle_s: seconds to pause after each batch.
        after_batch: called in the thread after each batch.
        starts: by root clock the first record, where not all begin with their streams.
        coordinator: says when a barrier is due, and takes it.
        boundaries: where the batches of each root clock end.
    """

    def __init__(
        self,
        executor: Executor,
        record: PassRecord,
        clocks: Sequence[Clock],
        channels: Mapping[int, Channel],
        outputs: Sequence[Output],
        workers: Workers,
        *,
        throttle_s: float,
        after_batch: Callable[[], object] | None,
        starts: Mapping[int, int] | None = None,
        coordinator: CheckpointCoordinator | None = None,
        boundaries: Mapping[int, BatchBoundaries],
    ) -> None:
        self._executor = executor
        self._record = record.compute
        self._clocks = clocks
        self._sources = channels
        self._outputs = outputs
        self._placed: dict[int, SinkTask] = {}
        self._forwarded: set[int] = set()
        self._choose: set[int] = {clock.id for clock in clocks if clock.is_root}
        self._starts = {**dict.fromkeys(self._choose, 0), **(starts or {})}
        self._coordinator = coordinator
        self._sound = nullcontext if coordinator is None else coordinator.sound_pass
        self._boundaries = boundaries
        self._reached = reached_clocks(clocks)
        self._workers = workers
        self._throttle_s = throttle_s
        self._after_batch = after_batch
        self._channels = [sink.channel for output in outputs for sink in output.sinks]

    async def run(self) -> None:
        """Compute until the sources end, then tell the destinations."""
        await self._run_batches()
        for channel in self._sources.values():
            channel.abandon()
        for channel in self._channels:
            channel.finish()
        self._record.enter(StageState.DONE)

    async def _run_batches(self) -> None:
        seq = 0
        while (wanted := self._wanted()) is not None:
            if self._coordinator is not None and self._coordinator.is_due():
                await self._cut(self._coordinator)
            if wanted == DRAIN:
                await self._pass_on(await self._drained())
                continue
            messages: list[Message] = []
            try:
                batch = await self._receive(wanted, seq, messages)
                if batch is None:
                    await self._pass_on(await self._ended(wanted))
                    continue
                await self._pass_on(await self._compute(batch, [messages]))
                self._starts[wanted] = batch.stop
                self._done(batch)
            finally:
                for message in messages:
                    message.release()
            await self._pause()
            seq += 1

    def _wanted(self) -> int | None:
        """Return the root clock to read next, `DRAIN`, or None when all has been computed."""
        with self._sound():
            return self._executor.wants()

    def _done(self, batch: Batch) -> None:
        """Note that a batch of a root clock has been computed."""
        self._boundaries[batch.clock].passed(batch.stop)
        self._record.computed(batch.stop)

    async def _drained(self) -> ComputedBatch:
        """Let derived clocks compute with what waits."""
        derived = {clock.id for clock in self._clocks if not clock.is_root}
        return await self._make(BatchTurn(derived, self._executor.drain))

    async def _ended(self, root: int) -> ComputedBatch:
        """Tell the executor that a root clock has no more records."""
        return await self._make(BatchTurn(self._reached[root] - {root}, partial(self._executor.end, root)))

    async def _pass_on(self, outgoing: ComputedBatch) -> None:
        try:
            await outgoing.send()
        finally:
            outgoing.release()

    async def _pause(self) -> None:
        if self._throttle_s:
            self._record.enter(StageState.PAUSED)
            await trio.sleep(self._throttle_s)

    async def _cut(self, coordinator: CheckpointCoordinator) -> None:
        """Send a barrier to the destinations: everything before it counts, and nothing behind it."""
        self._record.enter(StageState.BUSY, "copying its state for a checkpoint")
        sinks = [sink for output in self._outputs for sink in output.sinks]
        placed = {sink.position: sink for sink in self._placed.values()}
        with attributed(self._record.label):
            state = await self._workers.call(self._executor.snapshot)
        known = {position: sink.snapshot() for position, sink in placed.items()}
        barrier = await coordinator.begin(self._starts, state, [sink.position for sink in sinks], known)
        for sink in sinks:
            if sink.position not in placed:
                await sink.channel.send(barrier)
        await coordinator.sent()

    async def _receive(self, root: int, seq: int, messages: list[Message]) -> Batch | None:
        """Return the next batch of a root clock, None at its end; what it lies in is added to `messages`."""
        clock, start = self._clocks[root], self._starts[root]
        if not clock.sources:
            stop = min(self._boundaries[root].stop(start), clock.length or 0)
            return Batch(seq, start, stop, {}, root) if stop > start else None
        ends: list[int] = []
        for stage in clock.sources:
            message = await self._sources[stage.value].receive()
            assert not isinstance(message, CheckpointBarrier), "barriers begin at the compute stage"
            if message is not None:
                messages.append(message)
            ends.append(start if message is None else message.stop)
        if min(ends) != max(ends):
            raise self._unequal(clock, start, ends)
        if ends[0] == start:
            return None
        arrays = {stage.value: message.array for stage, message in zip(clock.sources, messages, strict=True)}
        return Batch(seq, start, ends[0], arrays, root)

    async def _compute(
        self, batch: Batch, messages: Sequence[Sequence[Message]], *, settled: bool = True
    ) -> ComputedBatch:
        """Compute a batch of a root clock; the messages of its sources, one after the other, stay the caller's."""
        clock = self._clocks[batch.clock]
        if clock.id in self._choose:
            await self._choose_places(clock, batch)
        turn = BatchTurn(self._reached[clock.id], partial(self._executor.process, batch), batch)
        outgoing = await self._make(turn, settled=settled)
        if self._forwarded:
            sources = [stage.value for stage in clock.sources]
            for output in self._outputs:
                if output.value in self._forwarded and output.clock is clock:
                    position = sources.index(output.value)
                    for each in messages:
                        outgoing.messages += [(sink.channel, each[position].share()) for sink in output.sinks]
        return outgoing

    async def _make(self, turn: BatchTurn, *, settled: bool = True) -> ComputedBatch:
        """Compute in a thread; `settled`: and tell destinations of their own memory."""
        try:
            await self._lend(turn)
            self._record.enter(StageState.BUSY, "computing", turn.records)
            await self._workers.call(self._work, turn, settled)
            return turn.collect()
        finally:
            turn.release()

    async def _lend(self, turn: BatchTurn) -> None:
        """Take the memory that a turn may fill."""
        batch = turn.batch
        for output in self._outputs:
            if output.clock.id not in turn.clocks or output.value in self._placed or output.value in self._forwarded:
                continue
            buffer = await self._credit(output)
            turn.buffers.append((output, buffer))
            own = batch is not None and output.clock.id == batch.clock
            turn.outputs[output.value] = buffer.array[: batch.items] if own and batch is not None else buffer.array
        turn.placed = self._reserved(batch)

    def _reserved(self, batch: Batch | None) -> Mapping[int, SinkTask]:
        """Destinations whose own memory a batch fills, by value; what makes them grow is counted."""
        if batch is None:
            return {}
        values = self._clocks[batch.clock].values
        placed = {value: sink for value, sink in self._placed.items() if value in values}
        for sink in placed.values():
            sink.reserve(batch.items)
        return placed

    async def _choose_places(self, clock: Clock, batch: Batch) -> None:
        """Find out how each output gets its memory; once, since a destination's records must come in order."""
        self._choose.discard(clock.id)
        self._record.enter(StageState.BUSY, "placing", (batch.start, batch.stop))
        sources = [stage.value for stage in clock.sources]
        for output in self._outputs:
            if output.clock is not clock:
                continue
            sink = output.sinks[0]
            alone = len(output.sinks) == 1
            if alone and await self._workers.call(sink.place, batch.start, batch.stop) is not None:
                self._placed[output.value] = sink
            elif output.value in sources:
                self._forwarded.add(output.value)

    async def _credit(self, output: Output) -> SharedBuffer:
        buffer = output.pool.acquire_nowait()
        if buffer is None:
            self._record.enter(StageState.CREDIT, ", ".join(sink.stage.name for sink in output.sinks))
            buffer = await output.pool.acquire()
        return buffer

    def _work(self, turn: BatchTurn, settled: bool) -> None:
        """Everything that is done for a batch in the thread."""
        # The context is the thread's own.
        MOVED.set(self._record.part_done)
        self._take(turn, settled)
        self._record.observe(self._executor)
        if turn.batch is not None and self._after_batch is not None:
            self._record.detail = "running on_batch after"
            with attributed("on_batch", None, turn.records):
                self._after_batch()

    def _take(self, turn: BatchTurn, settled: bool) -> None:
        """Compute a batch."""
        batch, records, outputs, outgoing = turn.batch, turn.records, turn.outputs, turn.outgoing
        for value, sink in turn.placed.items():
            assert records is not None
            array = sink.place(*records)
            assert array is not None, "a destination that gives memory of its own gives it always"
            outputs[value] = array
            outgoing.placed.append((sink, array, records[0]))
        with attributed(self._record.label, None, records), self._sound():
            turn.made = turn.compute(outputs)
        if settled:
            outgoing.settle()
        if batch is not None:
            self._record.passed(
                batch.items,
                sum(array.nbytes for array in batch.arrays.values()),
                sum(outputs[i][: stop - start].nbytes for i, (start, stop) in turn.made.items() if i in outputs),
            )

    def _unequal(self, clock: Clock, start: int, ends: list[int]) -> RunError:
        """Return the error for sources that do not end together."""
        short, long = ends.index(min(ends)), ends.index(max(ends))
        ended, other = clock.sources[short], clock.sources[long]
        known = other.spec.length
        # A batch that is not full is the last one, so that its end is the end of the stream.
        open_end = known is None and ends[long] == self._boundaries[clock.id].stop(start)
        more = f"{'at least ' if open_end else ''}{ends[long] if known is None else known}"
        return RunError(
            f"cannot go on: the streams {ended.name!r} and {other.name!r} have different lengths",
            element=ended.name,
            site=ended.element.site,
            records=(ends[short], ends[long]),
            expected=f"as many records from {ended.name!r} as from {other.name!r}: {more}",
            got=f"{ends[short]}",
            hint="make the streams equally long before they meet",
        )


def reached_clocks(clocks: Sequence[Clock]) -> dict[int, set[int]]:
    """Return by root clock the clocks that its batches can make advance, itself included."""
    reached = {clock.id: {clock.id} for clock in clocks if clock.is_root}
    for found in reached.values():
        for clock in clocks:
            if any(origin in found for entry in clock.entries for origin, _ in entry.inputs):
                found.add(clock.id)
    return reached
