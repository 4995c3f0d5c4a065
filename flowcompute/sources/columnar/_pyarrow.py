"""The one import of pyarrow, which `flowcompute[parquet]` brings: footers, and columns a slice at a time."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NoReturn

import numpy as np

from flowcompute.errors import SourceError
from flowcompute.files import Files, FileView

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


class ColumnarError(Exception):
    """A file that is damaged, or holds what is not read. Its text says why."""


@dataclass(frozen=True)
class Column:
    """A column of a file.

    Attributes:
        name: its name.
        dtype, item: of its numbers, and the shape of an item; None where they are not read.
        type: its type in words.
        position: its number among the columns.
    """

    name: str
    dtype: np.dtype | None
    item: tuple[int, ...]
    type: str
    position: int


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


class OpenTable(ABC):
    """An open file of columns.

    Attributes:
        columns: in their order.
        groups: records of each group of records that is read from its begin on.
    """

    columns: tuple[Column, ...]
    groups: tuple[int, ...]

    @abstractmethod
    def slices(self, column: Column, group: int, fill: Any) -> Iterator[np.ndarray]:
        """Yield the numbers of a column in a group, a slice at a time.

        Args:
            column: which.
            group: number of the group.
            fill: number of nulls; None where they are refused.

        Raises:
            ColumnarError: if they are damaged, or nulls.
            OSError: as the system does.
        """

    @abstractmethod
    def held_bytes(self, column: Column) -> int:
        """Return the bytes that reading a column holds."""


def open_columns(files: Files, handle: int, kind: str, groups: tuple[int, ...] | None = None) -> OpenTable:
    """Open a file of a kind, "parquet" or "arrow".

    Args:
        files, handle: the file layer, and the file.
        kind: its format.
        groups: the records of its groups, where they are known: Arrow files are looked through for them.

    Raises:
        ColumnarError: if it is none such, or is damaged.
        OSError: as the system does.
    """
    view = FileView(files, handle)
    table: OpenTable
    if kind == "parquet":
        part = _READ_BYTES if files.local else _REQUEST_BYTES
        table = _guarded(view, lambda: _ParquetTable(view, part))
    else:
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


class _ParquetTable(OpenTable):
    def __init__(self, view: FileView, part_bytes: int) -> None:
        self._view, self._part_bytes = view, part_bytes
        self._file = parquet.ParquetFile(
            pa.PythonFile(view, mode="r"), buffer_size=part_bytes, pre_buffer=False, page_checksum_verification=True
        )
        self._metadata = self._file.metadata
        self.columns = _columns(self._file.schema_arrow)
        self.groups = tuple(int(self._metadata.row_group(i).num_rows) for i in range(self._metadata.num_row_groups))
        if min(self.groups, default=0) < 0 or sum(self.groups) != self._metadata.num_rows:
            raise ColumnarError("its groups have other records than the file")

    def slices(self, column: Column, group: int, fill: Any) -> Iterator[np.ndarray]:
        """See `OpenTable.slices`."""
        assert column.dtype is not None
        item_bytes = column.dtype.itemsize * (column.item[0] if column.item else 1)
        wanted = {"batch_size": max(1, SLICE_BYTES // item_bytes), "columns": [column.name], "use_threads": False}
        batches = _guarded(self._view, lambda: iter(self._file.iter_batches(row_groups=[group], **wanted)))
        left = self.groups[group]
        while (batch := _guarded(self._view, lambda: next(batches, None))) is not None:
            numbers = _guarded(self._view, lambda batch=batch: _numbers(batch.column(0), column, fill))
            left -= len(numbers)
            if left < 0:
                raise ColumnarError("a group has more records than it says")
            yield numbers
        if left:
            raise ColumnarError("a group has fewer records than it says")

    def held_bytes(self, column: Column) -> int:
        """See `OpenTable.held_bytes`: a slice, and a page."""
        return SLICE_BYTES + self._part_bytes + min(self._largest.get(column.name, 0), _PAGE_BYTES)

    @cached_property
    def _largest(self) -> dict[str, int]:
        """The most bytes that a column has in a group, by name."""
        found: dict[str, int] = {}
        for i in range(len(self.groups)):
            group = self._metadata.row_group(i)
            for one in map(group.column, range(group.num_columns)):
                name = one.path_in_schema.partition(".")[0]
                found[name] = max(found.get(name, 0), int(one.total_uncompressed_size))
        return found


class _ArrowTable(OpenTable):
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

    def slices(self, column: Column, group: int, fill: Any) -> Iterator[np.ndarray]:
        """See `OpenTable.slices`: the whole of a group."""
        numbers = _guarded(self._view, lambda: _numbers(self._batch(column, group).column(0), column, fill))
        if len(numbers) != self.groups[group]:
            raise ColumnarError("a batch has other records than when it was opened")
        yield numbers

    def held_bytes(self, column: Column) -> int:
        """See `OpenTable.held_bytes`: the largest group, compressed and not."""
        assert column.dtype is not None
        return 2 * max(self.groups, default=0) * column.dtype.itemsize * (column.item[0] if column.item else 1)
