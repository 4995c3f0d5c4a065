"""Temporary file of records: written once, read as often as needed, and gone with the process."""

from __future__ import annotations

import os
from typing import IO, Protocol

from flowcompute.files.file_layer import FILES
from flowcompute.imports import tempfile


class ScratchFullError(Exception):
    """A write beyond the limit of a scratch file."""


class Backing(Protocol):
    """Storage that the bytes of a scratch file are written to."""

    def write_at(self, data: memoryview | bytes, offset: int) -> None:
        """Write all of `data` at `offset`."""

    def read_into(self, buffer: memoryview, offset: int) -> int:
        """Fill `buffer` from `offset` and return the number of bytes read."""


class AnonymousFile:
    """A file without a name."""

    def __init__(self, folder: str) -> None:
        self.file: IO[bytes] = tempfile.TemporaryFile(dir=folder, buffering=0)

    def write_at(self, data: memoryview | bytes, offset: int) -> None:
        """Write all of `data` at `offset`."""
        FILES.write_at(self.file.fileno(), data, offset)

    def read_into(self, buffer: memoryview, offset: int) -> int:
        """Fill `buffer` from `offset` and return the number of bytes read."""
        return FILES.read_into(self.file.fileno(), buffer, offset)


class Scratch:
    """A temporary file of records: a file without a name, or a file of a checkpoint.

    A file without a name leaves nothing behind, whatever happens.

    Args:
        folder: where its bytes lie; the system's folder for temporary files by default.
        limit_bytes: the largest size that it may reach; half of the free space there by default.

    Attributes:
        size_bytes: bytes written.
        records: number of records written. For items without record numbers it is the only count.
    """

    def __init__(self, folder: str | None, limit_bytes: int | None) -> None:
        self.folder = folder or tempfile.gettempdir()
        self.limit_bytes = limit_bytes
        self.size_bytes = 0
        self.records = 0
        self._backing: Backing | None = None

    def begin(self, backing: Backing | None = None) -> None:
        """Create the empty file.

        Args:
            backing: a file of a checkpoint to use instead of one without a name.

        Raises:
            OSError: if the file cannot be created.
        """
        self.close()
        self._backing = AnonymousFile(self.folder) if backing is None else backing
        if self.limit_bytes is None:
            status = os.statvfs(
                self._backing.file.fileno() if isinstance(self._backing, AnonymousFile) else self.folder
            )
            self.limit_bytes = status.f_bavail * status.f_frsize // 2

    def resume(self, backing: Backing, size_bytes: int, records: int) -> None:
        """Continue with what an earlier process has written.

        Raises:
            OSError: if the file system cannot report its free space.
        """
        self.begin(backing)
        self.size_bytes, self.records = size_bytes, records

    def append(self, data: memoryview, records: int) -> None:
        """Write `records` records at the end.

        Raises:
            ScratchFullError: if the file would exceed its limit.
            OSError: if the bytes cannot be written.
        """
        assert self._backing is not None, "written between begin and close"
        assert self.limit_bytes is not None
        if self.size_bytes + len(data) > self.limit_bytes:
            raise ScratchFullError
        self._backing.write_at(data, self.size_bytes)
        self.size_bytes += len(data)
        self.records += records

    def read_into(self, buffer: memoryview, offset: int) -> int:
        """Fill `buffer` from `offset` and return the number of bytes read."""
        assert self._backing is not None, "read between begin and close"
        return self._backing.read_into(buffer, offset)

    def close(self) -> None:
        """Free the bytes of a file without a name. Calling it twice does nothing."""
        backing, self._backing = self._backing, None
        self.size_bytes = self.records = 0
        if isinstance(backing, AnonymousFile):
            backing.file.close()
