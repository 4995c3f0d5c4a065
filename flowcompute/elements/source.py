"""Sources: where data comes in."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from flowcompute.elements.element import Element
from flowcompute.elements.policies import SkipCounter


class Reader(ABC):
    """An opened Source: the only place where reading has state.

    Methods may block and are called from worker threads, one call at a time but for `read_at`.
    `position` is the index of the next record.
    """

    position: int = 0
    element: str | None = None
    """Name of the element in the plan, for errors; set by the runtime after opening."""
    immediate: bool = False
    """True where `view` returns at once, so that it needs no worker thread."""
    threads: int = 1
    """The number of threads that may read; set by the runtime after opening. Readers that cannot leave it be."""
    uncached: bool = False
    """True where what is read need not stay in the system's cache; set by the runtime after opening."""
    skip_counter: SkipCounter | None = None
    """The records that were dropped, where the source may drop records."""

    @abstractmethod
    def read(self, out: np.ndarray) -> int:
        """Fill `out` (C-contiguous, native byte order, shape `(items, *item)`) with the next records.

        Returns how many were read; fewer than `len(out)` only at the end of the stream.

        Raises:
            SourceError: if the data cannot be read or is not what was declared.
        """

    @property
    def reads_at_a_time(self) -> int:
        """The number of calls of `read_at` that may be under way; 1 where places are not known beforehand."""
        return 1

    def read_at(self, position: int, out: np.ndarray) -> int:
        """Read records from `position`, whatever was read before; only where several calls may be under way."""
        raise NotImplementedError(f"{type(self).__name__} reads in order")

    def gather(self, records: np.ndarray, out: np.ndarray) -> bool:  # noqa: ARG002 - for those that can
        """Fill `out` with these records, in any order and whatever was read before. `position` stays as it is.

        False, and nothing is filled, where this reader reads in order only. A reader that can gather always can.

        Args:
            records: their indices, int64, as many as `out` takes.
            out: as of `read`.

        Raises:
            SourceError: if the data cannot be read or is not what was declared.
        """
        return False

    def view(self, items: int) -> np.ndarray | None:  # noqa: ARG002 - for those that give views
        """Read the next records, at most `items`, without a copy; fewer only at the end of the stream.

        None when this reader cannot give views (the caller then uses `read`); a reader
        that can give one always can. The array is read-only, C-contiguous and in native
        byte order and stays valid until `close`.
        """
        return None

    def check(self) -> None:  # noqa: B027 - most sources cannot change
        """Raise SourceError if what is being read has changed since it was opened."""

    def snapshot(self) -> dict[str, Any]:
        """Return the position as plain data; `Source.open(position=...)` continues from there."""
        return {"position": self.position}

    def place_of(self, position: int) -> dict[str, Any] | None:  # noqa: ARG002 - for those that count something else
        """Return where what gives a record begins, as plain data; None where its index says so.

        `Source.reopen` begins there, and so need not read what lies before. It is called while another thread reads.

        Args:
            position: of a record, at least the first that was asked for and at most the next one.
        """
        return None

    @abstractmethod
    def close(self) -> None:
        """Release everything; calling it twice is harmless."""


class AsyncReader(Reader):
    """A reader over something asynchronous: trio awaits `read_async` and `aclose` in place of `read` and `close`."""

    def read(self, out: np.ndarray) -> int:
        """Refuse: an asynchronous source has no blocking form."""
        raise NotImplementedError("an asynchronous reader is read with read_async")

    @abstractmethod
    async def read_async(self, out: np.ndarray) -> int:
        """Read as `read` does, awaiting."""

    async def aclose(self) -> None:
        """Close as `close` does, awaiting. Not to be cancelled."""
        self.close()


class Source(Element, ABC):
    """An element through which data comes in. Subclasses describe; `open` starts reading.

    Attributes:
        rereadable: whether `open` may be called more than once, giving the same records.
        seekable: whether `open(position=k)` works for any k without reading what lies before.
    """

    rereadable: bool = True
    seekable: bool = True

    @property
    def held_bytes(self) -> int:
        """Bytes that a reader holds beside its batches, such as decoded chunks."""
        return 0

    def must_read(self, *, mapped: bool = True) -> str | None:  # noqa: ARG002
        """Say why records are copied into buffers; None where they are seen where they lie, or are made.

        Args:
            mapped: whether files may be mapped.
        """
        return None

    @property
    def identity(self) -> tuple[object, ...]:
        """The identity of what the source reads: two sources of equal identity and spec are read once."""
        return (id(self),)

    def flattened(self) -> Source | None:
        """Return the numbers of all items as a stream of numbers, readable from any of them, or None."""
        return None

    @abstractmethod
    def open(self, *, position: int = 0, mapped: bool = True) -> Reader:
        """Start reading at record `position`; `mapped=False` forbids memory-mapped views of files."""

    def reopen(self, place: dict[str, Any], *, position: int, mapped: bool = True) -> Reader:  # noqa: ARG002
        """Go on reading at record `position`, from the place that `Reader.place_of` gave for it.

        A checkpoint holds the place, and anybody may have written that.

        Raises:
            ValueError: if no reader of this source gives such a place.
        """
        raise ValueError(f"{type(self).__name__} is opened by the record alone, and {sorted(place)} were kept")
