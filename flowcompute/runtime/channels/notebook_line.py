"""Where a notebook shows how far a run is: a line of the cell that started it, replaced as the run goes on."""

from __future__ import annotations

import sys
from typing import Any


def notebook() -> Any:
    """Return IPython's module of displays where a notebook runs this program, else None. Nothing is imported."""
    ipython, display = sys.modules.get("IPython"), sys.modules.get("IPython.display")
    shell = None if ipython is None else ipython.get_ipython()
    # A terminal has no kernel, and a bar of its own.
    return display if shell is not None and getattr(shell, "kernel", None) is not None else None


class NotebookLine:
    """A line of a cell's output. Made in the thread of the cell, so that it belongs to it; then used from any.

    Args:
        display: IPython's module of displays.
        text: what is shown first.
    """

    def __init__(self, display: Any, text: str) -> None:
        self._display = display
        self._handle = display.display(self._page(text), display_id=True)

    def _page(self, text: str) -> Any:
        return self._display.Pretty(text)

    def show(self, text: str) -> None:
        """Replace the line."""
        self._handle.update(self._page(text))
