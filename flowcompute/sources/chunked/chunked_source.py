"""Sources of arrays in chunks, and their reader: each chunk is decoded once a pass, in threads."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import partial
from typing import ClassVar, NoReturn

import numpy as np

from flowcompute.elements import Reader, Source
from flowcompute.errors import SourceError
from flowcompute.files import Files, explain, shown
from flowcompute.sources.chunked.chunk_grid import ChunkGrid
from flowcompute.sources.file_source import check_position
from flowcompute.sources.layout import first_bad_bool
from flowcompute.spec import BOOL, Spec, Stream
from flowcompute.thread_pool import ThreadPool

MOST_THREADS = 4
"""Chunks that are decoded at a time: each takes memory, which the plan counts."""


class ChunkError(ValueError):
    """A chunk that cannot be decoded. Its text says why, of a chunk that need not be named."""


class ChunkStore(ABC):
    """Opened chunks of an array. Several threads may read at a time."""

    @abstractmethod
    def read_chunk(self, index: tuple[int, ...], out: np.ndarray) -> None:
        """Fill `out` (C-contiguous, of the shape of a chunk, native byte order) with a decoded chunk.

        Raises:
            OSError: as the system does.
            ChunkError: if it is not what the metadata says.
        """

    @abstractmethod
    def check(self) -> None:
        """Raise SourceError if what is read has changed since it was composed."""

    @abstractmethod
    def close(self) -> None:
        """Release everything; calling it twice is harmless."""


class ChunkedSource(Source, ABC):
    """Records of an array in chunks.

    Attributes:
        path: where the array is, for people.
        grid: its chunks.
        encoded_bytes: bytes of the largest chunk as it is stored.
        files: the file layer.
    """

    rooms: ClassVar[int] = 2
    """Decoded chunks that a thread holds at a time: a chunk that is cut, and what its decoder needs beside."""

    path: str
    grid: ChunkGrid
    encoded_bytes: int
    files: Files

    def __init__(
        self, path: str, dtype: np.dtype, grid: ChunkGrid, encoded_bytes: int, *, name: str | None, files: Files
    ) -> None:
        length, *item = grid.shape
        super().__init__(Spec(dtype, tuple(item), Stream(length)), name=name)
        self.freeze_fields(path=path, grid=grid, encoded_bytes=encoded_bytes, files=files)

    @property
    def label(self) -> str:
        """Name of the function that made it."""
        return "open"

    @property
    def called(self) -> str:
        """The array, for errors."""
        return shown(self.path)

    @property
    def held_bytes(self) -> int:
        """Bytes of a row of chunks, and of the chunks that are being decoded."""
        row = min(self.grid.records, self.grid.shape[0]) * self.spec.item_bytes
        decoded = self.grid.chunk_numbers * self.dtype.itemsize
        return row + MOST_THREADS * (self.rooms * decoded + self.encoded_bytes)

    def must_read(self, *, mapped: bool = True) -> str | None:  # noqa: ARG002
        """Return the reason why the records are copied into buffers."""
        return "chunks are decoded"

    @abstractmethod
    def open_store(self) -> ChunkStore:
        """Open the chunks for reading.

        Raises:
            SourceError: if they cannot be opened, or are not those that were composed.
        """

    def open(self, *, position: int = 0, mapped: bool = True) -> ChunkedReader:  # noqa: ARG002
        """Start reading at record `position`. `mapped` has no effect."""
        return ChunkedReader(self, position)


class ChunkedReader(Reader):
    """Reader of an array in chunks. It keeps the row of chunks that the next record lies in."""

    def __init__(self, source: ChunkedSource, position: int) -> None:
        self.element = source.name or source.label
        self.position = position
        self._source, self._grid = source, source.grid
        self._length = source.grid.shape[0]
        check_position(position, self._length, element=self.element, site=source.site)
        self._room: np.ndarray | None = None
        self._row = -1  # the row of chunks in the room
        self._threads = ThreadPool("flowcompute-chunks")
        self._store: ChunkStore | None = source.open_store()

    def read(self, out: np.ndarray) -> int:
        """Fill `out` with the next records; see `Reader.read`."""
        done, count = 0, min(len(out), self._length - self.position)
        whole: list[tuple[int, np.ndarray]] = []
        while done < count:
            row, at = divmod(self.position + done, self._grid.records)
            items = min(self._items(row) - at, count - done)
            part = out[done : done + items]
            if items == self._items(row) and row != self._row:
                whole.append((row, part))
            else:
                part[...] = self._kept(row)[at : at + items]
            done += items
        self._decode(whole)
        self.position += done
        return done

    def _items(self, row: int) -> int:
        """Return the records of a row of chunks, of which the last may have fewer."""
        return min(self._grid.records, self._length - row * self._grid.records)

    def _kept(self, row: int) -> np.ndarray:
        """Return the records of a row, which are decoded unless they are there."""
        if self._room is None:
            items = min(self._grid.records, self._length)
            self._room = np.empty((items, *self._source.spec.shape), self._source.dtype)
        if self._row != row:
            self._row = -1
            self._decode([(row, self._room[: self._items(row)])])
            self._row = row
        return self._room

    def _decode(self, rows: list[tuple[int, np.ndarray]]) -> None:
        calls = [partial(self._decode_chunk, index, out) for row, out in rows for index in self._grid.row(row)]
        threads = min(self._source.files.readers(self.threads), MOST_THREADS, len(calls))
        if threads <= 1:
            for call in calls:
                call()
        else:
            # All calls must end before this returns, since they write into the caller's memory. A thread has one each.
            shares = [partial(_call_all, calls[i::threads]) for i in range(threads)]
            self._threads.begin(shares, threads).wait()

    def _decode_chunk(self, index: tuple[int, ...], out: np.ndarray) -> None:
        """Fill a chunk's part of the records of its row."""
        grid = self._grid
        place = out[(slice(None), *grid.items_of(index))]
        inside = grid.within(index)
        direct = place.shape == grid.chunk and place.flags.c_contiguous
        room = place if direct else np.empty(grid.chunk, out.dtype)
        assert self._store is not None
        try:
            self._store.read_chunk(index, room)
        except ChunkError as error:
            self._fail(index, str(error), error)
        except OSError as error:
            text, hint = explain(error)
            self._fail(index, text, error, hint)
        if not direct:
            place[...] = room[inside]
        if out.dtype == BOOL and first_bad_bool(np.ascontiguousarray(place)) is not None:
            self._fail(index, "it holds a byte that is not a bool", None)

    def _fail(self, index: tuple[int, ...], text: str, cause: Exception | None, hint: str | None = None) -> NoReturn:
        begin = index[0] * self._grid.records
        raise SourceError(
            f"cannot read chunk {index} of {self._source.called}: {text}",
            element=self.element,
            site=self._source.site,
            records=(begin, begin + self._items(index[0])),
            hint=hint or "write the array again, or read it with the library that wrote it",
        ) from cause

    def gather(self, records: np.ndarray, out: np.ndarray) -> bool:
        """Fill `out` with these records, each row of chunks decoded once; see `Reader.gather`."""
        order = np.argsort(records, kind="stable")
        rows = records[order] // self._grid.records
        for row in np.unique(rows).tolist():
            chosen = order[rows == row]
            out[chosen] = self._kept(row)[records[chosen] - row * self._grid.records]
        return True

    def check(self) -> None:
        """Check that the array is in the state in which it was composed.

        Raises:
            SourceError: if it has changed.
        """
        if self._store is not None:
            self._store.check()

    def close(self) -> None:
        """Release the chunks and the room."""
        store, self._store = self._store, None
        self._room = None
        self._threads.close()
        if store is not None:
            store.close()


def _call_all(calls: list[partial[None]]) -> None:
    for call in calls:
        call()
