"""Headers of GGUF files, versions 2 and 3 in little-endian byte order.

Source: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md. Nothing is believed: each count and length is
compared with the bytes that are left in the file before anything is made of it.
"""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

from flowcompute.elements.quantized import BLOCK_FORMATS
from flowcompute.sources.safetensors import ReadAt, Tensor, WeightsHeader, check_places, checked_numbers, refuse

MAGIC = b"GGUF"
_VERSIONS = (2, 3)
_CHUNK_BYTES = 1 << 20
_LONGEST_NAME = 1 << 16
_LONGEST_TEXT = 1 << 24
_MOST_TEXTS = 1 << 22
"""Texts and arrays in a header: some ten times those of the largest vocabularies."""
_DEEPEST = 4
"""Arrays within arrays. No model has any."""
_ALIGNMENT, _MOST_ALIGNMENT = 32, 1 << 20

_FORMATS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_SCALARS = {code: struct.Struct(f"<{name}") for code, name in _FORMATS.items()}
"""Types of numbers in the metadata, by their numbers in files."""
_TEXT, _ARRAY = 8, 9
_ZEROS = bytes(7)
"""Last bytes of the length of a text that is shorter than 256 bytes."""
_LONGEST_SHORT = 127
"""Most bytes of a text whose length has ASCII as its first byte."""
_WINDOW_BYTES = 1 << 14
"""Bytes of texts that are cut at once: what is looked through again behind a longer text."""
_FEW = 64
"""Texts that are too few to be cut at once: a header may have millions of arrays with one text each."""
_U32, _U64 = struct.Struct("<I"), struct.Struct("<Q")

TENSOR_TYPES = {
    0: "F32", 1: "F16", 2: "Q4_0", 3: "Q4_1", 6: "Q5_0", 7: "Q5_1", 8: "Q8_0", 10: "Q2_K", 11: "Q3_K", 12: "Q4_K",
    13: "Q5_K", 14: "Q6_K", 16: "IQ2_XXS", 17: "IQ2_XS", 18: "IQ3_XXS", 19: "IQ1_S", 20: "IQ4_NL", 21: "IQ3_S",
    22: "IQ2_S", 23: "IQ4_XS", 24: "I8", 25: "I16", 26: "I32", 27: "I64", 28: "F64", 29: "IQ1_M", 30: "BF16",
    34: "TQ1_0", 35: "TQ2_0", 39: "MXFP4", 40: "NVFP4",
}  # fmt: skip
"""Types of tensors by their numbers in files."""

NUMBERS = {"I8": "i1", "I16": "i2", "I32": "i4", "I64": "i8", "F64": "f8"}
"""Types of plain numbers that are no block format, with their dtypes."""


def read_gguf(read: ReadAt, size_bytes: int) -> WeightsHeader:
    """Read the header of a GGUF file.

    Raises:
        WeightsHeaderError: if it is not sound.
    """
    cursor = _Cursor(read, size_bytes)
    if cursor.take(4) != MAGIC:
        refuse("it does not begin as a GGUF file", expected="GGUF")
    version = cursor.number(_U32)
    if version not in _VERSIONS:
        swapped = int.from_bytes(int(version).to_bytes(4, "little"), "big")
        of = "in big-endian byte order" if swapped in _VERSIONS else f"of version {version}"
        refuse(f"it is a GGUF file {of}", expected="version 2 or 3, little-endian")
    count, keys = cursor.number(_U64), cursor.number(_U64)
    # The shortest tensor has 24 bytes here, the shortest key 13.
    if 24 * count + 13 * keys > cursor.left:
        refuse("it ends before its header does", expected=f"{keys} keys and {count} tensors", got=f"{size_bytes} bytes")
    metadata: dict[str, Any] = {}
    for _ in range(keys):
        key = cursor.name()
        if key in metadata:
            refuse("it has a key twice", got=key)
        metadata[key] = cursor.value(cursor.number(_U32), 0)
    tensors = _tensors(cursor, count)
    alignment = metadata.get("general.alignment", _ALIGNMENT)
    if type(alignment) is not int or not 0 < alignment <= _MOST_ALIGNMENT or alignment % 8:
        refuse("its alignment is none", expected=f"a multiple of 8 up to {_MOST_ALIGNMENT}", got=alignment)
    begin = -(-cursor.at // alignment) * alignment
    placed = []
    for name, kind, shape, offset, size in tensors:
        if offset % alignment:
            refuse(f"tensor {name!r} is not aligned", expected=f"a multiple of {alignment}", got=offset)
        placed.append(Tensor(name, kind, shape, begin + offset, size))
    check_places(placed, begin, size_bytes)
    return WeightsHeader(metadata, tuple(placed))


def _tensors(cursor: _Cursor, count: int) -> list[tuple[str, str, tuple[int, ...], int, int]]:
    """Read name, type, shape, offset and bytes of each tensor."""
    found: dict[str, tuple[str, str, tuple[int, ...], int, int]] = {}
    for _ in range(count):
        name, axes = cursor.name(), cursor.number(_U32)
        if name in found:
            refuse("it has a tensor twice", got=name)
        if 8 * axes > cursor.left:
            refuse("it ends before its header does", expected=f"{axes} sizes of tensor {name!r}")
        checked_numbers(name, (1,) * min(axes, 64))
        # The axis along which numbers are neighbours comes first in files, last in arrays.
        shape = tuple(cursor.number(_U64) for _ in range(axes))[::-1]
        code, offset = cursor.number(_U32), cursor.number(_U64)
        numbers = checked_numbers(name, shape)
        kind = TENSOR_TYPES.get(code)
        if kind is None:
            refuse(f"tensor {name!r} is of a type that is not known", expected="a type that gguf decodes", got=code)
        in_block, size = _block(kind)
        if (shape[-1] if shape else 1) % in_block:
            refuse(f"rows of tensor {name!r} are no whole blocks", expected=f"a multiple of {in_block}", got=shape)
        found[name] = (name, kind, shape, offset, numbers // in_block * size)
    return list(found.values())


def _block(kind: str) -> tuple[int, int]:
    """Return numbers and bytes of a block; of plain numbers, of one."""
    if kind in NUMBERS:
        return 1, np.dtype(NUMBERS[kind]).itemsize
    return BLOCK_FORMATS[kind].numbers, BLOCK_FORMATS[kind].block_bytes


class _Cursor:
    """A place in a header that moves on as it is read. Of the file it holds a chunk."""

    def __init__(self, read: ReadAt, size_bytes: int) -> None:
        self.at = 0
        self._read = read
        self._size = size_bytes
        self._chunk = b""
        self._begin = 0
        self._texts = 0

    @property
    def left(self) -> int:
        """Bytes from here to the end of the file."""
        return self._size - self.at

    def take(self, count: int) -> bytes:
        """Return the next bytes.

        Raises:
            WeightsHeaderError: if the file has fewer. Nothing is allocated then.
        """
        if count > self.left:
            refuse("it ends before its header does", expected=f"{self.at + count} bytes", got=f"{self._size} bytes")
        start = self.at - self._begin
        if start + count > len(self._chunk):
            self._chunk = self._read(self.at, min(max(count, _CHUNK_BYTES), self.left))
            self._begin, start = self.at, 0
            if len(self._chunk) < count:
                refuse("it became shorter while it was read")
        self.at += count
        return self._chunk[start : start + count]

    def number(self, format: struct.Struct) -> Any:
        """Return a number: an int, a float or a bool."""
        return format.unpack(self.take(format.size))[0]

    def name(self) -> str:
        """Return text that names something."""
        length = self.number(_U64)
        if length > _LONGEST_NAME:
            refuse("a name in it is too long", expected=f"at most {_LONGEST_NAME} bytes", got=length)
        try:
            return self.take(length).decode()
        except UnicodeDecodeError:
            refuse("a name in it is no UTF-8")

    def text(self) -> str:
        """Return text. Bytes that are no UTF-8 are kept as surrogates."""
        length = self.number(_U64)
        if length > _LONGEST_TEXT:
            refuse("a text in it is too long", expected=f"at most {_LONGEST_TEXT} bytes", got=length)
        return self.take(length).decode(errors="surrogateescape")

    def texts(self, count: int) -> list[str]:
        """Return texts that follow each other. Vocabularies have hundreds of thousands."""
        found: list[str] = []
        while (left := count - len(found)) > 0:
            if left >= _FEW and (short := self._short_texts(left)):
                found += short
                continue
            chunk, start = self._chunk, self.at - self._begin
            # Those that lie in the chunk as a whole.
            for _ in range(min(left, _FEW)):
                stop = begin = start + _U64.size
                if begin <= len(chunk):
                    stop += _U64.unpack_from(chunk, start)[0]
                if not begin <= stop <= len(chunk) or stop - begin > _LONGEST_TEXT:
                    break
                found.append(chunk[begin:stop].decode(errors="surrogateescape"))
                start = stop
            self.at = self._begin + start
            if len(found) < count:
                found.append(self.text())
        return found

    def _short_texts(self, most: int) -> list[str]:
        """Return some thousand texts that follow each other, or those before one that is not as short, or empty.

        Lengths of short ones are a byte of ASCII and seven zeros, so that all are decoded as one. Cut at the zeros,
        they fall into a text with the next one's length behind it, again and again. Each length is compared with the
        place where the next seven zeros begin.
        """
        start = self.at - self._begin
        window = self._chunk[start : start + min(most * (_U64.size + _LONGEST_SHORT), _WINDOW_BYTES)]
        data = np.frombuffer(window, np.uint8)
        if len(data) < _U64.size:
            return []
        zero = data == 0
        starts = len(zero) - len(_ZEROS) + 1
        zeros = np.flatnonzero(np.logical_and.reduce([zero[i : i + starts] for i in range(len(_ZEROS))]))
        if not len(zeros) or zeros[0] != 1:
            return []
        lengths = data[zeros - 1].astype(np.int64)
        ends = zeros + len(_ZEROS) + lengths
        sound = lengths <= min(_LONGEST_SHORT, _LONGEST_TEXT)
        sound[:-1] &= zeros[1:] == ends[:-1] + 1
        # Behind the last one there may be anything.
        sound[-1] &= ends[-1] <= len(data)
        many = min(most, len(sound) if sound.all() else int(sound.argmin()))
        if not many:
            return []
        end = int(ends[many - 1])
        *pieces, last = window[_U64.size : end].decode(errors="surrogateescape").split(_ZEROS.decode())
        self.at += end
        return [*(piece[:-1] for piece in pieces), last]

    def value(self, code: int, depth: int) -> Any:
        """Return a value of the metadata; arrays of numbers are arrays, those of text lists."""
        if code in _SCALARS:
            return self.number(_SCALARS[code])
        if code == _TEXT:
            return self.text()
        if code != _ARRAY:
            refuse("a value in it is of a type that is not known", expected="0 to 12", got=code)
        if depth >= _DEEPEST:
            refuse("its arrays lie within arrays", expected=f"no more than {_DEEPEST} deep")
        inner, count = self.number(_U32), self.number(_U64)
        if inner in _SCALARS:
            data = np.frombuffer(self.take(count * _SCALARS[inner].size), f"<{_FORMATS[inner].replace('?', 'B')}")
            # A bool is any byte but 0, and NumPy may only see 0 and 1.
            return data != 0 if _FORMATS[inner] == "?" else data
        if count * (8 if inner == _TEXT else 12) > self.left:
            refuse("it ends before its header does", expected=f"an array of {count} values")
        self._count(count)
        return self.texts(count) if inner == _TEXT else [self.value(inner, depth + 1) for _ in range(count)]

    def _count(self, more: int) -> None:
        self._texts += more
        if self._texts > _MOST_TEXTS:
            refuse("its header has too many texts", expected=f"at most {_MOST_TEXTS}")
