"""Python's cyclic garbage collector, and what is worth doing without it."""

from __future__ import annotations

import atexit
import functools
import gc
from collections.abc import Callable
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


def without_collector(function: Callable[P, R]) -> Callable[P, R]:
    """Let a function that makes many objects, few of them in cycles, run without the cyclic garbage collector.

    The collector visits all objects each time their number has grown by a quarter. Of a deep graph that takes half
    of the time. Where the collector is off already it stays off. Threads that call such functions at once may turn
    it on for each other, which costs time only.
    """

    @functools.wraps(function)
    def called(*args: P.args, **kwargs: P.kwargs) -> R:
        if not gc.isenabled():
            return function(*args, **kwargs)
        gc.disable()
        try:
            return function(*args, **kwargs)
        finally:
            gc.enable()

    return called


def count_as_old() -> None:
    """Let the collector take all objects that there are for old ones, which only a whole collection visits.

    Nothing is visited for it. Where the user has frozen objects, which no collection visits, they stay so and nothing
    is done.
    """
    if gc.get_freeze_count() == 0:
        gc.freeze()
        gc.unfreeze()


@functools.cache
def skip_last_collection() -> None:
    """Let this process end without the collection in which Python visits all objects once more.

    Cycles that are there at the end are left to the system, with what they hold. So it is for processes whose objects
    are all ours: a file of the user's in a cycle would lose what it has not written.
    """
    atexit.register(gc.freeze)
