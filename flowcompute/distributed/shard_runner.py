"""One pass of a plan over a range of its records, in the process that calls."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from flowcompute.batch import Batch
from flowcompute.distributed.shard_ranges import Records
from flowcompute.distributed.shard_start import OnBatch, ShardProgress, ShardStart, ShardState
from flowcompute.elements import AsyncReader, Reader, State, Writer
from flowcompute.engine import PlannedJob, begun_at, check_stopped, close_all, part_done
from flowcompute.errors import CheckpointError, SourceError
from flowcompute.schedule import SourceStage, with_defaults

MALFORMED = (ValueError, TypeError, LookupError, AttributeError, ArithmeticError)
"""Errors of plain data of another process that is not of the form that ours gives it."""


def run_shard(
    job: PlannedJob, index: int, start: ShardStart, *, resume: State | None = None, on_batch: OnBatch | None = None
) -> ShardState:
    """Run a pass over a range of records, and return the state of its folds.

    Records keep the indices that they have in the whole stream. A shard is a pass that goes on at its first record,
    from folds that have taken none: so it uses what resuming uses.

    Args:
        job: a plan that `check_shardable` has passed, and what computes it.
        index: which of its passes; it has one clock.
        start: the records, and what else the shard begins with; left as it is.
        resume: what `ShardProgress.snapshot` gave in an earlier call for the same shard, to go on from there.
        on_batch: called after each batch but the last; see `ShardProgress`.

    Raises:
        CheckpointError: if `resume` is no state of this shard.
        FlowError: as a run.
    """
    running = _RunningShard(job, index, start)
    try:
        running.open(resume)
        return running.run(on_batch)
    finally:
        running.close()


class _RunningShard:
    """A shard at work.

    Args:
        job, index, start: as for `run_shard`.
    """

    def __init__(self, job: PlannedJob, index: int, start: ShardStart) -> None:
        self._job = job
        self._start = start
        self._pass = job.plan.passes[index]
        (self._clock,) = self._pass.clocks
        self._executor = job.executor(index, dict(start.resident))
        self._inputs: list[_Input] = []
        self._outputs: list[_Output] = []
        self._position, self._stop = start.records

    def open(self, resume: State | None) -> None:
        """Open what the shard reads, at its first record or where it was."""
        self._executor.open()
        if resume is None:
            state = begun_at(self._executor.snapshot(), self._job.plan, self._clock, self._position)
            self._executor.restore(state)
        else:
            self._resume(resume)
        knobs = with_defaults(self._job.plan.strategy, self._job.plan.backend.capabilities)
        for source in self._clock.sources:
            reader = source.element.open(position=self._position, mapped=knobs.input == "mapped")
            self._inputs.append(_Input(source, reader, self._clock.batch_items))
            reader.element = source.name
            reader.threads = knobs.reader_threads or 1
        self._join()

    def _join(self) -> None:
        """Open what the shard writes."""
        for place, draft in sorted(self._start.regions.items()):
            sink = self._pass.sinks[place]
            output = next((one for one in self._outputs if one.value == sink.value), None)
            if output is None:
                output = _Output(sink.value, np.empty((self._clock.batch_items, *sink.spec.shape), sink.spec.dtype))
                self._outputs.append(output)
            output.writers.append(sink.element.join(sink.spec, draft))

    def _resume(self, kept: State) -> None:
        try:
            records, position = tuple(kept["records"]), kept["position"]
            if records != self._start.records or type(position) is not int:
                raise ValueError(f"the state of records {records} at {position!r}")
            if not records[0] <= position <= records[1] or kept["state"]["clocks"]["starts"] != [position]:
                raise ValueError(f"record {position} of a shard of records {records}")
            self._executor.restore(dict(kept["state"]))
        except MALFORMED as error:
            raise CheckpointError(
                "cannot go on with a shard: what was kept of it is no state of it",
                expected=f"a state of records {self._start.records[0]} to {self._start.records[1]}",
                got=str(error),
                hint="begin the shard anew",
            ) from error
        self._position = position

    def run(self, on_batch: OnBatch | None) -> ShardState:
        """Compute the records, batch by batch."""
        number = 0
        while self._position < self._stop:
            check_stopped()
            self._compute(number, min(self._position + self._clock.batch_items, self._stop))
            number += 1
            part_done()
            if on_batch is not None and self._position < self._stop:
                on_batch(ShardProgress(*self._start.records, self._position, self._snapshot))
        folds = self._executor.snapshot()["folds"]
        self._sync()
        for one in self._inputs:
            one.reader.check()
        written = {str(place): self._start.records for place in self._start.regions}
        return ShardState(*self._start.records, folds, written)

    def _compute(self, number: int, stop: int) -> None:
        executor = self._executor
        arrays = {one.stage.value: one.read(self._position, stop) for one in self._inputs}
        batch = Batch(number, self._position, stop, arrays, self._clock.id)
        if executor.in_flight > 1:
            executor.upload(batch)
        made = executor.process(batch, {one.value: one.room[: batch.items] for one in self._outputs})
        if executor.in_flight > 1:
            executor.download(batch)
        for one in self._outputs:
            one.write(made)
        self._position = stop

    def _sync(self) -> None:
        for one in self._outputs:
            for writer in one.writers:
                writer.sync()

    def _snapshot(self) -> State:
        self._sync()
        return {
            "records": list(self._start.records),
            "position": self._position,
            "state": self._executor.snapshot(),
        }

    def close(self) -> None:
        """Let go of everything."""
        close_all((*(one.reader for one in self._inputs), *self._outputs, self._executor))


@dataclass
class _Output:
    """A stream that a shard writes: room for a batch of it, and where it goes."""

    value: int
    room: np.ndarray
    writers: list[Writer] = field(default_factory=list)

    def write(self, made: Mapping[int, Records]) -> None:
        """Write the records that were computed."""
        start, stop = made.get(self.value, (0, 0))
        for writer in self.writers if stop > start else ():
            writer.write(self.room[: stop - start], start)

    def close(self) -> None:
        """Leave what was written where it is."""
        for writer in self.writers:
            writer.suspend()


class _Input:
    """A source of a shard, with room for a batch where it gives no views."""

    def __init__(self, stage: SourceStage, reader: Reader | AsyncReader, most_items: int) -> None:
        assert not isinstance(reader, AsyncReader), "sources that cannot be read again are refused"
        self.stage = stage
        self.reader = reader
        self._most_items = most_items
        self._room: np.ndarray | None = None

    def read(self, start: int, stop: int) -> np.ndarray:
        """Return records `start` to `stop`, until the next call.

        Raises:
            SourceError: if there are fewer.
        """
        found = self.reader.view(stop - start) if self._room is None else None
        if found is None:
            spec = self.stage.spec
            if self._room is None:
                self._room = np.empty((self._most_items, *spec.shape), spec.dtype)
            room = self._room[: stop - start]
            found = room[: self.reader.read(room)]
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
