"""One owner for a checkpoint: a lock that the system gives back when its process ends, however it ends."""

from __future__ import annotations

import os

from flowcompute.checkpoint.disk import FILE_MODE, naming
from flowcompute.errors import CheckpointError
from flowcompute.files import Files, shown

LOCK = "LOCK"
_PID_BYTES = 20


def take(files: Files, folder: str, path: str) -> int:
    """Lock a checkpoint's folder; returns the descriptor that holds the lock until it is closed.

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
    return handle


def _owner(files: Files, handle: int) -> str:
    buffer = bytearray(_PID_BYTES)
    count = files.read_into(handle, memoryview(buffer), 0)
    text = bytes(buffer[:count]).strip()
    return f"process {text.decode()}" if text.isdigit() else "another process"
