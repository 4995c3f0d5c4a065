"""A column of a Parquet or Arrow file as a stream."""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Iterator
from itertools import accumulate
from typing import Any

import numpy as np

from flowcompute.elements import Reader, Source
from flowcompute.errors import SourceError
from flowcompute.files import Files, Fingerprint, explain, shown
from flowcompute.sources.columnar._pyarrow import Column, ColumnarError, OpenTable, open_columns
from flowcompute.sources.file_source import changed, check_position, source_errors
from flowcompute.spec import Spec, Stream


class ColumnSource(Source):
    """A column of a file. `fc.open(path)[name]` makes it.

    Attributes:
        path: the file, as an absolute path.
        kind: "parquet" or "arrow".
        column: which.
        groups: records of each group of records.
        fill: number of nulls; None where they are refused.
        fingerprint: the state of the file when this was composed; in any other state it is not read.
        files: the file layer.
    """

    path: str
    kind: str
    column: Column
    groups: tuple[int, ...]
    fill: Any
    fingerprint: Fingerprint
    files: Files

    def __init__(
        self,
        path: str,
        kind: str,
        column: Column,
        table: OpenTable,
        fingerprint: Fingerprint,
        *,
        fill: Any,
        name: str | None,
        files: Files,
    ) -> None:
        assert column.dtype is not None
        super().__init__(Spec(column.dtype, column.item, Stream(sum(table.groups))), name=name)
        self.freeze_fields(path=path, kind=kind, column=column, groups=table.groups, fill=fill)
        self.freeze_fields(fingerprint=fingerprint, files=files, _held=table.held_bytes(column))

    _held: int

    @property
    def label(self) -> str:
        """Name of the function that made it."""
        return "open"

    @property
    def origin(self) -> str:
        """The file's own name, and the column's."""
        return f"{shown(os.path.basename(self.path))}[{shown(self.column.name)}]"

    @property
    def identity(self) -> tuple[object, ...]:
        """The column, of the file in the state in which it was composed."""
        return (self.kind, os.path.realpath(self.path), *self.fingerprint, self.column.position, repr(self.fill))

    @property
    def held_bytes(self) -> int:
        """Bytes of what is decoded at a time."""
        return self._held

    def must_read(self, *, mapped: bool = True) -> str | None:  # noqa: ARG002
        """Return the reason why the records are copied into buffers."""
        return "columns are decoded"

    def open(self, *, position: int = 0, mapped: bool = True) -> ColumnReader:  # noqa: ARG002
        """Start reading at record `position`. `mapped` has no effect."""
        return ColumnReader(self, position)


class ColumnReader(Reader):
    """Reader of a column, group by group."""

    def __init__(self, source: ColumnSource, position: int) -> None:
        self.element = source.name or source.label
        self.position = position
        self._source, self._files = source, source.files
        self._ends = [*accumulate(source.groups)]
        self._length = self._ends[-1] if self._ends else 0
        self._rest: np.ndarray | None = None
        self._slices: Iterator[np.ndarray] | None = None
        self._table: OpenTable | None = None
        self._handle = -1
        check_position(position, self._length, element=self.element, site=source.site)
        with source_errors("open", source.path, element=self.element, site=source.site):
            self._handle = source.files.open_read(source.path)
        try:
            self.check()
            self._table = self._guarded(lambda: open_columns(source.files, self._handle, source.kind))
        except BaseException:
            self.close()
            raise

    def _guarded(self, make: Any, records: tuple[int, int] | None = None) -> Any:
        source = self._source
        try:
            return make()
        except (ColumnarError, OSError) as error:
            text, hint = (str(error), None) if isinstance(error, ColumnarError) else explain(error)
            if "nulls" in text:
                hint = "say what stands for them: fc.open(path, fill=0)"
            raise SourceError(
                f"cannot read column {source.column.name!r} of {shown(source.path)}: {text}",
                element=self.element,
                site=source.site,
                records=records,
                hint=hint or "write the file again",
            ) from error

    def read(self, out: np.ndarray) -> int:
        """Fill `out` with the next records; see `Reader.read`."""
        done, count = 0, min(len(out), self._length - self.position)
        while done < count:
            rest = self._next()
            items = min(len(rest), count - done)
            out[done : done + items] = rest[:items]
            self._rest = rest[items:]
            done += items
            self.position += items
        if done:
            self.check()
        return done

    def _next(self) -> np.ndarray:
        """Return records from `position` on, at least one."""
        while self._rest is None or not len(self._rest):
            group = bisect_right(self._ends, self.position)
            begin = self._ends[group] - self._source.groups[group]
            records = (self.position, self._ends[group])
            skipped = 0
            if self._slices is None:
                assert self._table is not None
                self._slices = iter(self._table.slices(self._source.column, group, self._source.fill))
                # Groups are read from their begin on.
                skipped = self.position - begin
            while self._rest is None or not len(self._rest):
                slices = self._slices
                made = self._guarded(lambda slices=slices: next(slices, None), records)
                if made is None:
                    self._slices = None
                    break
                self._rest, skipped = made[skipped:], max(0, skipped - len(made))
        return self._rest

    def check(self) -> None:
        """Check that the file is in the state in which it was composed.

        Raises:
            SourceError: if it has changed.
        """
        source = self._source
        with source_errors("look at", source.path, element=self.element, site=source.site):
            now = Fingerprint.of(self._files.status(self._handle))
        if now != source.fingerprint:
            raise changed(source.path, source.fingerprint, now, element=self.element, site=source.site)

    def close(self) -> None:
        """Close the file."""
        self._slices = self._rest = self._table = None
        handle, self._handle = self._handle, -1
        if handle >= 0:
            self._files.close(handle)
