"""Explanations of failed operations on files, and what to do about them."""

from __future__ import annotations

import errno

_HINTS = {
    errno.ENOENT: "check the path",
    errno.ENOTDIR: "check the path: a part of it is no folder",
    errno.EISDIR: "a folder has this name: name a file, or choose another name",
    errno.EACCES: "check who owns the file and its folder, and their permissions",
    errno.EPERM: "check who owns the file and its folder, and their permissions",
    errno.EROFS: "choose a folder on a file system that can be written to",
    errno.ENOSPC: "free space on that disk, or choose another one",
    errno.EDQUOT: "free space within your quota, or choose another disk",
    errno.EFBIG: "the file system or a limit (ulimit -f) forbids files of this size",
    errno.EIO: "the disk or network file system failed: check it, and do not trust the file",
    errno.EMFILE: "raise the limit of open files (ulimit -n)",
    errno.ENFILE: "the machine has too many open files: close some",
    errno.ENAMETOOLONG: "choose a shorter name",
    errno.ELOOP: "the path runs through too many symbolic links",
    errno.ENOMEM: 'read it instead of mapping it: strategy=fc.Strategy(input="read"); or raise the limit (ulimit -v)',
}


class StoreError(OSError):
    """A failed operation on an object store, in words that hold no credentials.

    Args:
        message: what happened.
        advice: the remedy.
    """

    def __init__(self, message: str, advice: str) -> None:
        super().__init__(message)
        self.advice = advice


class MissingObjectError(StoreError, FileNotFoundError):
    """An object, or its bucket, that is not there."""


def explain(error: OSError) -> tuple[str, str]:
    """Return the system's message with its error code, and advice on what to do."""
    if isinstance(error, StoreError):
        return str(error), error.advice
    code = errno.errorcode.get(error.errno or 0)
    text = error.strerror or str(error) or type(error).__name__
    return f"{text} ({code})" if code else text, _HINTS.get(error.errno or 0, "see what the system says above")


def shown(path: str) -> str:
    """Return a path as messages show it. Control characters are escaped, since the name comes from outside."""
    return path if path.isprintable() else repr(path)
