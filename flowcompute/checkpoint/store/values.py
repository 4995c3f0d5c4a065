"""Values that the body of a generation may hold beside plain Python values, and their limits.

A body is stored as msgpack with five extension types. Arrays lie in a file of their own, one after the other.
The msgpack bytes hold the offset, the size and the SHA-256 of each. They hold no class names, no code and no
references between values.
"""

from __future__ import annotations

import hashlib
import math
import re
from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np

from flowcompute.errors import CheckpointError
from flowcompute.imports import dataclass
from flowcompute.spec import BFLOAT16, SUPPORTED_DTYPES

MAX_DEPTH = 64
"""Number of levels that lists and maps may be nested."""

MAX_VALUES = 4_000_000
"""Number of values that a body may hold. An array counts as one, so longer lists are stored as arrays."""

MAX_INT_BITS = 128

INT_BYTES = MAX_INT_BITS // 8 + 1
"""Bytes of a large integer. One more holds the sign, so that unsigned numbers may use all their bits."""

DTYPES = {dtype.name: dtype for dtype in SUPPORTED_DTYPES}
"""Dtypes that arrays may have, by name."""


class Extension(IntEnum):
    """The msgpack extension types. Their numbers are part of the format."""

    INTEGER = 1
    ARRAY = 2
    SCALAR = 3
    BLOB = 4
    MARK = 5


class DamagedError(CheckpointError):
    """Bytes of a checkpoint that differ from what was written."""


class ArrayPlace(NamedTuple):
    """Place of an array in the file of arrays."""

    dtype: np.dtype
    shape: tuple[int, ...]
    offset: int
    size_bytes: int
    sha256: bytes


@dataclass(frozen=True, slots=True)
class Blob:
    """A reference to an immutable array that is stored once, by its content.

    Attributes:
        sha256: of its bytes in C order, little endian; hexadecimal.
        dtype, shape: of the array.
    """

    sha256: str
    dtype: np.dtype
    shape: tuple[int, ...]

    @property
    def size_bytes(self) -> int:
        """Bytes of the array."""
        return math.prod(self.shape) * self.dtype.itemsize


@dataclass(frozen=True, slots=True)
class SideMark:
    """Committed part of a side file: its first `size_bytes` bytes, and their SHA-256."""

    name: str
    size_bytes: int
    sha256: bytes


def side_name(name: str) -> str:
    """Return the name of a side file, checked since it becomes part of a path.

    Raises:
        ValueError: if it is not made of up to 64 letters, digits, `-` and `_` of ASCII.
    """
    if not re.fullmatch(r"[A-Za-z0-9_-]{1,64}", name):
        raise ValueError(f"cannot name a side file {name!r}: use up to 64 letters, digits, '-' and '_'")
    return name


def blob_of(array: np.ndarray) -> tuple[Blob, memoryview]:
    """Return the reference to an array's content, and that content.

    Raises:
        CheckpointError: if its dtype cannot be stored.
    """
    name, data = contents_of(array, "")
    return Blob(hashlib.sha256(data).hexdigest(), DTYPES[name], array.shape), data


def empty_array(dtype: np.dtype, shape: tuple[int, ...]) -> tuple[np.ndarray, memoryview]:
    """Return a new array and its bytes, which the caller fills and then passes through `native`.

    Raises:
        DamagedError: if such an array cannot be allocated.
    """
    try:
        array = np.empty(shape, dtype)
    except (ValueError, MemoryError) as error:
        raise DamagedError(f"cannot allocate an array of shape {shape}: {error}") from error
    return array, _bytes_of(array)


def native(array: np.ndarray) -> np.ndarray:
    """Return an array of little-endian bytes in this machine's byte order.

    Raises:
        DamagedError: if a bool is neither 0 nor 1.
    """
    if array.dtype == np.bool_ and array.size and array.view(np.uint8).max() > 1:
        raise DamagedError("a bool is neither true nor false")
    return array if np.little_endian else array.byteswap(inplace=True)


def contents_of(array: np.ndarray, place: str) -> tuple[str, memoryview]:
    """Return the name of an array's dtype, and its bytes in C order and little endian."""
    if type(array) not in (np.ndarray, np.memmap):
        raise cannot_store(place, f"an array of type {type(array).__name__}", "store plain arrays")
    if array.dtype.name not in DTYPES:
        raise cannot_store(place, f"an array of dtype {array.dtype}", f"the dtypes are {', '.join(DTYPES)}")
    # NumPy knows no byte order for bfloat16; as an integer it has one.
    plain = array.view(np.uint16) if array.dtype == BFLOAT16 else array
    ordered = np.ascontiguousarray(plain, dtype=plain.dtype.newbyteorder("<"))
    return array.dtype.name, _bytes_of(ordered)


def cannot_store(place: str, what: str, hint: str) -> CheckpointError:
    """Return the error for a value that cannot be stored."""
    return CheckpointError(f"cannot store {place.lstrip('.') or 'the value'} in a checkpoint", got=what, hint=hint)


def _bytes_of(array: np.ndarray) -> memoryview:
    plain: Any = array.reshape(-1).view(np.uint8)
    return memoryview(plain)
