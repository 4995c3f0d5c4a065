"""Reading of a range of records: sources, the executor of a pass, and what takes the streams that it makes.

While a batch is computed the one before it is written, in a thread. So each output has memory for two, where the plan
has counted as many.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np

from flowcompute.batch import Batch
from flowcompute.distributed.shard_ranges import Records, RootRecords
from flowcompute.distributed.shard_work import ShardWork
from flowcompute.elements import AsyncReader, Reader, State, Writer
from flowcompute.engine import DRAIN, PlannedJob, check_stopped, close_all, part_done
from flowcompute.errors import SourceError
from flowcompute.imports import dataclass
from flowcompute.schedule import Clock, SourceStage, with_defaults
from flowcompute.spec import Spec
from flowcompute.thread_pool import PendingCalls, ThreadPool

MALFORMED = (ValueError, TypeError, LookupError, AttributeError, ArithmeticError)
"""Errors of plain data of another process that is not of the form that ours gives it."""


class ShardReading:
    """A pass at work on the records of a range, batch by batch.

    `check_stopped` is asked before each batch and before each write.

    Args:
        job: the job.
        index: which of its passes, of one part.
        resident: whole values of earlier passes, by id; left as it is.
        work: where it counts what it does.

    Attributes:
        executor: of the pass.
        position: the place of the record that is read next; see `RootRecords`.
    """

    def __init__(self, job: PlannedJob, index: int, resident: Mapping[int, np.ndarray], work: ShardWork) -> None:
        self.executor = job.executor(index, dict(resident))
        self._work = work
        work.watch(self.executor)
        self.position = 0
        self._job = job
        self._pass = job.plan.passes[index]
        self._roots = RootRecords(self._pass.clocks)
        self._starts: list[int] = []
        self._ended: list[bool] = []
        self._inputs: dict[int, list[_Input]] = {}
        self._outputs: list[_Output] = []
        self._gathered: dict[int, _Gathered] = {}
        self._batches = 0
        self._threads = ThreadPool("flowcompute-shard-write")
        self._writing: PendingCalls[None] | None = None

    def open(self, state: Callable[[State], State]) -> None:
        """Open executor and sources, at the record that a state says.

        Args:
            state: makes it of the state of a pass at its beginning.

        Raises:
            ValueError: if it is no state of the pass; so do the other errors of `MALFORMED`.
        """
        self.executor.open()
        self.go_on(state(self.executor.snapshot()))
        self._open_sources(self._roots.at(self.position))

    def go_on(self, state: State) -> None:
        """Go on from another state, whose clocks stand where the sources are read, or are opened next."""
        self.executor.restore(dict(state))
        self._starts, self._ended = clock_starts(state), list(state["clocks"]["ended"])
        self.position = self._roots.place(self._starts)

    def join(self, regions: Mapping[int, str], gathered: Mapping[str, np.ndarray]) -> None:
        """Open what is written; the rest of what the pass makes for destinations goes nowhere.

        Args:
            regions: as of `ShardStart`.
            gathered: what `gathered` gave where the shard was.
        """
        here = frozenset().union(*(clock.values for clock in self._pass.clocks))
        for place, sink in enumerate(self._pass.sinks):
            if sink.value not in here or not sink.spec.is_stream:
                continue
            output = next((one for one in self._outputs if one.value == sink.value), None)
            if output is None:
                shape = (self._pass.clock_of(sink.value).batch_items, *sink.spec.shape)
                rooms = [np.empty(shape, sink.spec.dtype) for _ in range(min(2, self._job.plan.depth))]
                output = _Output(sink.value, rooms, self._work)
                self._outputs.append(output)
            if place in regions and sink.element.in_memory:
                self._gathered[place] = _Gathered(sink.spec, gathered.get(str(place)))
                output.writers[sink.name] = self._gathered[place]
            elif place in regions:
                output.writers[sink.name] = sink.element.join(sink.spec, regions[place])

    def feed(self, stop: int, after_batch: Callable[[], object] = lambda: None) -> None:
        """Compute the records up to one. Clocks end whose records are all before those of another that is read.

        Args:
            stop: the place after the last.
            after_batch: called after each batch.
        """
        before = self._roots.before(stop)
        # A clock may begin behind records that the clocks before it have still to read.
        while left := [one for one in self._roots.clocks if self._starts[one.id] < before[one.id]]:
            check_stopped()
            root = left[0]
            self._end_before(root)
            start = self._starts[root.id]
            items = min(root.batch_items, before[root.id] - start)
            self._compute(root, start, start + items)
            self.drain()
            part_done()
            after_batch()

    def end(self) -> None:
        """End the clocks that have no more records to read."""
        self._end_before(None)

    def _end_before(self, root: Clock | None) -> None:
        """End those that come before a clock, and have no more records; all such for None."""
        for one in self._roots.clocks:
            if one is root or self._starts[one.id] < (one.length or 0):
                return
            if not self._ended[one.id]:
                self._ended[one.id] = True
                self._write(self.executor.end(one.id, {output.value: output.room for output in self._outputs}))
                self.drain()

    def sync(self) -> None:
        """Make durable what was written."""
        self._wait()
        for one in self._outputs:
            for writer in one.writers.values():
                writer.sync()

    def gathered(self) -> dict[str, np.ndarray]:
        """Return the records so far of streams that go to memory, by the places of their sinks; after `sync`."""
        return {str(place): writer.commit() for place, writer in self._gathered.items()}

    def check(self) -> None:
        """Check that the sources are still what they were.

        Raises:
            SourceError: if one is not.
        """
        for one in self._readers():
            one.check()

    def close(self) -> None:
        """Let go of everything, and leave what was written where it is."""
        if self._writing is not None:
            self._writing.forget()
        self._threads.close()
        self._work.unwatch(self.executor)
        close_all((*self._readers(), *self._outputs, self.executor))

    def _readers(self) -> list[Reader]:
        return [one.reader for inputs in self._inputs.values() for one in inputs]

    def _open_sources(self, root: Clock) -> list[_Input]:
        """Open the sources of a clock where it stands."""
        knobs = with_defaults(self._job.plan.strategy, self._job.plan.backend.capabilities)
        opened = self._inputs[root.id] = []
        for source in root.sources:
            reader = source.element.open(position=self._starts[root.id], mapped=knobs.input == "mapped")
            opened.append(_Input(source, reader, root.batch_items))
            reader.element = source.name
            reader.threads = knobs.reader_threads or 1
        return opened

    def _compute(self, root: Clock, start: int, stop: int) -> None:
        executor = self.executor
        began_s = perf_counter()
        inputs = self._inputs[root.id] if root.id in self._inputs else self._open_sources(root)
        arrays = {one.stage.value: one.read(start, stop, self._work) for one in inputs}
        self._work.read_s += perf_counter() - began_s
        batch = Batch(self._batches, start, stop, arrays, root.id)
        if executor.in_flight > 1:
            executor.upload(batch)
        rooms = {one.value: one.room[: batch.items] if one.value in root.values else one.room for one in self._outputs}
        made = executor.process(batch, rooms)
        if executor.in_flight > 1:
            executor.download(batch)
        self._write(made)
        self._starts[root.id] = stop
        self.position += stop - start
        self._batches += 1
        self._work.position = self.position

    def drain(self) -> bool:
        """Compute with what waits; gives whether anything did."""
        found = False
        while self.executor.wants() == DRAIN:
            check_stopped()
            self._write(self.executor.drain({one.value: one.room for one in self._outputs}))
            found = True
        return found

    def _write(self, made: Mapping[int, Records]) -> None:
        calls: list[Callable[[], None]] = []
        for one in self._outputs:
            start, stop = made.get(one.value, (0, 0))
            if stop > start:
                calls += [partial(one.write, name, one.room[: stop - start], start) for name in one.writers]
        if not calls:
            return
        self._wait()
        # While this one waited it may have been stopped, or replaced.
        check_stopped()
        self._writing = self._threads.begin([partial(_all, calls)], 1)
        if self._job.plan.depth == 1:
            self._wait()
        for one in self._outputs:
            one.rooms.reverse()

    def _wait(self) -> None:
        """Wait for what is being written.

        Raises:
            DestinationError: if that failed.
        """
        writing, self._writing = self._writing, None
        if writing is not None:
            began_s = perf_counter()
            writing.wait()
            self._work.held_s += perf_counter() - began_s


def _all(calls: Sequence[Callable[[], None]]) -> None:
    for call in calls:
        call()


class _Gathered(Writer):
    """Records of a shard that the client gets with its state.

    Args:
        spec: of the stream.
        before: what there was of them already; None for nothing.

    Raises:
        ValueError: if that is of another form.
    """

    def __init__(self, spec: Spec, before: np.ndarray | None) -> None:
        if before is None:
            before = np.empty((0, *spec.shape), spec.dtype)
        if (before.dtype, before.shape[1:]) != (spec.dtype, spec.shape):
            raise ValueError(f"records of {before.dtype} and shape {before.shape} in place of {spec}")
        self._parts = [before]

    def write(self, array: np.ndarray, start: int) -> None:  # noqa: ARG002 - they come in order
        """Keep a copy."""
        self._parts.append(array.copy())

    def commit(self) -> np.ndarray:
        """Return the records so far; more may follow."""
        self._parts = [np.concatenate(self._parts)]
        return self._parts[0]

    def abort(self) -> None:
        """Drop them."""
        self._parts.clear()

    def sync(self) -> None:
        """Do nothing: they are kept with the state of the shard."""


@dataclass
class _Output:
    """A stream that destinations take: memory for its next batch, and perhaps for one that is being written."""

    value: int
    rooms: list[np.ndarray]
    work: ShardWork
    writers: dict[str, Writer] = field(default_factory=dict)

    @property
    def room(self) -> np.ndarray:
        """Memory for the next batch."""
        return self.rooms[0]

    def write(self, name: str, records: np.ndarray, start: int) -> None:
        """Let the writer of a destination have records; called in a thread, for one batch at a time."""
        began_s = perf_counter()
        self.writers[name].write(records, start)
        seconds = perf_counter() - began_s
        self.work.passed("destination", name, len(records), seconds, bytes_in=records.nbytes)

    def close(self) -> None:
        """Leave what was written where it is."""
        for writer in self.writers.values():
            writer.suspend()


class _Input:
    """A source of a shard, with room for a batch where it gives no views."""

    def __init__(self, stage: SourceStage, reader: Reader | AsyncReader, most_items: int) -> None:
        assert not isinstance(reader, AsyncReader), "sources that cannot be read again are refused"
        self.stage = stage
        self.reader = reader
        self._most_items = most_items
        self._room: np.ndarray | None = None

    def read(self, start: int, stop: int, work: ShardWork) -> np.ndarray:
        """Return records `start` to `stop`, until the next call, and count them.

        Raises:
            SourceError: if there are fewer.
        """
        began_s = perf_counter()
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
        seconds = perf_counter() - began_s
        work.passed("source", self.stage.name, len(found), seconds, bytes_out=found.nbytes)
        return found


def clock_starts(state: Mapping[str, Any]) -> list[int]:
    """Return where the clocks of a pass stand in a state of it."""
    return list(state["clocks"]["starts"])
