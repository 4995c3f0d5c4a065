"""The one import of numcodecs and google_crc32c, which `flowcompute[zarr]` brings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flowcompute.errors import SourceError

crc32c: Any = None
_DECODERS: dict[str, Callable[[bytes, bytearray], object]] = {}
try:
    import google_crc32c as crc32c
    from numcodecs import blosc, lz4, zstd
except ImportError:
    pass
else:
    _DECODERS = {"blosc": blosc.decompress, "lz4": lz4.decompress, "zstd": zstd.decompress}


def require(codec: str) -> None:
    """Check that what decodes chunks is installed.

    Raises:
        SourceError: if it is not. The error says what to install.
    """
    if crc32c is None:
        raise SourceError(
            f"cannot decode {codec} chunks: a package is missing",
            expected="numcodecs and google-crc32c",
            hint='pip install "flowcompute[zarr]"',
        )


def decode(codec: str, data: bytes, out: bytearray) -> None:
    """Decode a chunk into `out`, which has its size. Any error of the decoder is raised as it is."""
    _DECODERS[codec](data, out)


def checksum(data: memoryview) -> int:
    """Return the CRC-32C of bytes."""
    assert crc32c is not None
    return int(crc32c.value(bytes(data)))
