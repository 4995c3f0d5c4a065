"""HEAD, the only file of a checkpoint that changes: it names the current generation. Replacing it is the commit."""

from __future__ import annotations

import os
import re
from typing import NamedTuple

from flowcompute.checkpoint.store.durable_files import read_whole, write_over
from flowcompute.checkpoint.store.values import DamagedError
from flowcompute.files import Files, shown

HEAD = "HEAD"
_LIMIT_BYTES = 128


class Head(NamedTuple):
    """Contents of HEAD: a generation, and the checksum that its file ends with."""

    number: int
    sha256: bytes


def read_head(files: Files, folder: str) -> Head:
    """Read HEAD.

    Raises:
        DamagedError: if it is missing or malformed.
    """
    path = os.path.join(folder, HEAD)
    match = re.fullmatch(rb"(0|[1-9]\d{0,17}) ([0-9a-f]{64})\n", read_whole(files, path, _LIMIT_BYTES))
    if not match:
        raise DamagedError(f"cannot read {shown(path)}: it is not a generation and its checksum")
    return Head(int(match[1]), bytes.fromhex(match[2].decode()))


def write_head(files: Files, folder: str, head: Head) -> None:
    """Replace HEAD atomically. It is durable when the folder is."""
    write_over(files, os.path.join(folder, HEAD), [f"{head.number} {head.sha256.hex()}\n".encode()])
