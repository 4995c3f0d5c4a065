"""How a computation on the host that may never end is stopped: it asks, now and then, whether it should go on."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar


def _goes_on() -> None:
    """Go on: nobody can stop this one."""


CHECK: ContextVar[Callable[[], None]] = ContextVar("CHECK", default=_goes_on)
"""Set by whoever calls an executor in a thread: raises where what it computes is no longer wanted."""


def check_stopped() -> None:
    """Raise if the run is being cancelled."""
    CHECK.get()()
