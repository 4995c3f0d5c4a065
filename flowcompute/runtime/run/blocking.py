"""Calls that would hold up an event loop: refused in trio, warned of in asyncio."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flowcompute.elements import user_site, warn_at
from flowcompute.errors import EventLoopWarning, RunError
from flowcompute.event_loops import asyncio_loop, blocks_asyncio, in_trio_task
from flowcompute.schedule.explain import Plan
from flowcompute.sources import IterateSource

if TYPE_CHECKING:
    import asyncio


def refuse_in_trio_task(doing: str) -> None:
    """Raise RunError where blocking would stop a trio event loop."""
    if in_trio_task():
        raise RunError(
            f"cannot {doing} in a trio task: it would block the event loop",
            hint="await fc.arun(...) or fc.aresolve(...)",
        )


def check_blocking(plan: Plan, loop: asyncio.AbstractEventLoop | None) -> None:
    """Warn where waiting blocks an asyncio loop.

    Args:
        plan: of the run that is waited for.
        loop: where its asynchronous iterables are read; None for trio, and where they were read.

    Raises:
        RunError: where the wait would never end, as an iterable is read in the loop that it blocks.
    """
    sources = (source.element for each in plan.passes for source in each.sources)
    iterables = any(isinstance(source, IterateSource) and source.is_asynchronous for source in sources)
    if loop is not None and asyncio_loop() is loop and iterables:
        raise RunError(
            "cannot wait for a run in the event loop that its iterable is read in: it would wait for itself",
            hint="await run",
        )
    if blocks_asyncio():
        told = "the call blocks the event loop: await fc.aresolve(...), or await the run of fc.start(...)"
        warn_at(user_site(), told, EventLoopWarning)
