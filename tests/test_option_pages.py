"""The reference lists every option of every verb and command."""

from __future__ import annotations

import dataclasses
import re

from flowcompute.cli.command import command_parser
from flowcompute.runtime.options import RunOptions
from scripts.option_pages import VERBS, commands_page, verbs_page


def test_every_option_of_every_verb_has_a_type_a_default_and_a_meaning() -> None:
    page = verbs_page()
    rows = [line.split(" | ") for line in page.splitlines() if line.startswith("| `")]
    assert {row[0][3:-1] for row in rows} == {field.name for field in dataclasses.fields(RunOptions)}
    assert all(len(row) >= 4 and len(row[-1]) > 10 for row in rows)
    assert re.findall(r"^## fc\.(\w+)$", page, re.MULTILINE) == list(VERBS)


def test_every_command_is_there_with_its_options() -> None:
    page = commands_page()
    for text in ("## flowcompute run", "## flowcompute checkpoint verify", "--stall-timeout SECONDS", "exit codes:"):
        assert text in page
    assert page.count("\n## ") == 1 + len(re.findall(r"^## flowcompute \w", page, re.MULTILINE))
    assert "--traceback" in command_parser().format_help()
