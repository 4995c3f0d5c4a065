"""Descriptions of files and jobs that `flowcompute inspect` prints."""

from __future__ import annotations

from collections.abc import Sequence

from flowcompute.elements import Element, Source
from flowcompute.elements.creation import Table
from flowcompute.errors import SpecError
from flowcompute.files import shown
from flowcompute.flow import draw
from flowcompute.sources import FileTable, SeveralSource, StoredSource

_MOST_TYPE = 32
"""Characters of a column's type up to which names of columns stand below each other."""


def describe_file(source: Source | Table) -> str:
    """Describe an opened file, a table, or several files as one stream, in a few lines of text."""
    if isinstance(source, Table):
        assert isinstance(source, FileTable), "what is opened lies in files"
        files = "" if len(source.parts) == 1 else f" in {len(source.parts):,} files"
        known = source.tables[0].columns
        width = min(max((len(one.type) for one in known), default=0), _MOST_TYPE)
        columns = [f"  {one.type:<{width}} {shown(one.name)}" for one in known]
        return "\n".join([f"{source.path}: {source.length:,} records of {len(columns)} columns{files}", *columns])
    if isinstance(source, SeveralSource):
        parts = [f"{part.spec}  {part.path}" for part in source.sources]
        return "\n".join([f"{source.spec} in {len(parts)} files", *(f"  {part}" for part in parts)])
    if not isinstance(source, StoredSource):
        # Arrays in chunks.
        return "\n".join([str(source.origin), f"  holds   {source.spec}", f"  input   {source.must_read()}"])
    layout = source.layout
    order = "big-endian" if layout.dtype.str[0] == ">" else "little-endian"
    stored = [f"{source.format}, data at byte {layout.offset}"]
    if layout.dtype.itemsize > 1:
        stored.append(order)
    if layout.is_columns:
        stored.append("Fortran order")
    why = source.must_read()
    lines = {
        "holds": str(source.spec),
        "items": f"{layout.length:,} of {layout.item_bytes:,} bytes",
        "bytes": f"{source.fingerprint.size:,}",
        "stored": ", ".join(stored),
        "input": "mapped into memory" if why is None else f"read into buffers: {why}",
    }
    return "\n".join([source.path, *(f"  {label:<7} {text}" for label, text in lines.items())])


def describe_job(elements: Sequence[Element]) -> str:
    """Draw the lazy graph of a job, with its structural hashes."""
    hashes = [f"hash {element.hash}  {element!r}" for element in elements]
    return "\n".join([draw(*elements), "", *hashes])


def first_records(source: Source | Table, count: int) -> str:
    """Return the values of the first records of a file, as NumPy prints them; of a table column by column.

    Raises:
        SourceError: if they cannot be read.
    """
    if isinstance(source, Table):
        return "\n".join(f"{shown(name)}: {_first_of_column(source, name, count)}" for name in source)
    records = source[: max(count, 0)].resolve(device="numpy", progress=False)
    return str(records)


def _first_of_column(table: Table, name: str, count: int) -> str:
    """Return the first values of a column; of one whose type is not read that it is not."""
    try:
        column = table[name]
    except SpecError as error:
        return f"not read, {error.got}"
    return first_records(column, count)  # type: ignore[arg-type]
