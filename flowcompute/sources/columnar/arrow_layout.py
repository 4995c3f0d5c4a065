"""Where the buffers of Arrow IPC files lie, read from their FlatBuffers without pyarrow.

The format is that of arrow.apache.org/docs/format/Columnar.html ("IPC File Format") with File.fbs and Message.fbs.
Every number in it is a claim about the file, which is checked before it is used.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from flowcompute.files import FileView
from flowcompute.imports import dataclass
from flowcompute.sources.columnar.table_file import ColumnarError

_CODECS = "lz4", "zstd"
_MAGIC = b"ARROW1"
_MOST_METADATA_BYTES = 1 << 26
_RECORD_BATCH = 3
_BLOCK = struct.Struct("<qi4xq")
_PAIR = struct.Struct("<qq")
_COUNT = struct.Struct("<q")


@dataclass(frozen=True)
class FileBlock:
    """Where a record batch lies.

    Attributes:
        offset: of its metadata in the file.
        metadata_bytes, body_bytes: of its metadata, and of the buffers behind them.
    """

    offset: int
    metadata_bytes: int
    body_bytes: int


class _FlatBuffer:
    """Fields of the tables of a FlatBuffer. A place outside of it is an error."""

    def __init__(self, data: bytes | memoryview) -> None:
        self._data = memoryview(data)

    def number(self, kind: str, place: int) -> int:
        """Return a number of a kind of `struct`."""
        try:
            if place < 0:
                raise struct.error
            return int(struct.unpack_from("<" + kind, self._data, place)[0])
        except struct.error:
            raise ColumnarError("it is damaged: its metadata point outside of themselves") from None

    def root(self) -> int:
        """Return the place of the table that everything else is reached from."""
        return self.number("I", 0)

    def field(self, table: int, number: int) -> int | None:
        """Return the place of a table's field, or None if it has its default."""
        slots = table - self.number("i", table)
        slot = 4 + 2 * number
        if slot + 2 > self.number("H", slots):
            return None
        offset = self.number("H", slots + slot)
        return table + offset if offset else None

    def integer(self, table: int, number: int, kind: str) -> int:
        """Return a number in a field, 0 by default."""
        place = self.field(table, number)
        return 0 if place is None else self.number(kind, place)

    def table(self, table: int, number: int) -> int | None:
        """Return the place of a table that a field points to."""
        place = self.field(table, number)
        return None if place is None else place + self.number("I", place)

    def vector(self, table: int, number: int, each: struct.Struct) -> tuple[int, int]:
        """Return the place and the length of a vector of structures, which lies within the data."""
        place = self.table(table, number)
        if place is None:
            return 0, 0
        count = self.number("I", place)
        if place + 4 + count * each.size > len(self._data):
            raise ColumnarError("it is damaged: its metadata end too early")
        return place + 4, count

    def structures(self, each: struct.Struct, place: int, count: int) -> Iterator[tuple[int, ...]]:
        """Return structures of a vector."""
        return each.iter_unpack(self._data[place : place + count * each.size])


class BatchLayout:
    """What the metadata of a record batch say. Of thousands of columns only what is asked for is looked at.

    Args:
        data: the metadata.
        block: where the batch lies.

    Attributes:
        records: of the batch.
        codec: "lz4" or "zstd"; None where buffers are not compressed.
        counts: its nodes, its buffers, and its fields of views, which have any number of buffers.

    Raises:
        ColumnarError: if they are damaged.
    """

    def __init__(self, data: memoryview, block: FileBlock) -> None:
        self._data, self._block = _FlatBuffer(data), block
        message = self._data.root()
        batch = self._data.table(message, 2)
        if batch is None or self._data.integer(message, 1, "B") != _RECORD_BATCH:
            raise ColumnarError("it is damaged: a batch is none")
        self.records = self._data.integer(batch, 0, "q")
        self.codec = self._codec(batch)
        self._nodes, nodes = self._data.vector(batch, 1, _PAIR)
        self._buffers, buffers = self._data.vector(batch, 2, _PAIR)
        self._variadic, variadic = self._data.vector(batch, 4, _COUNT)
        self.counts = nodes, buffers, variadic
        if self.records < 0:
            raise ColumnarError("it is damaged: a batch has a negative count")

    def _codec(self, batch: int) -> str | None:
        compression = self._data.table(batch, 3)
        if compression is None:
            return None
        number, method = (self._data.integer(compression, field, "b") for field in (0, 1))
        if not 0 <= number < len(_CODECS) or method != 0:
            raise ColumnarError(f"it has an unknown compression, {number}")
        return _CODECS[number]

    def node(self, number: int) -> tuple[int, int]:
        """Return the entries and the nulls of a field, by its number in pre-order."""
        ((count, nulls),) = self._data.structures(_PAIR, self._nodes + number * _PAIR.size, 1)
        if not 0 <= nulls <= count:
            raise ColumnarError("it is damaged: a batch has impossible counts")
        return count, nulls

    def buffer(self, number: int) -> tuple[int, int]:
        """Return the offset in the file and the bytes of a buffer."""
        ((offset, size),) = self._data.structures(_PAIR, self._buffers + number * _PAIR.size, 1)
        if not 0 <= offset <= offset + size <= self._block.body_bytes or size < 0:
            raise ColumnarError("it is damaged: a buffer lies outside of its batch")
        return self._block.offset + self._block.metadata_bytes + offset, size

    def variadic(self, fields: int) -> int:
        """Return the buffers of so many first fields of views."""
        counts = [count for (count,) in self._data.structures(_COUNT, self._variadic, fields)]
        if min(counts, default=0) < 0:
            raise ColumnarError("it is damaged: a batch has a negative count")
        return sum(counts)


def read_exactly(view: FileView, offset: int, size: int) -> memoryview:
    """Return so many bytes of a file.

    Raises:
        ColumnarError: if it has fewer.
        OSError: as the system does.
    """
    if offset < 0 or size < 0 or offset + size > view.seek(0, 2):
        raise ColumnarError("it is damaged: it points outside of the file")
    view.seek(offset)
    data: memoryview = view.read(size)
    if len(data) != size:
        raise ColumnarError("it is damaged: it ends too early")
    return data


def read_footer(view: FileView) -> tuple[tuple[FileBlock, ...], bool]:
    """Return where the record batches lie, and whether numbers are big-endian.

    Raises:
        ColumnarError: if the file is damaged.
        OSError: as the system does.
    """
    end = view.seek(0, 2) - 10
    size, magic = struct.unpack("<i6s", read_exactly(view, end, 10))
    if magic != _MAGIC or not 0 <= size <= _MOST_METADATA_BYTES:
        raise ColumnarError("it has no footer of an Arrow IPC file")
    data = _FlatBuffer(read_exactly(view, end - size, size))
    footer = data.root()
    schema = data.table(footer, 1)
    blocks = tuple(FileBlock(*block) for block in data.structures(_BLOCK, *data.vector(footer, 3, _BLOCK)))
    return blocks, schema is not None and data.integer(schema, 0, "h") == 1


def read_batch(view: FileView, block: FileBlock) -> BatchLayout:
    """Return what the metadata of a record batch say.

    Raises:
        ColumnarError: if they are damaged.
        OSError: as the system does.
    """
    if not 8 <= block.metadata_bytes <= _MOST_METADATA_BYTES or block.body_bytes < 0:
        raise ColumnarError("it is damaged: a batch has impossible sizes")
    stored = read_exactly(view, block.offset, block.metadata_bytes)
    # Files before Arrow 0.15 have no mark before the size.
    return BatchLayout(stored[8 if bytes(stored[:4]) == b"\xff\xff\xff\xff" else 4 :], block)
