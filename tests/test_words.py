"""The list of words that are no longer used finds what it names, and leaves ordinary English alone."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
OPTIONS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["codespell"]
WORDS = [line.split("->")[0] for line in (ROOT / OPTIONS["dictionary"]).read_text().splitlines()]


def found(text: str) -> str:
    command = [sys.executable, "-m", "codespell_lib", "-"]
    return subprocess.run(
        command, cwd=ROOT, input=text, capture_output=True, text=True, timeout=600, check=False
    ).stdout


@pytest.mark.parametrize("word", WORDS)
def test_each_word_is_seen_as_one(word: str) -> None:
    assert re.findall(OPTIONS["regex"], f"The {word} of it.")[1] == word


def test_words_that_wait_are_words_of_the_list() -> None:
    assert set(OPTIONS["ignore-words-list"].split(",")) <= set(WORDS)


def test_a_word_is_refused_with_what_to_write() -> None:
    assert "clockwork ==> stream scheduler" in found("It is the clockwork that asks.")
    assert "fetched ahead ==> prefetch" in found("Rows are fetched ahead.")


def test_ordinary_english_passes() -> None:
    assert found("Of course a checkpoint every second, a panel of 16 columns, a walk back, a number, a scan.") == ""
    assert found("team_blocks = 2; begin turns; of course; on its way; passing tests") == ""
