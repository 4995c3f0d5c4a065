"""Paths as users give them."""

from __future__ import annotations

import glob
import os


def is_pattern(path: str) -> bool:
    """Check whether a path holds glob characters."""
    return glob.has_magic(path)


def path_text(path: str | os.PathLike[str]) -> str:
    """Return a path as the text that the system will be given.

    Raises:
        ValueError: if no file can have it: it is not text, is empty, or cannot be encoded.
    """
    if not isinstance(path, (str, os.PathLike)):
        raise ValueError(f"cannot use a value of type {type(path).__name__} as a path")
    text = os.fspath(path)
    if not isinstance(text, str) or not text or b"\0" in os.fsencode(text):
        raise ValueError(f"cannot use {text!r} as a path")
    return text
