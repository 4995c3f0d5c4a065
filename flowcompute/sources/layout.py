"""Places of records in a file, and the ways to read them into memory."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from flowcompute.files import Files
from flowcompute.imports import dataclass
from flowcompute.spec import BOOL, Spec, Stream

_SCRATCH_BYTES = 1 << 20  # column pieces of Fortran files, and pieces swapped while they are in the cache
_GAP_BYTES = 1 << 13  # between two records that are read and dropped: another call would cost more
_SHORT_COLUMN_BYTES = 1 << 14  # reading so many bytes costs about as much as the call
_MIN_PIECE = 1024  # numbers of a Fortran column that are read at once, where a batch has that many


@dataclass(frozen=True)
class Layout:
    """Place of the records of one file.

    Attributes:
        dtype: of a number as stored, in its byte order.
        item_shape: shape of a record.
        length: number of records.
        offset: bytes before the first record.
        fortran: whether the whole array is stored in Fortran order, axis 0 fastest.
    """

    dtype: np.dtype
    item_shape: tuple[int, ...]
    length: int
    offset: int
    fortran: bool = False

    @property
    def spec(self) -> Spec:
        """Stream that the records make."""
        return Spec(self.native, self.item_shape, Stream(self.length))

    @property
    def native(self) -> np.dtype:
        """Dtype in this machine's byte order."""
        return self.dtype if self.dtype.isnative else self.dtype.newbyteorder("=")

    @property
    def item_numbers(self) -> int:
        """Numbers in a record."""
        return math.prod(self.item_shape)

    @property
    def item_bytes(self) -> int:
        """Bytes of a record."""
        return self.item_numbers * self.dtype.itemsize

    @property
    def is_columns(self) -> bool:
        """True where a record is scattered over the file."""
        # Of an empty array, or one with at most one axis longer than 1, both orders have the same bytes.
        shape = (self.length, *self.item_shape)
        return self.fortran and 0 not in shape and sum(size > 1 for size in shape) > 1

    @property
    def copy_reason(self) -> str | None:
        """Reason why the records cannot be used in the mapped file, or None when they can."""
        if self.is_columns:
            return "the file is in Fortran order"
        if not self.dtype.isnative:
            return f"the file is in the other byte order ({self.dtype.str})"
        if self.offset % self.dtype.itemsize:
            return f"the data start at byte {self.offset}, which is not aligned for {self.dtype.name}"
        return None

    def read(self, files: Files, handle: int, start: int, out: np.ndarray) -> bool:
        """Fill `out` (native, C-contiguous) with records from `start`. Return False when the file ends before that."""
        if out.size == 0:
            return True
        if self.is_columns:
            return self._read_columns(files, handle, start, out)
        return self._read_numbers(files, handle, start * self.item_numbers, out.reshape(-1))

    def gather(
        self,
        files: Files,
        handle: int,
        mapped: np.ndarray | None,
        records: np.ndarray,
        order: np.ndarray,
        out: np.ndarray,
    ) -> bool:
        """Fill places of `out` with records, in the order of the file. Return False when it ends before that.

        Args:
            files: the file layer.
            handle: the open file.
            mapped: all records where the file is mapped.
            records: an index for each place of `out`.
            order: the places to fill, so that `records[order]` ascends.
            out: native and C-contiguous.
        """
        ordered = records[order]
        at_once = max(1, _SCRATCH_BYTES // max(1, self.item_bytes))
        if mapped is not None:
            for first in range(0, len(order), at_once):
                part = slice(first, first + at_once)
                out[order[part]] = mapped[ordered[part]]
            return True
        # In a file in Fortran order a gap lies in every column.
        gap = 0 if self.is_columns else _GAP_BYTES // max(1, self.item_bytes)
        for first, last in _runs(ordered, gap, at_once):
            begin = int(ordered[first])
            alone = out[order[first] : order[first] + 1]
            span = (
                alone if last - first == 1 else np.empty((ordered[last - 1] + 1 - begin, *self.item_shape), out.dtype)
            )
            if not self.read(files, handle, begin, span):
                return False
            if span is not alone:
                out[order[first:last]] = span[ordered[first:last] - begin]
        return True

    def _read_numbers(self, files: Files, handle: int, first: int, flat: np.ndarray) -> bool:
        """Fill `flat` with the numbers from index `first` of the file. Return False when the file ends before that."""
        size = self.dtype.itemsize
        step = flat.size if self.dtype.isnative else _SCRATCH_BYTES // size
        for begin in range(0, flat.size, step):
            piece = flat[begin : begin + step]
            data = piece.view(np.uint8)
            if files.read_into(handle, data.data, self.offset + (first + begin) * size) != data.size:
                return False
            if not self.dtype.isnative:
                piece.byteswap(inplace=True)
        return True

    def _read_columns(self, files: Files, handle: int, start: int, out: np.ndarray) -> bool:
        """Read a Fortran file, in which column k of the flattened item begins at number `length * k`.

        The columns pass through about a MiB of memory and are transposed by a copy. Short columns are read
        whole, many at once. Long ones are read piece by piece, which is slow when an item has many numbers.
        """
        # Items are flattened in Fortran order, as the file counts columns: the item axes reversed, axis 0 kept.
        by_column = out.transpose(0, *range(out.ndim - 1, 0, -1))
        limit = _SCRATCH_BYTES // self.dtype.itemsize
        if self.length * self.dtype.itemsize <= _SHORT_COLUMN_BYTES:
            return self._read_whole_columns(files, handle, start, by_column, limit)
        return self._read_column_pieces(files, handle, start, by_column, limit)

    def _read_whole_columns(self, files: Files, handle: int, start: int, by_column: np.ndarray, limit: int) -> bool:
        columns, stop = self.item_numbers, start + len(by_column)
        width = min(columns, limit // self.length)
        scratch = np.empty((width, self.length), self.native)
        for left in range(0, columns, width):
            block = scratch[: min(width, columns - left)]
            if not self._read_numbers(files, handle, self.length * left, block.reshape(-1)):
                return False
            _place_columns(by_column, left, block[:, start:stop])
        return True

    def _read_column_pieces(self, files: Files, handle: int, start: int, by_column: np.ndarray, limit: int) -> bool:
        columns, count = self.item_numbers, len(by_column)
        rows = min(count, max(limit // columns, _MIN_PIECE))
        width = min(columns, max(limit // rows, 1))
        scratch = np.empty((width, rows), self.native)
        for top in range(0, count, rows):
            bottom = min(top + rows, count)
            for left in range(0, columns, width):
                block = scratch[: min(width, columns - left), : bottom - top]
                for k, piece in enumerate(block, left):
                    if not self._read_numbers(files, handle, self.length * k + start + top, piece):
                        return False
                _place_columns(by_column[top:bottom], left, block)
        return True


def _runs(ordered: np.ndarray, gap: int, most: int) -> list[tuple[int, int]]:
    """Return runs of records that are read at once: bounds of places in `ordered`.

    Args:
        ordered: ascending records.
        gap: records between two of them that are read, too.
        most: records from the first to the last of a run, both included.
    """
    ends = [*(np.flatnonzero(np.diff(ordered) > gap + 1) + 1).tolist(), len(ordered)]
    runs, first = [], 0
    for end in ends:
        while first < end:
            stop = min(end, int(np.searchsorted(ordered, ordered[first] + most)))
            runs.append((first, stop))
            first = stop
    return runs


def _place_columns(by_column: np.ndarray, left: int, block: np.ndarray) -> None:
    """Store consecutive columns, the first of which is number `left`. Each row of `block` is a column."""
    where: tuple[Any, ...] = np.unravel_index(np.arange(left, left + len(block)), by_column.shape[1:])
    by_column[(slice(None), *where)] = block.T


def first_bad_bool(array: np.ndarray) -> tuple[int, int] | None:
    """Return the index of the first record with a byte that is neither 0 nor 1, and that byte.

    The result is None where there is no such byte, and for other dtypes.
    """
    if array.dtype != BOOL or array.size == 0:
        return None
    flat = array.reshape(-1).view(np.uint8)
    if flat.max() <= 1:
        return None
    index = int(np.argmax(flat > 1))
    return index // (array.size // len(array)), int(flat[index])
