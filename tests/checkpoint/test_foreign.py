"""A checkpoint that somebody else made: it reads and writes nothing but what is its own, unless the user allows it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flowcompute as fc
from flowcompute.checkpoint.store.folder import CheckpointFolder
from flowcompute.cli.command import main

SECRET = b"not yours\n" * 2000
SMALL = fc.Strategy(batch_bytes=4096)
OPTIONS: dict[str, Any] = {"device": "numpy", "progress": False, "strategy": SMALL}


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("victim").write_bytes(SECRET)


def stream(length: int = 20_000) -> fc.Element:
    return fc.source(np.arange(length, dtype="f4"))


def two_passes(target: str | Path, format: Any = "raw") -> fc.Element:
    """A job without a draft in its first pass."""
    x = stream()
    return (x - x.min()) >> fc.save(target, format=format)


def one_pass(target: str | Path) -> fc.Element:
    return (stream() * 2) >> fc.save(target, format="raw")


def freeze(*roots: fc.Element, at: str = "kept", **options: Any) -> str:
    with pytest.raises(fc.RunError, match="was frozen"):
        fc.run(*roots, checkpoint=at, on_batch=lambda run: run.freeze(), **OPTIONS, **options)
    return at


def change(path: str, what: Callable[[dict[str, Any]], object]) -> None:
    """Seal another state as the newest one."""
    with CheckpointFolder.open(path) as folder:
        body = folder.newest().body
        what(body)
        folder.commit(body)


def refused(path: str, *words: str, **options: Any) -> None:
    """The whole folder beside the checkpoint is as it was, and the error says so much."""
    before = tree()
    with pytest.raises(fc.CheckpointError) as caught:
        fc.thaw(path, **options).resolve(**OPTIONS)
    for word in words:
        assert word in str(caught.value)
    assert tree() == before


def tree() -> dict[str, bytes]:
    return dict(_files("."))


def _files(folder: str) -> Iterator[tuple[str, bytes]]:
    for where, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(where, name)
            if "kept" not in path.split(os.sep):
                yield path, os.readlink(path).encode() if os.path.islink(path) else Path(path).read_bytes()


# -- targets -----------------------------------------------------------------------------------------


def test_a_file_that_the_job_has_not_begun_is_not_replaced(capsys: pytest.CaptureFixture[str]) -> None:
    path = freeze(two_passes("victim"))
    victim = os.path.abspath("victim")
    refused(path, victim, "--allow")
    assert main(["resume", path, "--no-progress", "--device", "numpy"]) == 1
    assert victim in capsys.readouterr().err
    assert Path("victim").read_bytes() == SECRET
    # Whoever makes the roots run otherwise gets no further.
    with pytest.raises(fc.CheckpointError, match="has not begun here"):
        fc.run(*fc.thaw(path).elements(), **OPTIONS)
    assert Path("victim").read_bytes() == SECRET
    assert main(["resume", path, "--no-progress", "--device", "numpy", "--allow", "."]) == 0
    assert Path("victim").read_bytes() == np.arange(20_000, dtype="f4").tobytes()


def test_the_program_that_names_the_file_itself_replaces_it() -> None:
    path = freeze(two_passes("victim"))
    fc.run(two_passes("victim"), checkpoint=path, **OPTIONS)
    assert Path("victim").read_bytes() == np.arange(20_000, dtype="f4").tobytes()


def test_allowing_one_folder_allows_no_other(tmp_path: Path) -> None:
    for name in ("own", "other"):
        Path(name).mkdir()
        Path(name, "f").write_bytes(SECRET)
    Path("link").symlink_to("own")
    path = freeze(two_passes("own/f"), two_passes("other/f"))
    refused(path, f"{tmp_path}/other/f", allow=["link", tmp_path / "oth"])
    with pytest.raises(fc.CheckpointError) as caught:
        fc.thaw(path, allow=["own"]).resolve(**OPTIONS)
    assert f"{tmp_path}/own/f" not in str(caught.value)
    fc.thaw(path, allow=["link", tmp_path / "other"]).resolve(**OPTIONS)
    assert Path("other/f").read_bytes() == Path("own/f").read_bytes() != SECRET


def test_a_link_to_nowhere_is_a_file_that_is_there() -> None:
    path = freeze(two_passes("dangling"))
    Path("dangling").symlink_to("nowhere")
    refused(path, os.path.abspath("dangling"))


def test_a_folder_in_the_way_stays() -> None:
    path = freeze(two_passes("folder"))
    Path("folder").mkdir()
    refused(path, "folder")


@pytest.mark.parametrize("name", [".bashrc", ".ssh/authorized_keys", "home/.config/autostart/x.npy"])
def test_a_new_file_is_not_hidden(name: str) -> None:
    Path(name).parent.mkdir(parents=True, exist_ok=True)
    path = freeze(two_passes(name))
    refused(path, "hidden")
    fc.thaw(path, allow=[Path(name).parent]).resolve(**OPTIONS)
    assert Path(name).exists()


def test_a_hidden_folder_behind_a_link_is_hidden() -> None:
    Path(".ssh").mkdir()
    Path("plain").symlink_to(".ssh")
    refused(freeze(two_passes("plain/authorized_keys")), "hidden")


def test_dead_letters_replace_nothing_either() -> None:
    def fails(batch: np.ndarray) -> np.ndarray:
        if (batch == 3).any():
            raise ValueError("three")
        return batch

    def roots() -> fc.Element:
        x = stream()
        return fc.host(fails, x - x.min(), on_error="dead_letter", dead_letter="letters", name="h").sum()

    path = freeze(roots())
    draft = next(Path().glob(".letters.*.partial"))
    # It has begun here: the draft proves it.
    Path("letters").write_bytes(SECRET)
    kept = draft.read_bytes()
    draft.unlink()
    refused(path, os.path.abspath("letters"), bind={"h": fails})
    draft.write_bytes(kept)
    assert fc.thaw(path, bind={"h": fails}).resolve(**OPTIONS) == np.float32(199_990_000 - 3)
    assert b"three" in Path("letters").read_bytes()


# -- drafts ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "claimed", ["victim", ".out.x.partial", ".out.0123456789abcdef-9.partial", "../victim", 7, None]
)
def test_a_draft_that_is_none_of_the_job_s_is_left_alone(claimed: Any) -> None:
    path = freeze(one_pass("out"))
    for name in (".out.x.partial", ".out.0123456789abcdef-9.partial"):
        Path(name).write_bytes(SECRET)
    forged = os.path.abspath(claimed) if isinstance(claimed, str) else claimed
    change(path, lambda body: body["sinks"][0].update(draft=forged, bytes=0))
    refused(path)
    before = tree()
    with pytest.raises(fc.CheckpointError):
        fc.run(one_pass("out"), checkpoint=path, **OPTIONS)
    assert tree() == before


def test_a_finished_job_moves_nothing_but_its_own_draft() -> None:
    fc.run(one_pass("out"), checkpoint="kept", **OPTIONS)
    status = os.stat("victim")

    def forge(body: dict[str, Any]) -> None:
        body["sinks"][0].update(draft=os.path.abspath("victim"), size=status.st_size, mtime_ns=status.st_mtime_ns)

    change("kept", forge)
    refused("kept", "out")
    with pytest.raises(fc.CheckpointError):
        fc.run(one_pass("out"), checkpoint="kept", **OPTIONS)
    assert Path("victim").read_bytes() == SECRET


def test_a_draft_behind_a_link_is_none() -> None:
    path = freeze(one_pass("out"))
    draft = next(Path().glob(".out.*.partial"))
    draft.unlink()
    draft.symlink_to("victim")
    refused(path, "out")
    draft.unlink()
    os.link("victim", draft)
    Path("out").write_bytes(SECRET)
    refused(path, "out")


# -- what is one's own -------------------------------------------------------------------------------


def test_one_s_own_job_goes_on_over_the_file_that_it_is_to_replace() -> None:
    Path("out").write_bytes(SECRET)
    path = freeze(one_pass("out"), two_passes("new"), one_pass("second"))
    assert Path("out").read_bytes() == SECRET
    fc.thaw(path).resolve(**OPTIONS)
    assert Path("out").read_bytes() == (np.arange(20_000, dtype="f4") * 2).tobytes()
    assert fc.thaw(path).resolve(**OPTIONS) == ("out", "new", "second")


def test_a_job_without_a_checkpoint_of_its_own_goes_on_too() -> None:
    Path("out").write_bytes(SECRET)
    with pytest.raises(fc.RunError, match="was frozen"):
        fc.run(one_pass("out"), on_batch=lambda run: run.freeze("kept"), **OPTIONS)
    assert fc.thaw("kept").resolve(**OPTIONS) == "out"
    assert Path("out").read_bytes() == (np.arange(20_000, dtype="f4") * 2).tobytes()


def test_a_finished_job_whose_last_rename_was_lost_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("out").write_bytes(SECRET)
    with monkeypatch.context() as patch:
        patch.setattr("flowcompute.files.Draft.commit", lambda _: (_ for _ in ()).throw(OSError(5, "gone")))
        with pytest.raises(fc.DestinationError):
            fc.run(one_pass("out"), checkpoint="kept", **OPTIONS)
    assert Path("out").read_bytes() == SECRET
    assert fc.thaw("kept").done
    fc.thaw("kept").resolve(**OPTIONS)
    assert Path("out").read_bytes() == (np.arange(20_000, dtype="f4") * 2).tobytes()


# -- sources -----------------------------------------------------------------------------------------


def test_no_source_is_read_whose_state_was_not_kept() -> None:
    np.save("x.npy", np.zeros(20_000, "f4"))
    path = freeze(fc.open("x.npy").sum())
    np.save("x.npy", np.ones(20_000, "f4"))
    with pytest.raises(fc.CheckpointError, match="not as it was when the job was frozen"):
        fc.thaw(path).elements()
    refused(path, "x.npy has changed")


# -- what is told ------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["show", "verify"])
def test_every_path_is_told(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    np.save("x.npy", np.zeros(20_000, "f4"))
    x = fc.open("x.npy")
    path = freeze(x >> fc.save("out.npy"), (x - x.mean()) >> fc.save("victim", format="raw"))
    assert main(["checkpoint", command, path]) == 0
    out = capsys.readouterr().out
    draft = os.path.abspath(next(Path().glob(".out.npy.*.partial")))
    for name in ("x.npy", "out.npy", "victim"):
        assert os.path.abspath(name) in out
    assert f"out.npy, begun as {draft}" in out
    assert "victim: there is a file that this job has not begun, so that it needs --allow" in out


@pytest.mark.parametrize("allow", ["folder", b"folder", 7, [7], [""], None])
def test_what_is_no_list_of_folders_is_refused(allow: Any) -> None:
    path = freeze(stream().sum())
    with pytest.raises(fc.CheckpointError, match="cannot use this value of allow="):
        fc.thaw(path, allow=allow)
