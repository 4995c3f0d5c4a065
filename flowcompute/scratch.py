"""A temporary file of records: written once, read as often as needed, and gone with the process."""

from __future__ import annotations

import os
import tempfile
from typing import IO


class ScratchFullError(Exception):
    """More was written than the limit allows."""


class Scratch:
    """A file without a name, so that nothing is left behind whatever happens.

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
        self._file: IO[bytes] | None = None

    def begin(self) -> None:
        """Make the file, empty.

        Raises:
            OSError: if there can be none.
        """
        self.close()
        self._file = tempfile.TemporaryFile(dir=self.folder, buffering=0)  # noqa: SIM115 - closed by `close`
        if self.limit_bytes is None:
            status = os.statvfs(self._file.fileno())
            self.limit_bytes = status.f_bavail * status.f_frsize // 2

    def append(self, data: memoryview, records: int) -> None:
        """Write `records` records at the end.

        Raises:
            ScratchFullError: if that is beyond the limit.
            OSError: if it cannot be written.
        """
        assert self._file is not None, "written between begin and close"
        assert self.limit_bytes is not None
        if self.size_bytes + len(data) > self.limit_bytes:
            raise ScratchFullError
        done = 0
        while done < len(data):
            done += os.pwrite(self._file.fileno(), data[done:], self.size_bytes + done)
        self.size_bytes += len(data)
        self.records += records

    def read_into(self, buffer: memoryview, offset: int) -> int:
        """Fill `buffer` from `offset`; returns how many bytes there were."""
        assert self._file is not None, "read between begin and close"
        done = 0
        while done < len(buffer):
            count = os.preadv(self._file.fileno(), [buffer[done:]], offset + done)
            if not count:
                break
            done += count
        return done

    def close(self) -> None:
        """Give the bytes back; harmless when called twice."""
        file, self._file = self._file, None
        self.size_bytes = self.records = 0
        if file is not None:
            file.close()
