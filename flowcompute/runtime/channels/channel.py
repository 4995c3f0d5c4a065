"""The edge between two stages: a bounded queue that records who waits for whom."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from flowcompute.imports import LateModule, dataclass
from flowcompute.observe import StageState
from flowcompute.runtime.channels.barrier import CheckpointBarrier
from flowcompute.runtime.channels.batch_pool import SharedBuffer
from flowcompute.runtime.events import StageReporter

if TYPE_CHECKING:
    import trio
else:
    trio = LateModule("trio")


@dataclass(frozen=True, slots=True, eq=False)
class Message:
    """A value of one batch, on its way along one edge.

    Attributes:
        start, stop: record indices.
        array: the records, `(stop - start, *item)`.
        buffer: the buffer they lie in; None where the memory is not ours to count.
    """

    start: int
    stop: int
    array: np.ndarray
    buffer: SharedBuffer | None

    def share(self) -> Message:
        """Return the same message for one more edge, which releases it too."""
        if self.buffer is not None:
            self.buffer.holders += 1
        return self

    def release(self) -> None:
        """Say that this edge is done with it."""
        if self.buffer is not None:
            self.buffer.release()


class Channel:
    """Carries messages from one stage to another, in order, and the barriers between them.

    A send or receive that need not wait costs no checkpoint: stages meet one in every batch
    anyway, when they hand work to a thread.

    Args:
        producer, consumer: the records of the two stages.
        capacity: messages that may lie between them.

    Attributes:
        producer, consumer, capacity: as given.
    """

    def __init__(self, producer: StageReporter, consumer: StageReporter, capacity: int) -> None:
        self.capacity = capacity
        self.producer = producer
        self.consumer = consumer
        self._sender, self._receiver = trio.open_memory_channel[Message | CheckpointBarrier](capacity)

    async def send(self, message: Message | CheckpointBarrier) -> None:
        """Pass a message on. Once this returns it is the receiver's; if it is cancelled it is still the sender's."""
        try:
            self._sender.send_nowait(message)
        except trio.WouldBlock:
            self.producer.enter(StageState.OUTPUT, self.consumer.name)
            await self._sender.send(message)

    async def receive(self) -> Message | CheckpointBarrier | None:
        """Return the next message, or None after the last."""
        try:
            try:
                return self._receiver.receive_nowait()
            except trio.WouldBlock:
                self.consumer.enter(StageState.INPUT, self.producer.name)
                return await self._receiver.receive()
        except trio.EndOfChannel:
            return None

    @property
    def queued(self) -> int:
        """Parcels that lie between the stages now."""
        return self._receiver.statistics().current_buffer_used

    def finish(self) -> None:
        """Say that there is no more. Not called by a stage that fails: its stream has not ended."""
        self._sender.close()

    def abandon(self) -> None:
        """Say that no more is wanted; the producer's next send raises `trio.BrokenResourceError`."""
        self._release_all()
        self._receiver.close()

    def close(self) -> None:
        """Release what nobody received."""
        self._release_all()
        self._sender.close()
        self._receiver.close()

    def _release_all(self) -> None:
        while True:
            try:
                self._receiver.receive_nowait().release()
            except (trio.WouldBlock, trio.EndOfChannel, trio.ClosedResourceError):
                break
