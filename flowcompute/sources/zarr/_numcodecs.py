"""The one import of numcodecs and google_crc32c, which `flowcompute[zarr]` brings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flowcompute.errors import SourceError
from flowcompute.imports import LateModule, import_problem

if TYPE_CHECKING:
    import google_crc32c as crc32c
    from numcodecs import blosc, lz4, zstd
else:
    crc32c, blosc, lz4, zstd = map(LateModule, ("google_crc32c", "numcodecs.blosc", "numcodecs.lz4", "numcodecs.zstd"))

_DECODERS = {"blosc": blosc, "lz4": lz4, "zstd": zstd}


def require(codec: str) -> None:
    """Import what decodes chunks.

    Raises:
        SourceError: if it is not installed. The error says what to install.
    """
    problem = import_problem("google_crc32c", "numcodecs.blosc", "numcodecs.lz4", "numcodecs.zstd")
    if problem is not None:
        raise SourceError(
            f"cannot decode {codec} chunks: a package is missing",
            expected="numcodecs and google-crc32c",
            hint='pip install "flowcompute[zarr]"',
        ) from problem


def decode(codec: str, data: bytes, out: bytearray) -> None:
    """Decode a chunk into `out`, which has its size. Any error of the decoder is raised as it is."""
    _DECODERS[codec].decompress(data, out)


def checksum(data: memoryview) -> int:
    """Return the CRC-32C of bytes."""
    return int(crc32c.value(bytes(data)))
