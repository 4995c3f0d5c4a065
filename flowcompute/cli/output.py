"""Consoles of commands, and files that they write."""

from __future__ import annotations

from rich.console import Console

from flowcompute.errors import DestinationError
from flowcompute.files import FILES, atomic_write_bytes, explain, shown

_UNWRAPPED = 10_000
"""Columns of a console that is no terminal: more than any line has."""


def write_text(path: str, text: str) -> None:
    """Write a whole file.

    Raises:
        DestinationError: if it cannot be written.
    """
    try:
        atomic_write_bytes(FILES, path, text.encode())
    except OSError as error:
        said, hint = explain(error)
        raise DestinationError(f"cannot write {shown(path)}: {said}", hint=hint) from error


def output_console() -> Console:
    """Return a console on standard output whose lines are as long as they are where there is no terminal."""
    console = Console()
    return console if console.is_terminal else Console(width=_UNWRAPPED)
