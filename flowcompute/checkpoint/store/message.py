"""Plain data and arrays as one piece of bytes, for another process: an envelope, and the arrays behind it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from flowcompute.checkpoint.store.envelope import seal, unseal
from flowcompute.checkpoint.store.values import ArrayPlace, DamagedError, empty_array, native

_SIZE_BYTES = 8


def pack(fields: Mapping[str, Any]) -> bytes:
    """Return entries as bytes, arrays included.

    Raises:
        CheckpointError: if they cannot be stored.
    """
    sealed = seal(fields)
    return b"".join([len(sealed.data).to_bytes(_SIZE_BYTES, "little"), sealed.data, *sealed.arrays])


def unpack(data: bytes) -> dict[str, Any]:
    """Return the entries that `pack` was given, lists in place of tuples. None of the bytes is trusted.

    Raises:
        DamagedError: if `pack` did not make these bytes.
        CheckpointError: if a newer version made them.
    """
    first = _SIZE_BYTES + int.from_bytes(data[:_SIZE_BYTES], "little")
    if len(data) < _SIZE_BYTES or first > len(data):
        raise DamagedError("the bytes end within the message")
    contents = memoryview(data)[first:]

    def take(place: ArrayPlace) -> np.ndarray:
        part = contents[place.offset : place.offset + place.size_bytes]
        if len(part) != place.size_bytes:
            raise DamagedError("the bytes end within an array")
        if hashlib.sha256(part).digest() != place.sha256:
            raise DamagedError("an array has another checksum")
        array, own = empty_array(place.dtype, place.shape)
        own[:] = part
        return native(array)

    decoded = unseal(data[_SIZE_BYTES:first], take)
    if decoded.arrays_bytes != len(contents):
        raise DamagedError("there are bytes after the last array")
    return dict(decoded.value)
