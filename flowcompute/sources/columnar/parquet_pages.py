"""Headers of the pages of Parquet files, in Thrift's compact protocol: read before pyarrow decodes a page.

The format is that of apache/parquet-format (`PageHeader` in parquet.thrift) and of Thrift's
thrift-compact-protocol.md. Sizes in headers are claims: pyarrow allocates what they say.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from flowcompute.files import FileView
from flowcompute.sources.columnar.table_file import ColumnarError

MOST_HEADER_BYTES = 1 << 16
"""Bytes of a header at most. Those of pages of numbers have a hundred."""
_PEEK_BYTES = 1 << 9
_MOST_DEPTH = 8
PLAIN, RLE = 0, 3
"""Numbers of encodings in parquet.thrift."""
_DATA_PAGE, _DATA_PAGE_2 = 0, 3
_TRUE, _FALSE, _BYTE, _I16, _I32, _I64, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = range(1, 13)


def read_varint(data: bytes | memoryview, at: int) -> tuple[int, int]:
    """Return a number of any length at a place, and the place behind it."""
    value = 0
    for shift in range(0, 70, 7):
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
    raise ColumnarError("it is damaged: a number in a page's header or levels has more than ten bytes")


def _skip(data: bytes, at: int, kind: int, depth: int) -> int:
    """Return the place behind a value of a kind. Each step takes at least a byte, so that the data bound the work."""
    if depth > _MOST_DEPTH:
        raise ColumnarError("it is damaged: a page's header is nested too deeply")
    if kind == _BINARY:
        size, at = read_varint(data, at)
        return at + size
    if kind in (_I16, _I32, _I64):
        return read_varint(data, at)[1]
    if kind in (_TRUE, _FALSE, _BYTE):
        return at + 1
    if kind == _DOUBLE:
        return at + 8
    if kind == _STRUCT:
        return _structure(data, at, depth + 1, {})
    if kind not in (_LIST, _SET, _MAP):
        raise ColumnarError(f"it is damaged: a page's header has a field of kind {kind}")
    if kind == _MAP:
        count, at = read_varint(data, at)
        kinds: tuple[int, ...] = ()
        if count:
            kinds, at = (data[at] >> 4, data[at] & 15), at + 1
    else:
        count, kinds, at = data[at] >> 4, (data[at] & 15,), at + 1
        if count == 15:
            count, at = read_varint(data, at)
    for _ in range(count):
        for each in kinds:
            at = _skip(data, at, each, depth + 1)
        if at >= len(data):
            raise IndexError
    return at


def _structure(data: bytes, at: int, depth: int, found: dict[int, Any]) -> int:
    """Put 32-bit integers, bools and structures of them into `found` by their numbers; return the place behind it."""
    number = 0
    while said := data[at]:
        at += 1
        kind = said & 15
        if said > 15:
            number += said >> 4
        else:
            number, at = read_varint(data, at)
            number = (number >> 1) ^ -(number & 1)
        if kind == _I32:
            value, at = (data[at], at + 1) if data[at] < 0x80 else read_varint(data, at)
            found[number] = (value >> 1) ^ -(value & 1)
        elif kind == _BINARY and data[at] < 0x80:
            at += 1 + data[at]
        elif kind in (_TRUE, _FALSE):  # the value of a bool is in its kind
            found[number] = kind == _TRUE
        elif kind == _STRUCT and depth == 0:
            inner: dict[int, Any] = {}
            found[number] = inner
            at = _structure(data, at, depth + 1, inner)
        else:
            at = _skip(data, at, kind, depth)
    return at + 1


class DataHeader(NamedTuple):
    """What a header says of a page of data.

    Attributes:
        values: its numbers, nulls included.
        encoding: of its numbers.
        level_encodings: of its definition levels and its repetition levels.
        level_bytes: of both, where the header says them: then they are not compressed.
        is_compressed: whether what follows the levels is.
    """

    values: int
    encoding: int
    level_encodings: tuple[int, int]
    level_bytes: tuple[int, int] | None
    is_compressed: bool


class PageHeader(NamedTuple):
    """What a page's header says.

    Attributes:
        header_bytes: of the header itself.
        stored_bytes: of the page behind it.
        page_bytes: of the page once it is decompressed.
        said: all else, by the numbers of fields.
    """

    header_bytes: int
    stored_bytes: int
    page_bytes: int
    said: dict[int, Any]

    @property
    def checksum(self) -> int | None:
        """CRC32 of the page as it is stored; None where there is none."""
        checksum = self.said.get(4)
        return checksum & 0xFFFFFFFF if isinstance(checksum, int) else None

    def data(self) -> DataHeader | None:
        """Return what is said of a page of data; None of others.

        Raises:
            ColumnarError: if that is missing.
        """
        kind = self.said.get(1)
        if kind not in (_DATA_PAGE, _DATA_PAGE_2):
            return None
        own = self.said.get(5 if kind == _DATA_PAGE else 8)
        if not isinstance(own, dict):
            raise ColumnarError("it is damaged: a page's header does not say what is in the page")
        if kind == _DATA_PAGE:
            return DataHeader(_count(own, 1), _count(own, 2), (_count(own, 3), _count(own, 4)), None, True)
        levels = _count(own, 5), _count(own, 6)
        if sum(levels) > self.page_bytes:
            raise ColumnarError("it is damaged: a page's levels are larger than the page")
        return DataHeader(_count(own, 1), _count(own, 4), (RLE, RLE), levels, own.get(7) is not False)


def read_header(data: memoryview) -> PageHeader | None:
    """Return the header that data begin with, or None if it goes on behind them.

    Raises:
        ColumnarError: if it is none.
    """
    said: dict[int, Any] = {}
    try:
        size = _structure(bytes(data), 0, 0, said)
    except IndexError:
        size = len(data) + 1
    if size > len(data):
        if len(data) >= MOST_HEADER_BYTES:
            raise ColumnarError(f"it is damaged: a page's header has more than {MOST_HEADER_BYTES} bytes")
        return None
    return PageHeader(size, _count(said, 3), _count(said, 2), said)


def _count(said: dict[int, Any], number: int) -> int:
    """Return a count or a size in a field."""
    count = said.get(number, -1)
    if not isinstance(count, int) or not 0 <= count < 1 << 31:
        raise ColumnarError("it is damaged: a page's header has no sizes")
    return count


def check_size(header: PageHeader, most_bytes: int) -> None:
    """Check that a page has no more bytes than the plan counts.

    Args:
        header: of the page.
        most_bytes: of a page, once it is decompressed. Compressed it may be a sixth and 64 KiB larger, which is what
            codecs make of noise.

    Raises:
        ColumnarError: if it has more.
    """
    if header.page_bytes > most_bytes or header.stored_bytes > most_bytes + most_bytes // 6 + (1 << 16):
        size = max(header.page_bytes, header.stored_bytes)
        raise ColumnarError(f"a page has {size} bytes, and the plan counts {most_bytes}, as its other pages have")


class PageView(FileView):
    """A Parquet file that refuses pages of more bytes than the plan counts, before pyarrow sees their headers.

    pyarrow reads the pages of a column one after the other. So each header passes through `read`.
    """

    _next = _stop = _most = 0

    def watch(self, begin: int, stop: int, most_bytes: int) -> None:
        """Look at each header from byte `begin` to `stop`, where a column lies in a group.

        Args:
            begin, stop: the place of the column.
            most_bytes: of a page; see `check_size`.
        """
        self._next, self._stop, self._most = begin, stop, most_bytes

    def read(self, size: int = -1) -> memoryview:
        """Return the next bytes; see `FileView.read`.

        Raises:
            ColumnarError: if a page that begins in them is too large.
        """
        begin = self.tell()
        room: memoryview = super().read(size)
        if self._next < begin < self._stop:
            raise ColumnarError("it is damaged: its pages do not follow each other")
        while begin <= self._next < min(begin + len(room), self._stop):
            header = self.header_at(self._next, room[self._next - begin :])
            check_size(header, self._most)
            self._next += header.header_bytes + header.stored_bytes
        return room

    read_buffer = read

    def header_at(self, place: int, data: memoryview) -> PageHeader:
        """Return the header of a page.

        Args:
            place: where it begins in the file.
            data: some of its first bytes, as far as they are there.
        """
        size = _PEEK_BYTES
        data = data[:size]
        while (header := read_header(data)) is None:
            back = self.tell()
            self.seek(place)
            data = super().read(size)
            self.seek(back)
            if len(data) < size and read_header(data) is None:
                raise ColumnarError("it is damaged: it ends within a page's header")
            size = min(8 * size, MOST_HEADER_BYTES)
        return header

    def largest_page(self, begin: int, stop: int, most_pages: int) -> int:
        """Return the bytes of the largest of the first pages from byte `begin` to `stop`."""
        largest, place = 0, begin
        for _ in range(most_pages):
            if place >= stop:
                break
            header = self.header_at(place, memoryview(b""))
            largest = max(largest, header.page_bytes)
            place += header.header_bytes + header.stored_bytes
        return largest
