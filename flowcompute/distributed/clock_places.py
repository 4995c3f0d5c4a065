"""Places of shards in the clocks of a pass: the borders, and how far before these they begin to compute."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from flowcompute.distributed.entry_records import is_counted, is_joined, records_at
from flowcompute.distributed.shard_ranges import Records, RootRecords, roots_of, shard_unit
from flowcompute.engine import ClockPlace
from flowcompute.imports import dataclass
from flowcompute.rewrite import Entry
from flowcompute.schedule import Clock, ExecutionPlan


@dataclass(frozen=True)
class RecordCounts:
    """Records that a selection lets through.

    Attributes:
        marks: records of the first clock, from 0 to its length, in order.
        before: for each of them the records of the selection before it.
    """

    marks: Sequence[int]
    before: Sequence[int]

    def at(self, mark: int) -> int:
        """Return the records of the selection before a mark.

        Raises:
            ValueError: if it is no mark.
        """
        place = bisect_right(self.marks, mark) - 1
        if place < 0 or self.marks[place] != mark:
            raise ValueError(f"nothing is counted at record {mark}")
        return self.before[place]

    def mark_before(self, record: int) -> int:
        """Return the last mark at which no more than so many records of the selection have come."""
        return self.marks[bisect_right(self.before, record) - 1]

    def floor(self, record: int) -> int:
        """Return the last mark that is no later than a record of the first clock."""
        return self.marks[bisect_right(self.marks, record) - 1]


class ClockPlaces:
    """Places of shards in the clocks of a part of a pass.

    Args:
        plan: whose pass it is.
        clocks: of the part, by the order of their ids from 0 on.
        before: the same clocks, with the steps alone that are run before a shard's own records.
        counts: by the id of a clock what selections let through that enter it.
    """

    def __init__(
        self, plan: ExecutionPlan, clocks: Sequence[Clock], before: Sequence[Clock], counts: Mapping[int, RecordCounts]
    ) -> None:
        self._clocks = clocks
        self._roots = RootRecords(clocks)
        self._reads = roots_of(clocks)
        self._counts = counts
        self._units = [shard_unit(plan, clock) for clock in clocks]
        self._begins_at = [shard_unit(plan, clock) for clock in before]

    def lengths(self) -> list[int]:
        """Return the records of each clock."""
        found: list[int] = []
        for clock in self._clocks:
            if clock.length is not None:
                found.append(clock.length)
            elif clock.id in self._counts:
                found.append(self._counts[clock.id].before[-1])
            else:
                found.append(min(_whole(one, found) for one in clock.entries))
        return found

    def of_shard(self, records: Records) -> list[ClockPlace]:
        """Return where the shard of a range of records that are read stands in each clock."""
        lengths = self.lengths()
        first, stop = (self._border(one, lengths) for one in records)
        if records[0] == 0:
            first = [0] * len(lengths)
        begin, over = self._begins(first, self._read_before(records[0]), lengths)
        return [
            ClockPlace(
                begin[clock.id],
                first[clock.id],
                stop[clock.id],
                {entry.value: self._skip(clock, entry, begin, over) for entry in clock.entries},
                clock.id in over,
            )
            for clock in self._clocks
        ]

    def of_tiles(self, records: Records, clock: int, tiles: Collection[int]) -> list[ClockPlace]:
        """Return where a shard stands that adds up tiles of scans of a clock: it begins with a whole tile of each."""
        places = self.of_shard(records)
        first = [place.first for place in places]
        first[clock] = min(first[clock] // tile * tile for tile in tiles)
        begin, over = self._begins(first, frozenset(), self.lengths())
        return [
            replace(
                place,
                begin=begin[one.id],
                skips={entry.value: self._skip(one, entry, begin, over) for entry in one.entries},
            )
            for one, place in zip(self._clocks, places, strict=True)
        ]

    def _read_before(self, place: int) -> frozenset[int]:
        """Return the clocks of whose records all are read before the shard that begins at a place."""
        own = self._roots.at(place)
        before = {one.id for one in self._roots.clocks if self._roots.first_of(one) < self._roots.first_of(own)}
        return frozenset(clock.id for clock in self._clocks if self._reads[clock.id] <= before)

    def _border(self, border: int, lengths: Sequence[int]) -> list[int]:
        """Return the records of each clock that belong before a border of what is read: whole blocks of folds."""
        read = self._roots.before(border)
        found: list[int] = []
        for clock in self._clocks:
            if clock.is_root:
                found.append(read[clock.id])
                continue
            if border == self._roots.total or all(read[root] == lengths[root] for root in self._reads[clock.id]):
                found.append(lengths[clock.id])
                continue
            most = min(*(self._available(clock, one, border, found) for one in clock.entries), lengths[clock.id])
            # At the end of a stream there is no whole block to wait for.
            found.append(most if most == lengths[clock.id] else most // self._units[clock.id] * self._units[clock.id])
        return found

    def _available(self, clock: Clock, entry: Entry, border: int, found: Sequence[int]) -> int:
        if is_counted(entry):
            return self._counts[clock.id].at(border)
        if is_joined(entry):
            # Those behind the first that is not complete have no record yet.
            return sum(found[origin] for origin, _ in entry.inputs)
        return records_at(entry).available(found[entry.inputs[0][0]])

    def _begins(
        self, first: Sequence[int], before: frozenset[int], lengths: Sequence[int]
    ) -> tuple[list[int], frozenset[int]]:
        """Return the first record that each clock computes, so that all records from `first` on see what they need.

        Args:
            first: the first record of each clock that counts.
            before: clocks of whose records all are read before.
            lengths: records of each clock.

        Returns:
            The records, and those of `before` of which nothing is needed.
        """
        over = before
        while True:
            needed = self._needs(first, over, lengths)
            again = [root.id in over and needed[root.id] < lengths[root.id] for root in self._roots.clocks]
            if not any(again):
                break
            # Streams that are joined end one after the other, so those behind end again as well.
            live = {root.id for root in self._roots.clocks[again.index(True) :]}
            # What ends with them ends in this shard once more.
            over = frozenset(i for i in over if self._reads[i].isdisjoint(live))
        begins: list[int] = []
        for clock in self._clocks:
            if clock.id in over:
                begin = lengths[clock.id]
            elif clock.is_root:
                begin = needed[clock.id]
                for counts in self._counts.values():
                    begin = counts.floor(begin)
            else:
                unit = self._begins_at[clock.id]
                arrived = max(self._earliest(clock, entry, begins) for entry in clock.entries)
                begin = min(-(-arrived // unit) * unit, first[clock.id])
            begins.append(begin)
        return begins, over

    def _needs(self, first: Sequence[int], over: frozenset[int], lengths: Sequence[int]) -> list[int]:
        """Return the first record of each clock that others need, or its own blocks; `over` need nothing themselves."""
        needed = list(first)
        for clock in reversed(self._clocks):
            if clock.id in over and needed[clock.id] == lengths[clock.id]:
                continue
            unit = self._begins_at[clock.id]
            needed[clock.id] = needed[clock.id] // unit * unit
            for entry in clock.entries:
                before = 0
                for origin, _ in entry.inputs if is_joined(entry) else entry.inputs[:1]:
                    record = needed[clock.id] - before
                    needed[origin] = min(needed[origin], self._needed(clock, entry, record, first[origin]))
                    before += lengths[origin]
        return needed

    def _needed(self, clock: Clock, entry: Entry, record: int, first: int) -> int:
        if is_counted(entry):
            return self._counts[clock.id].mark_before(record)
        if is_joined(entry):
            return max(0, min(record, first))
        entering = records_at(entry)
        # What stands behind the stream is made of its last records.
        seen = first - entering.after - 1 if entering.name == "window" and entering.after else first
        return max(0, min(entering.needed(record), seen))

    def _earliest(self, clock: Clock, entry: Entry, begins: Sequence[int]) -> int:
        if is_joined(entry):
            return sum(begins[origin] for origin, _ in entry.inputs)
        begin = begins[entry.inputs[0][0]]
        return self._counts[clock.id].at(begin) if is_counted(entry) else records_at(entry).earliest(begin)

    def _skip(self, clock: Clock, entry: Entry, begins: Sequence[int], over: frozenset[int]) -> int:
        if clock.id in over:
            return 0
        if is_counted(entry) or is_joined(entry):
            return begins[clock.id] - self._earliest(clock, entry, begins)
        return records_at(entry).skip(begins[entry.inputs[0][0]], begins[clock.id])


def _whole(entry: Entry, found: Sequence[int]) -> int:
    """Return the records of an entry, of those of the clocks before."""
    if is_joined(entry):
        return sum(found[origin] for origin, _ in entry.inputs)
    return records_at(entry).whole(found[entry.inputs[0][0]])
