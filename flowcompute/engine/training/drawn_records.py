"""The records of the steps of a training, read in the order of their epoch."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from flowcompute.elements import Element, Reader
from flowcompute.elements.generated import Permutation
from flowcompute.elements.training import StepSchedule
from flowcompute.engine.backend import close_all
from flowcompute.errors import SourceError
from flowcompute.rewrite import source_of
from flowcompute.sources import ShuffledSource


class DrawnRecords:
    """Readers of the sources of a training. Each epoch has an order of its own, which follows from its number.

    Args:
        streams: parts of sources, as long as each other.
        schedule: which records are in which step.
    """

    def __init__(self, streams: Sequence[Element], schedule: StepSchedule) -> None:
        found = [source_of(one) for one in streams]
        self._sources = [one for one in found if one is not None]
        if len(self._sources) != len(streams):
            raise ValueError("a stream that is no part of a source")
        self._schedule = schedule
        self._epoch, self._first = 0, 0
        self._readers: dict[int, tuple[int, Reader]] = {}
        self._last: dict[int, tuple[int, np.ndarray]] = {}

    def turn_to(self, step: int) -> None:
        """Let records be counted from the first one of a step."""
        self._epoch, self._first, _ = self._schedule.of_step(step)

    def read(self, place: int, start: int, stop: int) -> np.ndarray:
        """Return records of the step in hand; the same array again where they were read last.

        Args:
            place: of the source.
            start, stop: records, counted from the first one of the step.

        Raises:
            SourceError: if they cannot be read.
        """
        begin, end = self._first + start, self._first + stop
        kept = self._last.get(place)
        key = self._epoch * self._schedule.records + begin
        if kept is not None and kept[0] == key and len(kept[1]) == end - begin:
            return kept[1]
        # Let go before there is another one.
        self._last.pop(place, None)
        source, reader = self._sources[place], self._reader(place, begin)
        array = reader.view(end - begin)
        if array is None:
            array = np.empty((end - begin, *source.spec.shape), source.dtype)
            array = array[: reader.read(array)]
        if len(array) != end - begin:
            raise SourceError(
                "cannot go on: the source ended early",
                element=source.name or source.label,
                site=source.site,
                expected=f"{source.spec.length} records",
                got=f"{begin + len(array)}",
                hint="see whether what it reads was cut short since the job was composed",
            )
        self._last[place] = key, array
        return array

    def _reader(self, place: int, position: int) -> Reader:
        """Return a reader that stands at a record of the epoch."""
        epoch, reader = self._readers.get(place, (-1, None))
        if reader is None or epoch != self._epoch or reader.position != position:
            self._close(place)
            source, seed = self._sources[place], self._schedule.seed
            if seed is not None:
                source = ShuffledSource(source, Permutation(seed, self._epoch, self._schedule.records))
            reader = source.open(position=position)
            reader.element = self._sources[place].name or self._sources[place].label
            self._readers[place] = self._epoch, reader
        return reader

    def _close(self, place: int) -> None:
        if place in self._readers:
            self._readers.pop(place)[1].close()

    def close(self) -> None:
        """Close all sources, until they are read again; harmless when called twice."""
        readers, self._readers = self._readers, {}
        self._last.clear()
        close_all([reader for _, reader in readers.values()])
