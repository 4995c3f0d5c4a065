"""Users' programs that fix the public surface: they run as written."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PROGRAMS = sorted((ROOT / "tests" / "programs").glob("*.py"))
EVERY = sorted(path for path in (ROOT / "tests" / "programs").rglob("*") if path.is_file() and path.suffix != ".pyc")
"""Those of `scripts/nightly` included, which need large files or minutes, and models that programs read."""
SETTINGS = {"17_onnx_nodes": {"FC_ONNX_EVERY": "64"}}
"""What of a long program CI runs. `scripts/nightly` runs all of it."""
ORIGINALS = ROOT.parent / "shared" / "programs"
"""Where the programs come from, on machines that have it."""


def test_there_are_programs() -> None:
    assert {path.name[:2] for path in PROGRAMS} >= {"01", "05", "07"}


@pytest.mark.slow
@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_program(path: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(path)],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT)} | SETTINGS.get(path.stem, {}),
        capture_output=True,
        text=True,
        timeout=850,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "ok"


@pytest.mark.skipif(not ORIGINALS.is_dir(), reason="the originals are not on this machine")
@pytest.mark.parametrize("path", EVERY, ids=lambda path: path.stem)
def test_program_is_unchanged(path: Path) -> None:
    place = "fixtures" if path.parent.name == "fixtures" else ""
    assert path.read_bytes() == (ORIGINALS / place / path.name).read_bytes()
