"""Scripts of users, run in this process: a process of their own would import everything anew for each."""

from __future__ import annotations

import runpy
import sys
import tempfile
from pathlib import Path

import pytest


def run_script(path: Path, folder: Path, temporary: Path, patch: pytest.MonkeyPatch) -> None:
    """Run a script as `python PATH` would in a folder, with another one for temporary files."""
    patch.chdir(folder)
    patch.setattr(sys, "argv", [str(path)])
    patch.setattr(sys, "path", [str(path.parent), *sys.path])
    patch.setattr(tempfile, "tempdir", str(temporary))
    patch.setenv("TMPDIR", str(temporary))
    patch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    patch.setenv("PIP_NO_INDEX", "1")
    runpy.run_path(str(path), run_name="__main__")
