"""One pass of a plan over a range of its records, in the process that calls."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from flowcompute.batch import Batch
from flowcompute.elements import AsyncReader, Reader, State
from flowcompute.engine import Executor, PlannedJob, begun_at, check_stopped, close_all, part_done
from flowcompute.errors import SourceError
from flowcompute.schedule import Clock, SourceStage, with_defaults

MALFORMED = (ValueError, TypeError, LookupError, AttributeError, ArithmeticError)
"""Errors of plain data of another process that is not of the form that ours gives it."""


@dataclass(frozen=True)
class ShardState:
    """The state of the folds of a pass over a range of records, as plain data and arrays.

    Attributes:
        start, stop: the records.
        folds: snapshots by the ids of their nodes, as text.
    """

    start: int
    stop: int
    folds: Mapping[str, State]


def run_shard(job: PlannedJob, index: int, records: tuple[int, int], resident: Mapping[int, np.ndarray]) -> ShardState:
    """Run a pass over records `start` to `stop`, and return the state of its folds. Nothing is written.

    Records keep the indices that they have in the whole stream. A shard is a pass that goes on at its first record,
    from folds that have taken none: so it uses what resuming uses.

    Args:
        job: a plan that `check_shardable` has passed, and what computes it.
        index: which of its passes; it has one clock.
        records: the first record and the one after the last; both are multiples of `shard_unit`, but for the end.
        resident: whole values of earlier passes, by id; left as it is.

    Raises:
        FlowError: as a run.
    """
    start, stop = records
    (clock,) = job.plan.passes[index].clocks
    executor = job.executor(index, dict(resident))
    readers: list[Reader] = []
    try:
        knobs = with_defaults(job.plan.strategy, job.plan.backend.capabilities)
        for source in clock.sources:
            readers.append(source.element.open(position=start, mapped=knobs.input == "mapped"))
            readers[-1].element = source.name
            readers[-1].threads = knobs.reader_threads or 1
        executor.open()
        executor.restore(begun_at(executor.snapshot(), job.plan, clock, start))
        _feed(executor, clock, readers, records)
        folds = executor.snapshot()["folds"]
        for reader in readers:
            reader.check()
    finally:
        close_all((*readers, executor))
    return ShardState(start, stop, folds)


def _feed(executor: Executor, clock: Clock, readers: list[Reader], records: tuple[int, int]) -> None:
    """Give the records of a shard to its executor, batch by batch."""
    start, end = records
    inputs = [_Input(source, reader, clock.batch_items) for source, reader in zip(clock.sources, readers, strict=True)]
    number = 0
    while start < end:
        check_stopped()
        stop = min(start + clock.batch_items, end)
        arrays = {one.stage.value: one.read(start, stop) for one in inputs}
        batch = Batch(number, start, stop, arrays, clock.id)
        if executor.in_flight > 1:
            executor.upload(batch)
        executor.process(batch, {})
        if executor.in_flight > 1:
            executor.download(batch)
        start, number = stop, number + 1
        part_done()


class _Input:
    """A source of a shard, with room for a batch where it gives no views."""

    def __init__(self, stage: SourceStage, reader: Reader, most_items: int) -> None:
        assert not isinstance(reader, AsyncReader), "sources that cannot be read again are refused"
        self.stage = stage
        self._reader = reader
        self._most_items = most_items
        self._room: np.ndarray | None = None

    def read(self, start: int, stop: int) -> np.ndarray:
        """Return records `start` to `stop`, until the next call.

        Raises:
            SourceError: if there are fewer.
        """
        found = self._reader.view(stop - start) if self._room is None else None
        if found is None:
            spec = self.stage.spec
            if self._room is None:
                self._room = np.empty((self._most_items, *spec.shape), spec.dtype)
            room = self._room[: stop - start]
            found = room[: self._reader.read(room)]
        if len(found) < stop - start:
            raise SourceError(
                "cannot go on: the source ended early",
                element=self.stage.name,
                site=self.stage.element.site,
                expected=f"{stop} records or more",
                got=f"{start + len(found)}",
                hint="see whether what it reads was cut short since the job was composed",
            )
        return found
