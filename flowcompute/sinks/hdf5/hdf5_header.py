"""Headers of HDF5 files with one contiguous dataset, byte by byte: as long for any length of the dataset.

A file is a superblock, a group for each part of the key, the dataset's header, and its numbers. Headers are those of
version 2, which HDF5 1.8 and later read. Nothing in them depends on the time or on a library.

Source: the HDF5 file format specification, version 3.0, sections II.A, III.A and IV.A.
"""

from __future__ import annotations

import math
import struct

import numpy as np

ALIGNMENT = 512
"""The data begin at a multiple of it."""

_UNDEFINED = (1 << 64) - 1
_SIGNATURE = b"\x89HDF\r\n\x1a\n"
_MASK = (1 << 32) - 1
_SUPERBLOCK_BYTES = 48
_FLOATS = {2: (10, 5, 15), 4: (23, 8, 127), 8: (52, 11, 1023)}
"""Bits of the mantissa and of the exponent, and the exponent's bias, by the bytes of a float."""


def header(key: str, dtype: np.dtype, shape: tuple[int, ...]) -> bytes:
    """Return the bytes before the data of a file.

    Args:
        key: path of the dataset, such as "a/b/x".
        dtype: of its numbers, in little-endian order.
        shape: of the dataset, () for a single number.
    """
    parts = key.split("/")
    dataset = _dataset_messages(dtype, shape, 0, 0)
    heads = [_group_messages(part, 0) for part in parts]
    sizes = [len(_object(messages)) for messages in (*heads, dataset)]
    places, at = [], _SUPERBLOCK_BYTES
    for size in sizes:
        places.append(at)
        at += size
    begin = -(-at // ALIGNMENT) * ALIGNMENT
    nbytes = math.prod(shape) * dtype.itemsize
    # A dataset without bytes has no place.
    messages = _dataset_messages(dtype, shape, begin if nbytes else _UNDEFINED, nbytes)
    text = _superblock(begin + nbytes, places[0])
    for part, place in zip(parts, places[1:], strict=True):
        text += _object(_group_messages(part, place))
    return (text + _object(messages)).ljust(begin, b"\0")


def _superblock(end: int, root: int) -> bytes:
    body = _SIGNATURE + bytes([2, 8, 8, 0]) + struct.pack("<QQQQ", 0, _UNDEFINED, end, root)
    return body + struct.pack("<I", checksum(body))


def _object(messages: list[tuple[int, bytes]]) -> bytes:
    """Return an object header with these messages: a type and content each."""
    inside = b"".join(struct.pack("<BHB", kind, len(body), 0) + body for kind, body in messages)
    # The size of what is inside has four bytes.
    text = b"OHDR" + bytes([2, 2]) + struct.pack("<I", len(inside)) + inside
    return text + struct.pack("<I", checksum(text))


def _group_messages(name: str, target: int) -> list[tuple[int, bytes]]:
    """Return the messages of a group with one hard link."""
    text = name.encode()
    # Version 1; the length of the name has two bytes, and the name is UTF-8.
    link = bytes([1, 0x11, 1]) + struct.pack("<H", len(text)) + text + struct.pack("<Q", target)
    link_info = bytes([0, 0]) + struct.pack("<QQ", _UNDEFINED, _UNDEFINED)
    return [(0x02, link_info), (0x0A, bytes([0, 0])), (0x06, link)]


def _dataset_messages(dtype: np.dtype, shape: tuple[int, ...], begin: int, nbytes: int) -> list[tuple[int, bytes]]:
    space = bytes([2, len(shape), 0, 1 if shape else 0]) + struct.pack(f"<{len(shape)}Q", *shape)
    # Space is allocated early, and nothing fills it.
    fill = bytes([3, 0x05])
    layout = bytes([3, 1]) + struct.pack("<QQ", begin, nbytes)
    return [(0x01, space), (0x03, datatype(dtype)), (0x05, fill), (0x08, layout)]


def datatype(dtype: np.dtype) -> bytes:
    """Return the message of a type. A bool is an enumeration of int8, as h5py has it."""
    size, kind = dtype.itemsize, dtype.kind
    if kind in "iu":
        return bytes([0x10, 8 if kind == "i" else 0, 0, 0]) + struct.pack("<IHH", size, 0, 8 * size)
    if kind == "f":
        mantissa, exponent, bias = _FLOATS[size]
        head = bytes([0x11, 0x20, 8 * size - 1, 0]) + struct.pack("<IHH", size, 0, 8 * size)
        return head + struct.pack("<BBBBI", mantissa, exponent, 0, mantissa, bias)
    assert kind == "b", "other types are refused when composed"
    names = b"FALSE\0\0\0" + b"TRUE\0\0\0\0"
    return bytes([0x18, 2, 0, 0]) + struct.pack("<I", 1) + datatype(np.dtype(np.int8)) + names + bytes([0, 1])


def checksum(data: bytes) -> int:
    """Return Jenkins' lookup3 hash of bytes, as `hashlittle` gives it.

    Source: Bob Jenkins, "lookup3.c", 2006, in the public domain.
    """
    a = b = c = (0xDEADBEEF + len(data)) & _MASK
    whole = max(0, (len(data) - 1) // 12)
    for at in range(0, 12 * whole, 12):
        x, y, z = struct.unpack_from("<III", data, at)
        a, b, c = _mixed((a + x) & _MASK, (b + y) & _MASK, (c + z) & _MASK)
    rest = data[12 * whole :]
    if not rest:
        return c
    x, y, z = struct.unpack("<III", rest.ljust(12, b"\0"))
    a, b, c = int(a + x) & _MASK, int(b + y) & _MASK, int(c + z) & _MASK
    # The last mixing.
    for turn in (14, 11, 25, 16, 4, 14, 24):
        c = ((c ^ b) - _turned(b, turn)) & _MASK
        a, b, c = b, c, a
    return b


def _turned(value: int, count: int) -> int:
    return (value << count | value >> 32 - count) & _MASK


def _mixed(a: int, b: int, c: int) -> tuple[int, int, int]:
    for turn in (4, 6, 8, 16, 19, 4):
        a = ((a - c) & _MASK) ^ _turned(c, turn)
        c = (c + b) & _MASK
        a, b, c = b, c, a
    return a, b, c
