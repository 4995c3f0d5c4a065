"""Command that makes a page about a run."""

from __future__ import annotations

import argparse
import os
import tempfile
from typing import Any

import flowcompute as fc
from flowcompute.cli.named_job import JOB_HELP, JobName, job_name, load_job
from flowcompute.cli.overview import COMMANDS
from flowcompute.cli.running import (
    add_knobs,
    add_precision,
    add_progress,
    add_run_options,
    measured,
    options_of,
)
from flowcompute.jobs import job_of
from flowcompute.observe import write_report
from flowcompute.strategy import PlanOptions


def add_report(commands: Any) -> None:
    """Add `report` to a parser's sub-parsers."""
    parser = commands.add_parser("report", help=COMMANDS["report"])
    parser.add_argument(
        "what", type=_what, metavar="TRACE|MODULE:JOB", help=f"what --trace wrote, or a job to be run: {JOB_HELP}"
    )
    parser.add_argument("-o", "--output", metavar="FILE", help="the page; by default the name with .html")
    add_run_options(parser)
    add_precision(parser)
    add_knobs(parser)
    add_progress(parser)
    parser.set_defaults(act=_report)


def _what(text: str) -> str | JobName:
    return text if os.path.lexists(text) or ":" not in text else job_name(text)


def _report(options: argparse.Namespace) -> None:
    what = options.what
    if isinstance(what, str):
        target = options.output or f"{os.path.splitext(what)[0]}.html"
        write_report(what, target)
    else:
        target = options.output or f"{what.module}-{what.name}.html"
        with tempfile.TemporaryDirectory() as folder:
            trace = os.path.join(folder, f"{what.module}-{what.name}")
            job = load_job(what)
            measured(job_of(fc.plan(*job, **options_of(options, PlanOptions))).backend)
            fc.run(*job, **options_of(options, PlanOptions), progress=options.progress, trace=trace)
            write_report(trace, target)
    print(target)
