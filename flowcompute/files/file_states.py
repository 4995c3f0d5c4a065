"""States of files: what tells one state of a file from another."""

from __future__ import annotations

import os
from typing import NamedTuple


class Fingerprint(NamedTuple):
    """Properties of a file that change when its content changes; an object in a store has an ETag and no inode."""

    size: int
    mtime_ns: int
    inode: int
    device: int
    etag: str = ""

    @classmethod
    def of(cls, status: os.stat_result) -> Fingerprint:
        """Return the fingerprint in a file's status."""
        return cls(status.st_size, status.st_mtime_ns, status.st_ino, status.st_dev)


class Unfinished(NamedTuple):
    """A file that an earlier process began, and how many of its bytes count."""

    path: str
    size: int


class Sealed(NamedTuple):
    """Properties that identify a finished file, also after it was renamed."""

    size: int
    mtime_ns: int

    @classmethod
    def of(cls, status: os.stat_result) -> Sealed:
        """Return the properties in a file's status."""
        return cls(status.st_size, status.st_mtime_ns)
