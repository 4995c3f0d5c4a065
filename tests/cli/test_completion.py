"""Completion of the command in shells: the scripts know every command, option and choice of the parser."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.cli.conftest import Say


def completed(script: Path, *words: str) -> list[str]:
    """What bash offers for the last of these words."""
    typed = " ".join(f"'{word}'" for word in words)
    asked = (
        f"source '{script}'\nCOMP_WORDS=({typed})\nCOMP_CWORD={len(words) - 1}\n"
        '_flowcompute\nprintf "%s\\n" "${COMPREPLY[@]}"\n'
    )
    done = subprocess.run(["bash", "-c", asked], capture_output=True, text=True, check=True, cwd=script.parent)
    return sorted(word for word in done.stdout.splitlines() if word)


@pytest.fixture
def script(say: Say, folder: Path) -> Path:
    said = say("completion", "bash")
    assert said.code == 0
    path = folder / "flowcompute.bash"
    path.write_text(said.out)
    return path


def test_bash_completes_commands_options_and_choices(script: Path) -> None:
    assert completed(script, "flowcompute", "in") == ["inspect"]
    assert {"run", "plan", "resume", "checkpoint", "completion"} <= set(completed(script, "flowcompute", ""))
    assert completed(script, "flowcompute", "checkpoint", "") == ["list", "show", "verify"]
    assert completed(script, "flowcompute", "checkpoint", "v") == ["verify"]
    assert completed(script, "flowcompute", "run", "--dev") == ["--device", "--device-memory"]
    assert completed(script, "flowcompute", "run", "jobs:job", "--precision", "") == ["exact", "fast", "tf32x3"]
    assert completed(script, "flowcompute", "inspect", "--format", "n") == ["npy"]
    assert completed(script, "flowcompute", "completion", "") == ["bash", "fish", "zsh"]


def test_bash_completes_files_elsewhere(script: Path) -> None:
    (script.parent / "some data.npy").write_bytes(b"")
    assert completed(script, "flowcompute", "inspect", "some") == ["some data.npy"]
    assert completed(script, "flowcompute", "run", "job:x", "--trace", "some") == ["some data.npy"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_shell_knows_every_option(say: Say, shell: str) -> None:
    said = say("completion", shell)
    assert (said.code, said.err) == (0, "")
    options = set(re.findall(r"(?<!\S)\[?(--[a-z][a-z-]+)", say("run", "--help").out))
    assert len(options) > 15
    for option in options:
        assert (option[2:] if shell == "fish" else option) in said.out
    if shutil.which(shell):
        subprocess.run([shell, "-n"], input=said.out, text=True, check=True)


def test_another_shell_is_wrong_usage(say: Say) -> None:
    assert say("completion", "tcsh").code == 2
