"""Streams from several files, one after the other."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate

import numpy as np

from flowcompute.elements import Reader, Source, user_site
from flowcompute.errors import SourceError
from flowcompute.files import shown
from flowcompute.sources.file_source import StoredReader, StoredSource, check_position, fail_changed, source_errors
from flowcompute.spec import Spec, Stream


class SeveralSource(Source):
    """Files of one dtype and item shape as one stream. `fc.open` makes it from a pattern or a list.

    The records are always read into buffers, since a batch may begin in one file and end in the next. One file
    is open at a time.

    Args:
        sources: the files, in the order of their records; at least one.
        name: what plans and errors call it.

    Raises:
        SourceError: if two of them differ in dtype or item shape.
    """

    sources: tuple[StoredSource, ...]

    def __init__(self, sources: Sequence[StoredSource], *, name: str | None = None) -> None:
        first = sources[0]
        for other in sources[1:]:
            if (other.spec.dtype, other.spec.shape) != (first.spec.dtype, first.spec.shape):
                raise SourceError(
                    f"cannot continue {shown(first.path)} with {shown(other.path)}",
                    element=name,
                    site=user_site(),
                    expected=f"{first.spec.dtype.name} items of shape {first.spec.shape}, as in the first file",
                    got=f"{other.spec.dtype.name} items of shape {other.spec.shape}",
                    hint="open only files of one kind together",
                )
        length = sum(source.layout.length for source in sources)
        super().__init__(Spec(first.spec.dtype, first.spec.shape, Stream(length)), name=name)
        self.freeze_fields(sources=tuple(sources))

    @property
    def label(self) -> str:
        """Name of the function that made it."""
        return "open"

    @property
    def origin(self) -> str:
        """The name of the first file, and how many there are."""
        return f"{self.sources[0].origin} and {len(self.sources) - 1} more"

    @property
    def identity(self) -> tuple[object, ...]:
        """The identities of the files, in order."""
        return ("several", *(source.identity for source in self.sources))

    def must_read(self, *, mapped: bool = True) -> str | None:  # noqa: ARG002
        """Return the reason why the records are copied into buffers."""
        return f"{len(self.sources)} files are read as one stream"

    def open(self, *, position: int = 0, mapped: bool = True) -> SeveralReader:  # noqa: ARG002
        """Start reading at record `position` of the whole stream. `mapped` has no effect."""
        return SeveralReader(self, position)


class SeveralReader(Reader):
    """Reader of files one after the other."""

    def __init__(self, source: SeveralSource, position: int) -> None:
        self.element = source.name or source.label
        self.position = position
        self._source = source
        self._ends = list(accumulate(part.layout.length for part in source.sources))
        self._current: StoredReader | None = None
        self._index = -1  # of the file that is open
        check_position(position, self._ends[-1], element=self.element, site=source.site)
        if position < self._ends[-1]:
            self._open_part()

    def read(self, out: np.ndarray) -> int:
        """Fill `out` with the next records; see `Reader.read`."""
        done = 0
        while done < len(out) and self.position < self._ends[-1]:
            part = self._open_part()
            count = part.read(out[done:])
            done += count
            self.position += count
        return done

    def gather(self, records: np.ndarray, out: np.ndarray) -> bool:
        """Fill `out` with these records, file by file; see `Reader.gather`."""
        indices = np.searchsorted(self._ends, records, side="right")
        for index in np.unique(indices).tolist():
            part = self._source.sources[index]
            chosen = np.flatnonzero(indices == index)
            room = np.empty((len(chosen), *out.shape[1:]), out.dtype)
            reader = StoredReader(part, 0, mapped=False, element=self.element)
            try:
                reader.threads = self.threads
                reader.gather(records[chosen] - (self._ends[index] - part.layout.length), room)
            finally:
                reader.close()
            out[chosen] = room
        return True

    def check(self) -> None:
        """Check that every file is in the state in which it was composed.

        Raises:
            SourceError: if one of them has changed.
        """
        for index, part in enumerate(self._source.sources):
            if index == self._index and self._current is not None:
                self._current.check()
                continue
            with source_errors("look at", part.path, element=self.element, site=self._source.site):
                now = part.files.look(part.path)
            if now != part.fingerprint:
                fail_changed(part, now, element=self.element)

    def close(self) -> None:
        """Close the file that is open."""
        current, self._current = self._current, None
        if current is not None:
            current.close()

    def _open_part(self) -> StoredReader:
        """Return the reader of the file that holds the next record."""
        index = bisect_right(self._ends, self.position)
        if self._current is None or index != self._index:
            self.close()
            begin = self._ends[index] - self._source.sources[index].layout.length
            part = self._source.sources[index]
            # Made here and not by `part.open`, so that errors on opening name the whole element.
            self._current = StoredReader(part, self.position - begin, mapped=False, element=self.element)
            self._index = index
        self._current.uncached = self.uncached
        return self._current
