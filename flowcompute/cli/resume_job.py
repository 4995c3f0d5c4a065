"""Command that continues a frozen job, without the program that began it."""

from __future__ import annotations

import argparse
import shlex
import sys
from typing import Any

from flowcompute.checkpoint.store import CheckpointFolder
from flowcompute.cli.overview import COMMANDS
from flowcompute.cli.running import (
    add_every,
    add_knobs,
    add_observe,
    add_pace,
    add_progress,
    add_run_options,
    add_touched,
    options_of,
    print_results,
)
from flowcompute.distributed import ClusterRun
from flowcompute.files import shown
from flowcompute.runtime.run import Run
from flowcompute.strategy import ThawOptions
from flowcompute.thawing import FrozenShards, thaw


def add_resume(commands: Any) -> None:
    """Add `resume` to a parser's sub-parsers."""
    parser = commands.add_parser("resume", help=COMMANDS["resume"])
    parser.add_argument("checkpoint", metavar="PATH", help="the folder that keeps the job")
    parser.add_argument(
        "--allow",
        action="append",
        default=[],
        metavar="FOLDER",
        help="a folder whose files the job may replace; see `flowcompute checkpoint show`",
    )
    add_run_options(parser)
    add_knobs(parser)
    add_pace(parser)
    add_progress(parser)
    add_every(parser)
    add_touched(parser)
    add_observe(parser)
    parser.set_defaults(act=_resume)


def left_at(options: argparse.Namespace) -> str:
    """Return a sentence on what an interrupted command has left, and how to continue."""
    path = getattr(options, "checkpoint", None)
    if path is None or not CheckpointFolder.exists(path):
        return "no unfinished file was left"
    goes_on = f"flowcompute resume {shlex.quote(path)}" if path.isprintable() else "flowcompute resume"
    return f"what was done is kept in {shown(path)}, and {goes_on} goes on"


def is_finished(path: str | None) -> bool:
    """Check whether there is a checkpoint at this path whose job has nothing left to do.

    Raises:
        CheckpointError: if the checkpoint cannot be used.
    """
    return path is not None and CheckpointFolder.exists(path) and thaw(path).done


def say_finished(path: str) -> None:
    """Say on standard error that the job in a checkpoint had nothing left to do."""
    print(f"flowcompute: the job in {shown(path)} had already finished; these are its results", file=sys.stderr)


def _resume(options: argparse.Namespace) -> None:
    asked = options_of(options, ThawOptions)
    frozen = thaw(options.checkpoint, allow=options.allow)
    run: Run | ClusterRun
    if isinstance(frozen, FrozenShards):
        run = frozen.run(**asked)
    else:
        run = frozen.start(**asked)
        if run.page is not None:
            print(f"flowcompute: the run is shown at {run.page}", file=sys.stderr, flush=True)
        run.wait()
    if frozen.done:
        say_finished(options.checkpoint)
    print_results(run)
