"""Shards as plain data: what one begins with, how far it is, and what came of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from flowcompute.distributed.shard_ranges import Records
from flowcompute.elements import State

Resident = Mapping[int, np.ndarray]
"""Whole values of earlier passes by id, those of constants left out."""


@dataclass(frozen=True)
class ShardStart:
    """What a shard of a pass begins with. `as_data` gives it as numbers, texts and arrays, for other processes.

    Attributes:
        records: the first record and the one after the last; both are multiples of `shard_unit`, but for the end.
        resident: whole values of earlier passes, by id.
        regions: what `Writer.lend` gave of each stream that is written, by the place of its sink in the pass.
    """

    records: Records
    resident: Resident = field(default_factory=dict)
    regions: Mapping[int, str] = field(default_factory=dict)

    def as_data(self) -> State:
        """Return it as plain data and arrays."""
        return {
            "records": list(self.records),
            "resident": {str(i): array for i, array in self.resident.items()},
            "regions": {str(place): draft for place, draft in self.regions.items()},
        }

    @classmethod
    def of_data(cls, data: Mapping[str, Any]) -> ShardStart:
        """Make it of what `as_data` gave.

        Raises:
            ValueError: if the data are of another form; so do TypeError, LookupError and AttributeError.
        """
        start, stop = data["records"]
        if type(start) is not int or type(stop) is not int or not 0 <= start <= stop:
            raise ValueError(f"records {start!r} to {stop!r}")
        resident = {int(key): array for key, array in data["resident"].items()}
        if not all(isinstance(array, np.ndarray) for array in resident.values()):
            raise ValueError("a whole value that is no array")
        return cls((start, stop), resident, {int(key): str(draft) for key, draft in data["regions"].items()})


@dataclass(frozen=True)
class ShardState:
    """What came of a pass over a range of records, as plain data and arrays.

    Attributes:
        start, stop: the records.
        folds: snapshots of the folds by the ids of their nodes, as text.
        written: the records that were written, by the place of their sink in the pass, as text.
    """

    start: int
    stop: int
    folds: Mapping[str, State]
    written: Mapping[str, Records] = field(default_factory=dict)

    def as_data(self) -> State:
        """Return it as plain data and arrays."""
        written = {key: list(records) for key, records in self.written.items()}
        return {"records": [self.start, self.stop], "folds": dict(self.folds), "written": written}

    @classmethod
    def of_data(cls, data: Mapping[str, Any]) -> ShardState:
        """Make it of what `as_data` gave.

        Raises:
            ValueError: if the data are of another form; so do TypeError, LookupError and AttributeError.
        """
        start, stop = data["records"]
        written = {key: (first, last) for key, (first, last) in data["written"].items()}
        return cls(start, stop, dict(data["folds"]), written)


@dataclass(frozen=True)
class ShardProgress:
    """A moment between two batches of a shard.

    Attributes:
        start, stop: the records of the shard.
        position: the record that is read next.
        snapshot: gives what `run_shard(resume=)` goes on from: plain data and arrays. What was written by then is on
            disk when it returns.
    """

    start: int
    stop: int
    position: int
    snapshot: Callable[[], State]


OnBatch = Callable[[ShardProgress], object]
"""Called between two batches. What it raises ends the shard, whose last snapshot it can go on from."""
