"""View of a source: a part of it, or runs of its records, as a source of its own."""

from __future__ import annotations

from typing import Any

import numpy as np

from flowcompute.elements import Reader, Source
from flowcompute.errors import SourceError
from flowcompute.sources.file_source import check_position
from flowcompute.spec import Spec, Stream

_CHUNK_BYTES = 1 << 20
_MOST_PLACES = 1 << 16
"""Records of the inner source that are gathered at a time, since the place of each is kept."""


class SourceView(Source):
    """Runs of `every` records of another source, each `step` records after the one before.

    The planner alone makes views, of sources that can be read again from any position. Thus `x[100:200]` reads
    a hundred records, and `x[1:] - x[:-1]` keeps no records back.

    Args:
        inner: the source that is read.
        first: its first record that is used.
        step: its records from one record of the view to the next.
        every: its records in each record of the view; 0 for one, without an axis of its own.
        length: records of the view.
    """

    inner: Source
    first: int
    step: int
    every: int

    def __init__(self, inner: Source, *, first: int, step: int, every: int, length: int) -> None:
        shape = (every, *inner.spec.shape) if every else inner.spec.shape
        super().__init__(Spec(inner.dtype, shape, Stream(length)))
        self.freeze_fields(inner=inner, first=first, step=step, every=every, site=inner.site)

    @property
    def label(self) -> str:
        """Label of the source that is read."""
        return self.inner.name or self.inner.label

    @property
    def origin(self) -> str:
        """The file of the source that is read, if there is one."""
        return self.inner.origin

    @property
    def identity(self) -> tuple[object, ...]:
        """The source that is read, and the part of it."""
        return ("view", self.inner.identity, self.first, self.step, self.every, self.spec.length)

    @property
    def dense(self) -> bool:
        """True where its records lie one behind the other."""
        return self.step == max(1, self.every)

    def must_read(self, *, mapped: bool = True) -> str | None:
        """Return the reason why the records are copied into buffers, or None."""
        return self.inner.must_read(mapped=mapped) if self.dense else f"only one of {self.step} records is used"

    def flattened(self) -> Source | None:
        """Return a source of the numbers of dense records, or None where the inner source has none."""
        flat = self.inner.flattened() if self.dense else None
        if flat is None:
            return None
        first, length = self.first * self.inner.spec.item_numbers, (self.spec.length or 0) * self.spec.item_numbers
        return SourceView(flat, first=first, step=1, every=0, length=length)

    def open(self, *, position: int = 0, mapped: bool = True) -> SourceViewReader:
        """Start reading at record `position` of the view.

        Raises:
            SourceError: if there is no such position, or the inner source cannot be opened.
        """
        length = self.spec.length or 0
        check_position(position, length, element=self.name or self.label, site=self.site)
        start = self.first + position * self.step
        if position == length:
            # A whole step behind the last record there may be nothing to open.
            start = self.first + ((length - 1) * self.step + max(1, self.every) if length else 0)
        return SourceViewReader(self, self.inner.open(position=start, mapped=mapped), position)


class SourceViewReader(Reader):
    """Reader of a part of a source."""

    def __init__(self, source: SourceView, inner: Reader, position: int) -> None:
        self.position = position
        self._source = source
        self._inner = inner
        self._length = source.spec.length or 0
        self.immediate = inner.immediate and source.dense

    @property
    def element(self) -> str | None:
        """Name of the element in the plan. The inner reader has the same."""
        return self._inner.element

    @element.setter
    def element(self, name: str | None) -> None:
        self._inner.element = name

    @property
    def uncached(self) -> bool:
        """True where the inner reader leaves nothing in the system's cache."""
        return self._inner.uncached

    @uncached.setter
    def uncached(self, value: bool) -> None:
        self._inner.uncached = value

    def read(self, out: np.ndarray) -> int:
        """Fill `out` with the next records; see `Reader.read`."""
        source = self._source
        items = min(len(out), self._length - self.position)
        target = out[:items]
        if source.every:
            target = target.reshape(items * source.every, *source.inner.spec.shape)
        if source.dense:
            self._fill(target)
        else:
            self._pick(target, items)
        self.position += items
        return items

    def gather(self, records: np.ndarray, out: np.ndarray) -> bool:
        """Read these records of the view; see `Reader.gather`."""
        source = self._source
        size = max(1, source.every)
        inside = np.arange(size)
        at_once = max(1, _MOST_PLACES // size)
        for first in range(0, max(1, len(records)), at_once):
            begins = source.first + records[first : first + at_once] * source.step
            wanted = (begins[:, None] + inside).reshape(-1)
            target = out[first : first + at_once].reshape(len(wanted), *source.inner.spec.shape)
            if not self._inner.gather(wanted, target):
                return False
        return True

    def view(self, items: int) -> np.ndarray | None:
        """Return the next records in place; see `Reader.view`."""
        source = self._source
        if not source.dense:
            return None
        items = min(items, self._length - self.position)
        records = items * max(1, source.every)
        array = self._inner.view(records)
        if array is None:
            return None
        if len(array) != records:
            raise self._too_short()
        self.position += items
        return array.reshape(items, *source.spec.shape)

    def _fill(self, target: np.ndarray) -> None:
        if len(target) and self._inner.read(target) != len(target):
            raise self._too_short()

    def _pick(self, target: np.ndarray, items: int) -> None:
        """Copy the records that are wanted, from a view of the inner source or from small reads."""
        source = self._source
        size = max(1, source.every)
        at_once = max(1, _CHUNK_BYTES // max(1, source.inner.spec.item_bytes * source.step))
        for first in range(0, items, at_once):
            count = min(at_once, items - first)
            # Behind the last record there may be nothing more.
            last = first + count == items and self.position + items == self._length
            records = (count - 1) * source.step + size if last else count * source.step
            wanted = target[first * size : (first + count) * size]
            seen = self._inner.view(records)
            if seen is None and count == 1:
                # A single step may be larger than the buffer should be.
                self._fill(wanted)
                self._skip(records - size)
                continue
            if seen is None:
                seen = np.empty((records, *source.inner.spec.shape), source.inner.dtype)
                self._fill(seen)
            elif len(seen) != records:
                raise self._too_short()
            for offset in range(size):
                wanted[offset::size] = seen[offset : (count - 1) * source.step + offset + 1 : source.step]

    def _skip(self, records: int) -> None:
        """Read records and drop them."""
        inner = self._source.inner.spec
        most = max(1, _CHUNK_BYTES // max(1, inner.item_bytes))
        room = np.empty((min(most, records), *inner.shape), inner.dtype)
        for first in range(0, records, most):
            self._fill(room[: min(most, records - first)])

    def check(self) -> None:
        """Check that the inner source has not changed.

        Raises:
            SourceError: if it has.
        """
        self._inner.check()

    def snapshot(self) -> dict[str, Any]:
        """Return the position in the view."""
        return {"position": self.position}

    def close(self) -> None:
        """Close the inner reader."""
        self._inner.close()

    def _too_short(self) -> SourceError:
        return SourceError(
            "cannot read all records: the source ended early", element=self.element, site=self._source.site
        )
