"""File layer: every read of user data and every write, rename and fsync of the package goes through `Files`.

The package uses one small object for all of them. Tests can therefore make any single operation fail, tear a write,
or record what was done. The same rules hold everywhere. Sizes are compared before anything is mapped or
allocated. Descriptors are never inherited. Nothing but a regular file is opened. A written file appears under
its name only when it is complete.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import functools
import glob
import mmap
import os
import stat
from collections.abc import Callable
from typing import cast

import numpy as np

from flowcompute.files.file_states import Fingerprint
from flowcompute.files.folders import Folders


@functools.cache
def system_library() -> ctypes.CDLL:
    """Return the C library of this process, whose calls do not hold the interpreter."""
    return ctypes.CDLL(None)


_MAP_FIXED = 0x10
"""Flag of `mmap` by which pages of a mapping are replaced, on Linux."""


@functools.cache
def _system_map() -> Callable[[int, int, int, int, int, int], int | None]:
    call = ctypes.CDLL(None, use_errno=True).mmap
    call.restype = ctypes.c_void_p
    call.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
    return cast("Callable[[int, int, int, int, int, int], int | None]", call)


class Files(Folders):
    """Operations on files that the package needs. Each raises OSError as the system does.

    Descriptors are plain integers from `open_read` and `create_temporary`. They are given back to `close`.

    Attributes:
        local: whether files have descriptors of the system, so that they can be mapped and cached.
        least_part_bytes: bytes that are worth a read of their own.
    """

    local = True
    least_part_bytes = 1 << 18  # handing less to another thread costs more than reading it

    def readers(self, threads: int) -> int:
        """Return how many threads share one read, of those that may."""
        return threads

    # -- reading --------------------------------------------------------------------------

    def open_read(self, path: str) -> int:
        """Open a regular file for reading. Anything else is refused without waiting for it."""
        # The path is looked at first because merely opening a device or a pipe can act on it. The descriptor is looked
        # at again because the path may have changed hands in between.
        _require_regular(self.stat(path), path)
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
        try:
            _require_regular(self.status(handle), path)
        except OSError:
            self.close(handle)
            raise
        return handle

    def read_into(self, handle: int, buffer: memoryview, offset: int) -> int:
        """Fill `buffer` (bytes) from `offset` and return the bytes read, fewer only at the end of the file."""
        done = 0
        while done < len(buffer):
            count = self._read_some(handle, buffer[done:], offset + done)
            if count == 0:
                break
            done += count
        return done

    def _read_some(self, handle: int, buffer: memoryview, offset: int) -> int:
        return os.preadv(handle, [buffer], offset)

    def read_bytes(self, path: str) -> bytes:
        """Return all bytes of a small file."""
        handle = self.open_read(path)
        try:
            data = bytearray(self.status(handle).st_size)
            count = self.read_into(handle, memoryview(data), 0)
        finally:
            self.close(handle)
        return bytes(data[:count])

    def map_read(self, handle: int, size: int) -> mmap.mmap:
        """Map the first `size` bytes (not 0) for reading."""
        return mmap.mmap(handle, size, access=mmap.ACCESS_READ)

    def drop_pages(self, mapping: mmap.mmap, begin: int, end: int) -> None:
        """Let the process's pages of a mapping between two bytes go; the system's cache keeps what it can.

        Whoever still reads there has them mapped again. Systems without `madvise` keep them.
        """
        begin, end = -(-begin // mmap.PAGESIZE) * mmap.PAGESIZE, end // mmap.PAGESIZE * mmap.PAGESIZE
        if end > begin and hasattr(mapping, "madvise"):
            # `mapping.madvise` holds the interpreter, for 50 us a MiB where a file lies in single pages.
            mapped = np.frombuffer(mapping, np.uint8)
            place = ctypes.c_void_p(mapped.ctypes.data + begin)
            system_library().madvise(place, ctypes.c_size_t(end - begin), mmap.MADV_DONTNEED)

    def read_ahead(self, mapping: mmap.mmap, begin: int, end: int) -> None:
        """Let the system read the bytes of a mapping between two places, where it can; nothing waits for them."""
        begin = begin // mmap.PAGESIZE * mmap.PAGESIZE
        if end > begin and hasattr(mapping, "madvise"):
            mapping.madvise(mmap.MADV_WILLNEED, begin, end - begin)

    def read_alone(self, mapping: mmap.mmap, begin: int, end: int) -> None:
        """Let no page of a mapping between two places bring its neighbours, where the system can."""
        begin, end = -(-begin // mmap.PAGESIZE) * mmap.PAGESIZE, end // mmap.PAGESIZE * mmap.PAGESIZE
        if end > begin and hasattr(mapping, "madvise"):
            mapping.madvise(mmap.MADV_RANDOM, begin, end - begin)

    def open_direct(self, path: str) -> int:
        """Open a regular file for `read_direct`; raises OSError where the system or the file system has no way."""
        _require_regular(self.stat(path), path)
        direct = getattr(os, "O_DIRECT", None)
        if direct is None:
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL), path)
        return os.open(path, os.O_RDONLY | direct | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)

    def read_direct(self, handle: int, buffer: memoryview, offset: int) -> int:
        """Read whole pages past the system's cache, and return the bytes read; fewer at the end of the file."""
        return os.preadv(handle, [buffer], offset)

    def open_memory(self, size: int) -> int:
        """Make memory that can be mapped as a file is; raises OSError where the system has none."""
        if not hasattr(os, "memfd_create"):
            raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
        handle = os.memfd_create("flowcompute")
        try:
            os.ftruncate(handle, size)
        except OSError:
            self.close(handle)
            raise
        return handle

    def show(self, mapping: mmap.mmap, begin: int, end: int, handle: int, offset: int) -> None:
        """Let the pages of a mapping show those of another open file, or of its own again.

        Whoever reads there meanwhile reads the one or the other.

        Args:
            mapping: from `map_read`.
            begin, end: its bytes, at page boundaries.
            handle: of what is shown, as `open_memory` has it; its pages are mapped when they are touched.
            offset: bytes of it before those.
        """
        place = np.frombuffer(mapping, np.uint8).ctypes.data + begin
        shown = _system_map()(place, end - begin, mmap.PROT_READ, mmap.MAP_SHARED | _MAP_FIXED, handle, offset)
        if shown != place:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))

    def let_go(self, handle: int, begin: int, end: int) -> None:
        """Let the system's cache forget the bytes of an open file between two places; unwritten ones are sent first.

        It is advice: pages that are still being written, or that a process has mapped, stay.
        """
        if hasattr(os, "posix_fadvise") and end > begin:
            with contextlib.suppress(OSError):
                os.posix_fadvise(handle, begin, end - begin, os.POSIX_FADV_DONTNEED)

    def stat(self, path: str) -> os.stat_result:
        """Return the status of `path`, following links."""
        return os.stat(path)

    def lstat(self, path: str) -> os.stat_result:
        """Return the status of `path` itself, also where it is a link."""
        return os.lstat(path)

    def status(self, handle: int) -> os.stat_result:
        """Return the status of an open file."""
        return os.fstat(handle)

    def fingerprint(self, handle: int) -> Fingerprint:
        """Return the state of an open file."""
        return Fingerprint.of(self.status(handle))

    def look(self, path: str) -> Fingerprint:
        """Return the state of the file at `path`."""
        return Fingerprint.of(self.stat(path))

    def matching(self, pattern: str) -> list[str]:
        """Return the paths that match a glob pattern (`**` spans folders), in lexical order."""
        return sorted(glob.glob(pattern, recursive=True))

    # -- writing --------------------------------------------------------------------------

    def create_temporary(self, target: str, mode: int = 0o666) -> tuple[int, str]:
        """Create an empty file beside `target`, less the bits of the umask. Return its descriptor and path."""
        path = temporary_path(target, self.new_token())
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        return os.open(path, flags, mode), path

    def begin_temporary(self, path: str, mode: int = 0o666) -> int:
        """Create an empty file of this name and return its descriptor. A regular file of this name is emptied."""
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
        return self._own_regular(os.open(path, flags, mode), path, 0)

    def reopen_temporary(self, path: str, size: int) -> int:
        """Open an unfinished file of at least `size` bytes, cut off any more, and return its descriptor."""
        return self._own_regular(os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK), path, size)

    def _own_regular(self, handle: int, path: str, size: int) -> int:
        try:
            status = self.status(handle)
            _require_regular(status, path)
            if status.st_size < size:
                raise OSError(errno.EIO, f"it has {status.st_size} bytes where {size} were written", path)
            if status.st_size > size:
                self.truncate(handle, size)
        except OSError:
            self.close(handle)
            raise
        return handle

    def write_at(self, handle: int, data: memoryview | bytes, offset: int) -> None:
        """Write all of `data` (bytes) at `offset`."""
        rest = memoryview(data)
        while rest:
            count = self._write_some(handle, rest, offset)
            rest = rest[count:]
            offset += count

    def _write_some(self, handle: int, data: memoryview, offset: int) -> int:
        return os.pwrite(handle, data, offset)

    def truncate(self, handle: int, size: int) -> None:
        """Cut or extend an open file to `size` bytes."""
        os.ftruncate(handle, size)

    def set_mode(self, handle: int, mode: int) -> None:
        """Set the permission bits of an open file."""
        os.fchmod(handle, mode)

    def fsync(self, handle: int) -> None:
        """Make the contents of an open file durable. After a failure it must not be trusted or synced again."""
        os.fsync(handle)

    def fsync_folder(self, folder: str) -> None:
        """Make the names in a folder durable."""
        handle = os.open(folder or os.curdir, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(handle)
        except OSError as error:
            # Some network and FUSE file systems have no such operation; there the rename is all there is.
            if error.errno not in (errno.EINVAL, errno.ENOTSUP):
                raise
        finally:
            os.close(handle)

    def close(self, handle: int) -> None:
        """Close a descriptor. It is gone even when this fails."""
        os.close(handle)

    def replace(self, path: str, target: str) -> None:
        """Rename within one file system, atomically replacing `target`."""
        os.replace(path, target)

    def make_folders(self, path: str, mode: int = 0o700) -> None:
        """Make a folder and its missing parents."""
        os.makedirs(path, mode, exist_ok=True)


FILES = Files()
"""The file layer in use unless another one is given."""


def temporary_path(target: str, token: str) -> str:
    """Return the path of a draft of `target`: its stem is there for people, the token for uniqueness."""
    # A name may have 255 bytes.
    folder, name = os.path.split(target)
    return os.path.join(folder, f".{name[:48]}.{token}.partial")


def _require_regular(status: os.stat_result, path: str) -> None:
    kinds = {
        stat.S_IFDIR: (errno.EISDIR, "it is a folder"),
        stat.S_IFIFO: (errno.EINVAL, "it is a pipe, and only regular files can be read more than once"),
        stat.S_IFSOCK: (errno.EINVAL, "it is a socket, not a regular file"),
        stat.S_IFCHR: (errno.EINVAL, "it is a device, not a regular file"),
        stat.S_IFBLK: (errno.EINVAL, "it is a device, not a regular file"),
    }
    if not stat.S_ISREG(status.st_mode):
        code, text = kinds.get(stat.S_IFMT(status.st_mode), (errno.EINVAL, "it is not a regular file"))
        raise OSError(code, text, path)
