"""Every lesson runs, needs no network, leaves nothing behind, and is short enough to read."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LESSONS = sorted((ROOT / "examples").glob("*.py"))


def test_lessons_are_numbered_without_gaps() -> None:
    numbers = [int(match[1]) for path in LESSONS if (match := re.match(r"(\d\d)_[a-z_]+\.py$", path.name))]
    assert numbers == list(range(1, len(LESSONS) + 1))
    assert len(numbers) >= 10


@pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.stem)
def test_lesson(path: Path, tmp_path: Path) -> None:
    text = path.read_text()
    assert len(text.splitlines()) <= 40
    assert text.startswith('"""'), "it says what it teaches"
    assert "assert " in text, "it checks itself"
    work, temporary = tmp_path / "work", tmp_path / "temporary"
    work.mkdir()
    temporary.mkdir()
    done = subprocess.run(
        [sys.executable, "-W", "error", str(path)],
        cwd=work,
        env=os.environ | {"PYTHONPATH": str(ROOT), "TMPDIR": str(temporary), "PIP_NO_INDEX": "1"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert done.stdout.strip(), "it shows something"
    assert list(work.iterdir()) == []
    assert list(temporary.iterdir()) == []
