"""`fc.Table`: the columns of a file by name, each a stream of the same length."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from flowcompute.elements import user_site
from flowcompute.errors import SourceError, SpecError, short_repr
from flowcompute.files import Files, Fingerprint, shown
from flowcompute.sources.columnar import _pyarrow
from flowcompute.sources.columnar._pyarrow import Column, ColumnarError, OpenTable, open_columns
from flowcompute.sources.columnar.column_source import ColumnSource
from flowcompute.sources.file_source import probe

_SHOWN = 20


class Table(Mapping[str, ColumnSource]):
    """Columns by name. `fc.open` makes it of a Parquet or Arrow file.

    `table["a"]` is a stream; only columns that a job uses are read. A column of a type that is not read is refused when
    it is asked for.

    Attributes:
        path: the file, as an absolute path.
        columns: names, in the order of the file.
        length: records of each column.
    """

    def __init__(
        self,
        path: str,
        kind: str,
        table: OpenTable,
        fingerprint: Fingerprint,
        fill: Any,
        name: str | None,
        files: Files,
    ) -> None:
        self.path, self._kind, self._table, self._fingerprint = path, kind, table, fingerprint
        self._fill, self._name, self._files = fill, name, files
        self._by_name: dict[str, list[Column]] = {}
        for column in table.columns:
            self._by_name.setdefault(column.name, []).append(column)
        self.columns = tuple(self._by_name)
        self.length = sum(table.groups)

    def __getitem__(self, name: str) -> ColumnSource:
        """Return a column as a stream.

        Raises:
            KeyError: if there is none of that name.
            SpecError: if columns of its type are not read, or two have the name.
        """
        if name not in self._by_name:
            listed = ", ".join(map(repr, self.columns[:_SHOWN])) + (", ..." if len(self.columns) > _SHOWN else "")
            raise KeyError(f"no column {short_repr(name)} in {shown(self.path)}; there are {listed or 'none'}")
        column, *others = self._by_name[name]
        if others or column.dtype is None:
            raise SpecError(
                f"cannot read column {name!r} of {shown(self.path)}"
                + (": several columns have that name" if others else ": it holds no plain numbers"),
                element=self._name,
                site=user_site(),
                expected="bools, integers, floats, or lists of one size of these",
                got=column.type,
                hint="cast it with what has written it, or leave it out",
            )
        fill = self._fill.get(name) if isinstance(self._fill, Mapping) else self._fill
        _check_fill(fill, column, self._name)
        return ColumnSource(
            self.path, self._kind, column, self._table, self._fingerprint, fill=fill, name=self._name, files=self._files
        )

    def __iter__(self) -> Iterator[str]:
        return iter(self.columns)

    def __len__(self) -> int:
        return len(self.columns)

    def __repr__(self) -> str:
        types = [f"{one.name}: {one.type}" for one in self._table.columns[:_SHOWN]]
        more = ", ..." if len(self._table.columns) > _SHOWN else ""
        return f"Table of {shown(self.path)}, {self.length} records ({', '.join(types)}{more})"


def _check_fill(fill: Any, column: Column, name: str | None) -> None:
    kinds = {"b": (bool,), "i": (int,), "u": (int,)}.get(column.dtype.kind if column.dtype else "f", (int, float))
    is_bool = isinstance(fill, bool)
    if fill is None or (isinstance(fill, kinds) and (not is_bool or kinds == (bool,))):
        return
    raise SpecError(
        f"cannot put fill= for nulls of column {column.name!r}",
        element=name,
        site=user_site(),
        expected=f"a number of {column.type}, or a mapping from columns to numbers",
        got=short_repr(fill),
    )


def open_table(path: str, kind: str, *, fill: Any, name: str | None, files: Files) -> Table:
    """Open a Parquet or Arrow file. Only its footer is read, and of Arrow files how long its batches are.

    Raises:
        SourceError: if it is none such, or is damaged.
    """
    _pyarrow.require()
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
    return Table(path, kind, table, fingerprint, fill, name, files)
