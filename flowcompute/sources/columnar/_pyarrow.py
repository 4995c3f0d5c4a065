"""The one import of pyarrow, which `flowcompute[parquet]` brings: footers, and columns a slice at a time."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any, NoReturn

import numpy as np

from flowcompute.errors import SourceError
from flowcompute.files import Files, FileView
from flowcompute.sources.columnar.parquet_pages import PageView
from flowcompute.sources.columnar.table_file import Column, ColumnarError, TableFile

try:
    import pyarrow as pa
    from pyarrow import compute, parquet
except ImportError:
    pa = None

SLICE_BYTES = 1 << 18
"""Bytes of a slice of a column that is decoded at a time."""
_READ_BYTES = 1 << 17
_REQUEST_BYTES = 1 << 23
"""Bytes of a column that are read at a time, from the disk and from a store. None are beyond the column's own."""
_PAGE_BYTES = 1 << 20
"""Bytes of a page, unless the writer has said otherwise."""
_PAGE_SLACK = 1 << 16
"""What writers put into a page beyond the bytes at which they end one."""
_MOST_PAGES = 1024, 2
"""Pages of a group that are looked at when a column is opened: of a local file, and where each is a request."""
_NAMES = (
    "bool",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "float",
    "double",
    "halffloat",
)


def require() -> None:
    """Check that pyarrow is installed.

    Raises:
        SourceError: if it is not. The error says what to install.
    """
    if pa is None:
        raise SourceError(
            "cannot read Parquet and Arrow files: a package is missing",
            expected="pyarrow",
            hint='pip install "flowcompute[parquet]"',
        )


def open_columns(files: Files, handle: int, kind: str, groups: tuple[int, ...] | None = None) -> TableFile:
    """Open a file of a kind, "parquet" or "arrow".

    Args:
        files, handle: the file layer, and the file.
        kind: its format.
        groups: the records of its groups, where they are known: Arrow files are looked through for them.

    Raises:
        ColumnarError: if it is none such, or is damaged.
        OSError: as the system does.
    """
    table: TableFile
    if kind == "parquet":
        pages = PageView(files, handle)
        table = _guarded(pages, lambda: _ParquetTable(pages, files.local))
    else:
        view = FileView(files, handle)
        table = _guarded(view, lambda: _ArrowTable(view, groups))
    return table


def _guarded(view: FileView, make: Any) -> Any:
    try:
        return make()
    except ColumnarError:
        raise
    except (pa.ArrowException, OSError, ValueError, TypeError, LookupError, MemoryError, OverflowError) as error:
        if view.problem is not None:
            raise view.problem from None
        _fail(error)


def _fail(error: BaseException) -> NoReturn:
    raise ColumnarError(f"it is damaged: {str(error).splitlines()[0][:200] if str(error) else error!r}") from error


def _columns(schema: Any) -> tuple[Column, ...]:
    made = []
    for position, field in enumerate(schema):
        kind, item = field.type, tuple[int, ...]()
        if pa.types.is_fixed_size_list(kind) and kind.list_size > 0:
            kind, item = kind.value_type, (int(kind.list_size),)
        dtype = np.dtype(kind.to_pandas_dtype()) if str(kind) in _NAMES else None
        made.append(Column(str(field.name), dtype, item, str(field.type)[:100], position))
    return tuple(made)


def _numbers(array: Any, column: Column, fill: Any) -> np.ndarray:
    """Return the numbers of an Arrow array, of shape `(records, *item)`."""
    assert column.dtype is not None
    array.validate()
    records = len(array)
    values = array.flatten() if column.item and array.null_count == 0 else array
    if column.item and len(values) != records * column.item[0]:
        raise ColumnarError("it has lists that are null")
    if values.null_count:
        if fill is None:
            raise ColumnarError(f"it has {values.null_count} nulls")
        values = compute.fill_null(values, pa.scalar(fill, values.type))
    numbers: np.ndarray = values.to_numpy(zero_copy_only=False)
    return numbers.reshape(records, *column.item)


class _ParquetTable(TableFile):
    def __init__(self, view: PageView, is_local: bool) -> None:
        self._view, self._is_local = view, is_local
        self._part_bytes = _READ_BYTES if is_local else _REQUEST_BYTES
        self._file = parquet.ParquetFile(
            pa.PythonFile(view, mode="r"),
            buffer_size=self._part_bytes,
            pre_buffer=False,
            page_checksum_verification=True,
        )
        self._metadata = self._file.metadata
        self.columns = _columns(self._file.schema_arrow)
        self.groups = tuple(int(self._metadata.row_group(i).num_rows) for i in range(self._metadata.num_row_groups))
        if min(self.groups, default=0) < 0 or sum(self.groups) != self._metadata.num_rows:
            raise ColumnarError("its groups have other records than the file")

    def slices(self, column: Column, group: int, fill: Any, unit_bytes: int) -> Iterator[np.ndarray]:
        """See `TableFile.slices`. A unit is a page."""
        assert column.dtype is not None
        numbers_of_item = column.item[0] if column.item else 1
        chunk, leaf = self._chunk(column, group), self._leaf(column)
        if chunk.num_values > self.groups[group] * numbers_of_item:
            raise ColumnarError("a group has more numbers than its records have")
        self._view.watch(*_place(chunk), unit_bytes)
        # pyarrow's own way by name would decode columns whose names go on behind a dot, too.
        wanted = {"batch_size": max(1, SLICE_BYTES // (column.dtype.itemsize * numbers_of_item)), "use_threads": False}
        batches = _guarded(
            self._view,
            lambda: iter(self._file.reader.iter_batches(row_groups=[group], column_indices=[leaf], **wanted)),
        )
        left = self.groups[group]
        while (batch := _guarded(self._view, lambda: next(batches, None))) is not None:
            numbers = _guarded(self._view, lambda batch=batch: _numbers(batch.column(0), column, fill))
            left -= len(numbers)
            if left < 0:
                raise ColumnarError("a group has more records than it says")
            yield numbers
        if left:
            raise ColumnarError("a group has fewer records than it says")

    def _chunk(self, column: Column, group: int) -> Any:
        """Return what the footer says of a column in a group."""
        return self._metadata.row_group(group).column(self._leaf(column))

    def _leaf(self, column: Column) -> int:
        """Return the number of a column among the file's, which count a structure's parts one by one."""
        if column.position not in self._leaves:
            raise ColumnarError(
                "its name is that of a part of a structure, or it is laid out in another way than a list"
            )
        return self._leaves[column.position]

    @cached_property
    def _leaves(self) -> dict[int, int]:
        """The numbers of columns that can be told from others by their paths."""
        schema, found = self._metadata.schema, dict[int, int]()
        by_path: dict[str, list[int]] = {}
        for i in range(len(schema)):
            by_path.setdefault(schema.column(i).path, []).append(i)
        for column in self.columns:
            paths = [f"{column.name}.list.{end}" for end in ("element", "item")] if column.item else [column.name]
            leaves = [leaf for path in paths for leaf in by_path.get(path, ())]
            if len(leaves) == 1 and column.dtype is not None:
                found[column.position] = leaves[0]
        return found

    def group_bytes(self, column: Column) -> int:
        """See `TableFile.group_bytes`."""
        return max((self._said_bytes(column, i) for i in range(len(self.groups))), default=0)

    def _said_bytes(self, column: Column, group: int) -> int:
        return max(0, int(self._chunk(column, group).total_uncompressed_size))

    def unit_bytes(self, column: Column) -> int:
        """See `TableFile.unit_bytes`: by the pages of the largest group, since writers end pages at the same bytes."""
        filled = [i for i, records in enumerate(self.groups) if records]  # only these have pages
        if not filled:
            return 0
        group = max(filled, key=lambda i: self._said_bytes(column, i))
        largest: int = _guarded(
            self._view,
            lambda: self._view.largest_page(*_place(self._chunk(column, group)), _MOST_PAGES[not self._is_local]),
        )
        return min(self.group_bytes(column), max(largest + largest // 8, _PAGE_BYTES) + _PAGE_SLACK)

    def held_bytes(self, unit_bytes: int) -> int:
        """See `TableFile.held_bytes`: a slice, and a page as it is stored and decompressed."""
        return SLICE_BYTES + self._part_bytes + 2 * unit_bytes


def _place(chunk: Any) -> tuple[int, int]:
    """Return where a column's pages of a group begin and end."""
    begin, first = int(chunk.data_page_offset), chunk.dictionary_page_offset
    if first is not None and 0 < int(first) < begin:
        begin = int(first)
    return begin, begin + int(chunk.total_compressed_size)


class _ArrowTable(TableFile):
    def __init__(self, view: FileView, groups: tuple[int, ...] | None) -> None:
        self._view = view
        whole = pa.ipc.open_file(pa.PythonFile(view, mode="r"))
        self.columns = _columns(whole.schema)
        self._readers: dict[int, Any] = {}
        if groups is not None:
            if len(groups) != whole.num_record_batches:
                raise ColumnarError("it has other batches than when it was opened")
            self.groups = groups
            return
        # Only a batch says how many records it has. Of one column as few bytes as possible are read for that.
        narrow = min(
            (one for one in self.columns if one.dtype is not None),
            key=lambda one: one.dtype.itemsize * (one.item[0] if one.item else 1),  # type: ignore[union-attr]
            default=None,
        )
        count = whole.num_record_batches
        self.groups = () if narrow is None else tuple(self._batch(narrow, i).num_rows for i in range(count))

    def _batch(self, column: Column, number: int) -> Any:
        reader = self._readers.get(column.position)
        if reader is None:
            options = pa.ipc.IpcReadOptions(included_fields=[column.position], use_threads=False)
            reader = self._readers[column.position] = pa.ipc.open_file(
                pa.PythonFile(self._view, mode="r"), options=options
            )
        return reader.get_batch(number)

    def slices(self, column: Column, group: int, fill: Any, unit_bytes: int) -> Iterator[np.ndarray]:  # noqa: ARG002
        """See `TableFile.slices`: the whole of a group."""
        numbers = _guarded(self._view, lambda: _numbers(self._batch(column, group).column(0), column, fill))
        if len(numbers) != self.groups[group]:
            raise ColumnarError("a batch has other records than when it was opened")
        yield numbers

    def group_bytes(self, column: Column) -> int:
        """See `TableFile.group_bytes`."""
        assert column.dtype is not None
        return max(self.groups, default=0) * column.dtype.itemsize * (column.item[0] if column.item else 1)

    def unit_bytes(self, column: Column) -> int:
        """See `TableFile.unit_bytes`."""
        return self.group_bytes(column)

    def held_bytes(self, unit_bytes: int) -> int:
        """See `TableFile.held_bytes`: the largest group, compressed and not."""
        return 2 * unit_bytes
