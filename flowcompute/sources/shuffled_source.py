"""Streams in another order, read where their records lie."""

from __future__ import annotations

from typing import Any

import numpy as np

from flowcompute.elements import Reader, Source
from flowcompute.elements.generated import Permutation
from flowcompute.errors import SourceError
from flowcompute.sources.file_source import check_position
from flowcompute.spec import Spec, Stream

_PIECE = 1 << 16
"""Records that are looked for at a time: what is known of their order is kept for each."""


class ShuffledSource(Source):
    """Records of another source in another order, once in each of several orders.

    The planner makes it, of sources that can be read again from any position. The records of a batch are read in the
    order of the inner source, as far as that helps it.

    Args:
        inner: the source that is read.
        orders: of its records, one after the other; each of the length of the source.
        inverse: whether the orders are undone: the source is read so that shuffling it would give what it holds.
    """

    inner: Source
    orders: tuple[Permutation, ...]
    inverse: bool

    def __init__(self, inner: Source, *orders: Permutation, inverse: bool = False) -> None:
        length = inner.spec.length or 0
        assert all(order.length == length for order in orders)
        super().__init__(Spec(inner.dtype, inner.spec.shape, Stream(length * len(orders))))
        self.freeze_fields(inner=inner, orders=orders, inverse=inverse, site=inner.site)

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
        """The source that is read, and the orders."""
        return ("shuffled", self.inner.identity, self.orders, self.inverse)

    def must_read(self, *, mapped: bool = True) -> str | None:  # noqa: ARG002
        """Return the reason why the records are copied into buffers."""
        return "they are read in another order"

    def records(self, first: int, count: int) -> np.ndarray:
        """Return which records of the inner source stand at `count` positions from `first` on."""
        return self.records_at(np.arange(first, first + count))

    def records_at(self, positions: np.ndarray) -> np.ndarray:
        """Return which records of the inner source stand at these positions."""
        length = max(1, self.inner.spec.length or 0)
        epochs = positions // length
        found = np.empty(len(positions), np.int64)
        for epoch in np.unique(epochs).tolist():
            chosen, order = epochs == epoch, self.orders[epoch]
            places = positions[chosen] - epoch * length
            found[chosen] = order.positions(places) if self.inverse else order.records(places)
        return found

    def open(self, *, position: int = 0, mapped: bool = True) -> ShuffledReader:
        """Start reading at record `position` of the order.

        Raises:
            SourceError: if there is no such position, or the inner source cannot be opened.
        """
        check_position(position, self.spec.length or 0, element=self.name or self.label, site=self.site)
        return ShuffledReader(self, self.inner.open(mapped=mapped), position, mapped=mapped)


class ShuffledReader(Reader):
    """Reader of a source in another order."""

    def __init__(self, source: ShuffledSource, inner: Reader, position: int, *, mapped: bool) -> None:
        self.position = position
        self._source = source
        self._inner = inner
        self._mapped = mapped
        self._length = source.spec.length or 0

    @property
    def element(self) -> str | None:
        """Name of the element in the plan. The inner reader has the same."""
        return self._inner.element

    @element.setter
    def element(self, name: str | None) -> None:
        self._inner.element = name

    @property
    def threads(self) -> int:
        """The number of threads that may read."""
        return self._inner.threads

    @threads.setter
    def threads(self, value: int) -> None:
        self._inner.threads = value

    def read(self, out: np.ndarray) -> int:
        """Fill `out` with the next records; see `Reader.read`."""
        items = min(len(out), self._length - self.position)
        for first in range(0, items, _PIECE):
            count = min(_PIECE, items - first)
            self._fill(self._source.records(self.position + first, count), out[first : first + count])
        self.position += items
        return items

    def gather(self, records: np.ndarray, out: np.ndarray) -> bool:
        """Read these records of the order; see `Reader.gather`."""
        for first in range(0, len(records), _PIECE):
            part = slice(first, first + _PIECE)
            self._fill(self._source.records_at(records[part]), out[part])
        return True

    def _fill(self, records: np.ndarray, out: np.ndarray) -> None:
        if not self._inner.gather(records, out):
            self._read_one_by_one(records, out)

    def _read_one_by_one(self, records: np.ndarray, out: np.ndarray) -> None:
        """Read records of a source that reads in order only: each run of neighbours by a reader of its own."""
        order = np.argsort(records, kind="stable")
        ordered = records[order]
        begins = np.flatnonzero(np.diff(ordered, prepend=-2) != 1)
        for begin, end in zip(begins.tolist(), [*begins[1:].tolist(), len(ordered)], strict=True):
            room = np.empty((end - begin, *out.shape[1:]), out.dtype)
            reader = self._source.inner.open(position=int(ordered[begin]), mapped=self._mapped)
            try:
                reader.element = self.element
                found = reader.view(end - begin)
                done = reader.read(room) if found is None else len(found)
                if done != end - begin:
                    raise self._too_short()
                out[order[begin:end]] = room if found is None else found
            finally:
                reader.close()

    def check(self) -> None:
        """Check that the inner source has not changed.

        Raises:
            SourceError: if it has.
        """
        self._inner.check()

    def snapshot(self) -> dict[str, Any]:
        """Return the position in the order."""
        return {"position": self.position}

    def close(self) -> None:
        """Close the inner reader."""
        self._inner.close()

    def _too_short(self) -> SourceError:
        return SourceError(
            "cannot read all records: the source ended early", element=self.element, site=self._source.site
        )
