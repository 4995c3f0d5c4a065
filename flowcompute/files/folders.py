"""Part of the file layer for folders, and for files that keep their name while they are written.

What is written here under a final name must not matter until something else refers to it. Examples are a
generation of a checkpoint that its HEAD does not name yet, and bytes beyond a recorded length.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import stat

from flowcompute.imports import secrets

_RENAME_EXCHANGE = 2
_HERE = -100
"""`AT_FDCWD`: paths that are not absolute are relative to the working folder."""


class Folders:
    """Folder operations of `flowcompute.files.file_layer.Files`. Each raises OSError as the system does."""

    def list_folder(self, path: str) -> list[str]:
        """Return the names in a folder, in lexical order."""
        return sorted(os.listdir(path))

    def canonical(self, path: str) -> str:
        """Return the one path of a file, with links followed."""
        return os.path.realpath(path)

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

    def exchange_folders(self, path: str, target: str) -> None:
        """Exchange the names of two folders of one file system at once, where the system can."""
        rename = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
        if rename is None:
            raise OSError(errno.ENOTSUP, "this system cannot exchange folders", target)
        if rename(_HERE, os.fsencode(path), _HERE, os.fsencode(target), _RENAME_EXCHANGE):
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code), target)

    def remove(self, path: str) -> None:
        """Remove a file."""
        os.unlink(path)

    def remove_tree(self, path: str) -> None:
        """Remove a folder and all that is in it. Links are removed, and not followed."""
        if not self.is_folder(path):
            self.remove(path)
            return
        emptied, todo = [], [path]
        while todo:
            emptied.append(folder := todo.pop())
            for name in self.list_folder(folder):
                inside = os.path.join(folder, name)
                if self.is_folder(inside):
                    todo.append(inside)
                else:
                    self.remove(inside)
        for folder in reversed(emptied):
            self.remove_folder(folder)

    def open_folder(self, path: str) -> int:
        """Open a folder, which must be no link, to hold it."""
        return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)

    def new_token(self) -> str:
        """Return a random part of a temporary name."""
        return secrets.token_hex(8)

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
