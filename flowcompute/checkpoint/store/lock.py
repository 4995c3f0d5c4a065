"""Lock that gives a checkpoint one owner. The system releases it when the owner's process ends, however it ends."""

from __future__ import annotations

import contextlib
import os
import weakref

from flowcompute.checkpoint.store.durable_files import FILE_MODE, naming_path
from flowcompute.errors import CheckpointError
from flowcompute.files import Files, shown

LOCK = "LOCK"
_PID_BYTES = 20


class Lock:
    """A lock that this process holds, and no process forked off it. `acquire` makes it."""

    def __init__(self, files: Files, handle: int) -> None:
        self._files = files
        self._handle: int | None = handle
        _held.add(self)

    @property
    def held(self) -> bool:
        """True while this process holds the lock. It is always False in a process that was forked off."""
        return self._handle is not None

    def release(self) -> None:
        """Release the lock. Calling it when the lock is not held does nothing.

        Raises:
            OSError: as the system does.
        """
        handle, self._handle = self._handle, None
        if handle is not None:
            self._files.close(handle)


_held: weakref.WeakSet[Lock] = weakref.WeakSet()


def _release_in_child() -> None:
    # A child inherits the descriptors of its parent, and may outlive it. Whatever one of them does here, and no caller
    # could see it, the child must not believe that it holds the others.
    for lock in tuple(_held):
        with contextlib.suppress(BaseException):
            lock.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_release_in_child)


def acquire(files: Files, folder: str, path: str) -> Lock:
    """Lock a checkpoint's folder.

    Args:
        files: the file layer.
        folder: the present path of the checkpoint.
        path: the path that messages show.

    Raises:
        CheckpointError: if another owner holds the lock. The message names its process.
    """
    name = os.path.join(folder, LOCK)
    with naming_path("lock", name):
        handle = files.open_update(name, create=True, mode=FILE_MODE)
        try:
            if not files.lock(handle):
                raise CheckpointError(
                    f"cannot lock {shown(path)}: it is in use by {_owner(files, handle)}",
                    hint="wait until that run ends, or stop it; it freezes its job when it is stopped by SIGTERM",
                )
            # The folder may have been renamed or removed between opening and locking.
            if not os.path.samestat(files.status(handle), files.stat(name)):
                raise CheckpointError(
                    f"cannot lock {shown(path)}: another run changed it meanwhile",
                    hint="run it again when that run has ended",
                )
            files.truncate(handle, 0)
            files.write_at(handle, f"{os.getpid()}\n".encode(), 0)
        except BaseException:
            files.close(handle)
            raise
    return Lock(files, handle)


def _owner(files: Files, handle: int) -> str:
    buffer = bytearray(_PID_BYTES)
    count = files.read_into(handle, memoryview(buffer), 0)
    text = bytes(buffer[:count]).strip()
    return f"process {text.decode()}" if text.isdigit() else "another process"
