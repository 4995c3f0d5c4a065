"""Cache of compiled programs between runs: hash-named, checksummed files in a private folder of the user."""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import logging
import os
import shutil
import struct
import sys
import tempfile
from collections.abc import Iterator

from flowcompute.files import private_folder, read_private, write_private

if sys.platform != "win32":
    import fcntl

_LOG = logging.getLogger(__name__)
_HEADER = struct.Struct("<8sQ32s")
_MAGIC = b"fcprog1\n"
_LOGGED: set[str] = set()
_WORKING_FOLDERS: list[str] = []

LIMIT_BYTES = 256 << 20
"""Bytes of all stored programs together. Those unused for the longest time are removed first."""


class ProgramStore:
    """Programs on disk, by key. It never raises: a program that cannot be read or written is compiled again.

    A file is a header (magic, length, SHA-256 of key and content) and the content. Any other file under that
    name is removed and counts as missing.

    Attributes:
        folder: the folder of the files; None if nothing is kept.
        reason: why nothing is kept; empty otherwise.
    """

    def __init__(self) -> None:
        self.folder, self.reason = private_folder("programs")
        if self.folder is None and self.reason not in _LOGGED:
            _LOGGED.add(self.reason)
            _LOG.warning("compiled programs are not kept: %s", self.reason)

    def _path(self, key: str) -> str | None:
        return None if self.folder is None else os.path.join(self.folder, f"{key}.bin")

    def load(self, key: str) -> bytes | None:
        """Return the stored program if it is there and intact, or None."""
        path = self._path(key)
        if path is None:
            return None
        data = read_private(path, LIMIT_BYTES)
        if data is None:
            return None
        content = _unsealed(key, data)
        if content is not None:
            with contextlib.suppress(OSError):
                os.utime(path)
            return content
        _LOG.info("%s is damaged and is made again", path)
        self.remove(key)
        return None

    def store(self, key: str, content: bytes) -> None:
        """Store a program: complete under its name, or not at all."""
        path = self._path(key)
        if path is None or self.folder is None:
            return
        header = _HEADER.pack(_MAGIC, len(content), _digest(key, content))
        if write_private(self.folder, os.path.basename(path), header + content):
            with contextlib.suppress(OSError):
                self._trim()

    def remove(self, key: str) -> None:
        """Remove a program."""
        path = self._path(key)
        if path is not None:
            with contextlib.suppress(OSError):
                os.unlink(path)

    def _trim(self) -> None:
        assert self.folder is not None
        with os.scandir(self.folder) as entries:
            found = [(entry.stat(follow_symlinks=False), entry.path) for entry in entries]
        # Temporary files that a killed process left behind expire like the others.
        files = sorted((status.st_mtime, path, status.st_size) for status, path in found)
        total = sum(size for _, _, size in files)
        for _, path, size in files:
            if total <= LIMIT_BYTES:
                break
            os.unlink(path)
            total -= size


def _digest(key: str, content: bytes) -> bytes:
    return hashlib.sha256(key.encode() + b"\n" + content).digest()


def _unsealed(key: str, data: bytes) -> bytes | None:
    """Return the content of a stored file if `store` wrote it for this key, or None."""
    if len(data) < _HEADER.size:
        return None
    magic, length, digest = _HEADER.unpack_from(data)
    content = data[_HEADER.size :]
    whole = magic == _MAGIC and length == len(content) and digest == _digest(key, content)
    return content if whole else None


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
