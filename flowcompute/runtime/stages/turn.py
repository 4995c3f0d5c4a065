"""A batch on its way through the stage that computes, and what becomes of it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from flowcompute.batch import Batch
from flowcompute.runtime.channels import Channel, Message, Pool, SharedBuffer
from flowcompute.runtime.stages.writing import SinkTask
from flowcompute.schedule import Clock

Compute = Callable[[dict[int, np.ndarray]], Mapping[int, tuple[int, int]]]
"""Fills outputs, and says which records it has filled them with, by value."""


class Output(NamedTuple):
    """A stream value that destinations take: its clock, its buffers, and the tasks that write it."""

    value: int
    clock: Clock
    pool: Pool
    sinks: Sequence[SinkTask]


class ComputedBatch:
    """A computed batch, until its destinations have it.

    Attributes:
        messages: what is still to be sent, and where to.
        placed: what was computed in destinations' own memory: destination, records, the first of these.
    """

    def __init__(self) -> None:
        self.messages: list[tuple[Channel, Message]] = []
        self.placed: list[tuple[SinkTask, np.ndarray, int]] = []

    def settle(self) -> None:
        """Tell destinations what lies in their own memory; may block."""
        for sink, array, start in self.placed:
            sink.written_in_place(array, start)

    async def send(self) -> None:
        """Pass everything on, in order."""
        while self.messages:
            channel, message = self.messages[0]
            await channel.send(message)
            del self.messages[0]

    def release(self) -> None:
        """Drop what was not sent."""
        for _, message in self.messages:
            message.release()
        self.messages.clear()


class BatchTurn:
    """A batch, or the end of a stream, on its way through the thread that computes.

    Args:
        clocks: those that it may advance.
        compute: what the thread calls, with memory for the results.
        batch: None for an end.

    Attributes:
        clocks, compute, batch: as given.
        taken: what the batch lies in, where that is given back with the turn.
        outputs: memory for the results, by value.
        buffers: the buffers among it.
        placed: the destinations whose own memory is among it.
        outgoing: what has been computed.
        made: the records that were.
    """

    def __init__(self, clocks: Collection[int], compute: Compute, batch: Batch | None = None) -> None:
        self.clocks = clocks
        self.compute = compute
        self.batch = batch
        self.taken: Sequence[Message] = ()
        self.outputs: dict[int, np.ndarray] = {}
        self.buffers: list[tuple[Output, SharedBuffer]] = []
        self.placed: Mapping[int, SinkTask] = {}
        self.outgoing = ComputedBatch()
        self.made: Mapping[int, tuple[int, int]] = {}

    @property
    def records(self) -> tuple[int, int] | None:
        """The records of the batch."""
        return None if self.batch is None else (self.batch.start, self.batch.stop)

    def collect(self) -> ComputedBatch:
        """Return what is to be sent, with the buffers that it lies in; the others are given back."""
        while self.buffers:
            output, buffer = self.buffers[0]
            start, stop = self.made.get(output.value, (0, 0))
            if stop > start:
                message = Message(start, stop, buffer.array[: stop - start], buffer)
                buffer.holders += len(output.sinks) - 1
                self.outgoing.messages += [(sink.channel, message) for sink in output.sinks]
            else:
                buffer.release()
            del self.buffers[0]
        return self.outgoing

    def release(self) -> None:
        """Give back the buffers of what was not collected, and what the batch lies in."""
        while self.buffers:
            self.buffers.pop()[1].release()
        taken, self.taken = self.taken, ()
        for message in taken:
            message.release()
