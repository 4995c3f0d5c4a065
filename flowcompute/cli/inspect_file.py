"""Descriptions of files and jobs that `flowcompute inspect` prints."""

from __future__ import annotations

from collections.abc import Sequence

from flowcompute.elements import Element, Source
from flowcompute.flow import draw
from flowcompute.sources import SeveralSource, StoredSource


def describe_file(source: Source) -> str:
    """Describe an opened file, or several as one stream, in a few lines of text."""
    if isinstance(source, SeveralSource):
        parts = [f"{part.spec}  {part.path}" for part in source.sources]
        return "\n".join([f"{source.spec} in {len(parts)} files", *(f"  {part}" for part in parts)])
    assert isinstance(source, StoredSource)
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


def first_records(source: Source, count: int) -> str:
    """Return the values of the first records of a file, as NumPy prints them.

    Raises:
        SourceError: if they cannot be read.
    """
    records = source[: max(count, 0)].resolve(device="numpy", progress=False)
    return str(records)
