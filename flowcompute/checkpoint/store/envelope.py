"""The sealed msgpack files of a checkpoint: what they begin with, what they end with, and which versions are read.

A file is one msgpack map. Its first three entries are `magic`, `format` and `library`, its last one is `sha256`, of
all bytes before the 32 of that checksum. These stay as they are in every version, so that a file of a newer one is
recognised and not taken for a damaged one.
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
"""Major and minor: a reader of the same major reads it and ignores entries that a later minor added."""

MAX_BYTES = 1 << 28
"""The largest file that is read. What is large belongs into arrays, which lie elsewhere."""

_TRAILER = b"\xa6sha256\xc4\x20"
_DIGEST_BYTES = hashlib.sha256().digest_size
_OPENING_BYTES = 64


def seal(fields: Mapping[str, Any]) -> Encoded:
    """The bytes of a file with these entries.

    Raises:
        CheckpointError: if they cannot be stored, or are too many bytes.
    """
    opening = {"magic": MAGIC, "format": list(FORMAT), "library": __version__, "created": time.time()}
    sealed = encode({**opening, **fields, "sha256": bytes(_DIGEST_BYTES)})
    if len(sealed.data) > MAX_BYTES:
        raise CheckpointError(
            "the state is too large for one file",
            expected=f"at most {MAX_BYTES} bytes beside arrays",
            got=f"{len(sealed.data)} bytes",
            hint="keep long lists and texts as arrays",
        )
    content = sealed.data[:-_DIGEST_BYTES]
    sealed.data = content + hashlib.sha256(content).digest()
    return sealed


def checksum(data: bytes) -> bytes:
    """The checksum that a sealed file ends with, compared with its bytes.

    Raises:
        DamagedError: if they do not agree.
    """
    content, digest = data[:-_DIGEST_BYTES], data[-_DIGEST_BYTES:]
    if not content.endswith(_TRAILER) or hashlib.sha256(content).digest() != digest:
        raise DamagedError("its bytes do not have the checksum that it ends with")
    return digest


def unseal(data: bytes, arrays: Arrays) -> Decoded:
    """The entries of a sealed file.

    Args:
        data: its bytes.
        arrays: what is to be made of arrays, as for `decode`.

    Raises:
        DamagedError: if the bytes are not what `seal` made.
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
        raise DamagedError("it is no map, or of an unknown format")
    return decoded


class NewerError(CheckpointError):
    """A file that only a newer version can read: no reason to go back to an older generation."""


def field_of(fields: Mapping[str, Any], name: str, *kinds: type) -> Any:
    """An entry of one of these very types.

    Raises:
        DamagedError: if it is missing or of another type.
    """
    value = fields.get(name)
    if type(value) not in kinds:
        raise DamagedError(f"its entry {name!r} is missing or of the wrong type")
    return value


def _opening(data: bytes) -> tuple[int, int, str]:
    """Format and library of a file, from its first bytes."""
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
        raise DamagedError("its format is no pair of numbers")
    return numbers[0], numbers[1], library if type(library) is str else "unknown"
