"""Decoders of Zarr chunks, from a list of those that are allowed. None makes more bytes than the metadata says.

Sizes are taken from the frames and compared before anything is decoded: a frame of 32 KB may promise gigabytes.
"""

from __future__ import annotations

import struct
import zlib

from flowcompute.imports import dataclass
from flowcompute.sources.chunked import ChunkError
from flowcompute.sources.zarr import _numcodecs

COMPRESSORS = ("blosc", "gzip", "lz4", "zlib", "zstd")
"""Names of what may compress a chunk."""

CHECKSUM = "crc32c"

_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_BLOSC_HEADER = 16
_LARGEST_LZ4 = 1 << 31


@dataclass(frozen=True)
class Codecs:
    """Decoders of the bytes of a chunk.

    Attributes:
        steps: names in the order in which they were applied: at most one compressor, and checksums.
    """

    steps: tuple[str, ...] = ()

    def require(self) -> None:
        """Check that what decodes is installed; see `_numcodecs.require`."""
        for step in self.steps:
            if step not in ("gzip", "zlib"):
                _numcodecs.require(step)

    def encoded_size(self, size: int) -> int | None:
        """Return the bytes of a chunk of `size` decoded bytes, or None where they vary."""
        if any(step in COMPRESSORS for step in self.steps):
            return None
        return size + 4 * len(self.steps)

    def decode(self, data: bytes, size: int) -> bytes | bytearray:
        """Return the `size` bytes of a chunk.

        Raises:
            ChunkError: if it has others.
        """
        made: bytes | bytearray = data
        for i in range(len(self.steps) - 1, -1, -1):
            step = self.steps[i]
            if step == CHECKSUM:
                made = _without_checksum(made)
            else:
                # Checksums that were made before compression are part of what was compressed.
                made = _decompressed(step, bytes(made), size + 4 * self.steps[:i].count(CHECKSUM))
        if len(made) != size:
            raise ChunkError(f"it has {len(made):,} bytes decoded, and {size:,} are expected")
        return made


def _without_checksum(data: bytes | bytearray) -> bytes:
    if len(data) < 4:
        raise ChunkError("it is too short for its checksum")
    body = memoryview(data)[:-4]
    if struct.unpack("<I", data[-4:])[0] != _numcodecs.checksum(body):
        raise ChunkError("its checksum is wrong, so it is damaged")
    return bytes(body)


def _decompressed(codec: str, data: bytes, size: int) -> bytes | bytearray:
    if codec in ("gzip", "zlib"):
        return _inflated(data, size, 31 if codec == "gzip" else 15)
    promised = {"blosc": _blosc_size, "lz4": _lz4_size, "zstd": zstd_size}[codec](data)
    if promised is not None and promised != size:
        raise ChunkError(f"its {codec} frame holds {promised:,} bytes, and {size:,} are expected")
    made = bytearray(size)
    if size == 0:
        return made
    try:
        _numcodecs.decode(codec, data, made)
    except (RuntimeError, ValueError, TypeError, MemoryError) as error:
        raise ChunkError(f"its {codec} frame is damaged: {str(error)[:100]}") from error
    return made


def _inflated(data: bytes, size: int, window: int) -> bytes:
    inflater = zlib.decompressobj(window)
    try:
        made = inflater.decompress(data, size + 1)
    except zlib.error as error:
        raise ChunkError(f"its compressed bytes are damaged: {str(error)[:100]}") from error
    if len(made) > size or not inflater.eof:
        more = "more than" if len(made) > size else "an unfinished part of"
        raise ChunkError(f"its compressed bytes hold {more} the {size:,} bytes that are expected")
    return made


def _blosc_size(data: bytes) -> int:
    if len(data) < _BLOSC_HEADER:
        raise ChunkError("its blosc frame is cut off")
    size, _, encoded = struct.unpack_from("<III", data, 4)
    if encoded != len(data):
        raise ChunkError(f"its blosc frame has {len(data):,} bytes, and says {encoded:,}")
    return int(size)


def _lz4_size(data: bytes) -> int:
    if len(data) < 4:
        raise ChunkError("its lz4 frame is cut off")
    (size,) = struct.unpack_from("<I", data)
    if size >= _LARGEST_LZ4:
        raise ChunkError("its lz4 frame is damaged")
    return int(size)


def zstd_size(data: bytes) -> int | None:
    """Return the bytes that a frame says it holds, or None where it does not say (RFC 8878, section 3.1.1).

    Raises:
        ChunkError: if it is no frame.
    """
    if len(data) < 6 or data[:4] != _ZSTD_MAGIC:
        raise ChunkError("it begins with no zstd frame")
    descriptor = data[4]
    single, kind = descriptor >> 5 & 1, descriptor >> 6
    if not single and kind == 0:
        # The decoder ends where its room does.
        return None
    at = 5 + (0 if single else 1) + (0, 1, 2, 4)[descriptor & 3]
    width = (1, 2, 4, 8)[kind]
    if len(data) < at + width:
        raise ChunkError("its zstd frame is cut off")
    return int.from_bytes(data[at : at + width], "little") + (256 if width == 2 else 0)
