"""A column of Parquet or Arrow files as a stream."""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import field
from itertools import accumulate
from typing import Any

import numpy as np

from flowcompute.elements import Reader, Source
from flowcompute.errors import SourceError
from flowcompute.files import Files, Fingerprint, explain, shown
from flowcompute.imports import dataclass
from flowcompute.sources.columnar.opening import open_columns
from flowcompute.sources.columnar.table_file import Column, ColumnarError, TableFile
from flowcompute.sources.file_source import changed, check_position, source_errors
from flowcompute.spec import Spec, Stream


@dataclass(frozen=True)
class ColumnFile:
    """A file of columns.

    Attributes:
        path: as an absolute path.
        groups: records of each group of records.
        fingerprint: the state of the file when this was composed; in any other state it is not read.
        footer: by which it is opened again; see `TableFile.footer`.
    """

    path: str
    groups: tuple[int, ...]
    fingerprint: Fingerprint
    footer: Any = field(compare=False, repr=False)


_LONGEST_LABEL = 64
"""Letters of a column's name that a stage bears; a longer one is shown beside it."""


class ColumnSource(Source):
    """A column of a file, or of several that follow each other. `fc.open(path)[name]` makes it.

    Attributes:
        path: what was opened: a file, or a folder of them.
        kind: "parquet" or "arrow".
        column: which.
        parts: the files, at least one.
        fill: number of nulls; None where they are refused.
        unit_bytes: the most that is decoded as a whole; see `TableFile.unit_bytes`.
        files: the file layer.
    """

    path: str
    kind: str
    column: Column
    parts: tuple[ColumnFile, ...]
    fill: Any
    unit_bytes: int
    files: Files

    def __init__(
        self,
        path: str,
        kind: str,
        column: Column,
        parts: Sequence[ColumnFile],
        *,
        unit_bytes: int,
        held_bytes: int,
        fill: Any,
        name: str | None,
        files: Files,
    ) -> None:
        assert column.dtype is not None
        length = sum(sum(part.groups) for part in parts)
        super().__init__(Spec(column.dtype, column.item, Stream(length)), name=name)
        self.freeze_fields(path=path, kind=kind, column=column, parts=tuple(parts), fill=fill)
        self.freeze_fields(files=files, unit_bytes=unit_bytes, _held=held_bytes)

    _held: int

    @property
    def label(self) -> str:
        """The column's name, or "open" where that is no word that plans and metrics can show."""
        name = self.column.name
        return name if name.isidentifier() and len(name) <= _LONGEST_LABEL else "open"

    @property
    def origin(self) -> str:
        """The file's own name, and the column's."""
        return f"{shown(os.path.basename(self.path))}[{shown(self.column.name)}]"

    @property
    def identity(self) -> tuple[object, ...]:
        """The column, of the files in the state in which it was composed."""
        files = [(self.files.canonical(part.path), *part.fingerprint) for part in self.parts]
        return (self.kind, *files, self.column.position, repr(self.fill))

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
    """Reader of a column, group by group. One file is open at a time."""

    def __init__(self, source: ColumnSource, position: int) -> None:
        self.element = source.name or source.label
        self.position = position
        self._source, self._files = source, source.files
        groups = [(part, number) for part in source.parts for number in range(len(part.groups))]
        self._groups = groups
        self._ends = [*accumulate(part.groups[number] for part, number in groups)]
        self._length = self._ends[-1] if self._ends else 0
        self._rest: np.ndarray | None = None
        self._slices: Iterator[np.ndarray] | None = None
        self._table: TableFile | None = None
        self._handle = -1
        self._part = source.parts[0]
        check_position(position, self._length, element=self.element, site=source.site)
        self._open_part(groups[bisect_right(self._ends, position)][0] if position < self._length else self._part)

    def _open_part(self, part: ColumnFile) -> TableFile:
        """Return the open file, which is another one from now on."""
        if self._table is not None and part is self._part:
            return self._table
        self.close()
        source, self._part = self._source, part
        with source_errors("open", part.path, element=self.element, site=source.site):
            self._handle = source.files.open_read(part.path)
        try:
            self._check_open()
            self._table = self._guarded(lambda: open_columns(source.files, self._handle, source.kind, part.footer))
        except BaseException:
            self.close()
            raise
        return self._table

    def _guarded(self, make: Any, records: tuple[int, int] | None = None) -> Any:
        try:
            return make()
        except (ColumnarError, OSError) as error:
            text, hint = (str(error), None) if isinstance(error, ColumnarError) else explain(error)
            if "nulls" in text:
                floats = self._source.spec.dtype.kind == "f"
                hint = f"say what stands for them: fc.open(path, fill={'math.nan' if floats else '0'})"
            raise self._failed(text, hint, records) from error

    def _failed(self, text: str, hint: str | None, records: tuple[int, int] | None = None) -> SourceError:
        source = self._source
        return SourceError(
            f"cannot read column {source.column.name!r} of {shown(self._part.path)}: {text}",
            element=self.element,
            site=source.site,
            records=records,
            hint=hint or "write the file again",
        )

    def read(self, out: np.ndarray) -> int:
        """Fill `out` with the next records; see `Reader.read`."""
        done, count = 0, min(len(out), self._length - self.position)
        while done < count:
            if (items := self._read_plain(out[done:count])) > 0:
                done += items
                continue
            rest = self._next()
            items = min(len(rest), count - done)
            out[done : done + items] = rest[:items]
            self._rest = rest[items:]
            done += items
            self.position += items
        return done

    def _read_plain(self, out: np.ndarray) -> int:
        """Fill the begin of `out` with records that lie in the file as in memory; return how many, 0 where none do."""
        if not out.flags.c_contiguous or (self._rest is not None and len(self._rest)) or self._slices is not None:
            return 0
        group = bisect_right(self._ends, self.position)
        part, number = self._groups[group]
        column, records = self._source.column, (self.position, self._ends[group])
        table = self._open_part(part)
        place = self._guarded(lambda: table.lies_at(column, number), records)
        if place is None:
            return 0
        begin = self._ends[group] - part.groups[number]
        items = min(len(out), self._ends[group] - self.position)
        room = out[:items].reshape(-1).view(np.uint8).data
        place += (self.position - begin) * self._source.spec.item_bytes
        if self._guarded(lambda: self._files.read_into(self._handle, room, place), records) < len(room):
            raise self._failed("it is damaged: it ends too early", None, records)
        self.position += items
        return items

    def _next(self) -> np.ndarray:
        """Return records from `position` on, at least one."""
        while self._rest is None or not len(self._rest):
            group = bisect_right(self._ends, self.position)
            part, number = self._groups[group]
            begin = self._ends[group] - part.groups[number]
            records = (self.position, self._ends[group])
            skipped = 0
            if self._slices is None:
                table = self._open_part(part)
                source = self._source
                self._slices = iter(table.slices(source.column, number, source.fill, source.unit_bytes))
                # Groups are read from their begin on.
                skipped = self.position - begin
            while self._rest is None or not len(self._rest):
                slices = self._slices
                made = self._guarded(lambda slices=slices: next(slices, None), records)
                if made is None:
                    # Of what is read of a group nothing counts if the file has changed meanwhile: `check` ends a pass.
                    self._check_open()
                    self._slices = None
                    break
                self._rest, skipped = made[skipped:], max(0, skipped - len(made))
        return self._rest

    def check(self) -> None:
        """Check that the files are in the state in which the stream was composed.

        Raises:
            SourceError: if one has changed.
        """
        self._check_open()
        for part in self._source.parts:
            if part is not self._part:
                with source_errors("look at", part.path, element=self.element, site=self._source.site):
                    now = self._files.look(part.path)
                self._compare(part, now)

    def _check_open(self) -> None:
        """Check the file that is open."""
        with source_errors("look at", self._part.path, element=self.element, site=self._source.site):
            now = self._files.fingerprint(self._handle)
        self._compare(self._part, now)

    def _compare(self, part: ColumnFile, now: Fingerprint) -> None:
        if now != part.fingerprint:
            raise changed(part.path, part.fingerprint, now, element=self.element, site=self._source.site)

    def close(self) -> None:
        """Close the file that is open."""
        self._slices = self._rest = self._table = None
        handle, self._handle = self._handle, -1
        if handle >= 0:
            self._files.close(handle)
