"""The stage that computes, between the sources and the destinations of a pass."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from typing import TYPE_CHECKING

from flowcompute.batch import Batch
from flowcompute.engine import DRAIN, MOVED, Executor, check_stopped
from flowcompute.errors import RunError
from flowcompute.imports import LateModule
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
from flowcompute.runtime.stages.group_size import GroupSize
from flowcompute.runtime.stages.turn import BatchTurn, ComputedBatch, Output
from flowcompute.runtime.stages.writing import SinkTask
from flowcompute.schedule import Clock

if TYPE_CHECKING:
    import trio
else:
    trio = LateModule("trio")


class ComputeTask:
    """Computes the batches of a pass in record order.

    Small batches that are there, with memory for their results, are computed in one hand-over to the thread. Nothing
    is waited for to that end.

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
        together: the most batches that are computed in one hand-over.
        longer: by what factor these may take longer than batches do that others wait for.
        joins: whether those of one hand-over are one batch, where destinations give the memory for it.
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
        together: int = 1,
        longer: int = 1,
        joins: bool = False,
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
        # A batch of one clock can let others advance, or end the streams: what is wanted next is asked for each.
        self._group = GroupSize(together if len(clocks) == 1 else 1, longer)
        self._joins = joins

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
            computed = await self._compute_some(wanted, seq)
            if computed:
                await self._pause()
            else:
                await self._pass_on(await self._ended(wanted))
            seq += computed

    async def _compute_some(self, root: int, seq: int) -> int:
        """Compute the next batch of a root clock, and those behind it that are there; 0 at the end of the clock."""
        group: list[BatchTurn] = []
        failure: Exception | None = None
        try:
            try:
                while (turn := await self._take_turn(root, seq + len(group))) is not None:
                    group.append(turn)
                    if self._batches_in(group) >= self._group.batches or not self._follows(self._clocks[root]):
                        break
            except Exception as error:
                if not group:
                    raise
                # What came before it counts, as it does where each batch goes by itself.
                failure = error
            if not group:
                return 0
            self._record.enter(StageState.BUSY, "computing", _span(group))
            computed, failed = await self._workers.call(self._work_through, group)
            for turn in group[:computed]:
                await self._leave(turn)
            failure = failed or failure
            if failure is not None:
                raise failure
            return computed
        finally:
            for turn in group:
                turn.release()

    def _batches_in(self, group: Sequence[BatchTurn]) -> int:
        """Return how many batches some turns are, where they are not joined."""
        return sum(turn.batch.items for turn in group if turn.batch is not None) if self._joins else len(group)

    async def _take_turn(self, root: int, seq: int) -> BatchTurn | None:
        """Take the next batch of a root clock, and the memory that it may fill; None at its end."""
        messages: list[Message] = []
        turn: BatchTurn | None = None
        try:
            batch = await self._receive(root, seq, messages)
            if batch is None:
                return None
            turn = await self._turn_of(batch)
            turn.taken, messages = messages, []
            await self._lend(turn)
            self._starts[root] = batch.stop
        except BaseException:
            if turn is not None:
                turn.release()
            raise
        finally:
            for message in messages:
                message.release()
        return turn

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
        turn = BatchTurn(self._reached[root] - {root}, partial(self._executor.end, root))
        if not turn.clocks:
            # Nothing is computed that would be worth a hand-over.
            self._work(turn, settled=True)
            return turn.outgoing
        return await self._make(turn)

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
            stop = self._boundaries[root].stop(start)
            if self._joins and all(output.value in self._placed for output in self._outputs):
                stop = start + (stop - start) * self._group.batches
            stop = min(stop, clock.length or 0)
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
        outgoing = await self._make(await self._turn_of(batch), settled=settled)
        self._forward(batch, messages, outgoing)
        return outgoing

    async def _turn_of(self, batch: Batch) -> BatchTurn:
        """Return what is to be done for a batch of a root clock."""
        if batch.clock in self._choose:
            await self._choose_places(self._clocks[batch.clock], batch)
        return BatchTurn(self._reached[batch.clock], partial(self._executor.process, batch), batch)

    def _forward(self, batch: Batch, messages: Sequence[Sequence[Message]], outgoing: ComputedBatch) -> None:
        """Add what destinations take as sources gave it."""
        if not self._forwarded:
            return
        clock = self._clocks[batch.clock]
        sources = [stage.value for stage in clock.sources]
        for output in self._outputs:
            if output.value in self._forwarded and output.clock is clock:
                position = sources.index(output.value)
                for each in messages:
                    outgoing.messages += [(sink.channel, each[position].share()) for sink in output.sinks]

    async def _leave(self, turn: BatchTurn) -> None:
        """Pass on what was computed of a batch."""
        batch, outgoing = turn.batch, turn.collect()
        assert batch is not None
        self._forward(batch, [turn.taken], outgoing)
        await self._pass_on(outgoing)
        self._done(batch)
        turn.release()

    def _follows(self, clock: Clock) -> bool:
        """Check whether the next batch of a clock is there, with memory for its results."""
        if clock.sources:
            there = all(self._sources[stage.value].queued for stage in clock.sources)
        else:
            there = self._starts[clock.id] < (clock.length or 0)
        return there and all(
            output.pool.is_free or output.value in self._placed or output.value in self._forwarded
            for output in self._outputs
        )

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

    def _work_through(self, group: Sequence[BatchTurn]) -> tuple[int, Exception | None]:
        """Do everything for some batches in the thread; gives how many it was done for, and what the next failed with.

        What was done counts also where a later batch fails.
        """
        # The context is the thread's own.
        MOVED.set(self._record.part_done)
        if self._batches_in(group) == 1:
            return self._work_on_one(group[0])
        began_s, computed, failure = time.perf_counter(), 0, None
        with attributed(self._record.label, None, _span(group)), self._executor.together():
            for turn in group:
                if computed:
                    check_stopped()
                    self._record.records = turn.records
                try:
                    self._take(turn, settled=False)
                except Exception as error:  # noqa: BLE001 - raised when what came before it has been passed on
                    failure = error
                    break
                computed += 1
        for position, turn in enumerate(group[:computed]):
            try:
                turn.outgoing.settle()
            except Exception as error:  # noqa: BLE001 - as above
                computed, failure = position, error
                break
        self._record.observe(self._executor)
        self._group.took(time.perf_counter() - began_s, self._batches_in(group))
        return computed, failure

    def _work_on_one(self, turn: BatchTurn) -> tuple[int, None]:
        began_s = time.perf_counter()
        self._work(turn, settled=True)
        self._group.took(time.perf_counter() - began_s, 1)
        return 1, None

    def _work(self, turn: BatchTurn, settled: bool) -> None:
        """Everything that is done for a batch in the thread."""
        self._take(turn, settled=settled)
        self._record.observe(self._executor)
        if turn.batch is not None and self._after_batch is not None:
            self._record.detail = "running on_batch after"
            with attributed("on_batch", None, turn.records):
                self._after_batch()

    def _take(self, turn: BatchTurn, *, settled: bool) -> None:
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
            hint="make the streams equally long before they meet, by x[:n], or pad= of fc.window",
        )


def _span(group: Sequence[BatchTurn]) -> tuple[int, int]:
    """Return the records of neighbouring batches."""
    first, last = group[0].records, group[-1].records
    assert first is not None
    assert last is not None
    return first[0], last[1]


def reached_clocks(clocks: Sequence[Clock]) -> dict[int, set[int]]:
    """Return by root clock the clocks that its batches can make advance, itself included."""
    reached = {clock.id: {clock.id} for clock in clocks if clock.is_root}
    for found in reached.values():
        for clock in clocks:
            if any(origin in found for entry in clock.entries for origin, _ in entry.inputs):
                found.add(clock.id)
    return reached
