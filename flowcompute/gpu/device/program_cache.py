"""Where compiled programs are kept between runs: hash-named, checksummed files in a folder of the user's own."""

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
_TOLD: set[str] = set()
_WORKING: list[str] = []

LIMIT_BYTES = 256 << 20
"""What stored programs may take together; the longest unused go first."""


class ProgramStore:
    """Programs on disk, by key. Never raises: what cannot be read or written is compiled again.

    A file is a header (magic, length, SHA-256 of key and content) and the content; anything else
    under that name is removed and counts as missing.

    Attributes:
        folder: where the files are; None if nothing is kept.
        reason: why nothing is kept; empty otherwise.
    """

    def __init__(self) -> None:
        self.folder, self.reason = private_folder("programs")
        if self.folder is None and self.reason not in _TOLD:
            _TOLD.add(self.reason)
            _LOG.warning("compiled programs are not kept: %s", self.reason)

    def _path(self, key: str) -> str | None:
        return None if self.folder is None else os.path.join(self.folder, f"{key}.bin")

    def load(self, key: str) -> bytes | None:
        """The stored program, if there is one and it is whole."""
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
        """Keep a program: complete under its name, or not at all."""
        path = self._path(key)
        if path is None or self.folder is None:
            return
        header = _HEADER.pack(_MAGIC, len(content), _digest(key, content))
        if write_private(self.folder, os.path.basename(path), header + content):
            with contextlib.suppress(OSError):
                self._trim()

    def remove(self, key: str) -> None:
        """Forget a program."""
        path = self._path(key)
        if path is not None:
            with contextlib.suppress(OSError):
                os.unlink(path)

    def _trim(self) -> None:
        assert self.folder is not None
        with os.scandir(self.folder) as entries:
            found = [(entry.stat(follow_symlinks=False), entry.path) for entry in entries]
        # Temporary files that a killed process left behind age like the others.
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
    """The content of a stored file, if it is what `store` wrote for this key."""
    if len(data) < _HEADER.size:
        return None
    magic, length, digest = _HEADER.unpack_from(data)
    content = data[_HEADER.size :]
    whole = magic == _MAGIC and length == len(content) and digest == _digest(key, content)
    return content if whole else None


# -- drivers' own caches ------------------------------------------------------------------------


@contextlib.contextmanager
def drivers_confined() -> Iterator[None]:
    """While drivers start, point the caches they keep into ours, unless the user has set them.

    PoCL keeps shared objects that it loads without a check: a truncated one kills the process, and
    concurrent processes have crashed on one folder. So its cache is off, and its working files
    go to a folder of this process. It reads its settings once, when its devices are listed; they
    are withdrawn afterwards because child processes must not share the folder.
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
    """A new folder for the driver's files of this process; removed at exit, or by a later process if this one dies."""
    parent, _ = private_folder("work")
    if parent is not None:
        _sweep(parent)
    folder = tempfile.mkdtemp(prefix="flowcompute-", dir=parent)
    owner = os.getpid()
    handle = os.open(os.path.join(folder, "new"), os.O_RDWR | os.O_CREAT, 0o600)
    _try_lock(handle)
    # Under its name the lock is held from the first moment, so nobody takes this folder for a dead process's.
    os.rename(os.path.join(folder, "new"), os.path.join(folder, "lock"))

    _WORKING.append(folder)

    def remove() -> None:
        # A forked child inherits this function, but not the folder.
        if os.getpid() == owner:
            os.close(handle)
            shutil.rmtree(folder, ignore_errors=True)

    atexit.register(remove)
    return folder


def working_folder_is_there() -> bool:
    """Whether nobody has removed the driver's files of this process (true where it has no such folder)."""
    return all(os.path.exists(os.path.join(folder, "lock")) for folder in _WORKING)


def _try_lock(handle: int) -> bool:
    """Lock an open file; False if another process holds it, or where there are no such locks."""
    if sys.platform == "win32":
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _sweep(parent: str) -> None:
    """Remove the folders of processes that died: nobody holds their lock."""
    for name in os.listdir(parent):
        folder = os.path.join(parent, name)
        try:
            handle = os.open(os.path.join(folder, "lock"), os.O_RDWR)
        except OSError:
            continue
        if _try_lock(handle):
            shutil.rmtree(folder, ignore_errors=True)
        os.close(handle)
