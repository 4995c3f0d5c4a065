"""Decoder of a checkpoint's format: bytes to plain data. It trusts nothing in the bytes.

Nothing is allocated before its bytes are there. Nesting and the number of values are limited. Map keys are
strings and occur once. Any violation is a `DamagedError`.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from dataclasses import field
from typing import Any

import msgpack
import numpy as np

from flowcompute.checkpoint.store.values import (
    DTYPES,
    INT_BYTES,
    MAX_DEPTH,
    MAX_VALUES,
    ArrayPlace,
    Blob,
    DamagedError,
    Extension,
    SideMark,
    native,
    side_name,
)
from flowcompute.imports import dataclass

_WITH_FIELDS = {
    Extension.ARRAY: "array",
    Extension.SCALAR: "NumPy scalar",
    Extension.BLOB: "blob",
    Extension.MARK: "mark of a side file",
}

Arrays = Callable[[ArrayPlace], object]
"""Function that makes a value of an array from its place."""


@dataclass(slots=True)
class Decoded:
    """Result of decoding bytes.

    Attributes:
        value: the plain data.
        blobs: the blobs it refers to.
        marks: the parts of side files it refers to.
        arrays_bytes: bytes of the file of arrays.
    """

    value: Any = None
    blobs: list[Blob] = field(default_factory=list)
    marks: list[SideMark] = field(default_factory=list)
    arrays_bytes: int = 0


def decode(data: bytes, arrays: Arrays) -> Decoded:
    """Decode plain data from the bytes of `encode`.

    Args:
        data: the bytes, none of which is trusted.
        arrays: called once for each array, in the order of their file, which has no gaps.

    Raises:
        DamagedError: if `encode` cannot have written the bytes.
    """
    decoded = Decoded()
    decoder = _Decoder(data, decoded, arrays)
    decoded.value = decoder.value(0)
    decoder.end()
    return decoded


class _Decoder:
    """Reader of values one by one. It iterates over containers itself, so that a size in the data allocates nothing."""

    def __init__(self, data: bytes, decoded: Decoded, arrays: Arrays, *, within_extension: bool = False) -> None:
        self._data = data
        self._decoded = decoded
        self._arrays = arrays
        self._within_extension = within_extension
        self._count = 0
        self._unpacker = msgpack.Unpacker(
            raw=False, strict_map_key=True, unicode_errors="surrogatepass", max_buffer_size=max(len(data), 1)
        )
        self._unpacker.feed(data)

    def end(self) -> None:
        if self._unpacker.tell() != len(self._data):
            raise DamagedError("there are bytes after the last value")

    def value(self, depth: int) -> object:
        at = self._unpacker.tell()
        if at >= len(self._data):
            raise DamagedError("the bytes end within a value")
        self._count += 1
        if self._count > MAX_VALUES:
            raise DamagedError(f"there are more than {MAX_VALUES} values")
        code = self._data[at]
        if 0x90 <= code <= 0x9F or code in (0xDC, 0xDD):
            size = self._size(self._unpacker.read_array_header, depth)
            return [self.value(depth + 1) for _ in range(size)]
        if 0x80 <= code <= 0x8F or code in (0xDE, 0xDF):
            return self._map(depth)
        leaf = self._guarded(self._unpacker.unpack)
        if isinstance(leaf, msgpack.ExtType):
            return self._extension(leaf.code, leaf.data)
        if leaf is not None and type(leaf) not in (bool, int, float, str, bytes):
            raise DamagedError(f"a value of type {type(leaf).__name__} is unknown")
        return leaf

    def _map(self, depth: int) -> dict[str, object]:
        size = self._size(self._unpacker.read_map_header, depth)
        result: dict[str, object] = {}
        for _ in range(size):
            key = self.value(depth + 1)
            if not isinstance(key, str) or key in result:
                raise DamagedError("a map key is not a string, or occurs twice")
            result[key] = self.value(depth + 1)
        return result

    def _size(self, read_header: Callable[[], int], depth: int) -> int:
        if depth >= MAX_DEPTH:
            raise DamagedError(f"values are nested more than {MAX_DEPTH} levels deep")
        # The size is not checked here: reading too many values ends with the bytes.
        return int(self._guarded(read_header))

    @staticmethod
    def _guarded(read: Callable[[], Any]) -> Any:
        try:
            return read()
        except (ValueError, msgpack.exceptions.UnpackException) as error:
            raise DamagedError(f"the bytes are not valid msgpack: {type(error).__name__}") from error

    def _extension(self, code: int, data: bytes) -> object:
        if code == Extension.INTEGER and len(data) == INT_BYTES:
            return int.from_bytes(data, "little", signed=True)
        # Extensions within extensions would hold their bytes once for each level.
        if code not in _WITH_FIELDS or self._within_extension:
            raise DamagedError(f"extension type {code} is unknown here")
        fields = _Decoder(data, self._decoded, self._arrays, within_extension=True)
        found = fields.value(MAX_DEPTH - 2)
        fields.end()
        try:
            return self._referred(Extension(code), found)
        except DamagedError:
            raise
        except (TypeError, ValueError, KeyError) as error:
            raise DamagedError(f"the fields of a {_WITH_FIELDS[Extension(code)]} are invalid") from error

    def _referred(self, code: Extension, found: Any) -> object:
        """Return the object that the fields of an extension stand for.

        Raises:
            TypeError, ValueError, KeyError: if the fields are wrong.
        """
        if code == Extension.SCALAR:
            name, content = found
            dtype = DTYPES[_typed(name, str)]
            if len(_typed(content, bytes)) != dtype.itemsize:
                raise ValueError(content)
            return native(np.frombuffer(bytearray(content), dtype))[0]
        if code == Extension.MARK:
            name, size, digest = found
            mark = SideMark(side_name(_typed(name, str)), _natural(size), _digest(digest))
            self._decoded.marks.append(mark)
            return mark
        if code == Extension.BLOB:
            name, shape, digest = found
            blob = Blob(_digest(digest).hex(), DTYPES[_typed(name, str)], _shape(shape))
            self._decoded.blobs.append(blob)
            return blob
        name, shape, offset, size, digest = found
        place = ArrayPlace(DTYPES[_typed(name, str)], _shape(shape), _natural(offset), _natural(size), _digest(digest))
        if place.offset != self._decoded.arrays_bytes:
            raise DamagedError("an array does not begin where the one before it ends")
        if place.size_bytes != math.prod(place.shape) * place.dtype.itemsize:
            raise DamagedError("the shape of an array does not fit its size")
        self._decoded.arrays_bytes += place.size_bytes
        return self._arrays(place)


def _typed(value: Any, kind: type) -> Any:
    if type(value) is not kind:
        raise TypeError(value)
    return value


def _natural(value: object) -> int:
    if type(value) is not int or not 0 <= value < 2**63:
        raise ValueError(value)
    return value


def _digest(value: object) -> bytes:
    if type(value) is not bytes or len(value) != hashlib.sha256().digest_size:
        raise ValueError(value)
    return value


def _shape(value: object) -> tuple[int, ...]:
    if type(value) is not list:
        raise ValueError(value)
    return tuple(_natural(size) for size in value)
