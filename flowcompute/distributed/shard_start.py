"""Shards as plain data: what one begins with, how far it is, and what came of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any, Literal

import numpy as np

from flowcompute.distributed.shard_ranges import Records
from flowcompute.elements import State
from flowcompute.engine import ClockPlace
from flowcompute.imports import dataclass

Resident = Mapping[int, np.ndarray]
"""Whole values of earlier passes by id, those of constants left out."""

Task = Literal["count", "totals", "compute"]
"""The work of a shard: count what selections let through, add up tiles of scans, or compute what the pass is for."""


@dataclass(frozen=True)
class ShardStart:
    """What a shard of a pass begins with. `as_data` gives it as numbers, texts and arrays, for other processes.

    A pass with selections is counted before it is computed, and one with scans is added up, clock by clock. So a part
    of a pass has shards of several tasks, one task after the other.

    Attributes:
        records: the first record and the one after the last, of those that are read; see `part_ranges`.
        resident: whole values of earlier passes, by id.
        regions: what `Writer.lend` gave of each stream that is written, by the place of its sink in the pass; "" for
            one that goes to memory.
        part: which of the parts of the pass that no value passes between; a pass of one source has one.
        task: what it does.
        clock: where it adds up, whose scans.
        places: where it stands in each clock of the pass; none for one clock, from its first record on.
        carries: states of scans, by id: at the first record that is computed where records before `first` need their
            results, else at the first record that counts. Those left out begin there.
        marks: records at which a shard that counts or adds up tells how far it is, in order; those of `clock`.
    """

    records: Records
    resident: Resident = field(default_factory=dict)
    regions: Mapping[int, str] = field(default_factory=dict)
    task: Task = "compute"
    places: tuple[ClockPlace, ...] = ()
    carries: Mapping[int, State] = field(default_factory=dict)
    marks: tuple[int, ...] = ()
    part: int = 0
    clock: int = 0

    @property
    def name(self) -> str:
        """Text that tells the shard from all others of its pass, as "0-compute-8192"."""
        return f"{self.part}-{self.task}{self.clock or ''}-{self.records[0]}"

    def as_data(self) -> State:
        """Return it as plain data and arrays."""
        return {
            "records": list(self.records),
            "resident": {str(i): array for i, array in self.resident.items()},
            "regions": {str(place): draft for place, draft in self.regions.items()},
            "task": self.task,
            "places": [_place_data(one) for one in self.places],
            "carries": {str(i): dict(state) for i, state in self.carries.items()},
            "marks": list(self.marks),
            "part": self.part,
            "clock": self.clock,
        }

    @classmethod
    def of_data(cls, data: Mapping[str, Any]) -> ShardStart:
        """Make it of what `as_data` gave.

        Raises:
            ValueError: if the data are of another form; so do TypeError, LookupError and AttributeError.
        """
        start, stop = (_whole(one) for one in data["records"])
        if stop < start:
            raise ValueError(f"records {start} to {stop}")
        resident = {int(key): array for key, array in data["resident"].items()}
        if not all(isinstance(array, np.ndarray) for array in resident.values()):
            raise ValueError("a whole value that is no array")
        if data["task"] not in ("count", "totals", "compute"):
            raise ValueError(f"the task {data['task']!r}")
        return cls(
            (start, stop),
            resident,
            {int(key): str(draft) for key, draft in data["regions"].items()},
            data["task"],
            tuple(_place(one) for one in data["places"]),
            {int(key): dict(state) for key, state in data["carries"].items()},
            tuple(_whole(mark) for mark in data["marks"]),
            _whole(data["part"]),
            _whole(data["clock"]),
        )


@dataclass(frozen=True)
class ShardState:
    """What came of a pass over a range of records, as plain data and arrays.

    Attributes:
        start, stop: the records.
        folds: snapshots of the folds by the ids of their nodes, as text.
        written: the records that were written, by the place of their sink in the pass, as text.
        streams: the records themselves, of those that go to memory.
        counts: where the task is to count, by the id of a selection's clock the records from each mark to the next.
        totals: where it is to add up, by the id of a scan the totals of tiles, and its state at each mark without the
            tiles before it.
    """

    start: int
    stop: int
    folds: Mapping[str, State] = field(default_factory=dict)
    written: Mapping[str, Records] = field(default_factory=dict)
    counts: Mapping[str, list[int]] = field(default_factory=dict)
    totals: Mapping[str, State] = field(default_factory=dict)
    streams: Mapping[str, np.ndarray] = field(default_factory=dict)

    def as_data(self) -> State:
        """Return it as plain data and arrays."""
        return {
            "records": [self.start, self.stop],
            "folds": dict(self.folds),
            "written": {key: list(records) for key, records in self.written.items()},
            "counts": dict(self.counts),
            "totals": dict(self.totals),
            "streams": dict(self.streams),
        }

    @classmethod
    def of_data(cls, data: Mapping[str, Any]) -> ShardState:
        """Make it of what `as_data` gave.

        Raises:
            ValueError: if the data are of another form; so do TypeError, LookupError and AttributeError.
        """
        start, stop = (_whole(one) for one in data["records"])
        written = {key: (_whole(first), _whole(last)) for key, (first, last) in data["written"].items()}
        counts = {key: [_whole(one) for one in found] for key, found in data["counts"].items()}
        streams = dict(data.get("streams", {}))
        if not all(isinstance(array, np.ndarray) for array in streams.values()):
            raise ValueError("records that are no array")
        return cls(start, stop, dict(data["folds"]), written, counts, dict(data["totals"]), streams)


@dataclass(frozen=True)
class ShardProgress:
    """A moment between two batches of a shard.

    Attributes:
        start, stop: the records of the shard.
        position: the record that is read next; it may be before `start`.
        snapshot: gives what `run_shard(resume=)` goes on from: plain data and arrays. What was written by then is on
            disk when it returns.
    """

    start: int
    stop: int
    position: int
    snapshot: Callable[[], State]


OnBatch = Callable[[ShardProgress], object]
"""Called between two batches. What it raises ends the shard, whose last snapshot it can go on from."""


def _place_data(place: ClockPlace) -> State:
    skips = {str(value): skip for value, skip in place.skips.items()}
    return {"begin": place.begin, "first": place.first, "stop": place.stop, "skips": skips, "ended": place.ended}


def _place(data: Mapping[str, Any]) -> ClockPlace:
    begin, first, stop = (_whole(data[key]) for key in ("begin", "first", "stop"))
    if not begin <= first <= stop:
        raise ValueError(f"a clock from {begin}, {first} to {stop}")
    if not isinstance(data["ended"], bool):
        raise ValueError("a clock that may have ended")
    skips = {int(value): _whole(skip) for value, skip in data["skips"].items()}
    return ClockPlace(begin, first, stop, skips, data["ended"])


def _whole(value: object) -> int:
    if type(value) is not int or value < 0:
        raise ValueError(f"{value!r} in place of a number of records")
    return value
