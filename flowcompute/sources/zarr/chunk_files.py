"""Files or objects of a Zarr array's chunks: which there are, in which state, and their bytes."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from flowcompute.files import Files, Fingerprint
from flowcompute.imports import hashlib
from flowcompute.objects import ObjectFiles
from flowcompute.sources.chunked import ChunkError
from flowcompute.sources.zarr.metadata import V2, V2_GROUP, V3, ZarrArray

MOST_FILES = 10_000_000
_NOTHING = (1 << 64) - 1
"""Offset and length of a chunk that is not there, in the index of a shard."""
_KEPT_INDICES = 64
"""Indices of shards that are kept."""


class Listing(NamedTuple):
    """The state of all files of chunks: their number, the largest, the latest change, and a digest of these."""

    files: int
    largest: int
    newest_ns: int
    digest: str


def list_chunks(files: Files, folder: str, note: Callable[[str, Fingerprint], None] | None = None) -> Listing:
    """Return the state of the files below a folder, or of the objects below a URL.

    Args:
        files: the file layer.
        folder: of the array.
        note: is told the path of each below the array, and its state.

    Raises:
        OSError: if it cannot be read, has a link in it, or more than `MOST_FILES` files.
    """
    digest = hashlib.sha256()
    count = largest = newest = 0
    for path, state in files.states_below(folder) if isinstance(files, ObjectFiles) else _states(files, folder):
        if _is_metadata(path):
            continue
        said = state.etag or state.mtime_ns
        digest.update(f"{path}\0{state.size} {said}\n".encode(errors="surrogateescape"))
        count, largest = count + 1, max(largest, state.size)
        newest = max(newest, state.mtime_ns)
        if count > MOST_FILES:
            raise OSError(errno.EFBIG, f"it has more than {MOST_FILES:,} files", folder)
        if note is not None:
            note(path, state)
    return Listing(count, largest, newest, digest.hexdigest())


def _states(files: Files, folder: str) -> Iterator[tuple[str, Fingerprint]]:
    """Yield path and state of each file below a folder, in an order that its names give."""
    todo = [""]
    while todo:
        below = todo.pop()
        for name in files.list_folder(os.path.join(folder, below)):
            path = os.path.join(below, name)
            if _is_metadata(path):
                continue
            status = files.lstat(os.path.join(folder, path))
            if stat.S_ISDIR(status.st_mode):
                todo.append(path)
                continue
            if not stat.S_ISREG(status.st_mode):
                raise OSError(errno.ELOOP, "a chunk is a link, or no file", os.path.join(folder, path))
            yield path, Fingerprint.of(status)


def _is_metadata(path: str) -> bool:
    """Check whether a path below an array is none of a chunk."""
    return path in (V3, V2, V2_GROUP) or path.startswith(".z")


class ChunkFiles:
    """Chunks of an array by their indices, as they are stored.

    Args:
        files: the file layer.
        folder: of the array.
        array: what it is.
        listing: its files, as they were when it was composed.
    """

    def __init__(self, files: Files, folder: str, array: ZarrArray, listing: Listing) -> None:
        self._files, self._folder, self._array, self._listing = files, folder, array, listing
        self._folders = {folder}
        self._indices: dict[tuple[int, ...], np.ndarray | None] = {}

    def read(self, index: tuple[int, ...]) -> bytes | None:
        """Return the bytes of a chunk, or None where it is not there.

        Raises:
            OSError: as the system does; also where a link would be followed, or a file is newer than the job.
            ChunkError: if the index of its shard is damaged.
        """
        sharding = self._array.sharding
        if sharding is None:
            return self._whole(self._array.key(index))
        parts = tuple(outer // inner for outer, inner in zip(sharding.shard, self._array.chunk, strict=True))
        shard = tuple(i // part for i, part in zip(index, parts, strict=True))
        if shard not in self._indices:
            while len(self._indices) >= _KEPT_INDICES:
                # Another thread may have removed it.
                self._indices.pop(next(iter(self._indices)), None)
            self._indices[shard] = self._index(shard)
        places = self._indices.get(shard)
        if places is None:
            return None
        own = tuple(i % part for i, part in zip(index, parts, strict=True))
        offset, size = (int(number) for number in places[own])
        if (offset, size) == (_NOTHING, _NOTHING):
            return None
        return self._part(self._array.key(shard), offset, size)

    def _index(self, shard: tuple[int, ...]) -> np.ndarray | None:
        sharding = self._array.sharding
        assert sharding is not None
        count = sharding.count(self._array.chunk)
        length = sharding.index.encoded_size(16 * count)
        assert length is not None
        handle = self._opened(self._array.key(shard))
        if handle is None:
            return None
        try:
            size = self._files.status(handle).st_size
            if size < length:
                raise ChunkError("its shard is shorter than the index of its chunks")
            data = self._read(handle, size - length if sharding.at_end else 0, length)
        finally:
            self._files.close(handle)
        places = np.frombuffer(sharding.index.decode(data, 16 * count), "<u8")
        parts = (outer // inner for outer, inner in zip(sharding.shard, self._array.chunk, strict=True))
        return places.reshape(*parts, 2)

    def _whole(self, key: str) -> bytes | None:
        handle = self._opened(key)
        if handle is None:
            return None
        try:
            return self._read(handle, 0, min(self._files.status(handle).st_size, self._listing.largest))
        finally:
            self._files.close(handle)

    def _part(self, key: str, offset: int, size: int) -> bytes:
        handle = self._opened(key)
        if handle is None:
            raise ChunkError("its shard is gone")
        try:
            total = self._files.status(handle).st_size
            if offset + size > total:
                raise ChunkError(f"the index of its shard places it behind the shard's {total:,} bytes")
            return self._read(handle, offset, size)
        finally:
            self._files.close(handle)

    def _read(self, handle: int, offset: int, size: int) -> bytes:
        data = bytearray(size)
        if self._files.read_into(handle, memoryview(data), offset) != size:
            raise ChunkError("its file ends before it does")
        return bytes(data)

    def _opened(self, key: str) -> int | None:
        """Open a file below the array, of which no part is a link. None where it is not there."""
        path = self._folder
        *above, _ = parts = key.split("/")
        for name in above:
            path = os.path.join(path, name)
            if path not in self._folders:
                try:
                    if not self._files.is_folder(path):
                        raise OSError(errno.ELOOP, "a part of its path is a link, or no folder", path)
                except FileNotFoundError:
                    return None
                self._folders.add(path)
        path = os.path.join(self._folder, *parts)
        try:
            status = self._files.lstat(path)
            if stat.S_ISLNK(status.st_mode):
                raise OSError(errno.ELOOP, "it is a link", path)
            handle = self._files.open_read(path)
        except FileNotFoundError:
            return None
        now = self._files.status(handle)
        if (now.st_ino, now.st_dev) != (status.st_ino, status.st_dev) or now.st_mtime_ns > self._listing.newest_ns:
            self._files.close(handle)
            raise OSError(errno.ESTALE, "it changed since the array was opened for this job", path)
        return handle
