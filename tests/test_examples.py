"""Every lesson runs, needs no network, leaves nothing behind, and is short enough to read."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.scripts import run_script
from tests.support.slow import slow_but

ROOT = Path(__file__).parents[1]
LESSONS = sorted((ROOT / "examples").glob("*.py"))
SLOW = ("12", "13", "16", "22", "23", "24", "25", "29", "37", "38")
NEEDS = {"30": "magika"}
"""Packages that `scripts/setup` installs, and others may lack."""


def test_lessons_are_numbered_without_gaps() -> None:
    numbers = [int(match[1]) for path in LESSONS if (match := re.match(r"(\d\d)_[a-z_]+\.py$", path.name))]
    assert numbers == list(range(1, len(LESSONS) + 1))
    assert len(numbers) >= 10


@pytest.mark.parametrize(
    "path", slow_but([path for path in LESSONS if path.name[:2] not in SLOW], LESSONS), ids=lambda path: path.stem
)
def test_lesson(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    package = NEEDS.get(path.name[:2])
    # An environment of `scripts/setup`, as that of CI, has it.
    if package is not None and importlib.util.find_spec(package) is None and not Path(sys.prefix, "stamp").exists():
        pytest.skip(f"{package} is not installed; scripts/setup does it")
    text = path.read_text()
    assert len(text.splitlines()) <= 40
    assert text.startswith('"""'), "it says what it teaches"
    assert "assert " in text, "it checks itself"
    work, temporary = tmp_path / "work", tmp_path / "temporary"
    work.mkdir()
    temporary.mkdir()
    run_script(path, work, temporary, monkeypatch)
    said = capsys.readouterr()
    assert said.err == ""
    assert said.out.strip(), "it shows something"
    assert list(work.iterdir()) == []
    assert list(temporary.iterdir()) == []


def test_a_lesson_needs_nothing_that_others_have_imported(tmp_path: Path) -> None:
    command = [sys.executable, "-W", "error", str(LESSONS[0])]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
