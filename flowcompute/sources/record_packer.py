"""Packing of a user's batches or items: they are checked, converted and copied into the buffer of a reader."""

from __future__ import annotations

import contextlib
import struct
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from flowcompute.elements.policies import SkipCounter
from flowcompute.errors import Site, SourceError
from flowcompute.spec import BFLOAT16, BOOL, SUPPORTED_DTYPES, Spec

_SMALL_BYTES = 4096  # batches up to this size are joined before they are copied
_JOIN_BYTES = 1 << 20  # so many bytes of them at once
_DTYPE = "say dtype= as it is yielded; .astype casts the stream"


class RecordPacker:
    """Packer of the values that an iterable yields into an output buffer, in order.

    A small batch costs about half a microsecond. If it has the dtype and shape of the one before, it needs
    three comparisons and `tobytes`. The iterable may then use its array again. Many small batches are cast and
    copied at once. Records that do not fit the buffer are kept for the next one.
    """

    def __init__(self, spec: Spec, *, items: bool, element: str, site: Site | None) -> None:
        # NumPy has one object for each of its dtypes, so that `take` may compare identities.
        self._dtype = next(dtype for dtype in SUPPORTED_DTYPES if dtype == spec.dtype)
        self._item_shape = spec.shape
        self._item_bytes = spec.item_bytes
        self._items = items
        self._element = element
        self._site = site
        self._out = np.empty((0, *spec.shape), spec.dtype)
        self._filled = 0  # records in `_out`
        self._first = 0  # record index of its start
        self._rest: np.ndarray | None = None  # records that did not fit
        self._joined: list[bytes] = []
        self._joined_records = 0  # records in `_joined`
        self._flush_records = 0  # records that are written at once
        # Batches of this dtype and shape need no further check.
        self._source = self._dtype
        self._shape: tuple[int, ...] | None = None
        self._records = 0
        self._packers = _packers(self._dtype) if items and spec.shape == () else {}

    @property
    def next_record(self) -> int:
        """Index of the record after those taken into the present buffer."""
        return self._first + self._filled + self._joined_records

    def begin(self, out: np.ndarray, first: int) -> bool:
        """Begin to fill `out`, whose first record has index `first`, and return whether it is full already."""
        self._out, self._first, self._filled = out, first, 0
        rest, self._rest = self._rest, None
        self._update_flush_records()
        return len(out) == 0 if rest is None else self._copy_records(rest)

    def take(self, value: Any) -> bool:
        """Take a value that the iterable yielded and return whether the buffer is full.

        Raises:
            SourceError: if it is not a batch (or item) of the declared shape and dtype.
        """
        if type(value) is np.ndarray and value.dtype is self._source and value.shape == self._shape:
            return self._append(value.tobytes(), self._records)
        pack = self._packers.get(type(value))
        if pack is not None:
            if self._source is not self._dtype:
                self._flush()
                self._source, self._shape = self._dtype, None
            # A value that does not fit the dtype is checked below.
            with contextlib.suppress(struct.error, OverflowError):
                return self._append(pack(value), 1)
        array = self._checked(value)
        records = len(array)
        if not 0 < records * self._item_bytes <= _SMALL_BYTES:
            self._flush()
            return self._copy_records(array)
        if array.dtype is not self._source:
            self._flush()
            self._source = array.dtype
        self._shape = self._item_shape if self._items else array.shape
        self._records = records
        return self._append(array.tobytes(), records)

    def _append(self, data: bytes, records: int) -> bool:
        self._joined.append(data)
        self._joined_records += records
        return self._joined_records >= self._flush_records and self._flush()

    def end(self) -> int:
        """Write the records that are held back and return the number of records in the buffer."""
        self._flush()
        filled, self._filled = self._filled, 0
        self._out = self._out[:0]
        return filled

    def _update_flush_records(self) -> None:
        self._flush_records = min(len(self._out) - self._filled, _JOIN_BYTES // max(self._item_bytes, 1) + 1)

    def _flush(self) -> bool:
        if self._joined_records:
            data = np.frombuffer(b"".join(self._joined), np.uint8).view(self._source)
            records = data.reshape(self._joined_records, *self._item_shape)
            self._joined.clear()
            self._joined_records = 0
            self._copy_records(records)
        return self._filled == len(self._out)

    def _copy_records(self, records: np.ndarray) -> bool:
        fits = min(len(records), len(self._out) - self._filled)
        # A wide float beyond the range of a narrow one becomes infinite, as in an `astype` of the graph.
        with np.errstate(all="ignore"):
            self._out[self._filled : self._filled + fits] = records[:fits]
        self._filled += fits
        if fits < len(records):
            self._rest = records[fits:]
        self._update_flush_records()
        return self._filled == len(self._out)

    def _checked(self, value: Any) -> np.ndarray:
        """Return a yielded value as records of a dtype that may be cast to the declared one."""
        known = type(value) is np.ndarray and value.dtype is self._source and not self._items
        if known and value.ndim and value.shape[1:] == self._item_shape:
            return value  # type: ignore[no-any-return]
        weak = isinstance(value, (bool, int, float, list, tuple))
        if isinstance(value, np.ma.MaskedArray):
            self._refuse("a plain array", "a masked array, which would lose its mask")
        try:
            array = np.asarray(value)
        except Exception as error:
            raise self._error("an array of numbers", f"{type(value).__name__}: {error}") from error
        if weak and not self._items and array.shape == (0,):
            return np.empty((0, *self._item_shape), self._dtype)
        fits = array.shape == self._item_shape if self._items else array.shape[1:] == self._item_shape and array.ndim
        if not fits:
            inner = ", ".join(map(str, self._item_shape))
            expected = f"an item of shape {self._item_shape}" if self._items else f"a batch of shape (k, {inner})"
            self._refuse(expected, f"shape {array.shape}")
        cast = self._castable(array, weak=weak)
        return cast[np.newaxis] if self._items else cast

    def _castable(self, array: np.ndarray, *, weak: bool) -> np.ndarray:
        """Check the dtype by `same_kind` and return the array, cast where that is needed.

        Python's own integers may become unsigned, and integers must keep their value.
        """
        source, target = array.dtype, self._dtype
        if source == target:
            # Equal dtypes imply native byte order. The view has NumPy's one object for the dtype.
            return array if source is target else array.view(target)
        integers = source.kind in "iu" and target.kind in "iu"
        if not (integers and weak) and not _can_cast(source, target):
            self._refuse(f"dtype {target.name} or one that casts to it safely", f"dtype {source.name}", _DTYPE)
        if not integers or np.can_cast(source, target):
            return array
        if array.size:
            low, high, limits = int(array.min()), int(array.max()), np.iinfo(target)
            if low < limits.min or high > limits.max:
                self._refuse(f"integers that fit {target.name}", f"{low if low < limits.min else high}", _DTYPE)
        return array.astype(target)

    def _refuse(self, expected: str, got: str, hint: str | None = None) -> NoReturn:
        raise self._error(expected, got, hint)

    def _error(self, expected: str, got: str, hint: str | None = None) -> SourceError:
        record = self.next_record
        shape = "with items=True it yields items" if self._items else "yield batches, or say items=True"
        return SourceError(
            "cannot take what the iterable yielded: it differs from what was declared",
            element=self._element,
            site=self._site,
            records=(record, record + 1),
            expected=expected,
            got=got,
            hint=hint or f"shape= is the shape of one item; {shape}",
        )


class SkippingPacker(RecordPacker):
    """A packer that drops values other than declared, and counts each by its index among all yielded values."""

    def __init__(self, spec: Spec, *, items: bool, skip_counter: SkipCounter, site: Site | None) -> None:
        super().__init__(spec, items=items, element=skip_counter.element, site=site)
        self._skip_counter = skip_counter
        self._yielded = 0

    def take(self, value: Any) -> bool:
        """Take a value that the iterable yielded, or drop it, and return whether the buffer is full."""
        full = False
        try:
            full = super().take(value)
        except SourceError as error:
            self._skip_counter.add(self._yielded, error, (value,))
        self._yielded += 1
        return full

    def end(self) -> int:
        """Write the records that are held back and report what was dropped."""
        self._skip_counter.flush()
        return super().end()


def _can_cast(source: np.dtype, target: np.dtype) -> bool:
    if BFLOAT16 not in (source, target):
        return bool(source.kind in "biuf" and np.can_cast(source, target, "same_kind"))
    numbers = source.kind in "iuf" or source in (BOOL, BFLOAT16)
    return numbers and (target.kind == "f" or target == BFLOAT16)


def _packers(dtype: np.dtype) -> dict[type, Callable[[Any], bytes]]:
    """Return, by type, functions that pack a single number as bytes of a dtype.

    They raise where the value does not fit.
    """
    code = {"f2": "e", "f4": "f", "f8": "d", "i1": "b", "i2": "h", "i4": "i", "i8": "q",
            "u1": "B", "u2": "H", "u4": "I", "u8": "Q", "b1": "?"}.get(dtype.str[1:])  # fmt: skip
    if code is None:
        return {dtype.type: dtype.type.tobytes}
    own = {"f": float, "i": int, "u": int, "b": bool}[dtype.kind]
    return {own: struct.Struct("=" + code).pack, dtype.type: dtype.type.tobytes}
