"""Whole files of a checkpoint: durable writes, complete reads, and errors that name the path."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
from collections.abc import Iterable, Iterator

from flowcompute.checkpoint.store.values import DamagedError
from flowcompute.errors import CheckpointError
from flowcompute.files import Files, explain, shown

FILE_MODE = 0o600
FOLDER_MODE = 0o700
_CHUNK_BYTES = 1 << 20
# Errors that say that the file itself is lost or damaged. Any other error (permissions, descriptors, memory) is not a
# property of the file: another generation would fail alike, or the same one works later.
_DAMAGE = {errno.ENOENT, errno.EIO, errno.EUCLEAN, errno.EBADMSG, errno.EISDIR, errno.EINVAL, errno.ELOOP, errno.ENXIO}


@contextlib.contextmanager
def naming_path(action: str, path: str) -> Iterator[None]:
    """Turn an OSError into a CheckpointError that names the path."""
    try:
        yield
    except OSError as error:
        problem, hint = explain(error)
        raise CheckpointError(f"cannot {action} {shown(path)}: {problem}", hint=hint) from error


@contextlib.contextmanager
def reading_path(path: str) -> Iterator[None]:
    """Turn an OSError on reading into a CheckpointError that names the path.

    An error that means that the file itself is bad becomes a DamagedError.
    """
    try:
        yield
    except OSError as error:
        problem, hint = explain(error)
        kind = DamagedError if error.errno in _DAMAGE else CheckpointError
        raise kind(f"cannot read {shown(path)}: {problem}", hint=hint) from error


def write_new(files: Files, path: str, parts: Iterable[memoryview | bytes]) -> None:
    """Write a file that must not exist yet and make its contents durable. On an error it is removed again."""
    with naming_path("write", path):
        handle = files.create(path, FILE_MODE)
        _fill(files, handle, path, parts)


def write_over(files: Files, path: str, parts: Iterable[memoryview | bytes]) -> None:
    """Replace a file atomically: write a temporary file, make it durable, and rename it."""
    with naming_path("write", path):
        handle, temporary = files.create_temporary(path, FILE_MODE)
        _fill(files, handle, temporary, parts)
        try:
            files.replace(temporary, path)
        except OSError:
            _remove_quietly(files, temporary)
            raise


def _fill(files: Files, handle: int, path: str, parts: Iterable[memoryview | bytes]) -> None:
    try:
        try:
            offset = 0
            for part in parts:
                files.write_at(handle, part, offset)
                offset += len(part)
            files.fsync(handle)
        finally:
            files.close(handle)
    except OSError:
        _remove_quietly(files, path)
        raise


def _remove_quietly(files: Files, path: str) -> None:
    # Nothing refers to the file. If it cannot be removed now, `Retention.remove_unneeded` removes it later.
    with contextlib.suppress(OSError):
        files.remove(path)


def read_whole(files: Files, path: str, limit_bytes: int) -> bytes:
    """Return all bytes of a file of at most `limit_bytes` bytes.

    Raises:
        DamagedError: if it is missing, larger, or cannot be read.
    """
    with OpenFile(files, path) as file:
        if file.size_bytes > limit_bytes:
            raise DamagedError(
                f"cannot read {shown(path)}: it has {file.size_bytes} bytes, but at most {limit_bytes} are allowed"
            )
        data = bytearray(file.size_bytes)
        file.read_into(memoryview(data), 0)
    return bytes(data)


class OpenFile:
    """A file open for reading. A missing part of it is a DamagedError that names the file."""

    def __init__(self, files: Files, path: str) -> None:
        self._files = files
        self._path = path
        with reading_path(path):
            self._handle = files.open_read(path)
            try:
                self.size_bytes = files.status(self._handle).st_size
            except OSError:
                files.close(self._handle)
                raise

    def __enter__(self) -> OpenFile:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        with reading_path(self._path):
            self._files.close(self._handle)

    def read_into(self, buffer: memoryview, offset: int) -> None:
        """Fill `buffer` from `offset`.

        Raises:
            DamagedError: if the file ends before the buffer is full.
        """
        with reading_path(self._path):
            count = self._files.read_into(self._handle, buffer, offset)
        if count < len(buffer):
            raise DamagedError(f"cannot read {shown(self._path)}: it ends at byte {offset + count}")

    def sha256(self, offset: int, size_bytes: int) -> bytes:
        """Compute the SHA-256 of a part of the file in bounded memory."""
        digest = hashlib.sha256()
        buffer = memoryview(bytearray(min(size_bytes, _CHUNK_BYTES)))
        for at in range(offset, offset + size_bytes, _CHUNK_BYTES):
            part = buffer[: min(_CHUNK_BYTES, offset + size_bytes - at)]
            self.read_into(part, at)
            digest.update(part)
        return digest.digest()


def sync_folder(files: Files, folder: str) -> None:
    """Make the names in a folder durable."""
    with naming_path("write", folder):
        files.fsync_folder(folder)


def file_name(path: str) -> str:
    """Return the last component of a path, as messages within a folder show it."""
    return shown(os.path.basename(path))
