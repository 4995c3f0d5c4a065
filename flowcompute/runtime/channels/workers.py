"""The threads that do what blocks."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, TypeVarTuple

import trio

from flowcompute.engine import CHECK

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

THREAD_NAME = "flowcompute-worker"


class Workers:
    """Threads of one run, one for each stage, so that no stage ever waits for another's thread.

    Args:
        count: most calls at a time.
    """

    def __init__(self, count: int) -> None:
        self._limiter = trio.CapacityLimiter(count)

    async def call(self, function: Callable[[*Ts], T], *args: *Ts) -> T:
        """`function(*args)` in a thread.

        Cancelled before it starts, it never runs; once it runs it is waited for, whatever
        happens, so that nothing it opened is lost. A loop that may never end asks `check_stopped`.
        """
        # Threads inherit the context of the task that starts them.
        CHECK.set(trio.from_thread.check_cancelled)
        return await trio.to_thread.run_sync(function, *args, thread_name=THREAD_NAME, limiter=self._limiter)
