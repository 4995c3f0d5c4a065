"""Commands of `flowcompute`: their arguments, their actions, and their exit codes."""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import sys
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from rich.table import Table
from rich.text import Text

import flowcompute as fc
from flowcompute.calibration import measure_files, try_runtimes
from flowcompute.checkpoint.store import CheckpointFolder
from flowcompute.cli.clean_folder import add_clean
from flowcompute.cli.completion import add_completion
from flowcompute.cli.inspect_file import describe_file, describe_job, first_records
from flowcompute.cli.make_report import add_report
from flowcompute.cli.model_commands import add_generate, describe_model, onnx_job, run_target
from flowcompute.cli.named_job import JOB_HELP, JobName, job_name, load_job
from flowcompute.cli.output import output_console, write_text
from flowcompute.cli.overview import COMMANDS, bare_parser, printing
from flowcompute.cli.resume_job import add_resume, is_finished, left_at, say_finished
from flowcompute.cli.running import (
    add_every,
    add_knobs,
    add_observe,
    add_pace,
    add_precision,
    add_progress,
    add_run_options,
    add_touched,
    measured,
    options_of,
    print_results,
)
from flowcompute.cli.show_checkpoint import add_checkpoint, describe_checkpoint
from flowcompute.cli.show_error import show_error
from flowcompute.cli.strategies import add_strategies
from flowcompute.demo import run_demo, summary
from flowcompute.elements import Element, Source, user_site
from flowcompute.errors import CheckpointWarning, PlanError, Site
from flowcompute.gpu import OpenCLBackend
from flowcompute.gpu.device import describe_devices, select_device
from flowcompute.imports import skip_last_collection
from flowcompute.strategy import PlanOptions, PlanVerbOptions, StartOptions, mount_point, save_file_rates

_FATAL = 128
_ENDED = {
    _FATAL + signal.SIGINT: "interrupted",
    _FATAL + signal.SIGTERM: "terminated",
    _FATAL + signal.SIGHUP: "hung up",
}
"""Words for a command that a signal ended, by its exit code."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command.

    Args:
        arguments: those after the program's name; by default the process's.

    Returns:
        The exit code. It is 0 for success. It is 1 if the job failed, if a checkpoint is damaged, or if nobody can take
        the output. It is 2 for a job that cannot be run as asked, and 130 after Ctrl-C.

    Raises:
        SystemExit: with code 2 for wrong usage, 143 after SIGTERM and 129 after SIGHUP.
    """
    entry = user_site()
    return printing(lambda: _act(arguments, entry))


def _act(arguments: Sequence[str] | None, entry: Site | None) -> int:
    """Parse and run the command; `entry` is the line that called it."""
    options = command_parser().parse_args(arguments)
    try:
        with warnings.catch_warnings():
            warnings.showwarning = partial(_warn, warnings.showwarning, set())
            code: int = options.act(options) or 0
            if arguments is None and getattr(options, "only_ours", False):
                # Of a language model it takes .3 s.
                skip_last_collection()
            return code
    except KeyboardInterrupt:
        return _told(_FATAL + signal.SIGINT, options)
    except SystemExit as ended:
        if ended.code in _ENDED:
            _told(ended.code, options)
        raise
    except Exception as error:
        if isinstance(error, OSError) and error.filename is None:
            # Nothing but printing lets one pass: those of files are told as errors of the family, with their paths.
            raise
        return show_error(error, entry=entry, options=options.known, whole=getattr(options, "traceback", False))


def _told(code: int, options: argparse.Namespace) -> int:
    # After a hangup the terminal is gone, unless somebody else has sent the signal.
    with contextlib.suppress(OSError):
        print(f"flowcompute: {_ENDED[code]}; {left_at(options)}", file=sys.stderr, flush=True)
    return code


def _warn(
    otherwise: Callable[..., None],
    told: set[str],
    message: Warning | str,
    category: type[Warning],
    *place: Any,
    **more: Any,
) -> None:
    """Print a warning about a checkpoint once, as errors are printed, and any other as Python does."""
    if not issubclass(category, CheckpointWarning):
        otherwise(message, category, *place, **more)
    elif str(message) not in told:
        told.add(str(message))
        print(f"flowcompute: {message}", file=sys.stderr)


def command_parser() -> argparse.ArgumentParser:
    """Return the parser of all commands."""
    parser, commands = bare_parser()
    demo = commands.add_parser("demo", help=COMMANDS["demo"])
    add_run_options(demo)
    add_precision(demo)
    add_knobs(demo)
    demo.add_argument("--large", action="store_true", help="6000 years, 171 MB (a download of 545 MB)")
    demo.add_argument("--offline", action="store_true", help="never ask the network; generate a file if none was kept")
    demo.add_argument("--keep", metavar="FOLDER", help="write the distances there")
    add_progress(demo)
    demo.set_defaults(act=_demo)

    devices = commands.add_parser("devices", help=COMMANDS["devices"])
    devices.add_argument(
        "--measure",
        action="store_true",
        help="also measure what each can do at most, which plans then expect",
    )
    devices.add_argument(
        "--files",
        metavar="FOLDER",
        help="also measure how fast files below FOLDER are read and written: 256 MiB are written there and removed",
    )
    devices.set_defaults(act=_devices)

    _add_inspect(commands)

    plan = commands.add_parser("plan", help=COMMANDS["plan"])
    _add_job(plan)
    add_run_options(plan)
    add_precision(plan)
    add_knobs(plan)
    plan.add_argument("--checkpoint", metavar="PATH", help="as of run: what a checkpoint takes is counted")
    plan.add_argument("--explain", action="store_true", help="also print each knob, and what else was tried")
    plan.add_argument("--kernels", action="store_true", help="also print the kernels' OpenCL C")
    plan.add_argument("--dot", metavar="FILE", help="write the graph in Graphviz's language")
    plan.add_argument("--svg", metavar="FILE", help="write the graph as a picture")
    plan.set_defaults(act=_plan)

    run = commands.add_parser("run", help=COMMANDS["run"])
    run.add_argument("job", type=run_target, metavar="MODULE:JOB|MODEL.onnx", help=f"{JOB_HELP}; or an ONNX model")
    run.add_argument(
        "--output",
        action="append",
        default=[],
        metavar="[NAME=]FILE",
        help="the .npy file of an output of MODEL.onnx, again for each output that is wanted",
    )
    add_run_options(run)
    add_precision(run)
    add_knobs(run, of_models=True)
    add_pace(run)
    add_progress(run)
    run.add_argument("--checkpoint", metavar="PATH", help="a folder that keeps what is done; where it is there, go on")
    add_every(run)
    add_touched(run)
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

    for add in (add_resume, add_checkpoint, add_clean, add_strategies, add_report, add_generate):
        add(commands)
    add_completion(commands, parser)
    return parser


def _add_inspect(commands: Any) -> None:
    inspect = commands.add_parser("inspect", help=COMMANDS["inspect"])
    inspect.add_argument(
        "what", metavar="FILE|PATH|MODULE:JOB", help=f"a file, a pattern, a checkpoint's folder, or {JOB_HELP}"
    )
    inspect.add_argument("--format", choices=("npy", "raw"), help="where the file's extension does not say it")
    inspect.add_argument("--dtype", help='of a raw file: "float32", ">f4"; "bfloat16" also of an .npy file')
    inspect.add_argument("--shape", type=_item_shape, metavar="N,N", help="item shape of a raw file")
    inspect.add_argument("--offset", type=int, default=0, metavar="BYTES", help="before the first item of a raw file")
    inspect.add_argument(
        "--head", nargs="?", type=int, const=5, metavar="N", help="also print the first records of a file (5)"
    )
    inspect.set_defaults(act=_inspect)


def _add_job(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("job", type=job_name, metavar="MODULE:JOB", help=JOB_HELP)


def _item_shape(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(size) for size in text.split(",") if size.strip())
    except ValueError:
        raise argparse.ArgumentTypeError(f"cannot read {text!r} as a shape, such as 3,13") from None


def _demo(options: argparse.Namespace) -> None:
    console = output_console()
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
    console = output_console()
    console.print(table)
    # Without a device this raises an error that says what to install.
    console.print(Text(f"\n{select_device('auto', needs_float64=False).capabilities.reason}"))
    rivals = [row for row in rows if row.type == "cpu"]
    if options.measure and len(rivals) > 1:
        for spec, trial in try_runtimes(rivals).items():
            console.print(Text(f"{spec}: {trial}"))
        console.print(Text('from the next start on device="auto" takes the fastest of those that are right'))
    for row in rows if options.measure else ():
        console.print(Text(f"{row.spec}: {measured(OpenCLBackend.select(row.spec, False), again=True)}"))
    if options.files is not None:
        rates = measure_files(options.files)
        save_file_rates(options.files, rates)
        console.print(Text(f"files below {mount_point(options.files)}: {rates}"))


def _inspect(options: argparse.Namespace) -> None:
    what = options.what
    job = _job_or_none(what)
    kept = job is None and CheckpointFolder.is_at(what)
    if options.head is not None and (kept or job is not None):
        raise PlanError(
            "cannot print records of what is no file",
            element="--head",
            got=what,
            hint="flowcompute resume goes on with a job" if kept else "flowcompute run computes a job",
        )
    if job is not None:
        print(describe_job(load_job(job)))
        return
    if kept:
        print(describe_checkpoint(what))
        return
    if what.endswith(".gguf") and options.head is None:
        print(describe_model(what))
        return
    if what.endswith(".onnx") and options.head is None:
        print(fc.onnx.describe(what))
        return
    source: Source | fc.Table = fc.open(
        what, format=options.format, dtype=options.dtype, shape=options.shape, offset=options.offset
    )
    print(describe_file(source))
    if options.head is not None:
        print(first_records(source, options.head))


def _job_or_none(text: str) -> JobName | None:
    if os.path.lexists(text):
        return None
    try:
        return job_name(text)
    except argparse.ArgumentTypeError:
        return None


def _plan(options: argparse.Namespace) -> None:
    made = fc.plan(*load_job(options.job), **options_of(options, PlanVerbOptions))
    # Before anything is printed, since whoever reads that may go away early.
    if options.dot is not None:
        write_text(options.dot, made.dot())
    if options.svg is not None:
        write_text(options.svg, made.svg())
    print(made)
    if options.explain:
        print(f"\n{made.explain()}")
    if options.kernels:
        for kernel in made.kernels:
            print(f"\n{kernel.source}", end="")


def _job_without_files(options: argparse.Namespace) -> tuple[Element, ...]:
    """Load a job of a module, which names its files itself."""
    if options.inputs or options.output:
        raise PlanError(
            "cannot give files to a job of a module",
            element="--input" if options.inputs else "--output",
            expected="an ONNX model, whose name ends in .onnx",
            got=str(options.job),
            hint="the module opens and saves its files itself",
        )
    return load_job(options.job)


def _run(options: argparse.Namespace) -> None:
    elements = onnx_job(options) if isinstance(options.job, str) else _job_without_files(options)
    finished = is_finished(options.checkpoint)
    run = fc.start(*elements, **options_of(options, StartOptions))
    if run.page is not None:
        print(f"flowcompute: the run is shown at {run.page}", file=sys.stderr, flush=True)
    run.wait()
    if finished:
        say_finished(options.checkpoint)
    print_results(run)
    if options.tune:
        print(run.tuning, file=sys.stderr)
