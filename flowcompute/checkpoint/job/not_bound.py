"""Stand-ins for functions and iterables that nobody gave, in a job whose results are there."""

from __future__ import annotations

from typing import Any, NoReturn

from flowcompute.errors import CheckpointError

NEVER_CALLED = ("function", "iterable")
"""Kinds of things that a finished job needs no more: nothing of it is called, and a digest says which it was."""


class NotBound:
    """A function, or an iterable, that has the digest of the one that was not given.

    Args:
        name: of its element.
        digest: of the function; None for what is kept without one.
    """

    def __init__(self, name: str, digest: str | None) -> None:
        self.digest = digest
        self._name = name

    def __call__(self, *_: Any) -> NoReturn:
        """Raise CheckpointError: what was not bound is called."""
        raise CheckpointError("cannot call what was not bound", element=self._name, hint="fc.thaw(path, bind=...)")

    def __iter__(self) -> NoReturn:
        self()
