"""One owner for a checkpoint: a lock that the system gives back when its process ends, however it ends."""

from __future__ import annotations

import contextlib
import os
import weakref

from flowcompute.checkpoint.store.durable_files import FILE_MODE, naming
from flowcompute.errors import CheckpointError
from flowcompute.files import Files, shown

LOCK = "LOCK"
_PID_BYTES = 20


class Lock:
    """A lock that this process holds, and none that is forked off it. Made by `take`."""

    def __init__(self, files: Files, handle: int) -> None:
        self._files = files
        self._handle: int | None = handle
        _held.add(self)

    @property
    def held(self) -> bool:
        """Whether it is held; never in a process that was forked off."""
        return self._handle is not None

    def release(self) -> None:
        """Give it back; harmless where it is not held.

        Raises:
            OSError: as the system does.
        """
        handle, self._handle = self._handle, None
        if handle is not None:
            self._files.close(handle)


_held: weakref.WeakSet[Lock] = weakref.WeakSet()


def _let_go() -> None:
    # A child has the descriptors of its parent, and may live on when that is killed.
    for lock in tuple(_held):
        with contextlib.suppress(OSError):
            lock.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_let_go)


def take(files: Files, folder: str, path: str) -> Lock:
    """Lock a checkpoint's folder.

    Args:
        files: the file layer.
        folder: where the checkpoint is now.
        path: how messages call it.

    Raises:
        CheckpointError: if another owner has it; naming its process.
    """
    name = os.path.join(folder, LOCK)
    with naming("lock", name):
        handle = files.open_update(name, create=True, mode=FILE_MODE)
        try:
            if not files.lock(handle):
                raise CheckpointError(
                    f"{shown(path)} is in use by {_owner(files, handle)}",
                    hint="wait until that run ends, or stop it; it freezes its job when it is stopped by SIGTERM",
                )
            # The folder may have been renamed or removed between opening and locking.
            if not os.path.samestat(files.status(handle), files.stat(name)):
                raise CheckpointError(
                    f"{shown(path)} was changed by another run just now", hint="run it again when that run has ended"
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
