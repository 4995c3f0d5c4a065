"""What an open file of columns is: groups of records, decoded a slice at a time."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

import numpy as np

from flowcompute.files import Files
from flowcompute.imports import dataclass

SLICE_BYTES = 1 << 18
"""Bytes of a slice of a column that is decoded at a time."""
REQUEST_BYTES = 1 << 23
"""Bytes of a column that are read from a store at a time. None are beyond the column's own."""


class ColumnarError(Exception):
    """A file that is damaged, or holds what is not read. Its text says why."""


@dataclass(frozen=True)
class Column:
    """A column of a file.

    Attributes:
        name: its name.
        dtype, item: of its numbers, and the shape of an item; None where they are not read.
        type: its type in words.
        position: its number among the columns.
    """

    name: str
    dtype: np.dtype | None
    item: tuple[int, ...]
    type: str
    position: int


class TableFile(ABC):
    """An open file of columns.

    Attributes:
        columns: in their order.
        groups: records of each group of records that is read from its begin on.
        footer: what was read when it was opened, by which it is opened again in the same state.
    """

    columns: tuple[Column, ...]
    groups: tuple[int, ...]
    footer: Any

    @abstractmethod
    def slices(self, column: Column, group: int, fill: Any, unit_bytes: int) -> Iterator[np.ndarray]:
        """Yield the numbers of a column in a group, a slice at a time.

        Args:
            column: which.
            group: number of the group.
            fill: number of nulls; None where they are refused.
            unit_bytes: the most that is decoded as a whole.

        Raises:
            ColumnarError: if they are damaged, or nulls.
            OSError: as the system does.
        """

    def lies_at(self, column: Column, group: int) -> int | None:  # noqa: ARG002
        """Return where the numbers of a column lie in the file as they do in memory, or None where they are decoded.

        Raises:
            ColumnarError, OSError: as `slices` does.
        """
        return None

    @abstractmethod
    def group_bytes(self, column: Column) -> int:
        """Return the most bytes that the file says a column has in a group."""

    @abstractmethod
    def unit_bytes(self, column: Column, files: Files, handle: int) -> int:
        """Return the most bytes of a column that are to be decoded as a whole. For that the file is looked into.

        Args:
            column: which.
            files, handle: the file, which is open again.

        Raises:
            ColumnarError, OSError: as `slices` does.
        """

    @abstractmethod
    def held_bytes(self, unit_bytes: int) -> int:
        """Return the bytes that reading a column holds whose units have so many."""
