"""Stopping of long work on the host, which asks now and then whether it should go on, and so shows that it moves."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar


def _goes_on() -> None:
    """Go on: nobody can stop this one, or looks at it."""


CHECK: ContextVar[Callable[[], None]] = ContextVar("CHECK", default=_goes_on)
"""Set by whoever calls an executor in a thread: raises where what it computes is no longer wanted."""


MOVED: ContextVar[Callable[[], None]] = ContextVar("MOVED", default=_goes_on)
"""Set as `CHECK`: is told of a part of long work that is done, so that nobody takes the rest for a standstill."""


def check_stopped() -> None:
    """Raise if the run is being cancelled."""
    CHECK.get()()


def part_done() -> None:
    """Tell that a part of long work is done."""
    MOVED.get()()
