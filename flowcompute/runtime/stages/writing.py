"""The stage that writes a stream destination."""

from __future__ import annotations

from contextlib import AbstractContextManager

import numpy as np

from flowcompute.elements import State, Writer
from flowcompute.errors import RunError
from flowcompute.observe import StageState
from flowcompute.runtime.channels import Channel, CheckpointBarrier, MemoryTracker, Workers, attributed
from flowcompute.runtime.events import StageReporter
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

    async def run(self) -> None:
        """Write to the end of the stream."""
        while (message := await self.channel.receive()) is not None:
            if isinstance(message, CheckpointBarrier):
                message.reach(self.position, self.snapshot())
                continue
            try:
                self.record.enter(StageState.BUSY, "writing", (message.start, message.stop))
                self.reserve(len(message.array))
                with self._attributed(message.start, message.stop):
                    if self._writer.immediate:
                        self._writer.write(message.array, message.start)
                    else:
                        await self._workers.call(self._writer.write, message.array, message.start)
                self._count(message.stop - message.start, message.array.nbytes)
            finally:
                message.release()
        self.record.enter(StageState.DONE)

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
