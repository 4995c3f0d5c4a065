"""Starts plans with options by name, as the verbs start jobs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from flowcompute.runtime.checkpoints import Request
from flowcompute.runtime.options import RunOptions
from flowcompute.runtime.run import Run
from flowcompute.runtime.run import start as start_run
from flowcompute.runtime.run.run_strategy import RunTuner
from flowcompute.schedule.explain import Plan


def start(
    plan: Plan,
    *,
    draw: Callable[[Run], str] | None = None,
    aliases: Mapping[str, str] | None = None,
    request: Request | None = None,
    tuner: RunTuner | None = None,
    **options: Any,
) -> Run:
    """Start to run a plan; see `flowcompute.runtime.run.start`."""
    return start_run(plan, RunOptions(**options), draw=draw, aliases=aliases, request=request, tuner=tuner)
