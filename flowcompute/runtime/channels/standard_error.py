"""The console on which runs show how far they are. It is imported by the first run that shows it."""

from __future__ import annotations

import sys

from rich.console import Console


class StandardError(Console):
    """A console on standard error."""

    def __init__(self) -> None:
        super().__init__(file=sys.stderr)

    def on_broken_pipe(self) -> None:
        """Only end the display: rich would close standard output and exit."""
        raise BrokenPipeError
