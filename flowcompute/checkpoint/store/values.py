"""What the body of a generation may hold beside plain Python values, and how much of it.

A body is stored as msgpack with five extension types. Arrays lie in a file of their own, one after the other, and the
bytes say where, how long, and with which SHA-256. There are no class names, no code, no references.
"""

from __future__ import annotations

import hashlib
import math
import re
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np

from flowcompute.errors import CheckpointError
from flowcompute.spec import BFLOAT16, SUPPORTED_DTYPES

MAX_DEPTH = 64
"""How deep lists and maps may be nested."""

MAX_VALUES = 4_000_000
"""How many values a body may hold, arrays counting as one: what is longer is an array."""

MAX_INT_BITS = 128

INT_BYTES = MAX_INT_BITS // 8 + 1
"""Bytes of a large integer; one more for the sign, so that numbers without one may have all their bits."""

DTYPES = {dtype.name: dtype for dtype in SUPPORTED_DTYPES}
"""The dtypes that arrays may have, by name."""


class Extension(IntEnum):
    """The msgpack extension types; their numbers are part of the format."""

    INTEGER = 1
    ARRAY = 2
    SCALAR = 3
    BLOB = 4
    MARK = 5


class DamagedError(CheckpointError):
    """Bytes of a checkpoint that are not what was written."""


class ArrayPlace(NamedTuple):
    """Where an array lies in the file of arrays."""

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
    """The part of a side file that counts: its first `size_bytes` bytes, and their SHA-256."""

    name: str
    size_bytes: int
    sha256: bytes


def side_name(name: str) -> str:
    """The name of a side file, which becomes part of a path.

    Raises:
        ValueError: if it is not made of up to 64 letters, digits, `-` and `_` of ASCII.
    """
    if not re.fullmatch(r"[A-Za-z0-9_-]{1,64}", name):
        raise ValueError(f"{name!r} is no name for a side file: letters, digits, '-' and '_' make one")
    return name


def blob_of(array: np.ndarray) -> tuple[Blob, memoryview]:
    """The reference to an array's content, and that content.

    Raises:
        CheckpointError: if its dtype cannot be stored.
    """
    name, data = contents_of(array, "")
    return Blob(hashlib.sha256(data).hexdigest(), DTYPES[name], array.shape), data


def empty_array(dtype: np.dtype, shape: tuple[int, ...]) -> tuple[np.ndarray, memoryview]:
    """A new array and its bytes, to be filled and then put in order by `native`.

    Raises:
        DamagedError: if there can be no such array.
    """
    try:
        array = np.empty(shape, dtype)
    except (ValueError, MemoryError) as error:
        raise DamagedError(f"an array of shape {shape} cannot be made: {error}") from error
    return array, _bytes_of(array)


def native(array: np.ndarray) -> np.ndarray:
    """An array whose bytes were read, which are little endian, in the order of this machine.

    Raises:
        DamagedError: if a bool is neither 0 nor 1.
    """
    if array.dtype == np.bool_ and array.size and array.view(np.uint8).max() > 1:
        raise DamagedError("a bool is neither true nor false")
    return array if np.little_endian else array.byteswap(inplace=True)


def contents_of(array: np.ndarray, place: str) -> tuple[str, memoryview]:
    """The name of an array's dtype, and its bytes in C order and little endian."""
    if type(array) not in (np.ndarray, np.memmap):
        raise unfit(place, f"an array of type {type(array).__name__}", "store plain arrays")
    if array.dtype.name not in DTYPES:
        raise unfit(place, f"an array of dtype {array.dtype}", f"the dtypes are {', '.join(DTYPES)}")
    # Seen as an integer, bfloat16 has a byte order like any other.
    plain = array.view(np.uint16) if array.dtype == BFLOAT16 else array
    ordered = np.ascontiguousarray(plain, dtype=plain.dtype.newbyteorder("<"))
    return array.dtype.name, _bytes_of(ordered)


def unfit(place: str, what: str, hint: str) -> CheckpointError:
    """The error for a value that cannot be stored."""
    return CheckpointError(f"{place.lstrip('.') or 'the value'} cannot be stored in a checkpoint", got=what, hint=hint)


def _bytes_of(array: np.ndarray) -> memoryview:
    plain: Any = array.reshape(-1).view(np.uint8)
    return memoryview(plain)
