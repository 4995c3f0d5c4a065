"""The user's cache folder, which keeps programs and strategies between runs, and its files.

Processes may read and write at any moment: a file appears whole under its name or not at all. A problem with a
file never fails a run. A file that cannot be read counts as missing, and one that cannot be written is not
kept. Both are logged.
"""

from __future__ import annotations

import contextlib
import os
import stat
import sys

from flowcompute.imports import logging, tempfile

TEMPORARY = "new-"
"""Prefix of the names of files that are being written."""


def cache_folder() -> str:
    """Return FLOWCOMPUTE_CACHE, or `flowcompute` in the user's cache folder.

    The environment is read at each call. Nothing is created.
    """
    own = os.environ.get("FLOWCOMPUTE_CACHE")
    if own:
        return os.path.abspath(own)
    shared = os.environ.get("XDG_CACHE_HOME", "")
    # The XDG specification tells programs to ignore relative paths.
    if not os.path.isabs(shared):
        shared = os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(shared, "flowcompute")


def private_folder(*names: str) -> tuple[str | None, str]:
    """Return a folder inside `cache_folder()` that nobody else can write to, and make it where it is missing.

    Drivers load machine code from it. A folder in which others could plant files is therefore not used.

    Args:
        names: path components below `cache_folder()`.

    Returns:
        The folder, or None and the reason why it is not used.
    """
    folder = cache_folder()
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        problem = distrust_reason(os.stat(folder))
        for name in names:
            if problem:
                break
            folder = os.path.join(folder, name)
            with contextlib.suppress(FileExistsError):
                os.mkdir(folder, mode=0o700)
            problem = distrust_reason(os.lstat(folder))
    except OSError as error:
        return None, f"{error.filename or folder}: {error.strerror}"
    return (None, f"{folder} {problem}") if problem else (folder, "")


def distrust_reason(status: os.stat_result, wanted: int = stat.S_IFDIR) -> str:
    """Return the reason why a folder (or a file of the kind `wanted`) is not used.

    The result is empty if nobody else can write to it.
    """
    if stat.S_IFMT(status.st_mode) != wanted:
        return "is a link or no folder" if wanted == stat.S_IFDIR else "is no regular file"
    if sys.platform == "win32":
        return ""
    if status.st_uid != os.geteuid():
        return "belongs to another user"
    return "can be written by others (chmod go-w)" if status.st_mode & 0o022 else ""


def read_private(path: str, limit_bytes: int) -> bytes | None:
    """Return at most `limit_bytes` bytes of a file.

    The result is None where the file is missing or could have been written by others.
    """
    try:
        with open(os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0)), "rb") as file:
            status = os.fstat(file.fileno())
            problem = distrust_reason(status, stat.S_IFREG)
            if not problem:
                # `read` allocates as many bytes as are asked for, however short the file is.
                return file.read(min(limit_bytes, status.st_size))
        logging.getLogger(__name__).info("%s is not used: it %s", path, problem)
    except FileNotFoundError:
        pass
    except OSError as error:
        logging.getLogger(__name__).info("%s is not used: %s", path, error)
    return None


def write_private(folder: str, name: str, data: bytes) -> bool:
    """Write a file in place of an older one and return whether it is kept."""
    temporary = None
    try:
        handle, temporary = tempfile.mkstemp(prefix=TEMPORARY, dir=folder)
        with open(handle, "wb") as file:
            file.write(data)
        os.replace(temporary, os.path.join(folder, name))
        temporary = None
    except OSError as error:
        logging.getLogger(__name__).info("%s is not kept: %s", name, error)
        return False
    finally:
        if temporary is not None:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
    return True
