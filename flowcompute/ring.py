"""The newest items of a sequence, and values that were used last, for those who write much and keep little."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable
from typing import Generic, TypeVar

T = TypeVar("T")
Key = TypeVar("Key", bound=Hashable)


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


class Recent(Generic[Key, T]):
    """Values by key, of which those that were used last are kept.

    Args:
        room: how many are kept.
        make: makes the value of a key that has none.
    """

    def __init__(self, room: int, make: Callable[[], T]) -> None:
        self._room, self._make = room, make
        self._kept: dict[Key, T] = {}
        self._last: tuple[Key, T] | None = None

    def take(self, key: Key) -> T:
        """Return the value of a key, made where there is none; the one that was used longest ago goes for it."""
        last = self._last
        if last is not None and last[0] == key:
            return last[1]
        value = self._kept.pop(key) if key in self._kept else self._make()
        if len(self._kept) == self._room:
            del self._kept[next(iter(self._kept))]
        self._kept[key] = value
        self._last = key, value
        return value

    def get(self, key: Key) -> T | None:
        """Return the value of a key, which does not count as a use of it; None where there is none."""
        return self._kept.get(key)

    def values(self) -> Collection[T]:
        """Return all values."""
        return self._kept.values()

    def clear(self) -> None:
        """Forget all values."""
        self._kept.clear()
        self._last = None
