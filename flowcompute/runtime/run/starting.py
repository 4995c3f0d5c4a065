"""Starts runs: checks what was asked for."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from flowcompute.engine import PlannedJob
from flowcompute.errors import PlanError
from flowcompute.observe import Observe
from flowcompute.runtime.checkpoints import Request
from flowcompute.runtime.run.run import Run, refuse_in_trio_task
from flowcompute.runtime.run.run_strategy import RunTuner


def start(
    job: PlannedJob,
    *,
    progress: bool | None = None,
    throttle: float = 0.0,
    on_batch: Callable[[Run], object] | None = None,
    stall_timeout_s: float | None = 120.0,
    draw: Callable[[Run], str] | None = None,
    aliases: Mapping[str, str] | None = None,
    request: Request | None = None,
    tuner: RunTuner | None = None,
    observe: Observe | None = None,
) -> Run:
    """Start running a plan in the background.

    Args:
        job: what to run.
        progress: True shows a bar on a terminal and plain lines elsewhere, False nothing; by
            default there is a bar on a terminal.
        throttle: seconds to pause after each batch, to be polite to what is shared.
        on_batch: called with the run, in a worker thread, after each batch has been computed.
            What it raises fails the run; what it returns is ignored.
        stall_timeout_s: seconds that a stage may wait while nothing moves before the run
            fails with an error that names who holds it up; None for never.
        draw: what `str(run)` says.
        aliases: element name -> name of the stage it runs in, for `run.metrics`.
        request: the checkpoint to keep.
        tuner: who looks for a better strategy.
        observe: what is to be known of the run; by default `run.metrics` with its histories.

    Raises:
        PlanError: if an option is not what it should be.
        RunError: in a trio task, whose event loop it would block.
    """
    refuse_in_trio_task("start a run")
    if not _is_number(throttle) or throttle < 0:
        raise _bad_option("throttle", "seconds to pause after each batch, 0 or more", throttle)
    if stall_timeout_s is not None and (not _is_number(stall_timeout_s) or stall_timeout_s <= 0):
        raise _bad_option("stall_timeout_s", "seconds, more than 0, or None", stall_timeout_s)
    if on_batch is not None and not callable(on_batch):
        raise _bad_option("on_batch", "a function that takes the run", on_batch)
    if not isinstance(progress, bool | None):
        raise _bad_option("progress", "True, False or None", progress)
    run = Run(
        job,
        throttle_s=throttle,
        on_batch=on_batch,
        stall_timeout_s=stall_timeout_s,
        draw=draw,
        aliases=aliases or {},
        request=request or Request(),
        tuner=tuner,
        observe=observe,
    )
    run.begin(progress)
    return run


def _bad_option(name: str, expected: str, got: object) -> PlanError:
    return PlanError(f"{name}= is not what it should be", element=name, expected=expected, got=repr(got))


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
