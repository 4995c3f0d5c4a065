"""One pass of a plan over a range of its records, in the process that calls."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from copy import deepcopy
from typing import Any

import numpy as np

from flowcompute.distributed.reduced_plans import count_clocks, for_counts, for_entries, for_totals, part_of, scans_of
from flowcompute.distributed.shard_ranges import RootRecords
from flowcompute.distributed.shard_reading import MALFORMED, ShardReading, clock_starts
from flowcompute.distributed.shard_start import OnBatch, ShardProgress, ShardStart, ShardState, Task
from flowcompute.distributed.shard_work import ShardWork
from flowcompute.elements import State
from flowcompute.engine import (
    NOTHING,
    ClockPlace,
    PlannedJob,
    begun_at,
    counting_from,
    limited,
    tile_records,
    unknown_state,
)
from flowcompute.errors import CheckpointError, FlowError, RunError


def run_shard(
    job: PlannedJob,
    index: int,
    start: ShardStart,
    *,
    resume: State | None = None,
    on_batch: OnBatch | None = None,
    work: ShardWork | None = None,
) -> ShardState:
    """Run a shard of a pass, and return what came of it. Streams are written where `start` says.

    Records keep the indices that they have in the whole stream. A shard is a pass that goes on at its first record,
    from folds that have taken none: so it uses what resuming uses.

    Args:
        job: a plan that `check_shardable` has passed, and what computes it.
        index: which of its passes.
        start: the records, the task, and what else the shard begins with; left as it is.
        resume: what `ShardProgress.snapshot` gave in an earlier call for the same shard, to go on from there.
        on_batch: called after each batch but the last; see `ShardProgress`.
        work: where it counts what it does; others may look at it meanwhile.

    Raises:
        CheckpointError: if `resume` is no state of this shard.
        FlowError: as a run.
    """
    running = _RUNNING[start.task](part_of(job, index, start.part), index, start, work or ShardWork())
    try:
        running.open(resume)
        return running.run(on_batch)
    finally:
        running.close()


class _RunningShard(ABC):
    """A shard at work.

    Args:
        job: the job, reduced to what the task needs.
        index, start, work: as for `run_shard`.
    """

    def __init__(self, job: PlannedJob, index: int, start: ShardStart, work: ShardWork) -> None:
        self._job = job
        self._index = index
        self._start = start
        self._clocks = job.plan.passes[index].clocks
        self._roots = RootRecords(self._clocks)
        self._work = work
        self._reading = ShardReading(job, index, start.resident, work)
        self._found: dict[str, Any] = {}

    def _prepare(self) -> None:  # noqa: B027 - some tasks need nothing
        """Do what comes before the first record, while nothing is open."""

    @abstractmethod
    def _begin(self, state: State) -> State:
        """Return the state that the shard begins with, of that of a pass at its beginning."""

    @abstractmethod
    def run(self, on_batch: OnBatch | None) -> ShardState:
        """Compute the records, batch by batch."""

    def open(self, resume: State | None) -> None:
        """Open what the shard reads and writes, at its first record or where it was."""
        try:
            if resume is None:
                self._prepare()
            self._reading.open(self._begin if resume is None else lambda _: self._kept(resume))
            self._reading.join(self._start.regions, {} if resume is None else dict(resume.get("streams", {})))
        except MALFORMED as error:
            raise self._refused(resume is not None, error) from error

    def close(self) -> None:
        """Let go of everything."""
        self._reading.close()

    def _kept(self, kept: State) -> State:
        """Return the state of the pass in what was kept of this shard."""
        records, task, position = tuple(kept["records"]), kept["task"], kept["position"]
        if (records, task) != (self._start.records, self._start.task) or type(position) is not int:
            raise ValueError(f"the state of records {records} at {position!r}, to {task}")
        state = dict(kept["state"])
        if position > records[1] or self._roots.place(clock_starts(state)) != position:
            raise ValueError(f"record {position} of a shard of records {records}")
        self._found = dict(kept["found"])
        return state

    def _refused(self, resumed: bool, error: Exception) -> FlowError:
        if resumed:
            return CheckpointError(
                "cannot go on with a shard: what was kept of it is no state of it",
                expected=f"a state of records {self._start.records[0]} to {self._start.records[1]}",
                got=str(error),
                hint="begin the shard anew",
            )
        return RunError(
            "cannot begin a shard: what it begins with does not fit the pass",
            got=str(error),
            hint="run the job again, with one version of flowcompute everywhere",
        )

    def _feed(self, stop: int, on_batch: OnBatch | None) -> None:
        def tell() -> None:
            if on_batch is not None and self._reading.position < self._start.records[1]:
                on_batch(ShardProgress(*self._start.records, self._reading.position, self._snapshot))

        self._reading.feed(stop, tell)

    def _snapshot(self) -> State:
        self._reading.sync()
        return {
            "records": list(self._start.records),
            "task": self._start.task,
            "position": self._reading.position,
            "state": self._reading.executor.snapshot(),
            "found": deepcopy(self._found),
            "streams": self._reading.gathered(),
        }


class _Computing(_RunningShard):
    """A shard that computes what the pass is for."""

    def __init__(self, job: PlannedJob, index: int, start: ShardStart, work: ShardWork) -> None:
        super().__init__(job, index, start, work)
        self._places = start.places or (ClockPlace(start.records[0], *start.records),)
        self._is_last = start.records[1] == self._roots.total
        self._before: State | None = None
        stands = [[place.first for place in self._places], [place.stop for place in self._places]]
        fits = len(self._places) == len(self._clocks) and (*map(self._roots.place, stands),) == start.records
        if not fits:
            raise RunError("cannot begin a shard: it stands elsewhere in its clocks", hint="please report this")

    def _prepare(self) -> None:
        """Compute the records before those that count, for what their neighbours see of them."""
        if all(place.begin == place.first for place in self._places):
            return
        job, index, carries = for_entries(self._job, self._index), self._index, self._start.carries
        clocks = job.plan.passes[index].clocks
        reading = ShardReading(job, index, self._start.resident, self._work)

        def begin(state: State) -> State:
            begun = begun_at(state, job.plan, clocks, self._places)
            scans = {key: carries.get(int(key), own) for key, own in state["scans"].items()}
            return {**limited(begun, [place.first for place in self._places]), "scans": scans}

        try:
            reading.open(begin)
            reading.feed(self._start.records[0])
            reading.end()
            self._before = reading.executor.snapshot()
            reading.check()
        finally:
            reading.close()

    def _begin(self, state: State) -> State:
        carried = {**state["scans"], **{str(i): carry for i, carry in self._start.carries.items()}}
        if self._before is None:
            streams = {**begun_at(state, self._job.plan, self._clocks, self._places), "scans": carried}
        else:
            streams = {**state, "clocks": self._before["clocks"], "scans": {**carried, **self._before["scans"]}}
        begun = counting_from(streams, self._job.plan, self._clocks, self._places)
        return limited(begun, None if self._is_last else [place.stop for place in self._places])

    def run(self, on_batch: OnBatch | None) -> ShardState:
        """Compute the records, batch by batch."""
        start, stop = self._start.records
        self._feed(stop, on_batch)
        self._reading.end()
        state = self._reading.executor.snapshot()
        if clock_starts(state) != [place.stop for place in self._places]:
            raise RunError(
                "cannot end a shard: its streams stand elsewhere than planned",
                expected=str([place.stop for place in self._places]),
                got=str(clock_starts(state)),
                hint="please report this",
            )
        self._reading.sync()
        self._reading.check()
        one = self._job.plan.passes[self._index]
        written = {}
        for place in self._start.regions:
            at = self._places[one.clock_of(one.sinks[place].value).id]
            written[str(place)] = (at.first, at.stop)
        return ShardState(start, stop, state["folds"], written, streams=self._reading.gathered())


class _Counting(_RunningShard):
    """A shard that counts the records that selections let through."""

    def __init__(self, job: PlannedJob, index: int, start: ShardStart, work: ShardWork) -> None:
        self._ids = [clock.id for clock in count_clocks(job.plan.passes[index])]
        super().__init__(for_counts(job, index), index, start, work)
        self._found = {"seen": [[0] for _ in self._ids]}

    def _begin(self, state: State) -> State:
        places = [ClockPlace(self._start.records[0], *self._start.records)]
        places += [ClockPlace(0, 0, 0, {entry.value: 0 for entry in clock.entries}) for clock in self._clocks[1:]]
        begun = _with_unknown_scans(begun_at(state, self._job.plan, self._clocks, places), self._job)
        carried = {key: self._start.carries.get(int(key), own) for key, own in begun["scans"].items()}
        # At the first record of all nothing is carried.
        return {**begun, "scans": carried if self._start.records[0] else state["scans"]}

    def run(self, on_batch: OnBatch | None) -> ShardState:
        """Count from mark to mark."""
        start, stop = self._start.records
        ends = [*self._start.marks[1:], stop]
        seen: list[list[int]] = self._found["seen"]
        while len(seen[0]) <= len(ends):
            self._feed(ends[len(seen[0]) - 1], on_batch)
            state = self._reading.executor.snapshot()
            for one, count in zip(seen, clock_starts(state)[1:], strict=True):
                one.append(count)
        self._reading.check()
        counts = {str(i): np.diff(one).tolist() for i, one in zip(self._ids, seen, strict=True)}
        return ShardState(start, stop, counts=counts)


class _Adding(_RunningShard):
    """A shard that adds up tiles of the scans of a clock. Each tile is begun without those before it."""

    def __init__(self, job: PlannedJob, index: int, start: ShardStart, work: ShardWork) -> None:
        nodes, clock = job.plan.graph.nodes, start.clock
        self._tiles = {i: tile_records(nodes[i]) or 1 for i in scans_of(job.plan, index, clock)}
        super().__init__(for_totals(job, index, clock), index, start, work)
        begin, stop = start.records
        self._places = start.places or (ClockPlace(begin, begin, stop),)
        if len(self._places) != len(self._clocks) or not self._tiles:
            raise RunError("cannot begin a shard: it stands elsewhere in its clocks", hint="please report this")
        self._first = {i: self._places[clock].first // tile * tile for i, tile in self._tiles.items()}
        if not start.places:
            first = min(self._first.values())
            self._places = (ClockPlace(first, first, stop),)
        self._found = {
            "noted": -1,
            "totals": {str(i): [] for i in self._tiles},
            "marks": {str(i): [] for i in self._tiles},
        }

    def _begin(self, state: State) -> State:
        return _with_unknown_scans(begun_at(state, self._job.plan, self._clocks, self._places), self._job)

    def run(self, on_batch: OnBatch | None) -> ShardState:
        """Add up from one end of a tile, or one mark, to the next."""
        (self._run_derived if self._start.clock else self._run_root)(on_batch)
        self._reading.check()
        totals: dict[str, State] = {}
        for key, marks in self._found["marks"].items():
            own = unknown_state(self._job.plan.graph.nodes[int(key)])["runs"]
            found = self._found["totals"][key]
            tiles = np.stack(found) if found else np.empty((0, *own.shape), own.dtype)
            totals[key] = {"tiles": tiles, "marks": marks}
        return ShardState(*self._start.records, totals=totals)

    def _run_root(self, on_batch: OnBatch | None) -> None:
        stop = self._start.records[1]
        while True:
            position = self._reading.position
            if self._is_of_note(position):
                self._reading.go_on(self._noted(self._reading.executor.snapshot(), position))
            if position == stop:
                return
            self._feed(self._next(position, stop), on_batch)

    def _run_derived(self, on_batch: OnBatch | None) -> None:
        """Let the clock stop at each record of note, while its sources are read batch by batch."""
        clock, end = self._start.clock, self._start.records[1]
        stop = self._places[clock].stop
        while True:
            state = self._reading.executor.snapshot()
            position = clock_starts(state)[clock]
            if self._is_of_note(position):
                state = self._noted(state, position)
            if position == stop:
                return
            limits = [place.stop for place in self._places]
            limits[clock] = self._next(position, stop)
            self._reading.go_on(limited(state, limits))
            if not self._reading.drain():
                if self._reading.position == end:
                    raise RunError("cannot add up tiles: their stream ends early", hint="please report this")
                self._feed(min(self._reading.position + self._clocks[0].batch_items, end), on_batch)

    def _next(self, position: int, stop: int) -> int:
        ends = [(position // tile + 1) * tile for tile in self._tiles.values()]
        return min(stop, *ends, *(mark for mark in self._start.marks if mark > position))

    def _is_of_note(self, position: int) -> bool:
        if position <= self._found["noted"]:
            return False
        return position in self._start.marks or any(position % tile == 0 for tile in self._tiles.values())

    def _noted(self, state: State, position: int) -> State:
        """Take the totals of tiles that end here, and what scans carry within their tiles; begin the next tiles."""
        self._found["noted"] = position
        scans = dict(state["scans"])
        for i, tile in self._tiles.items():
            if position % tile == 0:
                if position > self._first[i]:
                    self._found["totals"][str(i)].append(scans[str(i)]["carry"])
                scans[str(i)] = NOTHING
        if position in self._start.marks:
            for i in self._tiles:
                inside = {"runs": scans[str(i)]["runs"], "run": scans[str(i)]["run"]}
                self._found["marks"][str(i)].append(inside)
        return {**state, "scans": scans}


_RUNNING: Mapping[Task, type[_RunningShard]] = {"compute": _Computing, "count": _Counting, "totals": _Adding}


def _with_unknown_scans(state: State, job: PlannedJob) -> State:
    """Return a state whose scans may stand within their tiles; nobody looks at their results."""
    nodes = job.plan.graph.nodes
    return {**state, "scans": {key: unknown_state(nodes[int(key)]) for key in state["scans"]}}
