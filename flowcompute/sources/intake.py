"""Batches or items of a user's iterable, checked, converted and packed into the buffer of a reader."""

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


class Intake:
    """Packs what an iterable yields into an output buffer, in order.

    Small batches cost about half a microsecond: those of dtype and shape of the one before need
    three comparisons and `tobytes`, which also lets the iterable use its array again; they are
    cast and copied many at once. What does not fit the buffer is kept for the next one.
    """

    def __init__(self, spec: Spec, *, items: bool, element: str, site: Site | None) -> None:
        # NumPy has one object for each of its dtypes, which makes the comparison in `take` cheap.
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
        self._held = 0  # records in `_joined`
        self._goal = 0  # as many are written at once
        # Batches of this dtype and shape need no further look.
        self._source = self._dtype
        self._shape: tuple[int, ...] | None = None
        self._records = 0
        self._packers = _packers(self._dtype) if items and spec.shape == () else {}

    @property
    def next_record(self) -> int:
        """Index of the record after those taken into the present buffer."""
        return self._first + self._filled + self._held

    def begin(self, out: np.ndarray, first: int) -> bool:
        """Fill `out`, whose first record is number `first`; returns whether it is full already."""
        self._out, self._first, self._filled = out, first, 0
        rest, self._rest = self._rest, None
        self._set_goal()
        return len(out) == 0 if rest is None else self._place(rest)

    def take(self, value: Any) -> bool:
        """Take what the iterable yielded; returns whether the buffer is full.

        Raises:
            SourceError: if it is not a batch (or item) of the declared shape and dtype.
        """
        if type(value) is np.ndarray and value.dtype is self._source and value.shape == self._shape:
            return self._hold(value.tobytes(), self._records)
        pack = self._packers.get(type(value))
        if pack is not None:
            if self._source is not self._dtype:
                self._flush()
                self._source, self._shape = self._dtype, None
            # What does not fit the dtype goes on to be judged below.
            with contextlib.suppress(struct.error, OverflowError):
                return self._hold(pack(value), 1)
        array = self._checked(value)
        records = len(array)
        if not 0 < records * self._item_bytes <= _SMALL_BYTES:
            self._flush()
            return self._place(array)
        if array.dtype is not self._source:
            self._flush()
            self._source = array.dtype
        self._shape = self._item_shape if self._items else array.shape
        self._records = records
        return self._hold(array.tobytes(), records)

    def _hold(self, data: bytes, records: int) -> bool:
        self._joined.append(data)
        self._held += records
        return self._held >= self._goal and self._flush()

    def end(self) -> int:
        """Write what is held; returns how many records the buffer has."""
        self._flush()
        filled, self._filled = self._filled, 0
        self._out = self._out[:0]
        return filled

    def _set_goal(self) -> None:
        self._goal = min(len(self._out) - self._filled, _JOIN_BYTES // max(self._item_bytes, 1) + 1)

    def _flush(self) -> bool:
        if self._held:
            data = np.frombuffer(b"".join(self._joined), np.uint8).view(self._source)
            records = data.reshape(self._held, *self._item_shape)
            self._joined.clear()
            self._held = 0
            self._place(records)
        return self._filled == len(self._out)

    def _place(self, records: np.ndarray) -> bool:
        fits = min(len(records), len(self._out) - self._filled)
        # A wide float beyond the range of a narrow one becomes infinite, as in an `astype` of the graph.
        with np.errstate(all="ignore"):
            self._out[self._filled : self._filled + fits] = records[:fits]
        self._filled += fits
        if fits < len(records):
            self._rest = records[fits:]
        self._set_goal()
        return self._filled == len(self._out)

    def _checked(self, value: Any) -> np.ndarray:
        """What was yielded as records of a dtype that may be cast to the declared one."""
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
        """Judge the dtype by `same_kind`; Python's own integers may be unsigned, and integers must keep their value."""
        source, target = array.dtype, self._dtype
        if source == target:
            # In native byte order, which equality of dtypes implies, and with NumPy's one object for it.
            return array if source is target else array.view(target)
        integers = source.kind in "iu" and target.kind in "iu"
        if not (integers and weak) and not _can_cast(source, target):
            self._refuse(f"dtype {target.name} or one that casts to it safely", f"dtype {source.name}")
        if not integers or np.can_cast(source, target):
            return array
        if array.size:
            low, high, limits = int(array.min()), int(array.max()), np.iinfo(target)
            if low < limits.min or high > limits.max:
                self._refuse(f"integers that fit {target.name}", f"{low if low < limits.min else high}")
        return array.astype(target)

    def _refuse(self, expected: str, got: str) -> NoReturn:
        raise self._error(expected, got)

    def _error(self, expected: str, got: str) -> SourceError:
        record = self.next_record
        return SourceError(
            "the iterable yielded something else than was declared",
            element=self._element,
            site=self._site,
            records=(record, record + 1),
            expected=expected,
            got=got,
            hint="shape= is the shape of one item; "
            + ("with items=True it yields items" if self._items else "yield batches, or say items=True"),
        )


class DroppingIntake(Intake):
    """An intake that drops what is not as declared, and counts it by its place among all that was yielded."""

    def __init__(self, spec: Spec, *, items: bool, skip_counter: SkipCounter, site: Site | None) -> None:
        super().__init__(spec, items=items, element=skip_counter.element, site=site)
        self._skip_counter = skip_counter
        self._yielded = 0

    def take(self, value: Any) -> bool:
        """Take what the iterable yielded, or drop it; returns whether the buffer is full."""
        full = False
        try:
            full = super().take(value)
        except SourceError as error:
            self._skip_counter.add(self._yielded, error, (value,))
        self._yielded += 1
        return full

    def end(self) -> int:
        """As everywhere; what was dropped is written down."""
        self._skip_counter.flush()
        return super().end()


def _can_cast(source: np.dtype, target: np.dtype) -> bool:
    if BFLOAT16 not in (source, target):
        return bool(source.kind in "biuf" and np.can_cast(source, target, "same_kind"))
    numbers = source.kind in "iuf" or source in (BOOL, BFLOAT16)
    return numbers and (target.kind == "f" or target == BFLOAT16)


def _packers(dtype: np.dtype) -> dict[type, Callable[[Any], bytes]]:
    """How single numbers of some types become bytes of a dtype at once; they raise where the value does not fit."""
    code = {"f2": "e", "f4": "f", "f8": "d", "i1": "b", "i2": "h", "i4": "i", "i8": "q",
            "u1": "B", "u2": "H", "u4": "I", "u8": "Q", "b1": "?"}.get(dtype.str[1:])  # fmt: skip
    if code is None:
        return {dtype.type: dtype.type.tobytes}
    own = {"f": float, "i": int, "u": int, "b": bool}[dtype.kind]
    return {own: struct.Struct("=" + code).pack, dtype.type: dtype.type.tobytes}
