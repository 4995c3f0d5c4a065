"""The one import of pyarrow, which `flowcompute[parquet]` brings: footers, and columns a slice at a time."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from flowcompute.errors import SourceError
from flowcompute.files import Files, FileView
from flowcompute.imports import LateModule, dataclass, import_problem
from flowcompute.metrics import counted
from flowcompute.sources.columnar.parquet_pages import PageView, read_varint
from flowcompute.sources.columnar.parquet_plain import (
    ChunkPages,
    Leaf,
    Page,
    UnusualPageError,
    check_all_lists,
    plain_numbers,
)
from flowcompute.sources.columnar.table_file import REQUEST_BYTES, SLICE_BYTES, Column, ColumnarError, TableFile

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow import compute, parquet
else:
    pa, compute, parquet = map(LateModule, ("pyarrow", "pyarrow.compute", "pyarrow.parquet"))

_READ_BYTES = 1 << 17
"""Bytes of a column that are read from the disk at a time."""
_PAGE_READ_BYTES = 1 << 12
"""Bytes that are read at a time where we read pages: a page is read as a whole, with the next header."""
_OWN_CODECS = {"UNCOMPRESSED": None, "SNAPPY": "snappy", "GZIP": "gzip", "ZSTD": "zstd"}
"""Names of Parquet's compressions and pyarrow's, of those whose pages are decoded by us."""
_OTHER_CODECS = {"BROTLI": "brotli", "LZ4": "lz4_raw"}
"""The same of those whose levels alone are looked at."""
_WHOLE_CODECS = "zstd", "snappy", "lz4_raw"
"""Codecs that expand a whole; others do it as streams, which tell how many bytes there are."""
_MOST_DEPTH = 64
"""Of types in types."""
_PAGE_BYTES = 1 << 20
"""Bytes of a page, unless the writer has said otherwise."""
_PAGE_SLACK = 1 << 16
"""What writers put into a page beyond the bytes at which they end one."""
_MOST_PAGES = 64, 2
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

_MOST_TIME_BITS = 64
"""Bits of a date, a time or a duration that is one integer. Intervals of months and days have more."""


def require() -> None:
    """Import pyarrow.

    Raises:
        SourceError: if it is not installed. The error says what to install.
    """
    problem = import_problem("pyarrow.compute", "pyarrow.parquet")
    if problem is not None:
        raise SourceError(
            "cannot read Parquet and Arrow files: a package is missing",
            expected="pyarrow",
            hint='pip install "flowcompute[parquet]"',
        ) from problem


def arrow_columns(view: FileView) -> tuple[tuple[Column, ...], list[tuple[int, int, int]]]:
    """Return the columns of an Arrow IPC file, and where what belongs to each begins in a record batch.

    Returns:
        the columns; for each the number of its first node, of its first buffer beside those of views, and the fields
        of views before it, which have any number of buffers. Behind them stand the numbers of all.

    Raises:
        ColumnarError: if it is none such, or is damaged.
        OSError: as the system does.
    """

    def read() -> tuple[tuple[Column, ...], list[tuple[int, int, int]]]:
        schema = pa.ipc.open_file(pa.PythonFile(view, mode="r")).schema
        places, place = [], (0, 0, 0)
        for field in schema:
            places.append(place)
            place = tuple(map(sum, zip(place, _parts(field.type, 0), strict=True)))  # type: ignore[assignment]
        return _columns(schema), [*places, place]

    found: tuple[tuple[Column, ...], list[tuple[int, int, int]]] = _guarded(view, read)
    return found


def _parts(kind: Any, depth: int) -> tuple[int, int, int]:
    """Return the nodes, the buffers and the fields of views that a field of a type has in a record batch.

    Source: arrow.apache.org/docs/format/Columnar.html, "Buffer Listing for Each Layout".
    """
    if depth > _MOST_DEPTH:
        raise ColumnarError("its columns are nested too deeply")
    types = pa.types
    if isinstance(kind, pa.BaseExtensionType):
        return _parts(kind.storage_type, depth + 1)
    views = int(types.is_string_view(kind) or types.is_binary_view(kind))
    if types.is_null(kind) or types.is_run_end_encoded(kind):
        own = 0
    elif types.is_struct(kind) or types.is_fixed_size_list(kind) or types.is_union(kind):
        own = 2 if types.is_union(kind) and kind.mode == "dense" else 1
    elif any(test(kind) for test in (types.is_list_view, types.is_large_list_view, *_texts(types))):
        own = 3
    else:
        own = 2
    if types.is_run_end_encoded(kind):
        children = [kind.run_end_type, kind.value_type]
    elif types.is_dictionary(kind):
        children = []
    else:
        children = [kind.field(i).type for i in range(kind.num_fields)]
    inner = [_parts(child, depth + 1) for child in children]
    return tuple(map(sum, zip((1, own, views), *inner, strict=True)))  # type: ignore[return-value]


def _texts(types: Any) -> tuple[Any, ...]:
    return types.is_string, types.is_binary, types.is_large_string, types.is_large_binary


def decompress(codec: str, data: memoryview, size: int) -> memoryview:
    """Return what data of a codec of pyarrow expand to, which is to be `size` bytes.

    Raises:
        ColumnarError: if they are damaged, or expand to more or less.
    """
    try:
        if codec in _WHOLE_CODECS:
            made = memoryview(pa.Codec(codec).decompress(data, decompressed_size=size)).cast("B")
            # Only the begin of Snappy's data says whether all of the room was filled.
            found = read_varint(data.cast("B"), 0)[0] if codec == "snappy" else size
        else:
            made = np.empty(size, np.uint8).data
            stream = pa.CompressedInputStream(pa.BufferReader(data), codec)
            found = stream.readinto(made) + len(stream.read(1))
    except (pa.ArrowException, OSError, ValueError, IndexError) as error:
        _fail(error)
    if found != size:
        raise ColumnarError(f"it is damaged: {found} bytes were compressed, and {size} are expected")
    return made


def open_parquet(files: Files, handle: int, footer: ParquetFooter | None) -> TableFile:
    """Open a Parquet file, whose footer may have been read before.

    Raises:
        ColumnarError: if it is none such, or is damaged.
        OSError: as the system does.
    """
    pages = PageView(files, handle)
    table: TableFile = _guarded(pages, lambda: _ParquetTable(pages, files, handle, footer))
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
        made.append(Column(str(field.name), _dtype(kind), item, str(field.type)[:100], position))
    return tuple(made)


def _dtype(kind: Any) -> np.dtype | None:
    """Return the dtype of the numbers of a type, or None where it has none. Dates, times and durations are integers."""
    if pa.types.is_temporal(kind) and kind.bit_width <= _MOST_TIME_BITS:
        return np.dtype(f"i{kind.bit_width // 8}")
    return np.dtype(kind.to_pandas_dtype()) if str(kind) in _NAMES else None


def _numbers(array: Any, column: Column, fill: Any) -> np.ndarray:
    """Return the numbers of an Arrow array, of shape `(records, *item)`."""
    assert column.dtype is not None
    array.validate()
    records = len(array)
    values = array.flatten() if column.item and array.null_count == 0 else array
    if column.item and len(values) != records * column.item[0]:
        raise ColumnarError("it has lists that are null")
    if pa.types.is_temporal(values.type):
        values = values.view(pa.from_numpy_dtype(column.dtype))
    if values.null_count:
        if fill is None:
            raise ColumnarError(f"it has {counted(values.null_count, 'null')}")
        values = compute.fill_null(values, pa.scalar(fill, values.type))
    numbers: np.ndarray = values.to_numpy(zero_copy_only=False)
    return numbers.reshape(records, *column.item)


@dataclass(frozen=True)
class ParquetFooter:
    """What is said at the end of a Parquet file.

    Attributes:
        metadata: as pyarrow has it.
        columns: in their order.
        leaves: columns among the file's leaves by their numbers, where paths tell them from others.
        groups: records of each group.
    """

    metadata: Any
    columns: tuple[Column, ...]
    leaves: dict[int, Leaf]
    groups: tuple[int, ...]


class _ParquetTable(TableFile):
    footer: ParquetFooter

    def __init__(self, view: PageView, files: Files, handle: int, footer: ParquetFooter | None) -> None:
        self._view, self._own_view = view, FileView(files, handle)
        self._unusual = set[int]()  # columns that were found to be for pyarrow
        self._part_bytes = _READ_BYTES if files.local else REQUEST_BYTES
        self._page_part_bytes = _PAGE_READ_BYTES if files.local else REQUEST_BYTES
        self.footer = footer or self._read_footer()
        self._metadata, self.columns, self._leaves = self.footer.metadata, self.footer.columns, self.footer.leaves
        self.groups = self.footer.groups

    @cached_property
    def _file(self) -> Any:
        """What pyarrow reads by, once it is asked for: plain pages need none."""
        return self._opened(self._metadata)

    def _opened(self, metadata: Any) -> Any:
        return parquet.ParquetFile(
            pa.PythonFile(self._view, mode="r"),
            metadata=metadata,
            buffer_size=self._part_bytes,
            pre_buffer=False,
            page_checksum_verification=True,
        )

    def _read_footer(self) -> ParquetFooter:
        file = self._opened(None)
        metadata, columns = file.metadata, _columns(file.schema_arrow)
        groups = tuple(int(metadata.row_group(i).num_rows) for i in range(metadata.num_row_groups))
        if min(groups, default=0) < 0 or sum(groups) != metadata.num_rows:
            raise ColumnarError("its groups have other records than the file")
        return ParquetFooter(metadata, columns, _leaves(metadata.schema, columns), groups)

    def slices(self, column: Column, group: int, fill: Any, unit_bytes: int) -> Iterator[np.ndarray]:
        """See `TableFile.slices`. A unit is a page.

        Plain pages without nulls are read by us. From the first other page on pyarrow decodes the group.
        """
        chunk, leaf = self._chunk(column, group), self._leaf(column)
        if chunk.num_values > self.groups[group] * math.prod(column.item):
            raise ColumnarError("a group has more numbers than its records have")
        done = 0
        if self._lies_plain(column, leaf, chunk):
            try:
                pages = self._pages(chunk, leaf, unit_bytes)
                for numbers in plain_numbers(pages, leaf, column, self.groups[group]):
                    done += len(numbers)
                    yield numbers
            except UnusualPageError:
                self._unusual.add(column.position)
            else:
                return
        if column.item:
            # pyarrow would expand a record to all numbers that levels give it.
            check_all_lists(self._pages(chunk, leaf, unit_bytes), column)
        for numbers in self._decoded(column, group, fill, unit_bytes):
            yield numbers[min(done, len(numbers)) :]
            done -= min(done, len(numbers))

    def _lies_plain(self, column: Column, leaf: Leaf, chunk: Any) -> bool:
        """Check whether the pages of a column in a group are worth a look without pyarrow."""
        return (
            leaf.lies_plain(column)
            and column.position not in self._unusual
            and chunk.compression in _OWN_CODECS
            and set(chunk.encodings) <= {"PLAIN", "RLE", "BIT_PACKED"}
        )

    def _pages(self, chunk: Any, leaf: Leaf, unit_bytes: int) -> Iterator[Page]:
        """Return the pages of a column in a group."""
        codec = _OWN_CODECS.get(chunk.compression, _OTHER_CODECS.get(chunk.compression))
        if codec is None and chunk.compression != "UNCOMPRESSED":
            raise ColumnarError(f"its compression is not known: {chunk.compression[:40]}")

        def expand(data: memoryview, size: int) -> memoryview:
            return data if codec is None else decompress(codec, data, size)

        return ChunkPages(self._own_view, _place(chunk), unit_bytes, self._page_part_bytes, expand).read(leaf)

    def _decoded(self, column: Column, group: int, fill: Any, unit_bytes: int) -> Iterator[np.ndarray]:
        """Yield the numbers of a column in a group as pyarrow decodes them."""
        assert column.dtype is not None
        self._view.watch(*_place(self._chunk(column, group)), unit_bytes)
        # pyarrow's own way by name would decode columns whose names go on behind a dot, too.
        records = max(1, SLICE_BYTES // (column.dtype.itemsize * math.prod(column.item)))
        wanted = {"batch_size": records, "column_indices": [self._leaf(column).number], "use_threads": False}
        batches = _guarded(self._view, lambda: iter(self._file.reader.iter_batches(row_groups=[group], **wanted)))
        left = self.groups[group]
        while (batch := _guarded(self._view, lambda: next(batches, None))) is not None:
            numbers = _guarded(self._view, lambda batch=batch: _numbers(batch.column(0), column, fill))
            left -= len(numbers)
            if left < 0:
                raise ColumnarError("a group has more records than it says")
            # Each thread that decodes would keep what it has had, beside what the plan counts.
            pa.default_memory_pool().release_unused()
            yield numbers
        if left:
            raise ColumnarError("a group has fewer records than it says")

    def _chunk(self, column: Column, group: int) -> Any:
        """Return what the footer says of a column in a group."""
        return self._metadata.row_group(group).column(self._leaf(column).number)

    def _leaf(self, column: Column) -> Leaf:
        """Return a column as Parquet has it."""
        if column.position not in self._leaves:
            raise ColumnarError(
                "its name is that of a part of a structure, or it is laid out in another way than a list"
            )
        return self._leaves[column.position]

    def group_bytes(self, column: Column) -> int:
        """See `TableFile.group_bytes`."""
        return max((self._said_bytes(column, i) for i in range(len(self.groups))), default=0)

    def _said_bytes(self, column: Column, group: int) -> int:
        return max(0, int(self._chunk(column, group).total_uncompressed_size))

    def unit_bytes(self, column: Column, files: Files, handle: int) -> int:
        """See `TableFile.unit_bytes`: by the pages of the largest group, since writers end pages at the same bytes."""
        filled = [i for i, records in enumerate(self.groups) if records]  # only these have pages
        if not filled:
            return 0
        group = max(filled, key=lambda i: self._said_bytes(column, i))
        view = PageView(files, handle)
        largest: int = _guarded(
            view, lambda: view.largest_page(*_place(self._chunk(column, group)), _MOST_PAGES[not files.local])
        )
        return min(self.group_bytes(column), max(largest + largest // 8, _PAGE_BYTES) + _PAGE_SLACK)

    def held_bytes(self, unit_bytes: int) -> int:
        """See `TableFile.held_bytes`: a slice, and a page decompressed; a page of unusual size as it is stored, too."""
        # Small budgets read many columns. What a page of the usual size is stored as goes with the library's memory.
        stored = unit_bytes if unit_bytes > _PAGE_BYTES + _PAGE_SLACK else 0
        return SLICE_BYTES + self._part_bytes + unit_bytes + stored


def _leaves(schema: Any, columns: tuple[Column, ...]) -> dict[int, Leaf]:
    """Return the columns among a file's leaves by their numbers, where paths tell them from others."""
    by_path: dict[str, list[Leaf]] = {}
    for i in range(len(schema)):
        said = schema.column(i)
        levels = int(said.max_repetition_level), int(said.max_definition_level)
        by_path.setdefault(said.path, []).append(Leaf(i, str(said.physical_type), int(said.length), *levels))
    found = {}
    for column in columns:
        paths = [f"{column.name}.list.{end}" for end in ("element", "item")] if column.item else [column.name]
        leaves = [leaf for path in paths for leaf in by_path.get(path, ())]
        if len(leaves) == 1 and column.dtype is not None:
            found[column.position] = leaves[0]
    return found


def _place(chunk: Any) -> tuple[int, int]:
    """Return where a column's pages of a group begin and end."""
    begin, first = int(chunk.data_page_offset), chunk.dictionary_page_offset
    if first is not None and 0 < int(first) < begin:
        begin = int(first)
    return begin, begin + int(chunk.total_compressed_size)
