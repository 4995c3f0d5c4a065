"""The command `flowcompute`."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

from flowcompute.demo import run_demo, summary
from flowcompute.elements import Element
from flowcompute.errors import FlowError, SpecError
from flowcompute.flow import draw, plan, run
from flowcompute.gpu.device import describe_devices
from flowcompute.sources import open as open_file

FAILED, INTERRUPTED = 1, 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; gives the exit code: 0, 1 for an error of flowcompute's, 2 for wrong usage, 130 for Ctrl-C."""
    options = _parser().parse_args(arguments)
    try:
        options.act(options)
    except FlowError as error:
        print(f"flowcompute: {error}", file=sys.stderr)
        return FAILED
    except KeyboardInterrupt:
        print("flowcompute: interrupted; nothing was left half written", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        # The reader of our output has gone; there is nobody to tell.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="flowcompute", description="Stream data larger than memory through fused OpenCL kernels."
    )
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    job_help = "module:name of an element, of several in a tuple or list, or of a function that gives them"

    devices = commands.add_parser("devices", help="the OpenCL devices of this machine, best first")
    devices.set_defaults(act=_devices)

    inspect = commands.add_parser("inspect", help="what a file holds, or what a job computes")
    inspect.add_argument("what", metavar="FILE|MODULE:JOB", help=f"an .npy file, or {job_help}")
    inspect.set_defaults(act=_inspect)

    planned = commands.add_parser("plan", help="what a job would do and why; nothing runs")
    planned.add_argument("job", metavar="MODULE:JOB", help=job_help)
    _add_run_options(planned)
    planned.add_argument("--kernels", action="store_true", help="also print the kernels' OpenCL C")
    planned.add_argument("--dot", metavar="FILE", help="write the graph for Graphviz")
    planned.add_argument("--svg", metavar="FILE", help="write the graph as a picture")
    planned.set_defaults(act=_plan)

    running = commands.add_parser("run", help="run a job to the end and print its values")
    running.add_argument("job", metavar="MODULE:JOB", help=job_help)
    _add_run_options(running)
    running.add_argument("--progress", action=argparse.BooleanOptionalAction, help="show how far it is")
    running.set_defaults(act=_run)

    demo = commands.add_parser("demo", help="the distance of the Moon, hour by hour, from JPL's ephemeris")
    _add_run_options(demo)
    demo.add_argument("--large", action="store_true", help="six thousand years (a download of 545 MB)")
    demo.add_argument("--offline", action="store_true", help="never ask the network; generate a file if there is none")
    demo.add_argument("--keep", metavar="FOLDER", help="leave the distances there")
    demo.add_argument("--progress", action=argparse.BooleanOptionalAction, default=True, help="show how far it is")
    demo.set_defaults(act=_demo)
    return parser


def _add_run_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--memory", metavar="SIZE", help='budget on the host, such as "512MiB"')
    parser.add_argument("--device", default="auto", help='"auto", "numpy", "cpu", "gpu:1" or part of a name')


def _devices(_: argparse.Namespace) -> None:
    table = Table("device=", "what", "units", "memory", "float64", "driver", box=None, pad_edge=False)
    for row in describe_devices():
        memory, float64 = f"{row.memory_bytes / 2**30:.0f} GiB", "yes" if row.float64 else "no"
        table.add_row(row.spec, f"{row.name}\n{row.summary}", str(row.units), memory, float64, row.driver)
    table.add_row("numpy", "NumPy, the reference", "", "", "yes", "")
    Console().print(table)


def _inspect(options: argparse.Namespace) -> None:
    if ":" in options.what and not os.path.exists(options.what):
        print(draw(*load_job(options.what)))
        return
    source = open_file(options.what)
    print(f"{options.what}: {source.spec}, {source.spec.item_bytes} bytes an item")
    if (why := source.must_read()) is not None:
        print(f"read into buffers, not mapped: {why}")


def _plan(options: argparse.Namespace) -> None:
    made = plan(*load_job(options.job), memory=options.memory, device=options.device)
    print(made)
    if options.kernels:
        for kernel in made.kernels:
            print(f"\n{kernel.source}")
    for path, picture in ((options.dot, made.dot), (options.svg, made.svg)):
        if path is not None:
            with open(path, "w", encoding="utf-8") as file:
                file.write(picture())


def _run(options: argparse.Namespace) -> None:
    finished = run(*load_job(options.job), memory=options.memory, device=options.device, progress=options.progress)
    for value in finished.values:
        print(value)


def _demo(options: argparse.Namespace) -> None:
    memory = {"memory": options.memory} if options.memory else {}
    result = run_demo(
        device=options.device,
        large=options.large,
        offline=options.offline,
        keep=options.keep,
        progress=options.progress,
        **memory,
    )
    table = Table(box=None, show_header=False, pad_edge=False)
    for what, text in summary(result):
        table.add_row(f"[bold]{what}[/bold]", text)
    Console().print(table)
    if not result.plausible:
        raise SpecError("the demo's answer is wrong", element="demo", hint="please report this")


def load_job(text: str) -> tuple[Element, ...]:
    """The elements that `module:name` means.

    Raises:
        SpecError: if there is no such module or name, or it gives no elements.
    """
    module_name, _, name = text.partition(":")
    if not module_name or not name:
        raise SpecError(f"{text!r} names no job", element="job", expected="module:name, such as pipeline:job")
    sys.path.insert(0, os.getcwd())
    try:
        job: Any = getattr(importlib.import_module(module_name), name)
    except ModuleNotFoundError as error:
        if error.name != module_name:
            raise
        raise SpecError(
            f"there is no module {module_name!r}", element="job", hint="run it in the folder of the module's file"
        ) from error
    except AttributeError as error:
        raise SpecError(f"module {module_name!r} has no {name!r}", element="job") from error
    finally:
        sys.path.remove(os.getcwd())
    if callable(job) and not isinstance(job, Element):
        job = job()
    elements = tuple(job) if isinstance(job, tuple | list) else (job,)
    for element in elements:
        if not isinstance(element, Element):
            raise SpecError(f"{text} gives no elements", element="job", got=type(element).__name__)
    return elements


if __name__ == "__main__":
    sys.exit(main())
