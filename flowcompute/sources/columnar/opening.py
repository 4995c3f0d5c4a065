"""From an open file and the name of its format to its columns."""

from __future__ import annotations

from typing import Any

from flowcompute.files import Files
from flowcompute.sources.columnar._pyarrow import open_parquet
from flowcompute.sources.columnar.arrow_file import ArrowFile
from flowcompute.sources.columnar.table_file import TableFile


def open_columns(files: Files, handle: int, kind: str, footer: Any = None) -> TableFile:
    """Open a file of a kind, "parquet" or "arrow".

    Args:
        files, handle: the file layer, and the file.
        kind: its format.
        footer: its `TableFile.footer`, if it was opened in this state before.

    Raises:
        ColumnarError: if it is none such, or is damaged.
        OSError: as the system does.
    """
    if kind == "parquet":
        return open_parquet(files, handle, footer)
    return ArrowFile(files, handle, footer)
