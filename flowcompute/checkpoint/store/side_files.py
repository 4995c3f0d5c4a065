"""Append-only files beside the generations: what is too large to be written again with each of them."""

from __future__ import annotations

import hashlib
import os

from flowcompute.checkpoint.store.durable_files import FILE_MODE, OpenFile, naming, reading
from flowcompute.checkpoint.store.values import DamagedError, SideMark
from flowcompute.errors import CheckpointError
from flowcompute.files import Files, shown

SUFFIX = ".side"
_CHUNK_BYTES = 1 << 20


class SideFile:
    """A file that grows. A generation that holds its `mark()` refers to the bytes that it had then.

    What lies beyond the mark of the generation that a job is resumed from was never committed: `restore` cuts it off.
    One thread may write to it while another one commits.

    Attributes:
        name: as given to `CheckpointFolder.side`.
        size: bytes that it has.
    """

    def __init__(self, files: Files, folder: str, name: str, *, writable: bool) -> None:
        self.name = name
        self._files = files
        self._path = os.path.join(folder, name + SUFFIX)
        self._writable = writable
        self._broken = False
        self._handle: int | None = None
        # Of the first `_hashed` bytes; the rest is read when a mark is asked for.
        self._digest = hashlib.sha256()
        self._hashed = 0
        with naming("open", self._path):
            self._handle = (
                files.open_update(self._path, create=True, mode=FILE_MODE) if writable else files.open_read(self._path)
            )
            try:
                self.size = files.status(self._handle).st_size
            except OSError:
                files.close(self._handle)
                raise
        # Counted when they have ended, so that one that goes on during an fsync asks for another.
        self._changes = 0
        self._synced_changes = 0 if self.size == 0 else -1

    @property
    def closed(self) -> bool:
        """Whether `close` was called."""
        return self._handle is None

    def write_at(self, data: memoryview | bytes, offset: int) -> None:
        """Write all of `data` (bytes) at `offset`, which is the end of the file as a rule.

        Raises:
            CheckpointError: if the disk refuses; the file is as it was before, as far as marks see.
        """
        handle = self._for_writing()
        try:
            with naming("write", self._path):
                self._files.write_at(handle, data, offset)
        finally:
            self._changes += 1
        if offset == self.size == self._hashed:
            self._digest.update(data)
            self._hashed += len(data)
        elif offset < self._hashed:
            self._forget_digest()
        self.size = max(self.size, offset + len(data))

    def read_into(self, buffer: memoryview, offset: int) -> int:
        """Fill `buffer` (bytes) from `offset`; returns how many bytes came, fewer only at the end of the file."""
        handle = self._open_handle()
        with reading(self._path):
            return self._files.read_into(handle, buffer, offset)

    def truncate(self, size: int) -> None:
        """Cut or extend it to `size` bytes."""
        handle = self._for_writing()
        try:
            with naming("cut", self._path):
                self._files.truncate(handle, size)
        finally:
            self._changes += 1
        if size < self._hashed:
            self._forget_digest()
        self.size = size

    def fsync(self) -> None:
        """Make its contents durable; its name becomes durable with the next commit.

        Raises:
            CheckpointError: if the disk refuses. Nothing can be written to the file then until it is opened again.
        """
        handle, changes = self._for_writing(), self._changes
        if self._synced_changes == changes:
            return
        try:
            with naming("write", self._path):
                self._files.fsync(handle)
        except BaseException:
            # The system may take what it failed to write for written: a second fsync would lie.
            self._broken = True
            raise
        self._synced_changes = changes

    def mark(self) -> SideMark:
        """What a generation keeps of this file: all that it has now."""
        self._open_handle()
        self._hash_up_to(self.size)
        return SideMark(self.name, self.size, self._digest.digest())

    def restore(self, mark: SideMark) -> None:
        """Go back to a mark: what lies beyond is cut off.

        Raises:
            CheckpointError: if the bytes before it are not those that were committed.
        """
        if self._hashed > mark.size_bytes:
            self._forget_digest()
        if self.size >= mark.size_bytes:
            self._hash_up_to(mark.size_bytes)
        if self._hashed != mark.size_bytes or self._digest.digest() != mark.sha256:
            raise DamagedError(f"{shown(self._path)} does not hold the {mark.size_bytes} bytes that were committed")
        if self.size > mark.size_bytes:
            self.truncate(mark.size_bytes)

    def close(self) -> None:
        """Close it; harmless when called twice."""
        handle, self._handle = self._handle, None
        if handle is not None:
            with naming("close", self._path):
                self._files.close(handle)

    def _hash_up_to(self, size: int) -> None:
        buffer = memoryview(bytearray(min(max(size - self._hashed, 0), _CHUNK_BYTES)))
        while self._hashed < size:
            part = buffer[: size - self._hashed]
            if self.read_into(part, self._hashed) < len(part):
                raise DamagedError(f"{shown(self._path)} is shorter than it was")
            self._digest.update(part)
            self._hashed += len(part)

    def _forget_digest(self) -> None:
        self._digest, self._hashed = hashlib.sha256(), 0

    def _open_handle(self) -> int:
        if self._handle is None:
            raise ValueError(f"the side file {self.name!r} is closed")
        return self._handle

    def _for_writing(self) -> int:
        handle = self._open_handle()
        if not self._writable:
            raise ValueError(f"the side file {self.name!r} is open for reading only")
        if self._broken:
            raise CheckpointError(
                f"{shown(self._path)} cannot be trusted: its fsync failed",
                hint="resume the job from its last checkpoint",
            )
        return handle


def matches(files: Files, folder: str, mark: SideMark) -> None:
    """Check that a side file holds what a generation refers to.

    Raises:
        DamagedError: if not.
    """
    path = os.path.join(folder, mark.name + SUFFIX)
    with OpenFile(files, path) as file:
        if file.sha256(0, mark.size_bytes) != mark.sha256:
            raise DamagedError(f"{shown(path)} does not hold the {mark.size_bytes} bytes that were committed")
