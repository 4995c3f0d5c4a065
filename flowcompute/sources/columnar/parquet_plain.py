"""Pages of a Parquet column read around pyarrow: checked, decompressed, and decoded where numbers lie as in memory."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import NamedTuple

import numpy as np

from flowcompute.files import FileView
from flowcompute.imports import dataclass
from flowcompute.sources.columnar.parquet_levels import all_present, check_lists
from flowcompute.sources.columnar.parquet_pages import PLAIN, RLE, DataHeader, PageHeader, check_size, read_header
from flowcompute.sources.columnar.table_file import SLICE_BYTES, Column, ColumnarError
from flowcompute.spec import BOOL

_HEADER_BYTES = 1 << 9
"""Bytes behind a page that are read with it: most headers are shorter."""
_SIZE = struct.Struct("<I")
_TYPES = {"INT32": "<i4", "INT64": "<i8", "FLOAT": "<f4", "DOUBLE": "<f8"}
_MOST_LEVEL = 3


class UnusualPageError(Exception):
    """A page that is decoded by pyarrow: it has nulls, or an encoding beside the plain one."""


@dataclass(frozen=True)
class Leaf:
    """A column as Parquet has it.

    Attributes:
        number: among the file's leaves, which count a structure's parts one by one.
        physical: name of the type in which numbers are stored.
        length: bytes of a number of the type "FIXED_LEN_BYTE_ARRAY".
        repetition, definition: the most that its levels are.
    """

    number: int
    physical: str
    length: int
    repetition: int
    definition: int

    @cached_property
    def dtype(self) -> np.dtype | None:
        """Of numbers in plain pages; of bools where each is a bit; None where numbers are none of NumPy's."""
        if self.physical == "BOOLEAN":
            return BOOL
        if self.physical == "FIXED_LEN_BYTE_ARRAY" and self.length == 2:
            return np.dtype("<f2")
        return np.dtype(_TYPES[self.physical]) if self.physical in _TYPES else None

    def lies_plain(self, column: Column) -> bool:
        """Check whether plain pages hold the numbers of a column as `plain_numbers` decodes them."""
        stored, wanted = self.dtype, column.dtype
        if stored is None or wanted is None or self.repetition != len(column.item) or self.definition > _MOST_LEVEL:
            return False
        return stored == wanted or (stored.kind == "i" and wanted.kind in "iu" and wanted.itemsize <= stored.itemsize)


class Page(NamedTuple):
    """A page of data.

    Attributes:
        header: what is said of it.
        repetition, definition: its levels; empty where the column has none.
        numbers: what follows them.
    """

    header: DataHeader
    repetition: bytes
    definition: bytes
    numbers: memoryview


class ChunkPages:
    """Pages of a column in a group, one behind the other.

    Args:
        view: the file.
        place: where they begin and end.
        most_bytes: of a page, once it is decompressed.
        read_bytes: the least that is read at a time.
        decompress: gives what bytes of so many expand to.
    """

    def __init__(
        self,
        view: FileView,
        place: tuple[int, int],
        most_bytes: int,
        read_bytes: int,
        decompress: Callable[[memoryview, int], memoryview],
    ) -> None:
        self._view, (self._at, self._stop), self._most = view, place, most_bytes
        self._least, self._decompress = read_bytes, decompress
        self._window, self._begin = memoryview(b""), self._at

    def _bytes(self, size: int, most: int) -> memoryview:
        """Return the next bytes, from `size` to `most`, and less only at the end of the column."""
        begin = self._at - self._begin
        if begin + size > len(self._window):
            begin, self._begin = 0, self._at
            self._window = memoryview(b"")  # its memory is free before more is taken
            self._view.seek(self._at)
            self._window = self._view.read(min(max(size + _HEADER_BYTES, self._least), self._stop - self._at))
        return self._window[begin : begin + most]

    def _header(self) -> PageHeader:
        size = _HEADER_BYTES
        while True:
            data = self._bytes(min(size, self._stop - self._at), size)
            header = read_header(data[:size])
            if header is not None:
                break
            if len(data) < size:
                raise ColumnarError("it is damaged: it ends within a page's header")
            size *= 4
        check_size(header, self._most)
        self._at += header.header_bytes
        return header

    def read(self, leaf: Leaf) -> Iterator[Page]:
        """Yield pages of data.

        Raises:
            ColumnarError: if one is damaged, or larger than is planned.
            UnusualPageError: if levels are packed in the way that parquet-format has deprecated.
            OSError: as the system does.
        """
        while self._at < self._stop:
            header = self._header()
            stored = self._bytes(header.stored_bytes, header.stored_bytes)
            if self._least > SLICE_BYTES:
                stored = memoryview(bytes(stored))  # what is given would keep all that was read with it
            if len(stored) < header.stored_bytes:
                raise ColumnarError("it is damaged: it ends within a page")
            self._at += header.stored_bytes
            if header.checksum is not None and zlib.crc32(stored) != header.checksum:
                raise ColumnarError("it is damaged: the checksum of a page is wrong")
            data = header.data()
            if data is not None:
                yield self._page(header, data, stored, leaf)

    def _page(self, header: PageHeader, said: DataHeader, stored: memoryview, leaf: Leaf) -> Page:
        if said.level_bytes is None:
            body = self._expanded(stored, header.page_bytes)
            repetition, body = _levels(body, leaf.repetition, said.level_encodings[1])
            definition, body = _levels(body, leaf.definition, said.level_encodings[0])
            return Page(said, repetition, definition, body)
        end, begin = sum(said.level_bytes), said.level_bytes[1]
        body = stored[end:]
        if said.is_compressed:
            body = self._expanded(body, header.page_bytes - end)
        return Page(said, bytes(stored[:begin]), bytes(stored[begin:end]), body)

    def _expanded(self, data: memoryview, size: int) -> memoryview:
        made = self._decompress(data, size) if size else data[:0]
        if len(made) != size:
            raise ColumnarError(f"it is damaged: a page has {len(made)} bytes, and its header says {size}")
        return made


def _levels(body: memoryview, most: int, encoding: int) -> tuple[bytes, memoryview]:
    """Return the levels that a page begins with, where there are any, and what follows."""
    if not most:
        return b"", body
    if encoding != RLE:
        raise UnusualPageError
    end = _SIZE.size + _SIZE.unpack_from(body)[0] if len(body) >= _SIZE.size else len(body) + 1
    if end > len(body):
        raise ColumnarError("it is damaged: a page's levels are larger than the page")
    return bytes(body[_SIZE.size : end]), body[end:]


def check_all_lists(pages: Iterator[Page], column: Column) -> None:
    """Check that each record of a column of lists has as many numbers as its type, before pyarrow believes it.

    Raises:
        ColumnarError: if one has not.
    """
    number = 0
    try:
        for page in pages:
            check_lists(page.repetition, page.header.values, number, *column.item)
            number += page.header.values
    except UnusualPageError:
        raise ColumnarError("its levels are packed in a way that parquet-format has deprecated") from None


def plain_numbers(pages: Iterator[Page], leaf: Leaf, column: Column, records: int) -> Iterator[np.ndarray]:
    """Yield the numbers of a column in a group, of shape `(records, *item)`, a page or less at a time.

    Args:
        pages: of the column.
        leaf, column: for which `Leaf.lies_plain` holds.
        records: of the group.

    Raises:
        ColumnarError: if a page is damaged, or there are other numbers.
        UnusualPageError: if pyarrow is to decode the column from this page on. No number of it was given.
        OSError: as the system does.
    """
    assert column.dtype is not None
    assert leaf.dtype is not None
    item = column.item[0] if column.item else 1
    number, total = 0, records * item
    rest = np.empty(0, column.dtype)
    for page in pages:
        count = page.header.values
        if count > total - number:
            raise ColumnarError("a group has more numbers than its records have")
        if leaf.repetition:
            check_lists(page.repetition, count, number, item)
        if page.header.encoding != PLAIN:
            raise UnusualPageError
        if leaf.definition and not all_present(page.definition, leaf.definition, count):
            raise UnusualPageError
        number += count
        for numbers in _decoded(page, leaf.dtype, column.dtype):
            joined = np.concatenate([rest, numbers]) if len(rest) else numbers
            whole = len(joined) // item * item
            rest = joined[whole:]
            yield joined[:whole].reshape(-1, *column.item)
    if number < total:
        raise ColumnarError("a group has fewer records than it says")


def _decoded(page: Page, stored: np.dtype, wanted: np.dtype) -> Iterator[np.ndarray]:
    count = page.header.values
    bits = 1 if stored == BOOL else 8 * stored.itemsize
    if len(page.numbers) < -(-count * bits // 8):
        raise ColumnarError("it is damaged: a page has fewer bytes than its numbers")
    if stored == wanted != BOOL:
        yield np.frombuffer(page.numbers, stored, count)
        return
    step = SLICE_BYTES // wanted.itemsize
    for start in range(0, count, step):
        some = min(step, count - start)
        if stored == BOOL:
            packed = np.frombuffer(page.numbers, np.uint8, -(-some // 8), start // 8)
            yield np.unpackbits(packed, count=some, bitorder="little").view(BOOL)
        else:
            yield np.frombuffer(page.numbers, stored, some, start * stored.itemsize).astype(wanted)
