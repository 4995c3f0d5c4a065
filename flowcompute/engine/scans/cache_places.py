"""Places of records in caches of keys and values, which caches share that are given the same records.

The layers of a language model have a cache each, and all of them place each record alike. So that is done once a batch
for all, whichever layer comes first.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Generic, TypeVar

import numpy as np

from flowcompute.elements.streams import COUNT, SLOT
from flowcompute.imports import dataclass
from flowcompute.ir import ATTENTION_KEYS


class CachePlaces(ABC):
    """Places of the records of a batch, and what caches share them.

    Attributes:
        caches: whose records these are.
        batch: first record and number of records of the batch that was placed last; None once it was added.
        turn: counts what each of the caches has to know of before a launch, as rows that have moved.
    """

    def __init__(self) -> None:
        self.caches: list[Any] = []
        self.batch: tuple[int, int] | None = None
        self.turn = 0

    @abstractmethod
    def mark(self) -> Callable[[], None]:
        """Note where records are; the result puts them back there. Rows that were dropped since were of no use."""


P = TypeVar("P", bound=CachePlaces)


class PlacedCache(Generic[P]):
    """A cache of the records that have these places.

    Attributes:
        places: of its records; it may share them with other caches.
    """

    def __init__(self, places: P) -> None:
        self.places = places
        places.caches.append(self)

    def share(self, places: P) -> None:
        """Have these places from now on."""
        self.places.caches.remove(self)
        for one in (self.places, places):
            one.turn += 1
        self.places = places
        places.caches.append(self)


class RowPlaces(CachePlaces):
    """Rows of records of one text after the other, side by side in the order of the stream.

    Attributes:
        row: of the first record of the batch that was placed last; of the next record where that was added.
        seen: how many rows before it the next record may see.
    """

    def __init__(self) -> None:
        super().__init__()
        self.row = self.seen = 0
        self._items = self._dropped = 0

    @property
    def end(self) -> int:
        """The row of the next record."""
        return self.row + self._items

    def add(self) -> None:
        """Count the batch that was placed last among the records before."""
        self.row, self._items, self.batch = self.end, 0, None

    def place(self, start: int, items: int, seen: int) -> None:
        """Place the records of a batch, behind which so many rows may be seen."""
        self.add()
        self.batch, self._items, self.seen = (start, items), items, seen

    def drop(self, rows: int) -> None:
        """Let the first rows go."""
        self.add()
        self.row -= rows
        self._dropped += rows

    def begin(self, rows: int) -> None:
        """Begin with so many rows, which the next record may see."""
        self.add()
        self.row = self.seen = rows

    def mark(self) -> Callable[[], None]:
        """See `CachePlaces.mark`."""
        self.add()
        row, seen, dropped = self.row, self.seen, self._dropped

        def back() -> None:
            self.begin(max(0, row - (self._dropped - dropped)))
            self.seen = min(seen, self.row)

        return back


@dataclass(slots=True)
class _SlotRun:
    """Records of a slot in a batch.

    Attributes:
        position: of the first one in its text.
        before: how many records the slot had before it.
        items: how many there are.
        last: position of the last one in its text.
    """

    position: int
    before: int
    items: int
    last: int


def _runs(places: np.ndarray) -> dict[int, _SlotRun]:
    """Return by slot the records of a batch with these places."""
    found: dict[int, _SlotRun] = {}
    # A batch is decoded record by record more often than it is long, and NumPy takes longer for a few.
    for position, slot, before in places.tolist():
        run = found.get(slot)
        if run is None:
            found[slot] = _SlotRun(position, before, 1, position)
        else:
            run.items += 1
            run.last = position
    return found


class SlotPlaces(CachePlaces):
    """Rows of records of several open texts, of which each has a slot.

    Args:
        slots: how many.
        part: rows of each slot.
        most: how many rows a record sees at most.

    Attributes:
        part: as above.
        base: for each slot what is added to the count of a record before it in its slot, for its row. Where it changes,
            it is another array.
        rows, seen: by slot its rows, and how many of them the next record may see.
    """

    def __init__(self, slots: int, part: int, most: int) -> None:
        super().__init__()
        self.part, self._most = part, most
        self.base = np.arange(slots, dtype=np.int64) * part
        self.rows, self.seen, self._dropped = (np.zeros(slots, np.int64) for _ in range(3))
        self._runs: dict[int, _SlotRun] = {}

    def add(self) -> None:
        """Count the batch that was placed last among the records before."""
        for slot, run in self._runs.items():
            self.rows[slot] += run.items
            self.seen[slot] = min(run.last + 1, self._most)
        self._runs, self.batch = {}, None

    def place(self, places: np.ndarray, start: int) -> list[tuple[int, int, int]]:
        """Place the records of a batch.

        Args:
            places: of the records in their texts; see `text_places`.
            start: record index of the first one.

        Returns:
            What has to move before: a row, the row where it goes to, and how many rows from there on.
        """
        self.add()
        self.batch, self._runs = (start, len(places)), _runs(places)
        moves, changed = [], {}
        for slot, run in self._runs.items():
            rows = int(self.rows[slot])
            keep = 0 if run.position == 0 else rows
            if keep + run.items > self.part - (ATTENTION_KEYS - 1):
                keep = min(run.position, self._most, rows)
            begin = slot * self.part
            if 0 < keep < rows:
                moves.append((begin + rows - keep, begin, keep))
            self._dropped[slot] += rows - keep
            self.rows[slot] = keep
            base = begin + keep - run.before
            if base != self.base[slot]:
                changed[slot] = base
        if changed:
            # A kernel in progress may read the one before.
            self.base = self.base.copy()
            self.base[[*changed]] = [*changed.values()]
            self.turn += 1
        return moves

    def rows_of(self, places: np.ndarray) -> np.ndarray:
        """Return the rows of the records of a batch."""
        rows: np.ndarray = self.base[places[:, SLOT]] + places[:, COUNT]
        return rows

    def widen(self, part: int) -> None:
        """Give each slot so many rows."""
        self.base = self.base + np.arange(len(self.base)) * (part - self.part)
        self.part = part

    def mark(self) -> Callable[[], None]:
        """See `CachePlaces.mark`."""
        self.add()
        rows, seen, dropped = (one.copy() for one in (self.rows, self.seen, self._dropped))

        def back() -> None:
            self._runs, self.batch = {}, None
            self.rows = np.maximum(0, rows - (self._dropped - dropped))
            self.seen = np.minimum(seen, self.rows)

        return back
