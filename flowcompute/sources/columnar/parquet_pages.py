"""Headers of the pages of Parquet files, in Thrift's compact protocol: read before pyarrow decodes a page.

The format is that of apache/parquet-format (`PageHeader` in parquet.thrift) and of Thrift's
thrift-compact-protocol.md. Sizes in headers are claims: pyarrow allocates what they say.
"""

from __future__ import annotations

from dataclasses import dataclass

from flowcompute.files import FileView
from flowcompute.sources.columnar.table_file import ColumnarError

MOST_HEADER_BYTES = 1 << 16
"""Bytes of a header at most. Those of pages of numbers have a hundred."""
_PEEK_BYTES = 1 << 9
_MOST_DEPTH = 8
_TRUE, _FALSE, _BYTE, _I16, _I32, _I64, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = range(1, 13)


class _CutShortError(Exception):
    """More bytes are needed."""


class _Compact:
    """Reader of values in Thrift's compact protocol. Each step takes at least a byte, so the data bound the work."""

    def __init__(self, data: memoryview) -> None:
        self._data, self.at = data, 0

    def _byte(self) -> int:
        if self.at >= len(self._data):
            raise _CutShortError
        self.at += 1
        return self._data[self.at - 1]

    def _varint(self) -> int:
        value = 0
        for shift in range(0, 70, 7):
            byte = self._byte()
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
        raise ColumnarError("it is damaged: a page's header has a number of more than ten bytes")

    def _zigzag(self) -> int:
        value = self._varint()
        return (value >> 1) ^ -(value & 1)

    def _skip(self, kind: int, depth: int) -> None:
        if depth > _MOST_DEPTH:
            raise ColumnarError("it is damaged: a page's header is nested too deeply")
        if kind in (_TRUE, _FALSE, _BYTE):
            self.at += 1
        elif kind in (_I16, _I32, _I64):
            self._varint()
        elif kind == _DOUBLE:
            self.at += 8
        elif kind == _BINARY:
            size = self._varint()  # which moves `at`, so it comes first
            self.at += size
        elif kind in (_LIST, _SET):
            said = self._byte()
            count = said >> 4 if said >> 4 < 15 else self._varint()
            for _ in range(count):
                self._skip(said & 15, depth + 1)
        elif kind == _MAP:
            count = self._varint()
            kinds = self._byte() if count else 0
            for _ in range(count):
                self._skip(kinds >> 4, depth + 1)
                self._skip(kinds & 15, depth + 1)
        elif kind == _STRUCT:
            self.integers(depth + 1)
        else:
            raise ColumnarError(f"it is damaged: a page's header has a field of kind {kind}")
        if self.at > len(self._data):
            raise _CutShortError

    def integers(self, depth: int = 0) -> dict[int, int]:
        """Return the 32-bit integers of a structure by their numbers, and pass over everything else in it."""
        found: dict[int, int] = {}
        number = 0
        while said := self._byte():
            kind = said & 15
            number = number + (said >> 4) if said >> 4 else self._zigzag()
            if kind == _I32:
                found[number] = self._zigzag()
            elif kind not in (_TRUE, _FALSE):  # the value of a bool is in its kind
                self._skip(kind, depth)
        return found


@dataclass(frozen=True)
class PageHeader:
    """What a page's header says.

    Attributes:
        header_bytes: of the header itself.
        stored_bytes: of the page behind it.
        page_bytes: of the page once it is decompressed.
    """

    header_bytes: int
    stored_bytes: int
    page_bytes: int


def read_header(data: memoryview) -> PageHeader | None:
    """Return the header that data begin with, or None if it goes on behind them.

    Raises:
        ColumnarError: if it is none.
    """
    reader = _Compact(data)
    try:
        said = reader.integers()
    except _CutShortError:
        if len(data) >= MOST_HEADER_BYTES:
            raise ColumnarError(f"it is damaged: a page's header has more than {MOST_HEADER_BYTES} bytes") from None
        return None
    sizes = said.get(3, -1), said.get(2, -1)
    if not all(0 <= size < 1 << 31 for size in sizes):
        raise ColumnarError("it is damaged: a page's header has no sizes")
    return PageHeader(reader.at, *sizes)


class PageView(FileView):
    """A Parquet file that refuses pages of more bytes than the plan counts, before pyarrow sees their headers.

    pyarrow reads the pages of a column one after the other. So each header passes through `read`.
    """

    _next = _stop = _most = 0

    def watch(self, begin: int, stop: int, most_bytes: int) -> None:
        """Look at each header from byte `begin` to `stop`, where a column lies in a group.

        Args:
            begin, stop: the place of the column.
            most_bytes: of a page, once it is decompressed. Compressed it may be a sixth and 64 KiB larger, which is
                what codecs make of noise.
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
            self._check(header)
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
        while (header := read_header(data[:MOST_HEADER_BYTES])) is None:
            back = self.tell()
            self.seek(place)
            data = super().read(size)
            self.seek(back)
            if len(data) < size and read_header(data) is None:
                raise ColumnarError("it is damaged: it ends within a page's header")
            size = min(8 * size, MOST_HEADER_BYTES)
        return header

    def _check(self, header: PageHeader) -> None:
        stored = self._most + self._most // 6 + (1 << 16)
        if header.page_bytes > self._most or header.stored_bytes > stored:
            size = max(header.page_bytes, header.stored_bytes)
            raise ColumnarError(f"a page has {size} bytes, and the plan counts {self._most}, as its other pages have")

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
