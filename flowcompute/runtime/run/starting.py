"""Starts runs of plans."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from flowcompute.engine import PlannedJob
from flowcompute.runtime.checkpoints import Request
from flowcompute.runtime.options import RunOptions
from flowcompute.runtime.run.blocking import refuse_in_trio_task
from flowcompute.runtime.run.run import Run
from flowcompute.runtime.run.run_strategy import RunTuner

if TYPE_CHECKING:
    import asyncio


def start(
    job: PlannedJob,
    options: RunOptions | None = None,
    *,
    draw: Callable[[Run], str] | None = None,
    aliases: Mapping[str, str] | None = None,
    request: Request | None = None,
    tuner: RunTuner | None = None,
    loop: asyncio.AbstractEventLoop | None = None,
    awaited: bool = False,
) -> Run:
    """Start to run a plan in the background, and return the run.

    Args:
        job: what to run.
        options: how to run it; those that the plan was made from are not looked at again.
        draw: gives the text of `str(run)`.
        aliases: element name -> name of the stage it runs in, for `run.metrics`.
        request: the checkpoint to keep.
        tuner: who looks for a better strategy.
        loop: the asyncio loop in which asynchronous iterables are read; None for trio.
        awaited: whether it will be awaited, so that a signal must not hold up the loop.

    Raises:
        RunError: in a trio task, whose event loop it would block, unless it is awaited.
    """
    if not awaited:
        refuse_in_trio_task("start a run")
    run = Run(
        job,
        options or RunOptions(),
        draw=draw,
        aliases=aliases or {},
        request=request or Request(),
        tuner=tuner,
        loop=loop,
        awaited=awaited,
    )
    run.begin()
    return run
