"""Pages of the reference that list options: of verbs from signatures and docstrings, of commands from their parser."""

from __future__ import annotations

import argparse
import inspect
import re
from collections.abc import Iterator
from typing import Any

import flowcompute as fc
from flowcompute.cli.command import command_parser

VERBS = ("plan", "start", "run", "resolve", "arun", "aresolve", "open_flow")

_WIDE_COLUMNS = 100


def verbs_page() -> str:
    """Return the page of the verbs: each with a table of its options, their types, defaults and meanings.

    Raises:
        ValueError: if no docstring says what an option means.
    """
    # Verbs refer to those before them.
    said = {name: text for verb in reversed(VERBS) for name, text in _arguments(getattr(fc, verb)).items()}
    text = "# Options of the verbs\n\nElements have the same verbs as methods: `x.run()` is `fc.run(x)`.\n"
    for verb in VERBS:
        function = getattr(fc, verb)
        text += f"\n## fc.{verb}\n{(inspect.getdoc(function) or '').partition(chr(10))[0]}\n\n"
        text += "| option | type | default | meaning |\n|---|---|---|---|\n"
        for name, parameter in inspect.signature(function).parameters.items():
            if parameter.kind is not inspect.Parameter.KEYWORD_ONLY:
                continue
            meaning = _arguments(function).get(name) or said.get(name)
            if meaning is None:
                raise ValueError(f"cannot describe {name}= of fc.{verb}: got no text, expected one in its docstring")
            cells = (f"`{name}`", f"`{parameter.annotation}`", f"`{parameter.default!r}`", meaning)
            text += f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |\n"
    return text


def commands_page() -> str:
    """Return the page of the command line: what each command prints for `--help`."""
    text = "# Command line\n\n`flowcompute completion bash` prints a script that completes all of this in a shell.\n"
    for name, parser in _commands(command_parser(), "flowcompute"):
        parser.formatter_class = _Wide if parser.formatter_class is argparse.HelpFormatter else _WideRaw
        text += f"\n## {name}\n```\n{parser.format_help().rstrip()}\n```\n"
    return text


class _Wide(argparse.HelpFormatter):
    """Help in lines of one length, whatever the terminal."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=_WIDE_COLUMNS)


class _WideRaw(_Wide, argparse.RawDescriptionHelpFormatter):
    """The same, with paragraphs as they are."""


def _commands(parser: argparse.ArgumentParser, name: str) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    yield name, parser
    for action in parser._actions:  # noqa: SLF001 - argparse shows them nowhere else
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001 - as above
            for command, inner in action.choices.items():
                yield from _commands(inner, f"{name} {command}")


def _arguments(function: Any) -> dict[str, str]:
    """Return what a docstring says of each argument; one line may be about several, and "as for" says nothing."""
    found: dict[str, str] = {}
    block = re.search(r"^Args:\n((?:    .*\n|\n)*)", f"{inspect.getdoc(function)}\n", re.MULTILINE)
    for entry in re.findall(r"^    (\S.*(?:\n {8}.*)*)", block[1] if block else "", re.MULTILINE):
        names, _, text = entry.partition(":")
        meaning = " ".join(text.split())
        if not meaning.startswith("as for `"):
            found |= dict.fromkeys(names.split(", "), meaning)
    return found
