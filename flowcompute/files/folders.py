"""Part of the file layer for folders, and for files that keep their name while they are written.

What is written here under a final name must not matter until something else refers to it. Examples are a
generation of a checkpoint that its HEAD does not name yet, and bytes beyond a recorded length.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat


class Folders:
    """Folder operations of `flowcompute.files.file_layer.Files`. Each raises OSError as the system does."""

    def list_folder(self, path: str) -> list[str]:
        """Return the names in a folder, in lexical order."""
        return sorted(os.listdir(path))

    def free_bytes(self, path: str) -> int:
        """Return the bytes that this user may still write on the file system of a folder."""
        status = os.statvfs(path)
        return status.f_bavail * status.f_frsize

    def is_folder(self, path: str) -> bool:
        """Check whether `path` is a folder. A link to a folder is none."""
        return stat.S_ISDIR(os.lstat(path).st_mode)

    def make_folder(self, path: str, mode: int = 0o700) -> None:
        """Make a folder that must not exist yet."""
        os.mkdir(path, mode)

    def remove_folder(self, path: str) -> None:
        """Remove an empty folder."""
        os.rmdir(path)

    def rename_folder(self, path: str, target: str) -> None:
        """Rename a folder within one file system. An existing target must be an empty folder."""
        os.rename(path, target)

    def create(self, path: str, mode: int = 0o600) -> int:
        """Create an empty file that must not exist yet, and return its descriptor for reading and writing."""
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, mode)

    def open_update(self, path: str, *, create: bool = False, mode: int = 0o600) -> int:
        """Open a regular file for reading and writing as it is. `create` makes an empty file where there is none."""
        flags = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK | (os.O_CREAT if create else 0)
        handle = os.open(path, flags, mode)
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            os.close(handle)
            raise OSError(errno.EINVAL, "it is not a regular file", path)
        return handle

    def lock(self, handle: int) -> bool:
        """Lock an open file against every other descriptor until it is closed.

        Return False if another descriptor holds the lock.
        """
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def hold(self, handle: int) -> bool:
        """Lock an open draft until it is closed, as a mark that its process lives.

        Return False if somebody is removing it. Where the file system has no locks nobody can be, and nothing fails.
        """
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError:
            return True
        return os.fstat(handle).st_nlink > 0
