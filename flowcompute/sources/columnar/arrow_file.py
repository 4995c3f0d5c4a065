"""Arrow IPC files: pyarrow reads the schema, and buffers are read by us, into the very batch where they lie plain."""

from __future__ import annotations

import math
import struct
import threading
from collections import OrderedDict
from collections.abc import Iterator
from typing import Any

import numpy as np

from flowcompute.files import Files, FileView
from flowcompute.imports import dataclass
from flowcompute.metrics import counted
from flowcompute.sources.columnar import _pyarrow
from flowcompute.sources.columnar.arrow_layout import BatchLayout, FileBlock, read_batch, read_exactly, read_footer
from flowcompute.sources.columnar.table_file import REQUEST_BYTES, SLICE_BYTES, Column, ColumnarError, TableFile
from flowcompute.spec import BOOL

_PADDING = 4096
"""Bytes that a buffer may have beyond its numbers: writers pad to a multiple of 8 or 64."""
_KEPT_BYTES, _MOST_LAYOUTS = 1 << 16, 16
"""Bytes of the metadata of a batch whose layout is kept, and how many are."""
_PREFIX = struct.Struct("<q")
"""The bytes of a compressed buffer once it is decompressed, which stand before it; -1 where it is not."""


@dataclass(frozen=True)
class ArrowFooter:
    """What is said at the end of an Arrow IPC file, and how long its batches are.

    Attributes:
        columns: in their order.
        places: where each begins in a batch; see `_pyarrow.arrow_columns`.
        blocks: where the batches lie.
        groups: records of each batch.
        is_big: whether numbers are big-endian.
        layouts: of batches that were read last: columns advance together.
    """

    columns: tuple[Column, ...]
    places: list[tuple[int, int, int]]
    blocks: tuple[FileBlock, ...]
    groups: tuple[int, ...]
    is_big: bool
    layouts: RecentLayouts


class RecentLayouts:
    """Layouts of the record batches of a file that were read last, a megabyte of metadata at most."""

    def __init__(self) -> None:
        self._kept: OrderedDict[int, BatchLayout] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, group: int) -> BatchLayout | None:
        """Return the layout of a batch if it is kept."""
        with self._lock:
            return self._kept.get(group)

    def put(self, group: int, layout: BatchLayout, size: int) -> None:
        """Keep the layout of a batch, whose metadata have so many bytes."""
        if size > _KEPT_BYTES:
            return
        with self._lock:
            self._kept[group] = layout
            if len(self._kept) > _MOST_LAYOUTS:
                self._kept.popitem(last=False)


class ArrowFile(TableFile):
    """An open Arrow IPC file. Groups are its record batches.

    Args:
        files, handle: the file.
        footer: what is said at its end, if it was read before: each batch is looked at for how long it is.
    """

    footer: ArrowFooter

    def __init__(self, files: Files, handle: int, footer: ArrowFooter | None) -> None:
        self._view = FileView(files, handle)
        self._slice_bytes = SLICE_BYTES if files.local else REQUEST_BYTES
        if footer is None:
            columns, places = _pyarrow.arrow_columns(self._view)
            blocks, is_big = read_footer(self._view)
            groups = tuple(read_batch(self._view, block).records for block in blocks)
            footer = ArrowFooter(columns, places, blocks, groups, is_big, RecentLayouts())
        self.footer = footer
        self.columns, self._places, self._is_big = footer.columns, footer.places, footer.is_big
        self.groups, self._blocks = footer.groups, footer.blocks

    def _batch(self, group: int) -> BatchLayout:
        """Return what is said of a batch."""
        batch = self.footer.layouts.get(group)
        if batch is None:
            block = self._blocks[group]
            batch = read_batch(self._view, block)
            self.footer.layouts.put(group, batch, block.metadata_bytes)
        if batch.records != self.groups[group]:
            raise ColumnarError("a batch has other records than when it was opened")
        return batch

    def _buffers(self, column: Column, batch: BatchLayout) -> tuple[int, tuple[int, int], tuple[int, int]]:
        """Return the nulls of a column's numbers in a batch, and the places of their validity and of themselves."""
        nodes, buffers, views = self._places[-1]
        if batch.counts != (nodes, buffers + batch.variadic(batch.counts[2]), views):
            raise ColumnarError("a batch has other fields or buffers than the schema")
        node, buffer, views = self._places[column.position]
        buffer += batch.variadic(views)
        numbers = batch.records * math.prod(column.item)
        if column.item:
            if batch.node(node) != (batch.records, 0):
                raise ColumnarError("it has lists that are null")
            node, buffer = node + 1, buffer + 1
        count, nulls = batch.node(node)
        if count != numbers:
            raise ColumnarError("it is damaged: a batch has other numbers than records")
        return nulls, batch.buffer(buffer), batch.buffer(buffer + 1)

    def lies_at(self, column: Column, group: int) -> int | None:
        """See `TableFile.lies_at`."""
        assert column.dtype is not None
        batch = self._batch(group)
        nulls, _, (offset, size) = self._buffers(column, batch)
        if nulls or batch.codec is not None or column.dtype == BOOL or self._is_big:
            return None
        self._check_size(size, self._bytes(column, group))
        return offset

    def _check_size(self, size: int, wanted: int) -> None:
        if size < wanted:
            raise ColumnarError(f"it is damaged: a buffer has {size} bytes, and its numbers need {wanted}")

    def slices(self, column: Column, group: int, fill: Any, unit_bytes: int) -> Iterator[np.ndarray]:
        """See `TableFile.slices`. A unit is a compressed buffer."""
        assert column.dtype is not None
        batch = self._batch(group)
        nulls, valid_at, numbers_at = self._buffers(column, batch)
        if nulls and fill is None:
            raise ColumnarError(f"it has {counted(nulls, 'null')}")
        numbers = batch.records * math.prod(column.item)
        codec = batch.codec
        is_bool = column.dtype == BOOL
        wanted = -(-numbers // 8) if is_bool else numbers * column.dtype.itemsize
        stored = _Buffer(self._view, numbers_at, wanted, codec, unit_bytes)
        valid = _Buffer(self._view, valid_at, -(-numbers // 8), codec, unit_bytes) if nulls else None
        # Slices begin at whole bytes of bits, and at whole items.
        step = 8 * max(1, self._slice_bytes // (8 * column.dtype.itemsize * math.prod(column.item)))
        for start in range(0, batch.records, step):
            begin, stop = (records * math.prod(column.item) for records in (start, min(start + step, batch.records)))
            if is_bool:
                found = stored.bits(begin, stop)
            else:
                dtype = column.dtype.newbyteorder(">") if self._is_big else column.dtype
                data = stored.part(begin * dtype.itemsize, stop * dtype.itemsize)
                found = np.frombuffer(data, dtype).astype(column.dtype, copy=False)
            if valid is not None:
                found = np.where(valid.bits(begin, stop), found, _filler(fill, column.dtype))
            yield found.reshape(-1, *column.item)

    def _bytes(self, column: Column, group: int) -> int:
        assert column.dtype is not None
        return self.groups[group] * column.dtype.itemsize * math.prod(column.item)

    def group_bytes(self, column: Column) -> int:
        """See `TableFile.group_bytes`."""
        return max((self._bytes(column, i) for i in range(len(self.groups))), default=0)

    def unit_bytes(self, column: Column, files: Files, handle: int) -> int:
        """See `TableFile.unit_bytes`: by the largest batch, since writers compress all or none."""
        if not self.groups:
            return 0
        group = max(range(len(self.groups)), key=self.groups.__getitem__)
        batch = read_batch(FileView(files, handle), self._blocks[group])
        if batch.codec is None:
            return 0
        # Nulls are a buffer beside, of a bit each.
        return self._bytes(column, group) * (2 if self._buffers(column, batch)[0] else 1) + _PADDING

    def held_bytes(self, unit_bytes: int) -> int:
        """See `TableFile.held_bytes`: a slice, and buffers compressed and not."""
        return self._slice_bytes + 2 * unit_bytes


class _Buffer:
    """A buffer of a batch: read part by part, or decompressed as a whole when it is asked for first."""

    def __init__(self, view: FileView, place: tuple[int, int], wanted: int, codec: str | None, most_bytes: int) -> None:
        self._view, (self._offset, size) = view, place
        self._whole: memoryview | None = None
        if codec is not None and wanted:
            size = self._decompress(codec, size, wanted, most_bytes)
        if size < wanted:
            raise ColumnarError(f"it is damaged: a buffer has {size} bytes, and its numbers need {wanted}")

    def _decompress(self, codec: str, size: int, wanted: int, most_bytes: int) -> int:
        """Return the bytes of the buffer once it is decompressed. What it claims is refused before it is believed."""
        (said,) = _PREFIX.unpack(read_exactly(self._view, self._offset, _PREFIX.size))
        self._offset, size = self._offset + _PREFIX.size, size - _PREFIX.size
        if said == -1:
            return size
        if not wanted <= said <= wanted + _PADDING:
            raise ColumnarError(f"a buffer says that it expands to {said} bytes, and its numbers need {wanted}")
        # Codecs make at most an eighth and some bytes more of noise.
        if wanted > most_bytes or size > said + said // 8 + _PADDING:
            raise ColumnarError(f"a compressed buffer has {max(wanted, size)} bytes, and the plan counts {most_bytes}")
        self._whole = _pyarrow.decompress(codec, read_exactly(self._view, self._offset, size), said)
        return len(self._whole)

    def part(self, begin: int, stop: int) -> memoryview:
        """Return bytes of the buffer."""
        if self._whole is not None:
            return self._whole[begin:stop]
        return read_exactly(self._view, self._offset + begin, stop - begin)

    def bits(self, begin: int, stop: int) -> np.ndarray:
        """Return bits of the buffer as bools; the first lies at a whole byte."""
        data = np.frombuffer(self.part(begin // 8, -(-stop // 8)), np.uint8)
        return np.unpackbits(data, count=stop - begin, bitorder="little").view(BOOL)


def _filler(fill: Any, dtype: np.dtype) -> Any:
    try:
        return dtype.type(fill)
    except OverflowError:
        raise ColumnarError(f"its nulls cannot be {fill!r}, which is no {dtype}") from None
