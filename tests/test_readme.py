"""What the pages show runs, and what they name is there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from flowcompute.cli.command import main
from tests.support.scripts import run_script

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
DOCS = sorted(ROOT.glob("docs/*.md"))
PAGES = sorted((*ROOT.glob("*.md"), *ROOT.glob("benchmarks/**/*.md"), *DOCS))
LINKED = sorted((*PAGES, *ROOT.glob("docs/decisions/*.md")))


def blocks(language: str, text: str = README) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def test_the_first_block_is_a_short_pipeline() -> None:
    assert 1 <= len(blocks("python")[0].splitlines()) <= 22


# Blocks of README stand alone; those of a page in docs follow each other, as if typed one after the other.
@pytest.mark.parametrize("code", [*blocks("python"), *("\n".join(blocks("python", p.read_text())) for p in DOCS)])
def test_python_blocks(
    code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "page.py").write_text(code)  # a file, since kernels are read from their source
    run_script(tmp_path / "page.py", tmp_path, tmp_path, monkeypatch)
    assert capsys.readouterr().out


def test_there_are_two_commands_and_both_can_be_run() -> None:
    first, second = (block.strip() for block in blocks("sh"))
    assert first.startswith("python3 -m venv .venv && .venv/bin/pip install ")
    assert first.endswith("&& .venv/bin/flowcompute demo")
    script = ROOT / second
    assert os.access(script, os.X_OK)
    assert f"part {second} --full\n" in (ROOT / ".ci" / "run").read_text(), "CI runs all of what README says"


@pytest.mark.parametrize("name", ["setup", "check", "test", "docs", "nightly", "oclgrind", "../.ci/run"])
def test_scripts_are_sound_bash(name: str) -> None:
    script = ROOT / "scripts" / name
    assert os.access(script, os.X_OK)
    subprocess.run(["bash", "-n", str(script)], check=True, timeout=600)


@pytest.mark.parametrize("name", sorted(set(re.findall(r"`flowcompute (\w+)|`(\w+) (?:FILE|module:job)", README))))
def test_named_commands_exist(name: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([name[0] or name[1], "--help"])
    assert ended.value.code == 0
    assert capsys.readouterr().out


@pytest.mark.parametrize("page", LINKED, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\(([^)#\s]+)\)", page.read_text())
    local = [target for target in targets if "://" not in target]
    assert [target for target in local if not (page.parent / target).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_named_files_exist(page: Path) -> None:
    """Paths in code marks, seen from the root, from the package or from the page."""
    named = set(re.findall(r"`((?:[\w.-]+/)+(?:[\w.-]+\.\w+)?)`", page.read_text()))
    places = (ROOT, ROOT / "flowcompute", page.parent)
    made = {"benchmarks/data", "benchmarks/results"}
    missing = [name for name in named if not any((place / name).exists() for place in places)]
    assert [name for name in missing if name.rstrip("/") not in made] == []


def test_readme_is_short() -> None:
    assert len(README.split()) <= 950


def test_architecture_is_short() -> None:
    lines = (ROOT / "ARCHITECTURE.md").read_text().splitlines()
    assert len(lines) <= 250
    assert [line for line in lines if len(line) > 120] == []


def test_pictures_are_what_is_drawn_now(tmp_path: Path) -> None:
    subprocess.run(
        [sys.executable, "-W", "error", str(ROOT / "docs" / "pictures" / "make.py"), str(tmp_path)],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        timeout=600,
        check=True,
    )
    made = sorted(ROOT.glob("docs/pictures/*.svg"))
    assert [path.name for path in made] == sorted(path.name for path in tmp_path.iterdir())
    shown = "".join(page.read_text() for page in (ROOT / "README.md", *DOCS))
    for picture in made:
        assert picture.read_text() == (tmp_path / picture.name).read_text(), "run docs/pictures/make.py"
        assert f"pictures/{picture.name})" in shown
