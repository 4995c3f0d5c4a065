"""Side files: append-only files beside the generations, too large to be written anew with each of them."""

from __future__ import annotations

import hashlib
import os

from flowcompute.checkpoint.store.durable_files import FILE_MODE, OpenFile, naming_path, reading_path
from flowcompute.checkpoint.store.values import DamagedError, SideMark
from flowcompute.errors import CheckpointError
from flowcompute.files import Files, shown

SUFFIX = ".side"
_CHUNK_BYTES = 1 << 20


class SideFile:
    """An append-only file. A generation that holds its `mark()` refers to the bytes that it had then.

    Bytes beyond the mark of the generation that a job is resumed from were never committed. `restore` cuts them
    off. One thread may write to the file while another one commits.

    Attributes:
        name: as given to `CheckpointFolder.side`.
        size: its bytes.
    """

    def __init__(self, files: Files, folder: str, name: str, *, writable: bool) -> None:
        self.name = name
        self._files = files
        self._path = os.path.join(folder, name + SUFFIX)
        self._writable = writable
        self._broken = False
        self._handle: int | None = None
        # Of the first `_hashed` bytes. The rest is read when a mark is requested.
        self._digest = hashlib.sha256()
        self._hashed = 0
        with naming_path("open", self._path):
            self._handle = (
                files.open_update(self._path, create=True, mode=FILE_MODE) if writable else files.open_read(self._path)
            )
            try:
                self.size = files.status(self._handle).st_size
            except OSError:
                files.close(self._handle)
                raise
        # Changes count when they have ended: one that is in progress during an fsync needs another fsync.
        self._changes = 0
        self._synced_changes = 0 if self.size == 0 else -1

    @property
    def closed(self) -> bool:
        """True after `close`."""
        return self._handle is None

    def write_at(self, data: memoryview | bytes, offset: int) -> None:
        """Write all of `data` (bytes) at `offset`, which is normally the end of the file.

        Raises:
            CheckpointError: if the disk refuses. The bytes that marks refer to are unchanged then.
        """
        handle = self._for_writing()
        try:
            with naming_path("write", self._path):
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
        """Fill `buffer` (bytes) from `offset` and return the number of bytes read.

        It is smaller than the buffer only at the end of the file.
        """
        handle = self._open_handle()
        with reading_path(self._path):
            return self._files.read_into(handle, buffer, offset)

    def truncate(self, size: int) -> None:
        """Cut or extend the file to `size` bytes."""
        handle = self._for_writing()
        try:
            with naming_path("cut", self._path):
                self._files.truncate(handle, size)
        finally:
            self._changes += 1
        if size < self._hashed:
            self._forget_digest()
        self.size = size

    def fsync(self) -> None:
        """Make the contents durable. The name becomes durable with the next commit.

        Raises:
            CheckpointError: if the disk refuses. The file then takes no more writes until it is opened again.
        """
        handle, changes = self._for_writing(), self._changes
        if self._synced_changes == changes:
            return
        try:
            with naming_path("write", self._path):
                self._files.fsync(handle)
        except BaseException:
            # The system may regard what it failed to write as written, so a second fsync may wrongly succeed.
            self._broken = True
            raise
        self._synced_changes = changes

    def mark(self) -> SideMark:
        """Return the mark that a generation keeps of this file: its present size and checksum."""
        self._open_handle()
        self._hash_up_to(self.size)
        return SideMark(self.name, self.size, self._digest.digest())

    def restore(self, mark: SideMark) -> None:
        """Return the file to a mark: bytes beyond it are cut off.

        Raises:
            CheckpointError: if the bytes before it are not those that were committed.
        """
        if self._hashed > mark.size_bytes:
            self._forget_digest()
        if self.size >= mark.size_bytes:
            self._hash_up_to(mark.size_bytes)
        if self._hashed != mark.size_bytes or self._digest.digest() != mark.sha256:
            raise DamagedError(
                f"cannot restore {shown(self._path)}: it does not hold the {mark.size_bytes} bytes that were committed"
            )
        if self.size > mark.size_bytes:
            self.truncate(mark.size_bytes)

    def close(self) -> None:
        """Close the file. Calling it twice does nothing."""
        handle, self._handle = self._handle, None
        if handle is not None:
            with naming_path("close", self._path):
                self._files.close(handle)

    def _hash_up_to(self, size: int) -> None:
        buffer = memoryview(bytearray(min(max(size - self._hashed, 0), _CHUNK_BYTES)))
        while self._hashed < size:
            part = buffer[: size - self._hashed]
            if self.read_into(part, self._hashed) < len(part):
                raise DamagedError(f"cannot read {shown(self._path)}: it is shorter than it was")
            self._digest.update(part)
            self._hashed += len(part)

    def _forget_digest(self) -> None:
        self._digest, self._hashed = hashlib.sha256(), 0

    def _open_handle(self) -> int:
        if self._handle is None:
            raise ValueError(f"cannot use the side file {self.name!r}: it is closed")
        return self._handle

    def _for_writing(self) -> int:
        handle = self._open_handle()
        if not self._writable:
            raise ValueError(f"cannot write the side file {self.name!r}: it is open for reading only")
        if self._broken:
            raise CheckpointError(
                f"cannot write {shown(self._path)}: its fsync failed, so it cannot be trusted",
                hint="resume the job from its last checkpoint",
            )
        return handle


def check_side_file(files: Files, folder: str, mark: SideMark) -> None:
    """Check that a side file holds the bytes that a generation refers to.

    Raises:
        DamagedError: if it does not.
    """
    path = os.path.join(folder, mark.name + SUFFIX)
    with OpenFile(files, path) as file:
        if file.sha256(0, mark.size_bytes) != mark.sha256:
            raise DamagedError(
                f"cannot use {shown(path)}: it does not hold the {mark.size_bytes} bytes that were committed"
            )
