"""Drafts of files: written under a temporary name, and seen under their own only when they are complete."""

from __future__ import annotations

import contextlib
import errno
import os
import stat

from flowcompute.files.file_layer import Files, temporary_path
from flowcompute.files.file_states import Sealed, Unfinished


class Draft:
    """A file that is written under a temporary name beside its target, and then committed or discarded as a whole.

    Committing keeps the permission bits of a file that is replaced. The owner is the user of this process.

    Args:
        durable: whether committing waits until the disk has the file (fsync). Without it, a power cut soon
            after may leave an empty file under the name.
        token: part of the temporary name, random by default. A file that an earlier process left under the same
            temporary name is begun anew.
        unfinished: the draft of an earlier process to continue. OSError is raised if it is missing or shorter
            than recorded.
        joined: the draft of another process, to write into it with others. OSError is raised if it is missing. Who
            began it commits or discards it.

    Attributes:
        uncached: whether the system's cache lets the file go once the disk has it.
    """

    uncached = False

    def __init__(
        self,
        files: Files,
        target: str,
        mode: int = 0o666,
        *,
        durable: bool = True,
        token: str | None = None,
        unfinished: Unfinished | None = None,
        joined: str | None = None,
    ) -> None:
        self._files = files
        self._durable = durable
        self._target = target
        self._handle: int | None = None
        self._path: str | None = None
        self._committed = False
        self._name_is_durable = False
        try:
            old = files.stat(target)
        except FileNotFoundError:
            old = None
        self._replaces = old is not None
        bits = mode if old is None else stat.S_IMODE(old.st_mode) & 0o777
        if joined is not None:
            self._handle, self._path = files.open_update(joined), joined
            return
        if unfinished is not None:
            self._handle, self._path = files.reopen_temporary(*unfinished), unfinished.path
            files.hold(self._handle)
            return
        if token is None:
            self._handle, self._path = self._created(bits)
        else:
            path = temporary_path(target, token)
            self._handle, self._path = files.begin_temporary(path, bits), path
            files.hold(self._handle)
        if old is not None:
            # The umask may have taken bits away.
            try:
                files.set_mode(self._handle, bits)
            except BaseException:
                self.discard()
                raise

    def _created(self, mode: int) -> tuple[int, str]:
        """Create a file under a random name, and hold it before anybody takes it for one of a dead process."""
        while True:
            handle, path = self._files.create_temporary(self._target, mode)
            if self._files.hold(handle):
                return handle, path
            self._files.close(handle)
            with contextlib.suppress(FileNotFoundError):
                self._files.remove(path)

    def adopt(self, token: str) -> str:
        """Give the draft the name that follows from a token, and return it: a checkpoint is about to mention it."""
        path = temporary_path(self._target, token)
        if self._path is None:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF), self._target)
        if self._path != path:
            self._files.replace(self._path, path)
            self._path, self._name_is_durable = path, False
        return path

    @property
    def path(self) -> str | None:
        """Temporary name, or None where there is none."""
        return self._path

    def write(self, data: memoryview | bytes, offset: int) -> None:
        """Write all of `data` (bytes) at `offset`."""
        if self._handle is None:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF), self._target)
        self._files.write_at(self._handle, data, offset)

    def let_go(self, begin: int, end: int) -> None:
        """Send what was written between two bytes to the disk; what it has leaves the system's cache."""
        if self._handle is not None:
            self._files.let_go(self._handle, begin, end)

    def sync(self) -> None:
        """Make what was written so far durable, and the temporary name. Writing may go on meanwhile."""
        if self._handle is None:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF), self._target)
        if self._durable:
            self._files.fsync(self._handle)
            if not self._name_is_durable:
                self._files.fsync_folder(os.path.dirname(self._target))
                self._name_is_durable = True

    def seal(self) -> Sealed:
        """Make the draft durable as it is. Only its name is missing, which `commit` gives it."""
        self.sync()
        assert self._handle is not None
        return Sealed.of(self._files.status(self._handle))

    def suspend(self) -> None:
        """Close the draft and leave its file in place, so that a later process can continue it."""
        self._path = None
        self._close()

    def commit(self) -> None:
        """Make what was written durable and give it its name. On an error, call `discard`."""
        if self._handle is None or self._path is None:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF), self._target)
        if self._durable:
            self._files.fsync(self._handle)
            if self.uncached:
                self._files.let_go(self._handle, 0, self._files.status(self._handle).st_size)
        self._close()
        self._files.replace(self._path, self._target)
        self._path = None
        self._committed = True
        if self._durable:
            self._files.fsync_folder(os.path.dirname(self._target))
        # From here on `discard` leaves the target alone.
        self._replaces = True

    def discard(self) -> None:
        """Remove what was written. Calling it after `commit` or twice does nothing.

        When `commit` failed after the rename, a new target is removed again. A target that replaced an older
        file stays, since it is complete and the older file is gone.
        """
        with contextlib.suppress(OSError):
            self._close()
        path, self._path = self._path, None
        if path is None and self._committed and not self._replaces:
            path, self._replaces = self._target, True
        if path is not None:
            with contextlib.suppress(FileNotFoundError):
                self._files.remove(path)

    def _close(self) -> None:
        handle, self._handle = self._handle, None
        if handle is not None:
            self._files.close(handle)


def atomic_write_bytes(files: Files, target: str, data: bytes, mode: int = 0o666) -> None:
    """Write a whole file atomically: at any moment `target` is absent, its old version or complete."""
    draft = Draft(files, target, mode)
    try:
        draft.write(data, 0)
        draft.commit()
    except BaseException:
        draft.discard()
        raise


def roll_forward(files: Files, target: str, path: str, sealed: Sealed, *, durable: bool = True) -> Sealed | None:
    """Commit a complete draft if it still lies under `path`, and return what is found under the target.

    Raises:
        OSError: as the system does.
    """
    if _sealed(files, path) == sealed:
        Draft(files, target, durable=durable, unfinished=Unfinished(path, sealed.size)).commit()
    return _sealed(files, target)


def _sealed(files: Files, path: str) -> Sealed | None:
    try:
        return Sealed.of(files.stat(path))
    except (FileNotFoundError, NotADirectoryError):
        return None


def in_the_way(files: Files, target: str) -> str | None:
    """Return what lies at `target` and cannot be replaced by a file, or None where a file may be written.

    The result is "a folder" or "not a regular file".

    Raises:
        OSError: as the system does.
    """
    try:
        mode = files.stat(target).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return None
    if stat.S_ISREG(mode):
        return None
    return "a folder" if stat.S_ISDIR(mode) else "not a regular file"
