"""The stage that writes a stream destination."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import AbstractContextManager

import numpy as np

from flowcompute.elements import State, Writer
from flowcompute.engine import check_stopped
from flowcompute.errors import RunError
from flowcompute.observe import StageState
from flowcompute.runtime.channels import Channel, CheckpointBarrier, MemoryTracker, Message, Workers, attributed
from flowcompute.runtime.events import StageReporter
from flowcompute.runtime.stages.group_size import GroupSize
from flowcompute.schedule import SinkStage


class SinkTask:
    """Writes one stream destination, batch by batch.

    Args:
        stage: what the plan says of it.
        writer: the opened destination.
        record: its live record.
        channel: from the compute stage.
        workers: threads to write in.
        tracker: counts results that grow in memory.
        position: among all destinations of the run.
        together: the most batches that are written in one hand-over.
    """

    def __init__(
        self,
        stage: SinkStage,
        writer: Writer,
        record: StageReporter,
        channel: Channel,
        *,
        workers: Workers,
        tracker: MemoryTracker,
        position: int = 0,
        together: int = 1,
    ) -> None:
        self.stage = stage
        self.record = record
        self.channel = channel
        self._writer = writer
        self._workers = workers
        self._tracker = tracker
        self.position = position
        self._written = 0
        self._grows = stage.element.in_memory and stage.spec.length is None
        # What outgrows the budget is told before it is written, and after what came before it was.
        self._group = GroupSize(1 if writer.immediate or self._grows else together)

    async def run(self) -> None:
        """Write to the end of the stream."""
        while (message := await self.channel.receive()) is not None:
            if isinstance(message, CheckpointBarrier):
                message.reach(self.position, self.snapshot())
                continue
            messages, barrier = [message], None
            try:
                while barrier is None and len(messages) < self._group.batches and self.channel.queued:
                    following = await self.channel.receive()
                    if isinstance(following, CheckpointBarrier):
                        barrier = following
                    elif following is not None:
                        messages.append(following)
                self.record.enter(StageState.BUSY, "writing", (message.start, messages[-1].stop))
                self.reserve(messages[-1].stop - message.start)
                if self._writer.immediate:
                    self._write(messages)
                else:
                    await self._workers.call(self._write, messages)
            finally:
                for each in messages:
                    each.release()
            if barrier is not None:
                barrier.reach(self.position, self.snapshot())
        self.record.enter(StageState.DONE)

    def _write(self, messages: Sequence[Message]) -> None:
        """Write batches one after the other; may block."""
        began_s = time.perf_counter()
        for position, message in enumerate(messages):
            if position:
                check_stopped()
                self.record.records = message.start, message.stop
            with self._attributed(message.start, message.stop):
                self._writer.write(message.array, message.start)
            self._count(message.stop - message.start, message.array.nbytes)
        self._group.took(time.perf_counter() - began_s, len(messages))

    def snapshot(self) -> State:
        """Return what has been written."""
        with attributed(self.stage.name, self.stage.element.site):
            return self._writer.snapshot()

    def reserve(self, items: int) -> None:
        """Count the memory of a result that grows.

        Raises:
            RunError: if it outgrows the budget.
        """
        if self._grows:
            with self._attributed(self._written, self._written + items):
                self._tracker.keep(items * self.stage.spec.item_bytes)

    def place(self, start: int, stop: int) -> np.ndarray | None:
        """Return the destination's own memory for these records, if it has some; may block.

        Raises:
            RunError: if it is not as large as the records.
        """
        with self._attributed(start, stop):
            array = self._writer.buffer(start, stop)
            if array is not None and len(array) != stop - start:
                raise RunError("cannot write: more records came than were declared", got=f"{stop} or more")
            return array

    def written_in_place(self, array: np.ndarray, start: int) -> None:
        """Tell the destination that its own memory was filled; may block."""
        stop = start + len(array)
        with self._attributed(start, stop):
            self._writer.write(array, start)
        self._count(stop - start, array.nbytes)

    def _count(self, items: int, size_bytes: int) -> None:
        self._written += items
        self.record.passed(items, size_bytes, 0)

    def _attributed(self, start: int, stop: int) -> AbstractContextManager[None]:
        return attributed(self.stage.name, self.stage.element.site, (start, stop))
