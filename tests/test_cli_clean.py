"""Unfinished results of dead processes are removed, and nothing else is."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import flowcompute as fc
from flowcompute.cli.command import main
from flowcompute.files import FILES, Draft, Files, find_drafts, remove_draft

DATA = np.ones((6000, 4), "f4")
OPTIONS: dict[str, object] = {"device": "numpy", "progress": False, "strategy": fc.Strategy(batch_bytes=1 << 14)}

KILLED = """
import os, signal, sys
import numpy as np, flowcompute as fc
kept = {} if sys.argv[1] == "none" else {"checkpoint": sys.argv[1]}
job = fc.source(np.ones((6000, 4), "f4")) * 2 >> fc.save("y.npy")
fc.run(job, device="numpy", progress=False, strategy=fc.Strategy(batch_bytes=1 << 14),
       on_batch=lambda run: os.kill(os.getpid(), signal.SIGKILL), **kept)
"""


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def killed(checkpoint: str = "none") -> str:
    """The draft that a killed process has left."""
    before = set(Path().glob(".y.npy.*"))
    done = subprocess.run(
        [sys.executable, "-c", KILLED, checkpoint],
        env=os.environ | {"PYTHONPATH": str(Path(fc.__file__).parents[1])},
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == -9, done.stderr
    (draft,) = set(Path().glob(".y.npy.*")) - before
    return str(draft)


def test_the_draft_of_a_killed_process_is_listed_and_removed(capsys: pytest.CaptureFixture[str]) -> None:
    draft = killed()
    assert main(["clean", ".", "--dry-run"]) == 0
    assert capsys.readouterr().out == f"{draft}: {os.path.getsize(draft):,} bytes, left behind\n"
    assert os.path.exists(draft)
    assert main(["clean", "."]) == 0
    assert capsys.readouterr().out.endswith("left behind, removed\n")
    assert os.listdir() == []


def test_what_a_checkpoint_may_go_on_with_stays_until_it_is_given_up(capsys: pytest.CaptureFixture[str]) -> None:
    draft = killed("kept")
    assert main(["clean", "."]) == 0
    assert capsys.readouterr().out.endswith("kept for a checkpoint\n")
    assert main(["clean", ".", "--given-up", "kept"]) == 1
    assert "its checkpoint is there" in capsys.readouterr().err
    shutil.rmtree("kept")
    assert main(["clean", ".", "--given-up", "other"]) == 0
    assert os.path.exists(draft)
    assert main(["clean", ".", "--given-up", "kept"]) == 0
    assert not os.path.exists(draft)


def test_a_run_that_was_frozen_elsewhere_keeps_its_draft() -> None:
    job = fc.source(DATA) * 2 >> fc.save("y.npy")
    with pytest.raises(fc.RunError, match="was frozen"):
        fc.run(job, on_batch=lambda run: run.freeze("kept"), **OPTIONS)
    assert main(["clean", "."]) == 0
    assert fc.thaw("kept").resolve(**OPTIONS) == "y.npy"
    np.testing.assert_array_equal(np.load("y.npy"), DATA * 2)


def test_a_living_run_keeps_its_draft(capsys: pytest.CaptureFixture[str]) -> None:
    said: list[str] = []

    def clean(_: fc.Run) -> None:
        assert main(["clean", "."]) == 0
        said.append(capsys.readouterr().out)

    fc.run(fc.source(DATA) * 2 >> fc.save("y.npy"), on_batch=clean, **OPTIONS)
    assert said
    assert all(text.endswith("bytes, in use\n") for text in said)
    np.testing.assert_array_equal(np.load("y.npy"), DATA * 2)


OTHERS = [
    "y.npy", ".y.npy.partial", ".y.npy.0123.partial", ".y.npy.0123456789ABCDEF.partial", ".0123456789abcdef.partial",
    ".y.npy.0123456789abcdef.partial.bak", "y.npy.0123456789abcdef.partial", ".y.npy.0123456789abcdef-x.partial",
]  # fmt: skip


def test_nothing_else_is_touched(capsys: pytest.CaptureFixture[str]) -> None:
    for name in OTHERS:
        Path(name).write_bytes(b"mine")
    name = ".y.npy.0123456789abcde{}.partial"
    Path(name.format(1)).mkdir()
    Path(name.format(2)).symlink_to("y.npy")
    os.link("y.npy", name.format(3))
    os.mkfifo(name.format(4))
    Path("below").mkdir()
    Path("below", name.format(5)).write_bytes(b"mine")
    before = sorted(Path().rglob("*"))
    assert main(["clean", "."]) == 0
    assert capsys.readouterr().out == ""
    assert sorted(Path().rglob("*")) == before
    assert main(["clean", "none"]) == 1
    assert "cannot clean none: No such file" in capsys.readouterr().err


def test_a_draft_that_is_taken_meanwhile_stays() -> None:
    path = Path(".y.npy.0123456789abcdef.partial")
    path.write_bytes(b"old")
    (found,) = find_drafts(".")
    assert found.fate == "left behind"
    other = Path("other")
    other.write_bytes(b"new")
    other.rename(path)
    assert not remove_draft(found)
    (found,) = find_drafts(".")
    handle = FILES.open_update(str(path))
    assert FILES.lock(handle)
    assert not remove_draft(found)
    FILES.close(handle)
    assert remove_draft(found)
    assert not path.exists()


def test_a_draft_is_begun_again_where_somebody_is_removing_it() -> None:
    class Racing(Files):
        made: int = 0

        def create_temporary(self, target: str, mode: int = 0o666) -> tuple[int, str]:
            handle, path = super().create_temporary(target, mode)
            self.made += 1
            if self.made == 1:
                os.unlink(path)
            return handle, path

    files = Racing()
    draft = Draft(files, os.path.abspath("y"))
    draft.write(b"whole", 0)
    draft.commit()
    assert (files.made, Path("y").read_bytes()) == (2, b"whole")


# -- room on the disk --------------------------------------------------------------------------------


def test_a_disk_without_room_is_a_warning_before_anything_is_read() -> None:
    class Full(Files):
        def free_bytes(self, path: str) -> int:
            assert path == os.getcwd()
            return 150_000

    x = fc.source(DATA)
    one, other = (x * 2 >> fc.save("a.npy", files=Full())), (x * 3 >> fc.save("b.raw", files=Full()))
    fc.run(one, **OPTIONS)
    with pytest.warns(fc.DestinationWarning, match=r"need 192,128 bytes in .*, and 150,000 are free") as caught:
        run = fc.start(one, other, **OPTIONS)
    assert caught[0].filename == __file__
    run.wait()
    with pytest.raises(fc.DestinationWarning):
        fc.run(one, other, **OPTIONS)
    # Nobody knows how large this one will be.
    fc.run(x[x[:, 0] > 0] >> fc.save("c.npy", files=Full()), one, **OPTIONS)
