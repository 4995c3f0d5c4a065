"""The shards of a pass: counting, adding up, computing, and the state of the pass that comes of it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import accumulate
from typing import TypeVar

import numpy as np

from flowcompute.distributed.clock_places import ClockPlaces, RecordCounts
from flowcompute.distributed.reduced_plans import count_clocks, for_entries, for_totals, part_of, parts_of, scans_of
from flowcompute.distributed.shard_ranges import Records, part_ranges, shard_unit
from flowcompute.distributed.shard_reading import MALFORMED
from flowcompute.distributed.shard_start import ShardStart, ShardState
from flowcompute.elements import State
from flowcompute.engine import ClockPlace, Executor, PlannedJob, TileTotals, ended_with, tile_records
from flowcompute.errors import RunError
from flowcompute.schedule import Clock

RunShards = Callable[[int, Sequence[ShardStart]], Sequence[ShardState]]
"""`run(pass, starts)` runs shards of a pass, wherever and in any order, and gives what came of each.

It is called for each part and task of a pass; `ShardStart.name` tells the shards of all calls for a pass apart."""

MARKS = 16
"""Places in a shard at which selections are counted: so much finer is known where to begin for whole blocks."""

Found = TypeVar("Found")


class PartShards:
    """The shards of a part of a pass.

    Args:
        job: a plan that `check_shardable` has passed, and what computes it here.
        index: which of its passes; it reads something.
        part: which of its parts; see `parts_of`.
        shards: the most shards; see `part_ranges`.
        run_shards: runs them.

    Attributes:
        lengths: records of each clock of the part, in the order of `parts_of`, once it has run.
        states: what came of the shards in record order, once it has run.
    """

    def __init__(self, job: PlannedJob, index: int, part: int, shards: int, run_shards: RunShards) -> None:
        self._job = job = part_of(job, index, part)
        self._index = index
        self._part = part
        self._pass = job.plan.passes[index]
        self._before = for_entries(job, index)
        self._ranges = part_ranges(job.plan, self._pass.clocks, shards)
        self._run_shards = run_shards
        self.lengths: list[int] = []
        self.states: list[ShardState] = []

    def run(self, resident: Mapping[int, np.ndarray], regions: Mapping[int, str]) -> None:
        """Run all shards.

        Args:
            resident: whole values of earlier passes that shards need, by id.
            regions: as of `ShardStart`, of the whole pass.

        Raises:
            RunError: if the states are not those of the shards, or do not fit.
        """
        begun = ShardStart((0, 0), resident, part=self._part)
        before = self._before.plan.passes[self._index].clocks
        marks = self._marks()
        # What is selected may depend on scans; and where a shard begins, on what is selected: at a mark.
        early = self._carried(begun, {mark for own in marks for mark in own})
        counts = self._counts(begun, marks, early)
        at = ClockPlaces(self._job.plan, self._pass.clocks, before, counts)
        self.lengths = at.lengths()
        places = [at.of_shard(records) for records in self._ranges]
        carries = self._carries(begun, places, early, counts)
        here = {place: draft for place, draft in regions.items() if self.makes(self._pass.sinks[place].value)}
        self.states = self._ran(
            [
                replace(begun, records=records, regions=here, places=tuple(place), carries=carry)
                for records, place, carry in zip(self._ranges, places, carries, strict=True)
            ]
        )

    def makes(self, value: int) -> bool:
        """Check whether a stream is made in the part."""
        return any(value in clock.values for clock in self._pass.clocks)

    def written(self, place: int) -> int:
        """Return how many records of a stream shards have written.

        Args:
            place: of the stream's sink in the pass; it is made in the part.

        Raises:
            RunError: if it is not all of it.
        """
        length = self.lengths[self._pass.clock_of(self._pass.sinks[place].value).id]
        stop = 0
        for one in self.states:
            first, last = one.written.get(str(place), (-1, -1))
            if first != stop or last < first:
                break
            stop = last
        else:
            if stop == length:
                return length
        raise RunError(
            "cannot complete a result: shards have not written all of it",
            element=self._pass.sinks[place].name,
            expected=f"{length} records",
            got=f"{stop} without a gap",
            hint="please report this",
        )

    def streamed(self, place: int) -> Iterator[tuple[int, np.ndarray]]:
        """Yield the first record and the records that each shard gives of a stream that goes to memory.

        Args:
            place: of the stream's sink in the pass; it is made in the part.

        Raises:
            RunError: if they are not those of the stream.
        """
        spec = self._pass.sinks[place].spec
        self.written(place)
        for one in self.states:
            first, stop = one.written[str(place)]
            array = one.streams.get(str(place))
            if array is None or (array.dtype, array.shape) != (spec.dtype, (stop - first, *spec.shape)):
                raise RunError(
                    "cannot complete a result: a shard gives other records than it says",
                    element=self._pass.sinks[place].name,
                    expected=f"{stop - first} records of {spec}",
                    got="none" if array is None else f"{array.dtype} of shape {array.shape}",
                    hint="please report this",
                )
            yield first, array

    def _ran(self, starts: Sequence[ShardStart]) -> list[ShardState]:
        states = self._run_shards(self._index, starts)
        found = {(state.start, state.stop): state for state in states}
        if sorted(found) != sorted(self._ranges) or len(states) != len(self._ranges):
            raise RunError(
                "cannot merge the shards of a pass",
                expected=f"states of {len(self._ranges)} shards, one of each",
                got=f"{len(states)}, of records {', '.join(f'{a} to {b}' for a, b in sorted(found)) or 'none'}",
                hint="please report this",
            )
        return [found[records] for records in self._ranges]

    # -- selections -------------------------------------------------------------------------------

    def _marks(self) -> list[tuple[int, ...]]:
        """Return by shard the places at which selections are counted; none where there are none."""
        if not count_clocks(self._pass):
            return []
        unit = shard_unit(self._job.plan, self._pass.clocks[0])
        return [_marks(records, unit) for records in self._ranges]

    def _counts(
        self, begun: ShardStart, marks: Sequence[tuple[int, ...]], carried: Mapping[int, Mapping[int, State]]
    ) -> dict[int, RecordCounts]:
        """Count what selections let through; gives the counts by the id of their clocks."""
        if not marks:
            return {}
        starts = [
            replace(
                begun,
                records=records,
                task="count",
                marks=own,
                carries={i: found[own[0]] for i, found in carried.items() if own[0]},
            )
            for records, own in zip(self._ranges, marks, strict=True)
        ]
        states = self._ran(starts)
        ends = [*(mark for own in marks for mark in own), self._ranges[-1][1]]

        def counts_of(key: str) -> RecordCounts:
            found = [count for state, own in zip(states, marks, strict=True) for count in _some(state, key, own)]
            return RecordCounts(ends, [0, *accumulate(found)])

        return {clock.id: _fitting(partial(counts_of, str(clock.id))) for clock in count_clocks(self._pass)}

    # -- scans ------------------------------------------------------------------------------------

    def _carries(
        self,
        begun: ShardStart,
        places: Sequence[Sequence[ClockPlace]],
        carried: Mapping[int, Mapping[int, State]],
        counts: Mapping[int, RecordCounts],
    ) -> list[dict[int, State]]:
        """Return for each shard the states that its scans begin with; `carried` are the first clock's, at marks."""
        before = set(scans_of(self._before.plan, self._index))
        carries: list[dict[int, State]] = [{} for _ in places]
        for clock in self._pass.clocks:
            records = {
                i: [place[clock.id].begin if i in before else place[clock.id].first for place in places]
                for i in scans_of(self._job.plan, self._index, clock.id)
            }
            wanted = {record for own in records.values() for record in own}
            if clock.is_root:
                found = carried or self._carried(begun, wanted)
            else:
                found = self._carried_later(begun, clock, places, wanted, counts)
            for i, own in records.items():
                for carry, record in zip(carries, own, strict=True):
                    if record:
                        carry[i] = found[i][record]
        return carries

    def _carried(self, begun: ShardStart, records: Collection[int]) -> dict[int, dict[int, State]]:
        """Add up the tiles of scans of the first clock; gives by scan its state at each of these records but 0."""
        if not scans_of(self._job.plan, self._index, 0):
            return {}
        starts = [replace(begun, records=one, task="totals") for one in self._ranges]
        return self._states_of_scans(starts, self._ranges, records, 0)

    def _carried_later(
        self,
        begun: ShardStart,
        clock: Clock,
        places: Sequence[Sequence[ClockPlace]],
        records: Collection[int],
        counts: Mapping[int, RecordCounts],
    ) -> dict[int, dict[int, State]]:
        """Do as `_carried`, for a clock whose records come from others."""
        tiles = [self._tile(i) for i in scans_of(self._job.plan, self._index, clock.id)]
        if not tiles:
            return {}
        reduced = for_totals(self._job, self._index, clock.id).plan.passes[self._index].clocks
        at = ClockPlaces(self._job.plan, self._pass.clocks, reduced, counts)
        ranges = [(place[clock.id].first, place[clock.id].stop) for place in places]
        # Nobody begins behind the last of these records, and some are made at the end of the stream only.
        first = ranges[-1][0]
        ranges[-1] = first, max(first, *records)
        starts = []
        for own, (_, stop) in zip(self._ranges, ranges, strict=True):
            there = at.of_tiles(own, clock.id, tiles)
            there[clock.id] = replace(there[clock.id], stop=stop)
            starts.append(replace(begun, records=own, task="totals", clock=clock.id, places=tuple(there)))
        return self._states_of_scans(starts, ranges, records, clock.id)

    def _states_of_scans(
        self, starts: Sequence[ShardStart], ranges: Sequence[Records], records: Collection[int], clock: int
    ) -> dict[int, dict[int, State]]:
        wanted = sorted({*records} - {0})
        if not wanted:
            return {}
        marks = [tuple(mark for mark in wanted if start <= mark < stop) for start, stop in ranges]
        # The end of the stream is in no range; a shard without records may stand there.
        marks[-1] = tuple(mark for mark in wanted if mark >= ranges[-1][0])
        states = self._ran([replace(start, marks=own) for start, own in zip(starts, marks, strict=True)])
        nodes = self._job.plan.graph.nodes
        return {
            i: _fitting(partial(_added_up, TileTotals(nodes[i]), str(i), self._tile(i), states, ranges, marks))
            for i in scans_of(self._job.plan, self._index, clock)
        }

    def _tile(self, scan: int) -> int:
        tile = tile_records(self._job.plan.graph.nodes[scan])
        assert tile is not None, "other scans are refused"
        return tile


def end_pass(executor: Executor, job: PlannedJob, index: int, parts: Sequence[PartShards]) -> None:
    """Put an executor of a pass from its beginning to its end.

    Args:
        executor: at the beginning of the pass.
        job: whose pass it is.
        index: which of its passes.
        parts: of the pass, run.

    Raises:
        RunError: if what came of shards does not fit.
    """
    clocks = job.plan.passes[index].clocks
    lengths = {}
    for own, part in zip(parts_of(job.plan.passes[index]), parts, strict=True):
        lengths.update({clock.id: length for clock, length in zip(own, part.lengths, strict=True)})

    def restore() -> None:
        begun = executor.snapshot()
        folds = {}
        for key in begun["folds"]:
            made = next(part for part in parts if part.makes(int(key)))
            folds[key] = [state.folds[key] for state in made.states]
        executor.restore(ended_with(begun, job.plan, clocks, [lengths[clock.id] for clock in clocks], folds))

    _fitting(restore)


def _marks(records: Records, unit: int) -> tuple[int, ...]:
    """Return the places at which a shard counts, from its first record on."""
    start, stop = records
    step = -(-(stop - start) // (MARKS * unit)) * unit
    return tuple(range(start, stop, step)) if step else (start,)


def _some(state: ShardState, key: str, marks: Sequence[int]) -> list[int]:
    found = state.counts[key]
    if len(found) != len(marks):
        raise ValueError(f"{len(found)} counts at {len(marks)} marks")
    return found


def _added_up(
    totals: TileTotals,
    key: str,
    tile: int,
    states: Sequence[ShardState],
    ranges: Sequence[Records],
    marks: Sequence[Sequence[int]],
) -> dict[int, State]:
    """Return the states of a scan at all marks."""
    carries: dict[int, State] = {}
    for state, (first, stop), own in zip(states, ranges, marks, strict=True):
        found, next_tile = state.totals[key], first // tile
        tiles = list(found["tiles"])
        if len(tiles) != stop // tile - next_tile or len(found["marks"]) != len(own):
            raise ValueError(f"{len(tiles)} tiles and {len(found['marks'])} marks of a scan")
        for mark, inside in zip(own, found["marks"], strict=True):
            while next_tile < mark // tile:
                totals.take(tiles.pop(0))
                next_tile += 1
            carries[mark] = totals.at(inside)
        for total in tiles:
            totals.take(total)
    return carries


def _fitting(make: Callable[[], Found]) -> Found:
    try:
        return make()
    except MALFORMED as error:
        raise RunError(
            "cannot merge the shards of a pass: their states do not fit",
            expected="what `run_shard` gave",
            got=str(error),
            hint="run the job again, with one version of flowcompute everywhere",
        ) from error
