"""The line of the user's code at which an element was made."""

from __future__ import annotations

import functools
import inspect
import os
import warnings
from types import FrameType

from flowcompute.errors import Site

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
# The contract suites and the examples inside the package are users of it, not part of it.
_USERS = tuple(os.path.join(_PACKAGE, room) + os.sep for room in ("testing",))


_told: dict[str | tuple[str, type[Warning], int], int] = {}
"""What was warned of before, as Python keeps it in each module: a line warns of the same thing once."""


def user_site() -> Site | None:
    """Return the innermost frame outside the package, or None when there is none."""
    frame: FrameType | None = inspect.currentframe()
    while frame is not None:
        file = frame.f_code.co_filename
        if not _is_ours(file):
            return Site(file, frame.f_lineno)
        frame = frame.f_back
    return None


@functools.lru_cache(4096)
def _is_ours(file: str) -> bool:
    return file.startswith(_PACKAGE) and not file.startswith(_USERS)


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
