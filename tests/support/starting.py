"""Starts planned jobs with options by name, as the verbs start jobs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from flowcompute.engine import PlannedJob
from flowcompute.runtime.checkpoints import Request
from flowcompute.runtime.options import RunOptions
from flowcompute.runtime.run import Run
from flowcompute.runtime.run import start as start_run
from flowcompute.runtime.run.run_strategy import RunTuner


def start(
    job: PlannedJob,
    *,
    draw: Callable[[Run], str] | None = None,
    aliases: Mapping[str, str] | None = None,
    request: Request | None = None,
    tuner: RunTuner | None = None,
    **options: Any,
) -> Run:
    """Start to run a planned job; see `flowcompute.runtime.run.start`."""
    return start_run(job, RunOptions(**options), draw=draw, aliases=aliases, request=request, tuner=tuner)
