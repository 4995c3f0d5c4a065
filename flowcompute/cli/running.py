"""What the commands that run jobs have in common: options, and how results are printed."""

from __future__ import annotations

import argparse
import sys

from flowcompute.runtime.cadence import Every
from flowcompute.runtime.run import Run


def add_run_options(parser: argparse.ArgumentParser) -> None:
    """Add the budget and the device."""
    parser.add_argument("--memory", metavar="SIZE", help='budget on the host, as "512MiB" or "2 GB"')
    parser.add_argument(
        "--device", default="auto", help='"auto", "numpy", "cpu", "gpu", "gpu:1", or text that fits one device\'s name'
    )


def add_progress(parser: argparse.ArgumentParser) -> None:
    """Add whether progress is shown."""
    parser.add_argument(
        "--progress",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="a bar on a terminal, lines elsewhere, on standard error (the default)",
    )


def add_every(parser: argparse.ArgumentParser) -> None:
    """Add how often checkpoints are taken."""
    parser.add_argument(
        "--checkpoint-every",
        type=_every,
        default="auto",
        metavar="X",
        help='seconds, a size of what is read ("64MiB"), or "auto" (the default): as often as costs less than 1 %%',
    )


def print_results(run: Run) -> None:
    """Print the value of each root, and on standard error which records were dropped."""
    sinks = {sink.root: sink for each in run.plan.passes for sink in each.sinks}
    for root, value in enumerate(run.values):
        if value is not None:
            print(f"{run.plan.graph.nodes[sinks[root].value].name}: {value}")
    for name, dropped in run.skipped.items():
        if dropped.count:
            print(f"{name}: {dropped}", file=sys.stderr)


def _every(text: str) -> Every:
    try:
        return float(text)
    except ValueError:
        return text
