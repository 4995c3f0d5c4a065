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
from flowcompute.ir import ATTENTION_KEYS, rows_taken

BEHIND = ATTENTION_KEYS - 1
"""Rows that may be read behind the last one of a text: the rest of its tile."""


ROOM_AHEAD = 32
"""Records of a batch that slots have room for twice, at most. Launches over no more are repeated on such devices."""


class CachePlaces(ABC):
    """Places of the records of a batch, and what caches share them.

    Args:
        most: rows that each open text may need.
        grows: whether these are taken as they are needed, not all from the beginning.

    Attributes:
        most: as above.
        room: rows that there are for each open text.
        caches: whose records these are.
        batch: first record and number of records of the batch that was placed last; None once it was added.
        turn: counts what each of the caches has to know of before a launch, as rows that have moved.
    """

    def __init__(self, most: int, *, grows: bool) -> None:
        self.most, self.room = most, rows_taken(0, most) if grows else most
        self.caches: list[Any] = []
        self.batch: tuple[int, int] | None = None
        self.turn = 0

    @abstractmethod
    def add(self) -> None:
        """Count the batch that was placed last among the records before."""

    @abstractmethod
    def used(self) -> list[int]:
        """Return for each open text how many rows it has, without the records of a batch that is not added."""

    @abstractmethod
    def has_room(self, items: int) -> bool:
        """Check whether so many records get their places in the rows that there are."""

    def reserve(self, rows: int) -> None:
        """Make room for so many rows of a text, or for the most."""
        needed = min(rows + BEHIND, self.most)
        if needed > self.room:
            self.room = rows_taken(needed, self.most)

    def drops(self, rows: int, keep: int, items: int) -> bool:
        """Check whether rows of a text are dropped before it gets records: there is no room for these otherwise.

        It is not made where at most half of the rows would be taken then.

        Args:
            rows: that the text has.
            keep: those of them that a later record sees.
            items: records that it gets.
        """
        needed = rows + items + BEHIND
        return needed > self.room and (needed > self.most or 2 * (keep + items + BEHIND) <= self.room)

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

    def __init__(self, most: int, *, grows: bool) -> None:
        super().__init__(most, grows=grows)
        self.row = self.seen = 0
        self._items = self._dropped = 0

    @property
    def end(self) -> int:
        """The row of the next record."""
        return self.row + self._items

    def used(self) -> list[int]:
        """See `CachePlaces.used`."""
        return [self.row]

    def has_room(self, items: int) -> bool:
        """See `CachePlaces.has_room`."""
        return self.room == self.most or self.end + items + BEHIND <= self.room

    def widen(self, most: int) -> None:
        """Have so many rows."""
        self.most = self.room = most

    def add(self) -> None:
        """See `CachePlaces.add`."""
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
        row, seen, dropped, room = self.row, self.seen, self._dropped, self.room

        def back() -> None:
            # A device may have refused what was to be more.
            self.room = room
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
        most, grows: see `CachePlaces`.
        seen: how many rows a record sees at most.

    Attributes:
        base: for each slot what is added to the count of a record before it in its slot, for its row among the `most`
            rows of each slot. Where it changes, it is another array.
        rows, seen: by slot its rows, and how many of them the next record may see.
    """

    def __init__(self, slots: int, most: int, seen: int, *, grows: bool) -> None:
        super().__init__(most, grows=grows)
        self._most_seen = seen
        self.base = np.arange(slots, dtype=np.int64) * most
        self.rows, self.seen, self._dropped = (np.zeros(slots, np.int64) for _ in range(3))
        self._runs: dict[int, _SlotRun] = {}
        self._longest = 0

    def used(self) -> list[int]:
        """See `CachePlaces.used`."""
        rows: list[int] = self.rows.tolist()
        return rows

    def has_room(self, items: int) -> bool:
        """See `CachePlaces.has_room`."""
        return self.room == self.most or self._longest + items + BEHIND <= self.room

    def begin(self, rows: np.ndarray) -> None:
        """Begin with so many rows of each slot, which its next record may see."""
        self.rows, self.seen, self._runs, self.batch = rows, rows.copy(), {}, None
        self._longest = int(rows.max())
        self.reserve(self._longest)

    def add(self) -> None:
        """See `CachePlaces.add`."""
        for slot, run in self._runs.items():
            self.rows[slot] += run.items
            self.seen[slot] = min(run.last + 1, self._most_seen)
        self._runs, self.batch = {}, None

    def place(self, places: np.ndarray, start: int) -> list[tuple[int, int, int]]:
        """Place the records of a batch.

        Args:
            places: of the records in their texts; see `text_places`.
            start: record index of the first one.

        Returns:
            What has to move before: a slot, which of its rows go to its beginning from which one on, and how many.
        """
        self.add()
        self.batch, self._runs = (start, len(places)), _runs(places)
        moves, changed = [], {}
        for slot, run in self._runs.items():
            rows = int(self.rows[slot])
            keep = 0 if run.position == 0 else rows
            least = min(run.position, self._most_seen, rows)
            if self.drops(keep, least, run.items):
                keep = least
            self.reserve(keep + run.items)
            begin = slot * self.most
            if 0 < keep < rows:
                moves.append((slot, rows - keep, keep))
            self._dropped[slot] += rows - keep
            self.rows[slot] = keep
            base = begin + keep - run.before
            if base != self.base[slot]:
                changed[slot] = base
        if self.room < self.most:
            after = [int(self.rows[slot]) + run.items for slot, run in self._runs.items()]
            self._longest = max(int(self.rows.max()), *after)
            # Otherwise launches that are repeated were looked up for as long as a full slot waits for its next record.
            self.reserve(self._longest + min(len(places), ROOM_AHEAD))
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

    def widen(self, most: int) -> None:
        """Give each slot so many rows."""
        self.base = self.base + np.arange(len(self.base)) * (most - self.most)
        self.most = self.room = most

    def mark(self) -> Callable[[], None]:
        """See `CachePlaces.mark`."""
        self.add()
        rows, seen, dropped = (one.copy() for one in (self.rows, self.seen, self._dropped))
        room = self.room

        def back() -> None:
            self.begin(np.maximum(0, rows - (self._dropped - dropped)))
            self.seen = np.minimum(seen, self.rows)
            # See `RowPlaces.mark`.
            self.room = room

        return back
