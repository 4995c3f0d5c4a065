"""Whole files of a checkpoint: written durably, read completely, and every error with the path it happened at."""

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
# What the system says of a file that is lost or rotten. Anything else (permissions, descriptors, memory) is no
# property of the file: with another generation it would be the same, or better soon.
_DAMAGE = {errno.ENOENT, errno.EIO, errno.EUCLEAN, errno.EBADMSG, errno.EISDIR, errno.EINVAL, errno.ELOOP, errno.ENXIO}


@contextlib.contextmanager
def naming(action: str, path: str) -> Iterator[None]:
    """Turn what the system refuses into a CheckpointError that names the path."""
    try:
        yield
    except OSError as error:
        problem, hint = explain(error)
        raise CheckpointError(f"cannot {action} {shown(path)}: {problem}", hint=hint) from error


@contextlib.contextmanager
def reading(path: str) -> Iterator[None]:
    """The same for reading; what means that the file itself is bad becomes a DamagedError."""
    try:
        yield
    except OSError as error:
        problem, hint = explain(error)
        kind = DamagedError if error.errno in _DAMAGE else CheckpointError
        raise kind(f"cannot read {shown(path)}: {problem}", hint=hint) from error


def write_new(files: Files, path: str, parts: Iterable[memoryview | bytes]) -> None:
    """Write a file that must not exist yet and make its contents durable. On an error it is gone again."""
    with naming("write", path):
        handle = files.create(path, FILE_MODE)
        _fill(files, handle, path, parts)


def write_over(files: Files, path: str, parts: Iterable[memoryview | bytes]) -> None:
    """Make a file's contents durable under a temporary name, then give it its name, atomically."""
    with naming("write", path):
        handle, temporary = files.create_temporary(path, FILE_MODE)
        _fill(files, handle, temporary, parts)
        try:
            files.replace(temporary, path)
        except OSError:
            _forget(files, temporary)
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
        _forget(files, path)
        raise


def _forget(files: Files, path: str) -> None:
    # Nothing refers to the file: what cannot be removed now goes when the folder is tidied.
    with contextlib.suppress(OSError):
        files.remove(path)


def read_whole(files: Files, path: str, limit_bytes: int) -> bytes:
    """All of a file that may have `limit_bytes` bytes.

    Raises:
        DamagedError: if it is missing, larger, or cannot be read.
    """
    with OpenFile(files, path) as file:
        if file.size_bytes > limit_bytes:
            raise DamagedError(f"{shown(path)} has {file.size_bytes} bytes, where {limit_bytes} are the most")
        data = bytearray(file.size_bytes)
        file.read_into(memoryview(data), 0)
    return bytes(data)


class OpenFile:
    """A file open for reading: what is missing of it is a DamagedError that names it."""

    def __init__(self, files: Files, path: str) -> None:
        self._files = files
        self._path = path
        with reading(path):
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
        """Close it."""
        with reading(self._path):
            self._files.close(self._handle)

    def read_into(self, buffer: memoryview, offset: int) -> None:
        """Fill `buffer` from `offset`."""
        with reading(self._path):
            count = self._files.read_into(self._handle, buffer, offset)
        if count < len(buffer):
            raise DamagedError(f"{shown(self._path)} ends at byte {offset + count}")

    def sha256(self, offset: int, size_bytes: int) -> bytes:
        """SHA-256 of a part, in bounded memory."""
        digest = hashlib.sha256()
        buffer = memoryview(bytearray(min(size_bytes, _CHUNK_BYTES)))
        for at in range(offset, offset + size_bytes, _CHUNK_BYTES):
            part = buffer[: min(_CHUNK_BYTES, offset + size_bytes - at)]
            self.read_into(part, at)
            digest.update(part)
        return digest.digest()


def sync_folder(files: Files, folder: str) -> None:
    """Make the names in a folder durable."""
    with naming("write", folder):
        files.fsync_folder(folder)


def base(path: str) -> str:
    """The last part of a path, as messages within a folder show it."""
    return shown(os.path.basename(path))
