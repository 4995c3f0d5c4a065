"""Specs of values: dtype, item shape, and the stream axis if there is one."""

from __future__ import annotations

import math
from dataclasses import dataclass

import ml_dtypes
import numpy as np
import numpy.typing as npt

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
FLOAT16 = np.dtype(np.float16)
FLOAT32 = np.dtype(np.float32)
FLOAT64 = np.dtype(np.float64)
BOOL = np.dtype(np.bool_)
INT8 = np.dtype(np.int8)
INT32 = np.dtype(np.int32)
UINT8 = np.dtype(np.uint8)
INT64 = np.dtype(np.int64)
UINT64 = np.dtype(np.uint64)

SUPPORTED_DTYPES: tuple[np.dtype, ...] = (
    BOOL,
    *(np.dtype(name) for name in ("int8", "int16", "int32", "int64")),
    *(np.dtype(name) for name in ("uint8", "uint16", "uint32", "uint64")),
    FLOAT16,
    BFLOAT16,
    FLOAT32,
    FLOAT64,
)
"""Every dtype an element may have, in native byte order."""


_SUPPORTED = frozenset(SUPPORTED_DTYPES)


def is_float(dtype: np.dtype) -> bool:
    """Check whether `dtype` is a floating-point dtype, bfloat16 included."""
    return dtype.kind == "f" or dtype == BFLOAT16


_TEXTS = "numbers stand for texts: np.unique(array, return_inverse=True)[1]"
INSTEAD = {
    "M": 'array.view("int64") counts the dates in their unit',
    "m": 'array.view("int64") counts the times in their unit',
    "c": "array.real and array.imag are two arrays of real numbers",
    "U": _TEXTS,
    "S": _TEXTS,
    "T": _TEXTS,
    "O": f"array.astype(float) where all are numbers; {_TEXTS}",
    "V": 'array["name"] is one field of a structured array',
}
"""Replacements of arrays whose dtypes elements do not have, by the kinds of these."""


def parse_dtype(dtype: npt.DTypeLike) -> np.dtype:
    """Return the dtype that `dtype` denotes, in native byte order; `"bfloat16"` is understood.

    Raises:
        TypeError: if flowcompute does not support it.
    """
    # A dtype that names the machine's own order is equal to one that does not, and is written otherwise.
    if isinstance(dtype, np.dtype) and dtype.byteorder in "=|" and dtype in _SUPPORTED:
        return dtype
    try:
        parsed = BFLOAT16 if isinstance(dtype, str) and dtype == "bfloat16" else np.dtype(dtype)
        # StringDType ("T") raises where it is asked for an order of bytes.
        parsed = parsed if parsed == BFLOAT16 or parsed.kind == "T" else parsed.newbyteorder("=")
    except (AttributeError, KeyError, OverflowError, SyntaxError, ValueError) as error:
        # NumPy's parser of dtypes raises these, too, for what is none.
        raise TypeError(f"cannot use this dtype: {error}") from error
    if parsed not in SUPPORTED_DTYPES:
        names = ", ".join(supported.name for supported in SUPPORTED_DTYPES)
        raise TypeError(f"cannot use this dtype: {parsed} is not supported; supported are {names}")
    return parsed


def instead_of(dtype: object) -> str | None:
    """Return what stands for an array of a dtype that elements do not have; None for any other value."""
    return INSTEAD.get(dtype.kind) if isinstance(dtype, np.dtype) else None


@dataclass(frozen=True, slots=True)
class Stream:
    """The stream axis (axis 0): its length in items, or None while it is unknown."""

    length: int | None


@dataclass(frozen=True, slots=True)
class Spec:
    """Dtype and shape of a value.

    Attributes:
        dtype: the dtype of one number, native byte order.
        shape: the item shape of a stream; the whole shape of a resident value.
        stream: the stream axis, or None for a resident value.
    """

    dtype: np.dtype
    shape: tuple[int, ...]
    stream: Stream | None = None

    @property
    def is_stream(self) -> bool:
        """Flag that axis 0 is a stream axis."""
        return self.stream is not None

    @property
    def length(self) -> int | None:
        """Items in the stream; None while unknown and for resident values."""
        return None if self.stream is None else self.stream.length

    @property
    def full_shape(self) -> tuple[int | None, ...]:
        """Shape as an array: `(length, *item)` for a stream."""
        return self.shape if self.stream is None else (self.stream.length, *self.shape)

    @property
    def ndim(self) -> int:
        """Number of axes as an array."""
        return len(self.shape) + (self.stream is not None)

    @property
    def item_numbers(self) -> int:
        """Numbers in one item (in the whole value if it is resident)."""
        return math.prod(self.shape)

    @property
    def item_bytes(self) -> int:
        """Bytes of one item (of the whole value if it is resident)."""
        return self.item_numbers * self.dtype.itemsize

    def __str__(self) -> str:
        if self.stream is None:
            return f"{self.dtype.name}{format_shape(self.shape)}"
        return f"{self.dtype.name}{format_shape(self.full_shape)} stream"


def format_shape(shape: tuple[int | None, ...]) -> str:
    """Format a shape like `(1000, 96)` as text, with `?` for an unknown length."""
    inner = ", ".join("?" if size is None else str(size) for size in shape)
    return f"({inner},)" if len(shape) == 1 else f"({inner})"
