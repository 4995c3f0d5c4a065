"""A batch on its way through the stage that computes, and what becomes of it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from flowcompute.batch import Batch
from flowcompute.runtime.channels import Channel, Lease, Parcel, Pool
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


class Emission:
    """A computed batch, until its destinations have it.

    Attributes:
        parcels: what is still to be sent, and where to.
        placed: what was computed in destinations' own memory: destination, records, the first of these.
    """

    def __init__(self) -> None:
        self.parcels: list[tuple[Channel, Parcel]] = []
        self.placed: list[tuple[SinkTask, np.ndarray, int]] = []

    def settle(self) -> None:
        """Tell destinations what lies in their own memory; may block."""
        for sink, array, start in self.placed:
            sink.written_in_place(array, start)

    async def send(self) -> None:
        """Pass everything on, in order."""
        while self.parcels:
            channel, parcel = self.parcels[0]
            await channel.send(parcel)
            del self.parcels[0]

    def release(self) -> None:
        """Drop what was not sent."""
        for _, parcel in self.parcels:
            parcel.release()
        self.parcels.clear()


class BatchTurn:
    """A batch, or the end of a stream, on its way through the thread that computes.

    Args:
        clocks: those that it may advance.
        compute: what the thread calls, with memory for the results.
        batch: None for an end.

    Attributes:
        clocks, compute, batch: as given.
        outputs: memory for the results, by value.
        leases: the buffers among it.
        placed: the destinations whose own memory is among it.
        emission: what has been computed.
        made: the records that were.
    """

    def __init__(self, clocks: Collection[int], compute: Compute, batch: Batch | None = None) -> None:
        self.clocks = clocks
        self.compute = compute
        self.batch = batch
        self.outputs: dict[int, np.ndarray] = {}
        self.leases: list[tuple[Output, Lease]] = []
        self.placed: Mapping[int, SinkTask] = {}
        self.emission = Emission()
        self.made: Mapping[int, tuple[int, int]] = {}

    @property
    def records(self) -> tuple[int, int] | None:
        """The records of the batch."""
        return None if self.batch is None else (self.batch.start, self.batch.stop)

    def collect(self) -> Emission:
        """Return what is to be sent, with the buffers that it lies in; the others are given back."""
        while self.leases:
            output, lease = self.leases[0]
            start, stop = self.made.get(output.value, (0, 0))
            if stop > start:
                parcel = Parcel(start, stop, lease.array[: stop - start], lease)
                lease.holders += len(output.sinks) - 1
                self.emission.parcels += [(sink.channel, parcel) for sink in output.sinks]
            else:
                lease.release()
            del self.leases[0]
        return self.emission

    def release(self) -> None:
        """Give back the buffers of what was not collected."""
        while self.leases:
            self.leases.pop()[1].release()
