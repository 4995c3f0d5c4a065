"""Completion in shells: a script made from the parser, so that it knows every command, option and choice.

bash and zsh get the same function over two tables: words after each command, and choices after each option. fish gets
a line for each.
"""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterator
from typing import Any, NamedTuple

from flowcompute.cli.overview import COMMANDS


class _Command(NamedTuple):
    """A command as it is typed: the names before its arguments, the options, and the arguments with choices."""

    path: tuple[str, ...]
    options: tuple[argparse.Action, ...]
    commands: dict[str, str]
    choices: tuple[str, ...]


def add_completion(commands: Any, parser: argparse.ArgumentParser) -> None:
    """Add `completion` to a parser's sub-parsers.

    Args:
        commands: the sub-parsers.
        parser: what the scripts are made from.
    """
    own = commands.add_parser("completion", help=COMMANDS["completion"])
    own.add_argument("shell", choices=tuple(_SHELLS), help='for bash: eval "$(flowcompute completion bash)"')
    own.set_defaults(act=lambda options: print(_SHELLS[options.shell](tuple(_every_command(parser, ()))), end=""))


def _every_command(parser: argparse.ArgumentParser, path: tuple[str, ...]) -> Iterator[_Command]:
    actions = parser._actions  # noqa: SLF001 - argparse shows them nowhere else
    nested = [each for each in actions if isinstance(each, argparse._SubParsersAction)]  # noqa: SLF001 - as above
    helps = {each.dest: each.help or "" for one in nested for each in one._choices_actions}  # noqa: SLF001 - as above
    plain = [each for each in actions if not each.option_strings and each not in nested]
    choices = tuple(str(choice) for each in plain for choice in each.choices or ())
    yield _Command(path, tuple(each for each in actions if each.option_strings), helps, choices)
    for one in nested:
        for name, inner in one.choices.items():
            yield from _every_command(inner, (*path, name))


def _tables(commands: tuple[_Command, ...]) -> tuple[str, str, str]:
    """Return lines of `case`: what is offered after a command, and after an option; and the commands."""
    words, choices = [], []
    for each in commands:
        path = " ".join(each.path)
        options = " ".join(name for one in each.options for name in one.option_strings)
        words.append(f'    "{path}") offered="{" ".join([*each.commands, *each.choices])}" options="{options}" ;;')
        for one in each.options:
            for name in one.option_strings:
                if one.nargs != 0:
                    offered = " ".join(map(str, one.choices or ()))
                    choices.append(f'    "{path} {name}") offered="{offered}" options="" ;;')
    paths = [" ".join(each.path) for each in commands if each.path]
    return "\n".join(words), "\n".join(choices), "|".join(f'"{path}"' for path in paths)


_FUNCTION = """\
_flowcompute() {{
  local current previous command="" word offered="" options=""
{begin}
  for word in "${{typed[@]}}"; do
    case "${{command:+$command }}$word" in {paths}) command="${{command:+$command }}$word" ;; esac
  done
  case "$command" in
{words}
  esac
  case "$command $previous" in
{choices}
  esac
  if [[ "$current" == -* ]]; then offered="$options"; fi
{end}
}}
{register}
"""

_BASH = {
    "begin": """\
  current="${COMP_WORDS[COMP_CWORD]}" previous="${COMP_WORDS[COMP_CWORD-1]}"
  local typed=("${COMP_WORDS[@]:1:COMP_CWORD-1}")""",
    "end": """\
  local IFS=$'\\n'
  COMPREPLY=($(compgen -W "${offered// /$IFS}" -- "$current"))
  if [[ -z "$offered" ]]; then COMPREPLY=($(compgen -f -- "$current")); fi""",
    "register": "complete -o filenames -F _flowcompute flowcompute",
}

_ZSH = {
    "begin": """\
  current="${words[CURRENT]}" previous="${words[CURRENT-1]}"
  local -a typed=("${(@)words[2,CURRENT-1]}")""",
    "end": """\
  if [[ -n "$offered" ]]; then compadd -- ${=offered}; else _files; fi""",
    "register": "compdef _flowcompute flowcompute",
}


def _bash(commands: tuple[_Command, ...]) -> str:
    words, choices, paths = _tables(commands)
    return _FUNCTION.format(**_BASH, words=words, choices=choices, paths=paths)


def _zsh(commands: tuple[_Command, ...]) -> str:
    words, choices, paths = _tables(commands)
    return "#compdef flowcompute\n" + _FUNCTION.format(**_ZSH, words=words, choices=choices, paths=paths)


def _fish(commands: tuple[_Command, ...]) -> str:
    return "".join(f"{line}\n" for each in commands for line in _fish_lines(each))


def _fish_lines(command: _Command) -> Iterator[str]:
    begin = f"complete -c flowcompute -n {shlex.quote(_fish_condition(command))}"
    for name, said in command.commands.items():
        yield f"{begin} -f -a {name} -d {shlex.quote(said)}"
    for choice in command.choices:
        yield f"{begin} -f -a {choice}"
    for one in command.options:
        names = " ".join(f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}" for name in one.option_strings)
        takes = f" -x -a {shlex.quote(' '.join(map(str, one.choices)))}" if one.choices else " -r" * (one.nargs != 0)
        yield f"{begin} {names}{takes} -d {shlex.quote((one.help or '').replace('%%', '%'))}"


def _fish_condition(command: _Command) -> str:
    if not command.path:
        return "__fish_use_subcommand"
    seen = "; and ".join(f"__fish_seen_subcommand_from {name}" for name in command.path)
    inner = f"; and not __fish_seen_subcommand_from {' '.join(command.commands)}" if command.commands else ""
    return seen + inner


_SHELLS = {"bash": _bash, "fish": _fish, "zsh": _zsh}
