"""The user's code that made an element: its line, and the public function that it called there.

Elements remember the call that made them, so that what users see bears the names that they wrote.
"""

from __future__ import annotations

import functools
import inspect
import os
import threading
import warnings
from collections.abc import Iterable
from types import FrameType
from typing import Any

import numpy as np

from flowcompute.errors import Site

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
# The contract suites and the examples inside the package are users of it, not part of it.
_USERS = tuple(os.path.join(_PACKAGE, room) + os.sep for room in ("testing",))
_COMMANDS = ("flowcompute", "flowcompute.exe")


_told: dict[str | tuple[str, type[Warning], int], int] = {}
"""Earlier warnings, as Python keeps them in each module: a line warns of the same thing once."""


def user_site() -> Site | None:
    """Return the innermost frame outside the package, or None when there is none."""
    frame: FrameType | None = inspect.currentframe()
    while frame is not None:
        file = frame.f_code.co_filename
        if not _is_ours(file):
            return _site_of(file, frame.f_lineno)
        frame = frame.f_back
    return None


@functools.lru_cache(4096)
def _site_of(file: str, line: int) -> Site:
    # What a loop makes shares its line, and leaves the garbage collector less to visit.
    return Site(file, line)


@functools.lru_cache(4096)
def _is_ours(file: str) -> bool:
    if file.startswith("<frozen ") or os.path.basename(file) in _COMMANDS:
        # What Python runs a module by, and the script that installing the command makes.
        return True
    return file.startswith(_PACKAGE) and not file.startswith(_USERS)


_MOST_LINES = 4
"""Lines of a file that are shown of elements that are computed together."""


def places_of(elements: Iterable[Any]) -> str:
    """Return the user's lines at which elements were made, each once: "script.py:7, 9; other.py:3"."""
    files: dict[str, dict[str, None]] = {}
    for site in (element.site for element in elements):
        if site is not None:
            file, _, line = site.short.rpartition(":")
            files.setdefault(file, {})[line] = None
    return "; ".join(f"{file}:{_lines(list(lines))}" for file, lines in files.items())


def _lines(lines: list[str]) -> str:
    ordered = sorted(lines, key=int)
    return ", ".join(ordered[:_MOST_LINES]) + (", ..." if len(ordered) > _MOST_LINES else "")


def warn_at(site: Site | None, message: str, category: type[Warning]) -> None:
    """Warn of what a user's line began, also from a thread that knows nothing of it.

    Args:
        site: that line; None for the one that called whoever warns.
        message, category: as of `warnings.warn`.
    """
    if site is None:
        warnings.warn(message, category, stacklevel=4)
    else:
        warnings.warn_explicit(message, category, site.file, site.line, registry=_told)


# -- calls -------------------------------------------------------------------------------------


class UserCall:
    """A user's call of a public function.

    Attributes:
        name: the function's name.
        site: the user's line; None where no user's frame is below.
        given: plain arguments by name, as the user gave them; or the text of all of them. None of an element-wise
            function or operator, whose arguments are operands.
    """

    __slots__ = ("given", "name", "site")

    def __init__(self, name: str, site: Site | None, given: tuple[tuple[str, object], ...] | str | None) -> None:
        self.name = name
        self.site = site
        self.given = given

    @property
    def arguments(self) -> str:
        """The plain arguments as text: "axis=1 keepdims=True"."""
        if self.given is None or isinstance(self.given, str):
            return self.given or ""
        return " ".join(f"{name}={_written(value)}" for name, value in self.given)

    @property
    def of_operands(self) -> bool:
        """Flag that all of its arguments are operands."""
        return self.given is None


class _Current(threading.local):
    call: UserCall | None = None


_CURRENT = _Current()


def current_call() -> UserCall | None:
    """Return the outermost public function's call that this thread is in, or None."""
    return _CURRENT.call


def set_current_call(call: UserCall | None) -> None:
    """Tell the call that this thread has begun; None when it has ended."""
    _CURRENT.call = call


def _written(value: object) -> str:
    if isinstance(value, np.dtype):
        return str(value.name)
    if isinstance(value, type):
        return value.__name__
    return str(value) if isinstance(value, np.generic) else repr(value)
