"""Tables: streams of one length, by their names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NoReturn, overload

import numpy as np

from flowcompute.elements.alignment import common_length
from flowcompute.elements.arguments import TABLE_ATTRIBUTES
from flowcompute.elements.calls import public
from flowcompute.elements.compute import as_element
from flowcompute.elements.element import Element
from flowcompute.elements.site import user_site
from flowcompute.errors import SpecError, short_repr

_SHOWN = 20


class Table(Mapping[str, Element]):
    """Columns by name, each a stream. `fc.table` makes it, and `fc.open` of a Parquet or Arrow file.

    `table["a"]` is a stream like any other: only columns that a job uses are read. `table[["a", "b"]]` is a table of
    some columns, `table[mask]` and `table[100:200]` have some records of all. `table >> fc.save("y.parquet")` writes
    all.

    Attributes:
        columns: names, in their order.
        length: records of each column; None where it is unknown.
    """

    columns: tuple[str, ...]
    length: int | None

    def __init__(self, columns: Mapping[str, Element], length: int | None) -> None:
        self._elements = dict(columns)
        self.columns, self.length = tuple(self._elements), length

    @overload
    def __getitem__(self, key: str) -> Element: ...
    @overload
    def __getitem__(self, key: list[str] | tuple[str, ...] | Element | np.ndarray | slice) -> Table: ...
    def __getitem__(self, key: Any) -> Element | Table:
        """Return a column as a stream, or a table of some columns, or of some records.

        Args:
            key: the name of a column; a list of names; or a mask or a slice of records, as streams take them.

        Raises:
            KeyError: if there is no column of that name.
            SpecError: if a column cannot be read, or records cannot be chosen so.
        """
        if isinstance(key, Element | np.ndarray | slice):
            return table({name: self._column(name)[key] for name in self.columns})
        if isinstance(key, list | tuple):
            return table({name: self._column(name) for name in key})
        return self._column(key)

    def _column(self, name: str) -> Element:
        """Return a column as a stream.

        Raises:
            KeyError: if there is none of that name.
        """
        self._check_known(name, "")
        return self._elements[name]

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> NoReturn:
            columns = self.__dict__.get("columns", ())
            hint = f"; use table[{name!r}]" if name in columns else ""
            hint = hint or (f"; use {TABLE_ATTRIBUTES[name]}" if name in TABLE_ATTRIBUTES else "")
            raise AttributeError(f"a table has no attribute {name!r}{hint}", name=name, obj=self)

    def __iter__(self) -> Iterator[str]:
        return iter(self.columns)

    def __len__(self) -> int:
        return len(self.columns)

    def __repr__(self) -> str:
        return self._shown("", [f"{name}: {one.spec.dtype.name}" for name, one in self._elements.items()])

    def _check_known(self, name: object, where: str) -> None:
        if name not in self.columns:
            listed = ", ".join(map(repr, self.columns[:_SHOWN])) + (", ..." if len(self.columns) > _SHOWN else "")
            raise KeyError(f"no column {short_repr(name)}{where}; there are {listed or 'none'}")

    def _shown(self, where: str, types: list[str]) -> str:
        more = ", ..." if len(types) > _SHOWN else ""
        records = "an unknown number of" if self.length is None else self.length
        return f"Table{where}, {records} records ({', '.join(types[:_SHOWN])}{more})"


@public
def table(columns: Mapping[str, Any]) -> Table:
    """Return streams as the columns of a table, which `>> fc.save("y.parquet")` writes.

    Args:
        columns: streams of one length by name, in the order of the table.

    Raises:
        SpecError: if a value is no stream, lengths differ, or there is none.
    """
    if not isinstance(columns, Mapping) or not columns or not all(isinstance(name, str) for name in columns):
        raise SpecError(
            "cannot make a table of this",
            element="table",
            site=user_site(),
            expected="a mapping of names to streams, at least one",
            got=short_repr(columns),
            hint='fc.table({"a": x, "b": y})',
        )
    elements = {name: as_element(one, "table") for name, one in columns.items()}
    for name, one in elements.items():
        if not one.spec.is_stream:
            raise SpecError(
                f"cannot use column {name!r}: it is no stream",
                element="table",
                site=user_site(),
                expected="a stream",
                got=str(one.spec),
                hint="save resident values as .npy, or several as .safetensors",
            )
    return Table(elements, common_length("table", list(elements.values())))
