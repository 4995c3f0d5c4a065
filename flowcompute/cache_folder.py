"""The folder of the user's own in which programs and strategies are kept between runs."""

from __future__ import annotations

import contextlib
import os
import stat
import sys


def cache_folder() -> str:
    """FLOWCOMPUTE_CACHE, or `flowcompute` in the user's cache folder. Read when used; nothing is created."""
    own = os.environ.get("FLOWCOMPUTE_CACHE")
    if own:
        return os.path.abspath(own)
    shared = os.environ.get("XDG_CACHE_HOME", "")
    # The XDG specification tells programs to ignore relative paths.
    if not os.path.isabs(shared):
        shared = os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(shared, "flowcompute")


def private_folder(*names: str) -> tuple[str | None, str]:
    """A folder inside `cache_folder()` that nobody else can write to, made where it is missing.

    What drivers load from it is machine code, so a folder in which others could plant files is not used.

    Args:
        names: path components below `cache_folder()`.

    Returns:
        The folder, or None and why it is not used.
    """
    folder = cache_folder()
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        problem = distrust(os.stat(folder))
        for name in names:
            if problem:
                break
            folder = os.path.join(folder, name)
            with contextlib.suppress(FileExistsError):
                os.mkdir(folder, mode=0o700)
            problem = distrust(os.lstat(folder))
    except OSError as error:
        return None, f"{error.filename or folder}: {error.strerror}"
    return (None, f"{folder} {problem}") if problem else (folder, "")


def distrust(status: os.stat_result, wanted: int = stat.S_IFDIR) -> str:
    """Why a folder (or what `wanted` says) is not used; empty if nobody else can write to it."""
    if stat.S_IFMT(status.st_mode) != wanted:
        return "is a link or no folder" if wanted == stat.S_IFDIR else "is no regular file"
    if sys.platform == "win32":
        return ""
    if status.st_uid != os.geteuid():
        return "belongs to another user"
    return "can be written by others (chmod go-w)" if status.st_mode & 0o022 else ""
