"""Sealed msgpack files of a checkpoint: their first entries, their checksum, and the versions that are read.

A file is one msgpack map. Its first three entries are `magic`, `format` and `library`. Its last entry is
`sha256`: the checksum of all bytes before its own 32. These entries are the same in every version, so that a
file of a newer version is not taken for a damaged one.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping
from typing import Any

import msgpack

from flowcompute.checkpoint.store.decode import Arrays, Decoded, decode
from flowcompute.checkpoint.store.encode import Encoded, encode
from flowcompute.checkpoint.store.values import DamagedError
from flowcompute.errors import CheckpointError
from flowcompute.version import __version__

MAGIC = "flowcompute checkpoint"
FORMAT = (1, 0)
"""Major and minor version. A reader of the same major version ignores entries that a later minor version added."""

MAX_BYTES = 1 << 28
"""Size of the largest file that is read. Large contents belong into arrays, which lie elsewhere."""

_TRAILER = b"\xa6sha256\xc4\x20"
_DIGEST_BYTES = hashlib.sha256().digest_size
_OPENING_BYTES = 64


def seal(fields: Mapping[str, Any]) -> Encoded:
    """Return the bytes of a file with these entries.

    Raises:
        CheckpointError: if the entries cannot be stored, or take too many bytes.
    """
    opening = {"magic": MAGIC, "format": list(FORMAT), "library": __version__, "created": time.time()}
    sealed = encode({**opening, **fields, "sha256": bytes(_DIGEST_BYTES)})
    if len(sealed.data) > MAX_BYTES:
        raise CheckpointError(
            "cannot store the state: it is too large for one file",
            expected=f"at most {MAX_BYTES} bytes beside arrays",
            got=f"{len(sealed.data)} bytes",
            hint="keep long lists and texts as arrays",
        )
    content = sealed.data[:-_DIGEST_BYTES]
    sealed.data = content + hashlib.sha256(content).digest()
    return sealed


def checksum(data: bytes) -> bytes:
    """Return the checksum that a sealed file ends with, after comparing it with the bytes.

    Raises:
        DamagedError: if they do not agree.
    """
    content, digest = data[:-_DIGEST_BYTES], data[-_DIGEST_BYTES:]
    if not content.endswith(_TRAILER) or hashlib.sha256(content).digest() != digest:
        raise DamagedError("its bytes do not match the checksum that it ends with")
    return digest


def unseal(data: bytes, arrays: Arrays) -> Decoded:
    """Return the entries of a sealed file.

    Args:
        data: its bytes.
        arrays: called with the place of each array, as for `decode`.

    Raises:
        DamagedError: if `seal` did not make these bytes.
        CheckpointError: if a newer version made them.
    """
    checksum(data)
    major, minor, library = _opening(data)
    if major > FORMAT[0]:
        raise NewerError(
            f"it was made by a newer flowcompute ({library!r}): its format is {major}.{minor}, here it is {FORMAT[0]}",
            hint="resume it with that version",
        )
    decoded = decode(data, arrays)
    fields = decoded.value
    if not isinstance(fields, dict) or major < 1:
        raise DamagedError("it is not a map, or its format is unknown")
    return decoded


class NewerError(CheckpointError):
    """A file that only a newer version can read. It is no reason to fall back to an older generation."""


def field_of(fields: Mapping[str, Any], name: str, *kinds: type) -> Any:
    """Return an entry, checked to be of exactly one of these types.

    Raises:
        DamagedError: if it is missing or of another type.
    """
    value = fields.get(name)
    if type(value) not in kinds:
        raise DamagedError(f"its entry {name!r} is missing or of the wrong type")
    return value


def _opening(data: bytes) -> tuple[int, int, str]:
    """Return the format (major, minor) and the library's version from a file's first bytes."""
    unpacker = msgpack.Unpacker(max_buffer_size=_OPENING_BYTES * 4)
    unpacker.feed(data[: _OPENING_BYTES * 4])
    try:
        unpacker.read_map_header()
        magic_name, magic, format_name, numbers, _, library = (unpacker.unpack() for _ in range(6))
    except (ValueError, msgpack.exceptions.UnpackException) as error:
        raise DamagedError("it does not begin as a checkpoint's file does") from error
    if (magic_name, magic, format_name) != ("magic", MAGIC, "format"):
        raise DamagedError("it does not begin as a checkpoint's file does")
    if type(numbers) is not list or len(numbers) != 2 or any(type(one) is not int for one in numbers):
        raise DamagedError("its format is not a pair of numbers")
    return numbers[0], numbers[1], library if type(library) is str else "unknown"
