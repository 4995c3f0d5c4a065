"""Cache of compiled programs between runs: hash-named, checksummed files in a private folder of the user."""

from __future__ import annotations

import atexit
import contextlib
import logging
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator

from flowcompute.files import SealedStore, private_folder

if sys.platform != "win32":
    import fcntl

_LOG = logging.getLogger(__name__)
_LOGGED: set[str] = set()
_WORKING_FOLDERS: list[str] = []

LIMIT_BYTES = 256 << 20
"""Bytes of all stored programs together. Those unused for the longest time are removed first."""


class ProgramStore(SealedStore):
    """Programs on disk, by key."""

    def __init__(self) -> None:
        super().__init__("programs", b"fcprog1\n", LIMIT_BYTES)
        if self.folder is None and self.reason not in _LOGGED:
            _LOGGED.add(self.reason)
            _LOG.warning("compiled programs are not kept: %s", self.reason)


# -- drivers' own caches ------------------------------------------------------------------------


@contextlib.contextmanager
def drivers_confined() -> Iterator[None]:
    """Point the drivers' own caches into our folder while drivers start, unless the user has set them.

    PoCL keeps shared objects that it loads without a check. A truncated one kills the process, and concurrent
    processes have crashed on one folder. Its cache is therefore off, and its working files go to a folder of
    this process. It reads its settings once, when its devices are listed. They are withdrawn afterwards,
    because child processes must not share the folder.
    """
    if "CUDA_CACHE_PATH" not in os.environ:
        folder, _ = private_folder("nvidia")
        if folder is not None:
            os.environ["CUDA_CACHE_PATH"] = folder
    names = ("POCL_KERNEL_CACHE", "POCL_CACHE_DIR")
    if any(name in os.environ for name in names):
        yield
        return
    os.environ.update(zip(names, ("0", _working_folder()), strict=True))
    try:
        yield
    finally:
        for name in names:
            del os.environ[name]


def _working_folder() -> str:
    """Make a folder for the driver's files of this process.

    It is removed at exit, or by a later process if this one dies.
    """
    parent, _ = private_folder("work")
    if parent is not None:
        _sweep(parent)
    folder = tempfile.mkdtemp(prefix="flowcompute-", dir=parent)
    owner = os.getpid()
    handle = os.open(os.path.join(folder, "new"), os.O_RDWR | os.O_CREAT, 0o600)
    _try_lock(handle)
    # The lock is held before the folder gets its name, so that nobody takes it for a dead process's.
    os.rename(os.path.join(folder, "new"), os.path.join(folder, "lock"))

    _WORKING_FOLDERS.append(folder)

    def remove() -> None:
        # A forked child inherits this function, but not the folder.
        if os.getpid() == owner:
            os.close(handle)
            shutil.rmtree(folder, ignore_errors=True)

    atexit.register(remove)
    return folder


def working_folder_is_there() -> bool:
    """Check that nobody has removed the driver's files of this process. Return True where it has no such folder."""
    return all(os.path.exists(os.path.join(folder, "lock")) for folder in _WORKING_FOLDERS)


def _try_lock(handle: int) -> bool:
    """Lock an open file. Return False if another process holds it, or where there are no such locks."""
    if sys.platform == "win32":
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _sweep(parent: str) -> None:
    """Remove the folders of dead processes, whose locks nobody holds."""
    for name in os.listdir(parent):
        folder = os.path.join(parent, name)
        try:
            handle = os.open(os.path.join(folder, "lock"), os.O_RDWR)
        except OSError:
            continue
        if _try_lock(handle):
            shutil.rmtree(folder, ignore_errors=True)
        os.close(handle)
