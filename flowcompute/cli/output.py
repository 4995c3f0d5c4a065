"""Where commands print, and files that they write."""

from __future__ import annotations

import os
import sys

from rich.console import Console

from flowcompute.errors import DestinationError
from flowcompute.files import FILES, explain, shown

_UNWRAPPED = 10_000
"""Columns of a console that is no terminal: more than any line has."""


def write_text(path: str, text: str) -> None:
    """Write a whole file.

    Raises:
        DestinationError: if it cannot be written.
    """
    try:
        FILES.atomic_write_bytes(path, text.encode())
    except OSError as error:
        said, hint = explain(error)
        raise DestinationError(f"cannot write {shown(path)}: {said}", hint=hint) from error


def output_console() -> Console:
    """Return a console on standard output whose lines are as long as they are where there is no terminal."""
    console = Console()
    return console if console.is_terminal else Console(width=_UNWRAPPED)


def open_closed_outputs() -> None:
    """Take the places of standard streams that are closed, so that no file that is opened later gets them.

    What is printed to a closed output then fails as on a full disk. A closed error output takes everything.
    """
    for number, mode in enumerate((os.O_RDONLY, os.O_RDONLY, os.O_WRONLY)):
        try:
            os.fstat(number)
        except OSError:
            os.dup2(opened := os.open(os.devnull, mode), number)
            if opened != number:
                os.close(opened)
    if sys.stdout is None:
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115 - to the end
    if sys.stderr is None:
        sys.stderr = open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115 - to the end


def drop_output() -> None:
    """Drop what could not be printed: Python flushes standard output once more at exit, which would print an error."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
