"""The records of the steps of a training, read in the order of their epoch."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Sequence

import numpy as np

from flowcompute.elements import Element, Reader
from flowcompute.elements.generated import Permutation
from flowcompute.elements.training import StepSchedule
from flowcompute.engine.backend import close_all
from flowcompute.errors import SourceError
from flowcompute.rewrite import source_of
from flowcompute.sources import ShuffledSource

SEEN_STEPS = 16
"""Steps whose records are seen at once where a reader gives views without waiting."""


class DrawnRecords:
    """Readers of the sources of a training. Each epoch has an order of its own, which follows from its number.

    Args:
        streams: parts of sources, as long as each other.
        schedule: which records are in which step.
        parts: of a step that are read side by side, each in a thread of its own.
    """

    def __init__(self, streams: Sequence[Element], schedule: StepSchedule, parts: int = 1) -> None:
        found = [source_of(one) for one in streams]
        self._sources = [one for one in found if one is not None]
        if len(self._sources) != len(streams):
            raise ValueError("a stream that is no part of a source")
        self._schedule, self._parts = schedule, parts
        self._epoch, self._first = 0, 0
        self._asking = threading.Lock()
        # By source those that nobody reads by, with their epoch, and how many are in use.
        self._readers: dict[int, list[tuple[int, Reader]]] = {}
        self._in_use = Counter[int]()
        self._last: dict[int, tuple[int, np.ndarray]] = {}
        # By source a view of what the next steps read, too, and the number of its first record.
        self._seen: dict[int, tuple[int, np.ndarray]] = {}

    def turn_to(self, step: int) -> None:
        """Let records be counted from the first one of a step."""
        self._epoch, self._first, _ = self._schedule.of_step(step)

    def read(self, place: int, start: int, stop: int) -> np.ndarray:
        """Return records of the step in hand; the same array again where they were read last.

        Args:
            place: of the source.
            start, stop: records, counted from the first one of the step. Several threads may ask for others each.

        Raises:
            SourceError: if they cannot be read.
        """
        begin, end = self._first + start, self._first + stop
        key = self._epoch * self._schedule.records + begin
        with self._asking:
            kept = self._last.get(place)
            if kept is not None and kept[0] == key and len(kept[1]) == end - begin:
                return kept[1]
            # Let go before there is another one.
            self._last.pop(place, None)
            first, seen = self._seen.get(place, (key, None))
            if seen is not None and first <= key and key + end - begin <= first + len(seen):
                array = seen[key - first : key - first + end - begin]
                self._last[place] = key, array
                return array
            self._seen.pop(place, None)
            reader = self._taken(place, begin)
        try:
            array = self._read(place, reader, begin, end)
        finally:
            with self._asking:
                self._in_use[place] -= 1
                self._readers[place].append((self._epoch, reader))
        if len(array) != end - begin:
            source = self._sources[place]
            raise SourceError(
                "cannot go on: the source ended early",
                element=source.name or source.label,
                site=source.site,
                expected=f"{source.spec.length} records",
                got=f"{begin + len(array)}",
                hint="see whether what it reads was cut short since the job was composed",
            )
        with self._asking:
            self._last[place] = key, array
        return array

    def _read(self, place: int, reader: Reader, begin: int, end: int) -> np.ndarray:
        """Return the next records of a reader, fewer where its source ends."""
        source, items = self._sources[place], end - begin
        several = SEEN_STEPS if reader.immediate and self._parts == 1 else 1
        seen = reader.view(min(items * several, self._schedule.records - begin))
        if seen is None:
            array = np.empty((items, *source.spec.shape), source.dtype)
            return array[: reader.read(array)]
        if len(seen) > items:
            with self._asking:
                self._seen[place] = self._epoch * self._schedule.records + begin, seen
        return seen[:items]

    def _taken(self, place: int, position: int) -> Reader:
        """Take a reader that stands at a record of the epoch."""
        idle = self._readers.setdefault(place, [])
        found = next((one for one in idle if one[0] == self._epoch and one[1].position == position), None)
        if found is not None:
            idle.remove(found)
            reader = found[1]
        else:
            while idle and len(idle) + self._in_use[place] >= self._parts:
                idle.pop(0)[1].close()
            source, seed = self._sources[place], self._schedule.seed
            if seed is not None:
                source = ShuffledSource(source, Permutation(seed, self._epoch, self._schedule.records))
            reader = source.open(position=position)
            reader.element = self._sources[place].name or self._sources[place].label
        self._in_use[place] += 1
        return reader

    def close(self) -> None:
        """Close all sources, until they are read again; harmless when called twice."""
        readers, self._readers = self._readers, {}
        self._last.clear()
        self._seen.clear()
        close_all([reader for several in readers.values() for _, reader in several])
