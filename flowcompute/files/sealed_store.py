"""Store of what was made once and is kept between runs: hash-named, checksummed files in a private folder."""

from __future__ import annotations

import contextlib
import os
import struct

from flowcompute.files.user_cache import private_folder, read_private, write_private
from flowcompute.imports import hashlib, logging

_HEADER = struct.Struct("<8sQ32s")


class SealedStore:
    """Contents on disk, by key. It never raises: what cannot be read or written is made again.

    A file is a header (magic, length, SHA-256 of key and content) and the content. Any other file under that
    name is removed and counts as missing.

    Args:
        name: of the folder in the user's cache folder.
        magic: eight bytes that files begin with.
        limit_bytes: of all files together. Those unused for the longest time are removed first.

    Attributes:
        folder: the folder of the files; None if nothing is kept.
        reason: why nothing is kept; empty otherwise.
    """

    def __init__(self, name: str, magic: bytes, limit_bytes: int) -> None:
        self.folder, self.reason = private_folder(name)
        self._magic, self._limit_bytes = magic, limit_bytes

    def _path(self, key: str) -> str | None:
        return None if self.folder is None else os.path.join(self.folder, f"{key}.bin")

    def load(self, key: str) -> bytes | None:
        """Return the stored content if it is there and intact, or None."""
        path = self._path(key)
        if path is None:
            return None
        data = read_private(path, self._limit_bytes)
        if data is None:
            return None
        content = self._unsealed(key, data)
        if content is not None:
            with contextlib.suppress(OSError):
                os.utime(path)
            return content
        logging.getLogger(__name__).info("%s is damaged and is made again", path)
        self.remove(key)
        return None

    def store(self, key: str, content: bytes) -> None:
        """Store a content: complete under its name, or not at all."""
        path = self._path(key)
        if path is None or self.folder is None:
            return
        header = _HEADER.pack(self._magic, len(content), _digest(key, content))
        if write_private(self.folder, os.path.basename(path), header + content):
            with contextlib.suppress(OSError):
                self._trim()

    def remove(self, key: str) -> None:
        """Remove a content."""
        path = self._path(key)
        if path is not None:
            with contextlib.suppress(OSError):
                os.unlink(path)

    def _unsealed(self, key: str, data: bytes) -> bytes | None:
        """Return the content of a stored file if `store` wrote it for this key, or None."""
        if len(data) < _HEADER.size:
            return None
        magic, length, digest = _HEADER.unpack_from(data)
        content = data[_HEADER.size :]
        whole = magic == self._magic and length == len(content) and digest == _digest(key, content)
        return content if whole else None

    def _trim(self) -> None:
        assert self.folder is not None
        with os.scandir(self.folder) as entries:
            found = [(entry.stat(follow_symlinks=False), entry.path) for entry in entries]
        # Temporary files that a killed process left behind expire like the others.
        files = sorted((status.st_mtime, path, status.st_size) for status, path in found)
        total = sum(size for _, _, size in files)
        for _, path, size in files:
            if total <= self._limit_bytes:
                break
            os.unlink(path)
            total -= size


def _digest(key: str, content: bytes) -> bytes:
    return hashlib.sha256(key.encode() + b"\n" + content).digest()
