"""The command before any of its commands is known: their names, and how printing fails.

What plans and runs is loaded for a command. Help and the version need none of it.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from typing import Any

from flowcompute.cli.show_error import FAILED, REFUSED
from flowcompute.version import __version__

COMMANDS = {
    "demo": "the whole thing on real data: how far away the Moon is",
    "devices": "what can compute on this machine",
    "inspect": "what a file or a checkpoint holds, or what a job is made of",
    "plan": "what a job would do and why; nothing runs",
    "run": "run a job and print its values",
    "resume": "go on with a frozen job and print its values",
    "checkpoint": "what a frozen job is, and whether it is sound",
    "clean": "remove unfinished results whose processes have died",
    "tune": "find a fast strategy for a job ahead of time, and keep it",
    "strategies": "what tuning has found and keeps",
    "report": "write a page about a run: timeline, graph by time, trials",
    "generate": "let a language model in a GGUF file go on with a text",
    "completion": "print a script that completes commands and options in a shell",
}
"""Help of each command, by its name."""

_EXIT_CODES = """exit codes:
  0 if all went well, 1 if the job failed or a checkpoint is damaged, 2 for wrong usage and for a job that cannot
  be run as asked, 130 after Ctrl-C, 143 after SIGTERM, 129 after SIGHUP.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; see `command.main`, which is loaded where a command is named."""
    given = sys.argv[1:] if arguments is None else arguments
    if all(each.startswith("-") for each in given):
        return printing(lambda: _overview(given))
    run: Callable[[Sequence[str] | None], int] = importlib.import_module("flowcompute.cli.command").main
    return run(arguments)


def _overview(arguments: Sequence[str]) -> int:
    """Print help or the version; anything else is wrong usage."""
    parser, commands = bare_parser()
    for name, text in COMMANDS.items():
        commands.add_parser(name, help=text)
    options = parser.parse_args(arguments)
    code: int = options.act(options)
    return code


def bare_parser() -> tuple[argparse.ArgumentParser, Any]:
    """Return the parser of the command, and its sub-parsers, to which the commands are to be added."""
    parser = CommandParser(
        prog="flowcompute",
        description="Stream data larger than memory through fused OpenCL kernels.",
        epilog=_EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"flowcompute {__version__}")
    return parser, parser.add_subparsers(metavar="COMMAND")


class CommandParser(argparse.ArgumentParser):
    """A parser of a command, or of one that only has commands of its own and prints its help alone.

    It offers the nearest name for an option that it does not have. What it parses has `act`, the function of the
    command, and `known`, the names of the command's options.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.set_defaults(act=self._help)
        # Without a default, which would replace what was given before the command's name.
        self.add_argument(
            "--traceback", action="store_true", default=argparse.SUPPRESS, help="show all frames of an error"
        )

    def _help(self, _options: argparse.Namespace) -> int:
        self.print_help(sys.stderr)
        return REFUSED

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> tuple[Any, list[str]]:
        """Parse as the class above, but refuse an unknown option at once: sub-parsers know theirs best."""
        parsed, unknown = super().parse_known_args(args, namespace)
        if not hasattr(parsed, "known"):
            parsed.known = frozenset(self._option_string_actions)
        for name in (text.partition("=")[0] for text in unknown if text.startswith("-")):
            near = next(iter(get_close_matches(name, self._option_string_actions, 1)), None)
            meant = f"; did you mean {near}?" if near else ""
            self.error(f"unrecognized arguments: {' '.join(unknown)}{meant}")
        return parsed, unknown


def printing(act: Callable[[], int]) -> int:
    """Act, and return the exit code; that of a failure where nobody can take the output."""
    open_closed_outputs()
    try:
        try:
            return act()
        finally:
            sys.stdout.flush()
    except OSError as error:
        if not isinstance(error, BrokenPipeError):
            print(f"flowcompute: cannot write standard output: {error.strerror}", file=sys.stderr)
        drop_output()
        return FAILED


def open_closed_outputs() -> None:
    """Take the places of standard streams that are closed, so that no file that is opened later gets them.

    What is printed to a closed output then fails as on a full disk. A closed error output takes everything.
    """
    for number, mode in enumerate((os.O_RDONLY, os.O_RDONLY, os.O_WRONLY)):
        try:
            os.fstat(number)
        except OSError:
            os.dup2(opened := os.open(os.devnull, mode), number)
            if opened != number:
                os.close(opened)
    if sys.stdout is None:
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115 - to the end
    if sys.stderr is None:
        sys.stderr = open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115 - to the end


def drop_output() -> None:
    """Drop what could not be printed: Python flushes standard output once more at exit, which would print an error."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
