"""A temporary file of records: written once, read as often as needed, and gone with the process."""

from __future__ import annotations

import os
import tempfile
from typing import IO, Protocol

from flowcompute.files.file_layer import FILES


class ScratchFullError(Exception):
    """More was written than the limit allows."""


class Backing(Protocol):
    """What the bytes are written to."""

    def write_at(self, data: memoryview | bytes, offset: int) -> None:
        """Write all of `data` at `offset`."""

    def read_into(self, buffer: memoryview, offset: int) -> int:
        """Fill `buffer` from `offset`; returns how many bytes there were."""


class Nameless:
    """A file without a name."""

    def __init__(self, folder: str) -> None:
        self.file: IO[bytes] = tempfile.TemporaryFile(dir=folder, buffering=0)  # noqa: SIM115 - closed by `Scratch.close`

    def write_at(self, data: memoryview | bytes, offset: int) -> None:
        """Write all of `data` at `offset`."""
        FILES.write_at(self.file.fileno(), data, offset)

    def read_into(self, buffer: memoryview, offset: int) -> int:
        """Fill `buffer` from `offset`; returns how many bytes there were."""
        return FILES.read_into(self.file.fileno(), buffer, offset)


class Scratch:
    """A file without a name, so that nothing is left behind whatever happens, or a file of a checkpoint.

    Args:
        folder: where its bytes lie; the system's folder for temporary files by default.
        limit_bytes: the most that it may take; half of what is free there by default.

    Attributes:
        size_bytes: bytes written.
        records: records that these are; of items without numbers they tell all.
    """

    def __init__(self, folder: str | None, limit_bytes: int | None) -> None:
        self.folder = folder or tempfile.gettempdir()
        self.limit_bytes = limit_bytes
        self.size_bytes = 0
        self.records = 0
        self._backing: Backing | None = None

    def begin(self, backing: Backing | None = None) -> None:
        """Make the file, empty.

        Args:
            backing: a file of a checkpoint to use instead of one without a name.

        Raises:
            OSError: if there can be none.
        """
        self.close()
        self._backing = Nameless(self.folder) if backing is None else backing
        if self.limit_bytes is None:
            status = os.statvfs(self._backing.file.fileno() if isinstance(self._backing, Nameless) else self.folder)
            self.limit_bytes = status.f_bavail * status.f_frsize // 2

    def resume(self, backing: Backing, size_bytes: int, records: int) -> None:
        """Go on with what an earlier process has written.

        Raises:
            OSError: if the file system cannot be asked how much is free.
        """
        self.begin(backing)
        self.size_bytes, self.records = size_bytes, records

    def append(self, data: memoryview, records: int) -> None:
        """Write `records` records at the end.

        Raises:
            ScratchFullError: if that is beyond the limit.
            OSError: if it cannot be written.
        """
        assert self._backing is not None, "written between begin and close"
        assert self.limit_bytes is not None
        if self.size_bytes + len(data) > self.limit_bytes:
            raise ScratchFullError
        self._backing.write_at(data, self.size_bytes)
        self.size_bytes += len(data)
        self.records += records

    def read_into(self, buffer: memoryview, offset: int) -> int:
        """Fill `buffer` from `offset`; returns how many bytes there were."""
        assert self._backing is not None, "read between begin and close"
        return self._backing.read_into(buffer, offset)

    def close(self) -> None:
        """Give the bytes back, where the file has no name; harmless when called twice."""
        backing, self._backing = self._backing, None
        self.size_bytes = self.records = 0
        if isinstance(backing, Nameless):
            backing.file.close()
