"""A folder with a user's module, and the command called in it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

import flowcompute as fc
from flowcompute.cli.command import main

JOBS = """
import numpy as np
import flowcompute as fc

x = fc.source(np.arange(12, dtype=np.float32).reshape(4, 3), name="numbers")
total = x.sum()
saved = x * 2 >> fc.save("y.npy")

def helper(batch):
    return 1 / 0

def fails(batch):
    return helper(batch)

failing = fc.host(fails, x)
"""


class Said(NamedTuple):
    code: int
    out: str
    err: str


Say = Callable[..., Said]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The current folder, with a module `jobs_here`; what is imported from it is forgotten afterwards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "jobs_here.py").write_text(JOBS)
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(tmp_path)):
            del sys.modules[name]


@pytest.fixture
def say(folder: Path, capsys: pytest.CaptureFixture[str]) -> Say:
    def run(*arguments: str) -> Said:
        try:
            code = main(arguments)
        except SystemExit as ended:
            code = ended.code
        captured = capsys.readouterr()
        return Said(code, captured.out, captured.err)

    return run


def program(folder: Path, command: str, **options: object) -> subprocess.CompletedProcess[str]:
    """Run a shell's line in which `flowcompute` is the command."""
    root = Path(fc.__file__).parents[1]
    prefix = f'flowcompute() {{ "{sys.executable}" -W error -m flowcompute "$@"; }}\n'
    return subprocess.run(
        ["bash", "-c", prefix + command],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(root)},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
        **options,  # type: ignore[call-overload]
    )
