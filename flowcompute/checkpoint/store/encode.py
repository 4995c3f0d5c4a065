"""Encoder of a checkpoint's format: plain data to bytes."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import field
from typing import Any

import msgpack
import numpy as np

from flowcompute.checkpoint.store.values import (
    INT_BYTES,
    MAX_DEPTH,
    MAX_INT_BITS,
    MAX_VALUES,
    Blob,
    Extension,
    SideMark,
    cannot_store,
    contents_of,
)
from flowcompute.imports import dataclass


@dataclass(slots=True)
class Encoded:
    """Plain data as bytes, and what these refer to.

    Attributes:
        data: the msgpack bytes.
        arrays: contents of the file of arrays, in order.
        blobs: the blobs referred to.
        marks: the parts of side files referred to.
    """

    data: bytes = b""
    arrays: list[memoryview] = field(default_factory=list)
    blobs: list[Blob] = field(default_factory=list)
    marks: list[SideMark] = field(default_factory=list)


def encode(value: object) -> Encoded:
    """Encode plain data as bytes.

    Args:
        value: None, bool, int (up to 128 bits), float, str or bytes. Lists and tuples are read back as lists,
            and a dict has str keys. Arrays and NumPy scalars of the supported dtypes, `Blob` and `SideMark` are
            allowed.

    Raises:
        CheckpointError: if a value is none of these, is nested too deeply, or is one too many. It names the
            place.
    """
    encoder = _Encoder()
    encoder.encoded.data = _pack(encoder.plain(value, "", 0))
    return encoder.encoded


class _Encoder:
    """Converter of plain data to what msgpack can hold. It collects the arrays and references."""

    def __init__(self) -> None:
        self.encoded = Encoded()
        self._count = 0
        self._offset = 0

    def plain(self, value: Any, place: str, depth: int) -> object:
        self._count += 1
        if self._count > MAX_VALUES:
            raise cannot_store(place, f"more than {MAX_VALUES} values", "keep long lists as arrays")
        if value is None or type(value) in (bool, float, str, bytes):
            return value
        if type(value) is int:
            return self._integer(value, place)
        if isinstance(value, np.generic):
            name, data = contents_of(np.asarray(value), place)
            return msgpack.ExtType(Extension.SCALAR, _pack([name, bytes(data)]))
        if isinstance(value, np.ndarray):
            return self._array(value, place)
        if isinstance(value, Blob):
            self.encoded.blobs.append(value)
            return _blob_extension(value)
        if isinstance(value, SideMark):
            self.encoded.marks.append(value)
            return msgpack.ExtType(Extension.MARK, _pack([value.name, value.size_bytes, value.sha256]))
        if depth >= MAX_DEPTH:
            raise cannot_store(place, f"more than {MAX_DEPTH} levels of lists and maps", "store it flatter")
        if isinstance(value, Mapping):
            for key in value:
                if type(key) is not str:
                    raise cannot_store(place, f"a map key of type {type(key).__name__}", "use strings as keys")
            return {key: self.plain(one, f"{place}.{key}", depth + 1) for key, one in value.items()}
        if isinstance(value, list | tuple):
            return [self.plain(one, f"{place}[{index}]", depth + 1) for index, one in enumerate(value)]
        raise cannot_store(
            place, f"a value of type {type(value).__name__}", "store plain data: numbers, text, lists, arrays"
        )

    def _integer(self, value: int, place: str) -> object:
        if -(2**63) <= value < 2**64:
            return value
        if not -(2 ** (MAX_INT_BITS - 1)) <= value < 2**MAX_INT_BITS:
            raise cannot_store(place, f"an integer of {value.bit_length()} bits", f"{MAX_INT_BITS} bits are the most")
        return msgpack.ExtType(Extension.INTEGER, value.to_bytes(INT_BYTES, "little", signed=True))

    def _array(self, value: np.ndarray, place: str) -> object:
        name, data = contents_of(value, place)
        fields = [name, list(value.shape), self._offset, len(data), hashlib.sha256(data).digest()]
        self.encoded.arrays.append(data)
        self._offset += len(data)
        return msgpack.ExtType(Extension.ARRAY, _pack(fields))


def _blob_extension(blob: Blob) -> object:
    return msgpack.ExtType(Extension.BLOB, _pack([blob.dtype.name, list(blob.shape), bytes.fromhex(blob.sha256)]))


def _pack(value: object) -> bytes:
    # Paths may hold bytes that are not UTF-8. Python keeps these as surrogates.
    packed: bytes = msgpack.packb(value, use_bin_type=True, unicode_errors="surrogatepass")
    return packed
