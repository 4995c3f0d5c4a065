"""Common parts of the commands that run jobs: options, and how results are printed."""

from __future__ import annotations

import argparse
import sys
from typing import Any, get_args, get_type_hints

from flowcompute.distributed import ClusterRun
from flowcompute.engine import Backend
from flowcompute.errors import FlowError
from flowcompute.runtime.run import Run
from flowcompute.strategy import Every, Limits, Precision, Strategy, default_memory_bytes, load_limits, save_limits


class _OneOrSeveral(argparse.Action):
    """Text, or a list where an option is given more than once."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,  # noqa: ARG002 - argparse's signature
        namespace: argparse.Namespace,
        values: object,
        option_string: str | None = None,  # noqa: ARG002 - as above
    ) -> None:
        before = getattr(namespace, self.dest)
        known = [] if before == self.default else before if isinstance(before, list) else [before]
        setattr(namespace, self.dest, [*known, values] if known else values)


class _Knobs(argparse.Action):
    """A strategy of all that was given: `--strategy depth=3,unroll=4`, what is kept as JSON, and `--input read`."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,  # noqa: ARG002 - argparse's signature
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,  # noqa: ARG002 - as above
    ) -> None:
        text = str(values).strip()
        try:
            if text.startswith("{"):
                given = Strategy.from_json(text)
            else:
                pairs = [f"input={text}"] if self.choices else text.split(",")
                given = Strategy.from_plain(dict(map(_knob, pairs)))
        except FlowError as error:
            raise argparse.ArgumentError(self, str(error)) from None
        before = getattr(namespace, self.dest)
        setattr(namespace, self.dest, given if before is None else given.with_defaults(before))


class _Inputs(_Knobs):
    """`--input read` pins how files are read; any other value is a file that a model reads, `[NAME=]FILE`."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        if values in _INPUTS:
            super().__call__(parser, namespace, f"input={values}", option_string)
        else:
            namespace.inputs = [*namespace.inputs, values]


_INPUTS = ("mapped", "read")
"""Ways in which files are read."""


def add_run_options(parser: argparse.ArgumentParser) -> None:
    """Add the budgets and the device."""
    parser.add_argument("--memory", metavar="SIZE", help='budget on the host, as "512MiB" or "2 GB"')
    parser.add_argument(
        "--device-memory", metavar="SIZE", help="budget on a GPU with memory of its own; by default most of it"
    )
    parser.add_argument(
        "--device",
        action=_OneOrSeveral,
        default="auto",
        help='"auto", "numpy", "cpu", "gpu", "gpu:1", or text that fits one device\'s name; '
        "given again, several devices share the work",
    )


def add_precision(parser: argparse.ArgumentParser) -> None:
    """Add the arithmetic."""
    parser.add_argument(
        "--precision",
        choices=get_args(Precision),
        default="exact",
        help="exact: IEEE rounding of each operation (the default); fast: multiply-add may be contracted; "
        "tf32x3: tensor cores multiply float32",
    )


def add_knobs(parser: argparse.ArgumentParser, *, of_models: bool = False) -> None:
    """Add what may be pinned of a plan: knobs, and a process for kernels; perhaps also the files that a model reads."""
    parser.add_argument(
        "--strategy",
        action=_Knobs,
        metavar="KNOB=VALUE,...",
        help='knobs to pin, as "depth=3,reader_threads=2", or JSON of Strategy.to_json; may be given again',
    )
    if of_models:
        parser.add_argument(
            "--input",
            action=_Inputs,
            dest="strategy",
            metavar="mapped|read|[NAME=]FILE",
            help="how files are read (mapped); or the file of an input of MODEL.onnx, again for each input",
        )
        parser.set_defaults(inputs=[])
    else:
        parser.add_argument(
            "--input", action=_Knobs, dest="strategy", choices=_INPUTS, help="how files are read (mapped)"
        )
    parser.add_argument(
        "--isolate", action="store_true", help="run kernels in a worker process, whose crash is an error and no more"
    )
    parser.add_argument(
        "--launch-timeout",
        dest="launch_timeout_s",
        type=float,
        metavar="SECONDS",
        help="with --isolate: end a launch that takes longer",
    )


def add_pace(parser: argparse.ArgumentParser) -> None:
    """Add what may be asked for while batches flow."""
    parser.add_argument(
        "--throttle", type=float, default=0.0, metavar="SECONDS", help="pause after each batch, for a shared disk"
    )
    parser.add_argument(
        "--stall-timeout",
        dest="stall_timeout_s",
        type=float,
        default=120.0,
        metavar="SECONDS",
        help="fail after so long without any movement (120)",
    )
    parser.add_argument("--name", help="what progress lines, the metrics log and the trace call the run")


def options_of(command: argparse.Namespace, known: type) -> dict[str, Any]:
    """Return the options that a command was given and that a verb has.

    Args:
        command: what was parsed; its options bear the names of those of the verb.
        known: the `TypedDict` of the options that the verb has.
    """
    return {name: value for name, value in vars(command).items() if name in get_type_hints(known)}


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


def add_touched(parser: argparse.ArgumentParser) -> None:
    """Add whether sources that were only touched are taken."""
    parser.add_argument(
        "--accept-touched",
        action="store_true",
        help="take a source whose time of change is another one, if its contents are the same",
    )


def add_observe(parser: argparse.ArgumentParser) -> None:
    """Add where the numbers of the run go."""
    parser.add_argument(
        "--metrics-port",
        type=_port,
        metavar="PORT",
        help='serve Prometheus meanwhile, on this machine only; "0.0.0.0:9464" serves others too',
    )
    parser.add_argument(
        "--page",
        nargs="?",
        const=0,
        type=int,
        metavar="PORT",
        help="show the run to a browser of this machine; its address is printed (any free port)",
    )
    parser.add_argument("--metrics-log", metavar="FILE", help="add a line of JSON each second to this file")
    parser.add_argument("--trace", metavar="FILE", help="write what each stage did, for https://ui.perfetto.dev")
    parser.add_argument(
        "--metrics", action=argparse.BooleanOptionalAction, default=True, help="count and time launches (the default)"
    )


def measured(backend: Backend, *, again: bool = False) -> Limits | None:
    """Return what a device can do at most: as it is kept, or measured (`again`: in any case) and kept."""
    known = load_limits(backend.capabilities.kind)
    if known is not None and not again:
        return known
    limits = backend.measure(default_memory_bytes())
    if limits is not None:
        save_limits(backend.capabilities.kind, limits)
    return limits


def print_results(run: Run | ClusterRun) -> None:
    """Print the value of each root, and on standard error which records were dropped; shards drop none."""
    sinks = {sink.root: sink for each in run.plan.passes for sink in each.sinks}
    for root, value in enumerate(run.values):
        if value is not None:
            made = run.plan.graph.nodes[sinks[root].value].name
            print(f"{sinks[root].name if isinstance(value, str) else made}: {value}")
    for name, dropped in run.skipped.items() if isinstance(run, Run) else ():
        if dropped.count:
            print(f"{name}: {dropped}", file=sys.stderr)


def _port(text: str) -> int | str:
    return int(text) if text.isascii() and text.isdecimal() else text


def _knob(text: str) -> tuple[str, int | str]:
    name, _, value = (part.strip() for part in text.partition("="))
    return name, int(value) if value.isascii() and value.isdecimal() else value


def _every(text: str) -> Every:
    try:
        return float(text)
    except ValueError:
        return text
