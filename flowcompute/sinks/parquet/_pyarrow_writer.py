"""The import of pyarrow for writing, which `flowcompute[parquet]` brings: rows of bytes as Parquet files."""

from __future__ import annotations

import errno
import io
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from flowcompute.elements.creation import row_dtype
from flowcompute.imports import LateModule, import_problem
from flowcompute.sinks.saved_arrays import SavedArray

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow import parquet
else:
    pa, parquet = map(LateModule, ("pyarrow", "pyarrow.parquet"))

GROUP_BYTES = 1 << 22
"""Most bytes of rows that are encoded together, as a row group."""

_HELD = 4
"""Row groups that encoding holds: the rows, their columns, the encoded pages, and these as the file has them."""


def problem() -> ImportError | None:
    """Import pyarrow, and return why that cannot be done, or None."""
    return import_problem("pyarrow.parquet")


def version() -> str:
    """Return the package and its version, which the bytes of files depend on."""
    return f"pyarrow {pa.cpp_version}"


def group_rows(row_bytes: int, rows: int) -> int:
    """Return the rows of a row group of a file of at most `rows` rows."""
    return max(1, min(rows, GROUP_BYTES // row_bytes))


def held_bytes(row_bytes: int, rows: int) -> int:
    """Return the bytes that `encode` holds for files of at most `rows` rows."""
    return _HELD * row_bytes * group_rows(row_bytes, rows)


class _WrittenFile(io.RawIOBase):
    """A file as pyarrow writes it, from its begin on. It keeps the error that ended it, which pyarrow renames."""

    def __init__(self, write: Callable[[bytes | memoryview, int], None]) -> None:
        super().__init__()
        self._write, self._at = write, 0
        self.problem: OSError | None = None

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        part = memoryview(data).cast("B")
        try:
            self._write(part, self._at)
        except OSError as error:
            self.problem = error
            raise
        self._at += len(part)
        return len(part)

    def tell(self) -> int:
        return self._at


def encode(
    columns: Sequence[SavedArray],
    read_into: Callable[[memoryview, int], int],
    size: int,
    write: Callable[[bytes | memoryview, int], None],
    rows: int,
) -> None:
    """Write rows as a Parquet file. The file is a function of the rows, of `rows` and of the version of pyarrow.

    Args:
        columns: names, dtypes, and shapes of items: `()`, or `(n,)` for lists of n numbers.
        read_into: fills memory with bytes of the rows from an offset on.
        size: bytes of the rows.
        write: writes bytes at an offset of the file.
        rows: the most rows of a file of the table.

    Raises:
        OSError: as `read_into` and `write` do.
    """
    kind = row_dtype([(one.dtype, one.shape) for one in columns])
    schema = pa.schema([pa.field(one.name, _type(one), nullable=False) for one in columns])
    step = group_rows(kind.itemsize, rows) * kind.itemsize
    room, output = np.empty(min(step, size) // kind.itemsize, kind), _WrittenFile(write)
    try:
        with parquet.ParquetWriter(
            pa.PythonFile(output, mode="w"),
            schema,
            compression="snappy",
            use_dictionary=False,
            write_page_checksum=True,
        ) as writer:
            for start in range(0, size, step):
                part = room[: min(step, size - start) // kind.itemsize]
                if read_into(part.view(np.uint8).data, start) < part.nbytes:
                    raise OSError(errno.EIO, "rows that were written are missing")
                arrays = [_column(one, part[str(i)]) for i, one in enumerate(columns)]
                writer.write_table(pa.Table.from_arrays(arrays, schema=schema), row_group_size=len(part))
    except (OSError, pa.ArrowException) as error:
        if output.problem is not None:
            raise output.problem from None
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise OSError(errno.EIO, f"pyarrow cannot encode it: {str(error)[:200]}") from error
    finally:
        # Each thread that has encoded would keep what it had, beside what the plan counts.
        pa.default_memory_pool().release_unused()


def _type(column: SavedArray) -> Any:
    kind = pa.from_numpy_dtype(column.dtype)
    return pa.list_(pa.field("item", kind, nullable=False), *column.shape) if column.shape else kind


def _column(column: SavedArray, numbers: np.ndarray) -> Any:
    flat = pa.array(np.ascontiguousarray(numbers).reshape(-1))
    return pa.FixedSizeListArray.from_arrays(flat, type=_type(column)) if column.shape else flat
