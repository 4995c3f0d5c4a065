"""Tables of Parquet and Arrow files: columns by name, each a stream of the same length."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from flowcompute.elements import user_site
from flowcompute.elements.creation import Table
from flowcompute.errors import SourceError, SpecError, short_repr
from flowcompute.files import Files, shown
from flowcompute.objects import layer_of
from flowcompute.sources.columnar import _pyarrow
from flowcompute.sources.columnar.column_source import ColumnFile, ColumnSource
from flowcompute.sources.columnar.opening import open_columns
from flowcompute.sources.columnar.table_file import Column, ColumnarError, TableFile
from flowcompute.sources.file_source import changed, probe, source_errors

_SUFFIXES = {"parquet": (".parquet",), "arrow": (".arrow", ".feather")}


class FileTable(Table):
    """The columns of Parquet or Arrow files. A column of a type that is not read is refused when it is asked for.

    Attributes:
        path: what was opened, as an absolute path: a file, or a folder of them.
        kind: "parquet" or "arrow".
        parts: the files, in the order of their records.
        tables: what their footers say.
    """

    def __init__(
        self,
        path: str,
        kind: str,
        parts: Sequence[tuple[ColumnFile, TableFile]],
        *,
        fill: Any,
        name: str | None,
        files: Files,
    ) -> None:
        self.path, self.kind, self.parts = path, kind, tuple(part for part, _ in parts)
        self.tables = [table for _, table in parts]
        self._fill, self._name, self._files = fill, name, files
        self._by_name: dict[str, list[Column]] = {}
        for column in self.tables[0].columns:
            self._by_name.setdefault(column.name, []).append(column)
        self.columns, self.length = tuple(self._by_name), sum(sum(part.groups) for part in self.parts)
        self._check_alike()

    def _check_alike(self) -> None:
        first = self.tables[0].columns
        for part, table in zip(self.parts, self.tables, strict=True):
            if table.columns != first:
                raise SourceError(
                    f"cannot continue {shown(self.parts[0].path)} with {shown(part.path)}: the columns differ",
                    element=self._name,
                    site=user_site(),
                    expected=", ".join(f"{one.name}: {one.type}" for one in first)[:300],
                    got=", ".join(f"{one.name}: {one.type}" for one in table.columns)[:300],
                    hint="open only files of one kind together",
                )

    def joined(self, others: Sequence[FileTable]) -> FileTable:
        """Return a table whose records are those of this one, and then those of others.

        Raises:
            SourceError: if their columns differ.
        """
        both = (self, *others)
        parts = [pair for one in both for pair in zip(one.parts, one.tables, strict=True)]
        return FileTable(self.path, self.kind, parts, fill=self._fill, name=self._name, files=self._files)

    def _column(self, name: str) -> ColumnSource:
        """Return a column as a stream.

        Raises:
            KeyError: if there is none of that name.
            SpecError: if columns of its type are not read, or two have the name.
        """
        self._check_known(name, f" in {shown(self.path)}")
        column, *others = self._by_name[name]
        if others or column.dtype is None:
            raise SpecError(
                f"cannot read column {name!r} of {shown(self.path)}"
                + (": several columns have that name" if others else ": it holds no plain numbers"),
                element=self._name,
                site=user_site(),
                expected="bools, integers, floats, or lists of one size of these",
                got=column.type,
                hint=_instead(column.type),
            )
        fill = self._fill.get(name) if isinstance(self._fill, Mapping) else self._fill
        _check_fill(fill, column, self._name)
        unit, held = self._bounds(column)
        return ColumnSource(
            self.path,
            self.kind,
            column,
            self.parts,
            unit_bytes=unit,
            held_bytes=held,
            fill=fill,
            name=self._name,
            files=self._files,
        )

    def _bounds(self, column: Column) -> tuple[int, int]:
        """Return the bytes of a column that are decoded as a whole, and those that reading holds."""
        parts = zip(self.parts, self.tables, strict=True)
        try:
            part, table = max(parts, key=lambda pair: pair[1].group_bytes(column))
        except ColumnarError as error:
            raise self._damaged(self.path, column, error) from error
        with probe(part.path, element=self._name, site=user_site(), files=self._files) as (handle, now):
            if now != part.fingerprint:
                raise changed(part.path, part.fingerprint, now, element=self._name, site=user_site())
            try:
                unit = table.unit_bytes(column, self._files, handle)
            except ColumnarError as error:
                raise self._damaged(part.path, column, error) from error
            return unit, table.held_bytes(unit)

    def _damaged(self, path: str, column: Column, error: ColumnarError) -> SourceError:
        return SourceError(
            f"cannot read column {column.name!r} of {shown(path)}: {error}",
            element=self._name,
            site=user_site(),
            hint="write the file again",
        )

    def __repr__(self) -> str:
        types = [f"{one.name}: {one.type}" for one in self.tables[0].columns]
        return self._shown(f" of {shown(self.path)}", types)


def _instead(kind: str) -> str:
    """Return what to do about a column whose type is not read."""
    leave = "or leave it out: fc.open(path)[[names]] is a table of some columns"
    if "string" in kind or "dictionary" in kind:
        return f"write numbers for its texts, as pandas.factorize(column)[0] gives them, {leave}"
    return f"cast it with what has written it, {leave}"


def _check_fill(fill: Any, column: Column, name: str | None) -> None:
    if fill is None:
        return
    kinds = {"b": (bool,), "i": (int,), "u": (int,)}.get(column.dtype.kind if column.dtype else "f", (int, float))
    is_bool = isinstance(fill, bool)
    is_known = isinstance(fill, kinds) and (not is_bool or kinds == (bool,))
    if is_known and (is_bool or column.dtype is None or _holds(column.dtype, fill)):
        return
    raise SpecError(
        f"cannot put fill= for nulls of column {column.name!r}",
        element=name,
        site=user_site(),
        expected=f"a number of {column.type}, or a mapping from columns to numbers",
        got=short_repr(fill),
    )


def _holds(dtype: np.dtype, number: int | float) -> bool:
    """Check whether a dtype of integers or floats can hold a number without an overflow."""
    if isinstance(number, float) and not math.isfinite(number):
        return dtype.kind == "f"
    limits = np.iinfo(dtype) if dtype.kind in "iu" else np.finfo(dtype)
    return int(limits.min) <= number <= int(limits.max)


def open_table(path: str, kind: str, *, fill: Any, name: str | None, files: Files) -> FileTable:
    """Open a Parquet or Arrow file, or a folder of them, in the order of their names.

    Only footers are read, and of Arrow files how long their batches are.

    Raises:
        SourceError: if one is none such, or is damaged, or there is none.
    """
    _pyarrow.require()
    files = layer_of(path, files)
    with source_errors("open", path, element=name, site=user_site()):
        is_folder = os.path.isdir(path) if files.local else files.is_folder(path)
        names = files.list_folder(path) if is_folder else []
    paths = [path]
    if is_folder:
        # Hidden names are those of programs that have not ended.
        paths = [os.path.join(path, one) for one in names if one.endswith(_SUFFIXES[kind]) and one[0] not in "._"]
        if not paths:
            raise SourceError(
                f"cannot open {shown(path)}: it is a folder without {' or '.join(_SUFFIXES[kind])} files",
                element=name,
                site=user_site(),
                expected="a file, or a folder of files of one table",
            )
    parts = [_open_part(one, kind, name=name, files=files) for one in paths]
    return FileTable(path, kind, parts, fill=fill, name=name, files=files)


def open_parts(paths: Sequence[str], kind: str, *, fill: Any, name: str | None, files: Files) -> FileTable:
    """Open files as one table, in the order given; see `open_table`."""
    first, *others = (open_table(path, kind, fill=fill, name=name, files=files) for path in paths)
    return first.joined(others) if others else first


def _open_part(path: str, kind: str, *, name: str | None, files: Files) -> tuple[ColumnFile, TableFile]:
    with probe(path, element=name, site=user_site(), files=files) as (handle, fingerprint):
        try:
            table = open_columns(files, handle, kind)
        except ColumnarError as error:
            raise SourceError(
                f"cannot open {shown(path)}: {error}",
                element=name,
                site=user_site(),
                expected="a Parquet file" if kind == "parquet" else "an Arrow IPC file",
            ) from error
    return ColumnFile(path, table.groups, fingerprint, table.footer), table
