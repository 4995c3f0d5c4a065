"""Commands of `flowcompute`: their arguments, their actions, and their exit codes."""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

import flowcompute as fc
from flowcompute.cli.inspect_file import describe_file, describe_job
from flowcompute.cli.make_report import add_report
from flowcompute.cli.named_job import JOB_HELP, JobName, job_name, load_job
from flowcompute.cli.output import write_text
from flowcompute.cli.resume_job import add_resume, left_at
from flowcompute.cli.running import (
    CommandParser,
    add_every,
    add_observe,
    add_progress,
    add_run_options,
    measured,
    options_of,
    print_results,
)
from flowcompute.cli.show_checkpoint import add_checkpoint
from flowcompute.cli.strategies import add_strategies
from flowcompute.demo import run_demo, summary
from flowcompute.elements import Source
from flowcompute.errors import CheckpointWarning, FlowError
from flowcompute.gpu import OpenCLBackend
from flowcompute.gpu.device import describe_devices, select_device
from flowcompute.strategy import PlanOptions, StartOptions

FAILED, REFUSED, INTERRUPTED, TERMINATED = 1, 2, 130, 143


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command.

    Args:
        arguments: those after the program's name; by default the process's.

    Returns:
        The exit code: 0 for success. It is 1 if nobody reads the output any more, or if a checkpoint is
            damaged. It
        is 2 for an error of flowcompute, printed on standard error, and for wrong usage. It is 130 after
        Ctrl-C.

    Raises:
        SystemExit: with code 143 after SIGTERM.
    """
    options = _parser().parse_args(arguments)
    code: int | None = 0
    try:
        with warnings.catch_warnings():
            warnings.showwarning = partial(_warn, warnings.showwarning)
            code = options.act(options)
        sys.stdout.flush()
    except FlowError as error:
        print(f"flowcompute: {error}", file=sys.stderr)
        return REFUSED
    except KeyboardInterrupt:
        print(f"flowcompute: interrupted; {left_at(options)}", file=sys.stderr)
        return INTERRUPTED
    except SystemExit as ended:
        if ended.code == TERMINATED:
            print(f"flowcompute: terminated; {left_at(options)}", file=sys.stderr)
        raise
    except BrokenPipeError:
        # Python flushes standard output once more at exit, which would print an error.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    return code or 0


def _warn(
    otherwise: Callable[..., None], message: Warning | str, category: type[Warning], *place: Any, **more: Any
) -> None:
    """Print a warning about a checkpoint as errors are printed, and any other as Python does."""
    if issubclass(category, CheckpointWarning):
        print(f"flowcompute: {message}", file=sys.stderr)
    else:
        otherwise(message, category, *place, **more)


def _parser() -> argparse.ArgumentParser:
    parser = CommandParser(
        prog="flowcompute", description="Stream data larger than memory through fused OpenCL kernels."
    )
    parser.add_argument("--version", action="version", version=f"flowcompute {fc.__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)

    demo = commands.add_parser("demo", help="the whole thing on real data: how far away the Moon is")
    add_run_options(demo)
    demo.add_argument("--large", action="store_true", help="6000 years, 171 MB (a download of 545 MB)")
    demo.add_argument("--offline", action="store_true", help="never ask the network; generate a file if none was kept")
    demo.add_argument("--keep", metavar="FOLDER", help="write the distances there")
    add_progress(demo)
    demo.set_defaults(act=_demo)

    devices = commands.add_parser("devices", help="what can compute on this machine")
    devices.add_argument(
        "--measure", action="store_true", help="also measure what each can do at most, and keep that for rooflines"
    )
    devices.set_defaults(act=_devices)

    inspect = commands.add_parser("inspect", help="what a file holds, or what a job is made of")
    inspect.add_argument("what", metavar="FILE|MODULE:JOB", help=f"a file, a pattern, or {JOB_HELP}")
    inspect.add_argument("--format", choices=("npy", "raw"), help="where the file's extension does not say it")
    inspect.add_argument("--dtype", help='of a raw file: "float32", ">f4"; "bfloat16" also of an .npy file')
    inspect.add_argument("--shape", type=_item_shape, metavar="N,N", help="item shape of a raw file")
    inspect.add_argument("--offset", type=int, default=0, metavar="BYTES", help="before the first item of a raw file")
    inspect.set_defaults(act=_inspect)

    plan = commands.add_parser("plan", help="what a job would do and why; nothing runs")
    _add_job(plan)
    add_run_options(plan)
    plan.add_argument("--explain", action="store_true", help="also print each knob, and what else was tried")
    plan.add_argument("--kernels", action="store_true", help="also print the kernels' OpenCL C")
    plan.add_argument("--dot", metavar="FILE", help="write the graph in Graphviz's language")
    plan.add_argument("--svg", metavar="FILE", help="write the graph as a picture")
    plan.set_defaults(act=_plan)

    run = commands.add_parser("run", help="run a job and print its values")
    _add_job(run)
    add_run_options(run)
    add_progress(run)
    run.add_argument("--checkpoint", metavar="PATH", help="a folder that keeps what is done; where it is there, go on")
    add_every(run)
    run.add_argument(
        "--tune",
        nargs="?",
        const=True,
        default=False,
        choices=("quick", "full"),
        help="also look for a faster strategy and keep it: in 2 %% of the time, in 10 s (quick), in two minutes (full)",
    )
    add_observe(run)
    run.set_defaults(act=_run)

    add_resume(commands)
    add_checkpoint(commands)
    add_strategies(commands)
    add_report(commands)
    return parser


def _add_job(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("job", type=job_name, metavar="MODULE:JOB", help=JOB_HELP)


def _item_shape(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(size) for size in text.split(",") if size.strip())
    except ValueError:
        raise argparse.ArgumentTypeError(f"cannot read {text!r} as a shape, such as 3,13") from None


def _demo(options: argparse.Namespace) -> None:
    console = Console()
    report = run_demo(
        **options_of(options, PlanOptions),
        large=options.large,
        offline=options.offline,
        keep=options.keep,
        progress=options.progress,
        console=console,
    )
    console.print(summary(report))


def _devices(options: argparse.Namespace) -> None:
    rows = describe_devices()
    table = Table(box=None, pad_edge=False)
    for heading in ("device=", "name", "what it is", "memory", "units", "float64", "driver"):
        table.add_column(heading, overflow="fold")
    for row in rows:
        memory = f"{row.memory_bytes / 2**30:.0f} GiB"
        double = "yes" if row.float64 else "no"
        cells = (row.spec, row.name, row.summary, memory, str(row.units), double, row.driver)
        table.add_row(*(Text(cell) for cell in cells))
    table.add_row("numpy", "NumPy", "the reference: slow, needs no driver", "", "", "yes", "")
    console = Console()
    console.print(table)
    # Without a device this raises an error that says what to install.
    console.print(Text(f"\n{select_device('auto', needs_float64=False).capabilities.reason}"))
    for row in rows if options.measure else ():
        console.print(Text(f"{row.spec}: {measured(OpenCLBackend.select(row.spec, False), again=True)}"))


def _inspect(options: argparse.Namespace) -> None:
    what = options.what
    job = _job_or_none(what)
    if job is not None:
        print(describe_job(load_job(job)))
        return
    source: Source = fc.open(
        what, format=options.format, dtype=options.dtype, shape=options.shape, offset=options.offset
    )
    print(describe_file(source))


def _job_or_none(text: str) -> JobName | None:
    if os.path.lexists(text):
        return None
    try:
        return job_name(text)
    except argparse.ArgumentTypeError:
        return None


def _plan(options: argparse.Namespace) -> None:
    made = fc.plan(*load_job(options.job), **options_of(options, PlanOptions))
    print(made)
    if options.explain:
        print(f"\n{made.explain()}")
    if options.kernels:
        for kernel in made.kernels:
            print(f"\n{kernel.source}", end="")
    if options.dot is not None:
        write_text(options.dot, made.dot())
    if options.svg is not None:
        write_text(options.svg, made.svg())


def _run(options: argparse.Namespace) -> None:
    elements = load_job(options.job)
    run = fc.run(*elements, **options_of(options, StartOptions))
    print_results(run)
    if options.tune:
        print(run.tuning, file=sys.stderr)
