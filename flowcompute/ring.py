"""The newest items of a sequence, for those who write much and keep little."""

from __future__ import annotations

from typing import Generic, TypeVar

T = TypeVar("T")


class Ring(Generic[T]):
    """The newest items of a sequence. Written by one thread; read by any, without a lock.

    Args:
        room: how many are kept.

    Attributes:
        count: items that ever came.
    """

    def __init__(self, room: int) -> None:
        self.count = 0
        self._room = room
        self._items: list[T] = []

    def add(self, item: T) -> None:
        """Keep an item, and let the oldest go where there is no room."""
        if len(self._items) < self._room:
            self._items.append(item)
        elif self._room:
            self._items[self.count % self._room] = item
        self.count += 1

    @property
    def lost(self) -> int:
        """Items that are no longer there."""
        return self.count - len(self._items)

    def items(self) -> tuple[T, ...]:
        """Return those that are there, oldest first."""
        # One copy first, since the writer goes on; it may have overwritten the oldest one meanwhile.
        count, items = self.count, self._items[:]
        first = count % self._room if len(items) == self._room and self._room else 0
        return (*items[first:], *items[:first])
