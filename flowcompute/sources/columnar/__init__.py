"""Tables in Parquet and Arrow files: each column is a stream."""

from flowcompute.sources.columnar.column_source import ColumnSource
from flowcompute.sources.columnar.column_table import FileTable, open_parts, open_table

__all__ = ["ColumnSource", "FileTable", "open_parts", "open_table"]
