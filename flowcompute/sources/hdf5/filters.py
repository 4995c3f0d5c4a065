"""Filters of HDF5 chunks, undone within the bytes that are expected.

Source: the HDF5 file format specification, version 3.0, section IV.A.2.l, and the definitions of its filters.
"""

from __future__ import annotations

import zlib

import numpy as np

from flowcompute.sources.chunked import ChunkError

_WORDS = 1 << 16
"""Words that are put together at a time, which stay in the cache."""
_BLOCK = 1 << 14
"""Words that are summed at a time, so that 64 bits hold the sums."""
_MODULUS = 65_535


def undone(data: bytes | memoryview, filters: tuple[tuple[str, int], ...], mask: int, size: int) -> memoryview:
    """Return the `size` bytes of a chunk before its filters.

    Args:
        data: as stored.
        filters: names and parameters, in the order in which they were applied.
        mask: a bit for each filter that was left out.
        size: bytes of a chunk.

    Raises:
        ChunkError: if it has others.
    """
    if mask >> len(filters):
        raise ChunkError(f"its mask leaves out more filters than the {len(filters)} that there are")
    data = memoryview(data)
    applied = [one for i, one in enumerate(filters) if not mask >> i & 1]
    for i in range(len(applied) - 1, -1, -1):
        name, parameter = applied[i]
        if name == "fletcher32":
            data = _checked(data)
        elif name == "shuffle":
            data = _unshuffled(data, parameter)
        else:
            # A checksum that was made before is part of what was compressed.
            data = _inflated(data, size + 4 * sum(other == "fletcher32" for other, _ in applied[:i]))
    if len(data) != size:
        raise ChunkError(f"it has {len(data):,} bytes decoded, and {size:,} are expected")
    return data


def _inflated(data: memoryview, size: int) -> memoryview:
    inflater = zlib.decompressobj()
    try:
        made = inflater.decompress(data, size + 1)
    except zlib.error as error:
        raise ChunkError(f"its compressed bytes are damaged: {str(error)[:100]}") from error
    if len(made) > size or not inflater.eof:
        more = "more than" if len(made) > size else "an unfinished part of"
        raise ChunkError(f"its compressed bytes hold {more} the {size:,} bytes that are expected")
    if inflater.unused_data:
        raise ChunkError("there are bytes behind its compressed ones")
    return memoryview(made)


def _unshuffled(data: memoryview, itemsize: int) -> memoryview:
    """Put the bytes of each number together again; bytes behind the last number stay where they are."""
    count = len(data) // itemsize if itemsize > 1 else 0
    if count <= 1:
        return data
    stored, whole = np.frombuffer(data, np.uint8), count * itemsize
    made = np.empty_like(stored)
    planes = stored[:whole].reshape(itemsize, count)
    if itemsize in (2, 4, 8):
        _join_planes(planes, made[:whole].view(f"<u{itemsize}"))
    else:
        made[:whole].reshape(count, itemsize)[...] = planes.T
    made[whole:] = stored[whole:]
    return made.data


def _join_planes(planes: np.ndarray, words: np.ndarray) -> None:
    """Fill words with their bytes, which lie in planes, the lowest first.

    NumPy transposes bytes one by one; shifts of words in the cache take a fifth of that time.
    """
    for begin in range(0, len(words), _WORDS):
        part, word = planes[:, begin : begin + _WORDS], words[begin : begin + _WORDS]
        word[...] = part[0]
        for i in range(1, len(part)):
            shifted = part[i].astype(word.dtype)
            shifted <<= 8 * i
            word |= shifted


def _checked(data: memoryview) -> memoryview:
    if len(data) < 4:
        raise ChunkError("it is too short for its checksum")
    body, said = data[:-4], int.from_bytes(data[-4:], "little")
    made = fletcher32(body)
    # Files of version 1.6.2 and before have the two bytes of each half exchanged.
    swapped = (made & 0x00FF00FF) << 8 | (made >> 8 & 0x00FF00FF)
    if said not in (made, swapped):
        raise ChunkError("its checksum is wrong, so it is damaged")
    return body


def fletcher32(data: bytes | memoryview) -> int:
    """Return Fletcher's checksum as HDF5 computes it: of words of two bytes, the first one high."""
    words = np.frombuffer(data, ">u2", len(data) // 2)
    blocks = [words[begin : begin + _BLOCK] for begin in range(0, len(words), _BLOCK)]
    if len(data) % 2:
        blocks.append(np.array([data[-1] << 8], ">u2"))
    weights = np.arange(_BLOCK, 0, -1, dtype=np.uint64)
    first = second = 0
    for block in blocks:
        numbers = block.astype(np.uint64)
        second += len(numbers) * first + int(numbers @ weights[_BLOCK - len(numbers) :])
        first += int(numbers.sum())
    # Sums are folded there, so that 0 stands as 65,535.
    return _folded(second) << 16 | _folded(first)


def _folded(total: int) -> int:
    return total % _MODULUS or (_MODULUS if total else 0)
