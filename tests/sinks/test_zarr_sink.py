"""Zarr arrays as results: the layout, whole or nothing, and going on in the middle of a chunk."""

from __future__ import annotations

import errno
import hashlib
import json
import os
from pathlib import Path

import numpy as np
import pytest
import zarr
from hypothesis import given, settings
from hypothesis import strategies as st

import flowcompute as fc
from flowcompute.errors import CheckpointError, DestinationError, SpecError
from flowcompute.files import FolderDraft, Pieces, Unfinished, find_drafts, remove_draft, roll_folder_forward
from flowcompute.spec import FLOAT32, Spec, Stream
from tests.support.disk import Disk, power_cuts
from tests.support.faulty_files import FaultyFiles
from tests.support.simulated_files import SimulatedFiles

ARRAY = np.arange(46, dtype="f4").reshape(23, 2)
SPEC = Spec(FLOAT32, (2,), Stream(None))


def digest(folder: Path) -> str:
    found = hashlib.sha256()
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        found.update(str(path.relative_to(folder)).encode() + path.read_bytes())
    return found.hexdigest()


def write(sink: fc.Element, cuts: tuple[int, ...] = (), array: np.ndarray = ARRAY) -> None:
    writer = sink.open(SPEC)  # type: ignore[attr-defined]
    try:
        edges = [0, *sorted(cuts), len(array)]
        for start, stop in zip(edges, edges[1:], strict=False):
            if stop > start:
                writer.write(array[start:stop], start)
    except BaseException:
        writer.abort()
        raise
    writer.commit()


@settings(max_examples=40, deadline=None)
@given(cuts=st.lists(st.integers(0, 23), max_size=6), chunk=st.integers(1, 30), length=st.integers(0, 23))
def test_bytes_depend_on_records_and_chunk_alone(
    tmp_path_factory: pytest.TempPathFactory, cuts: list[int], chunk: int, length: int
) -> None:
    folder, array = tmp_path_factory.mktemp("z"), ARRAY[:length]
    write(fc.save(folder / "one.zarr", chunk=chunk), array=array)
    write(fc.save(folder / "two.zarr", chunk=chunk), tuple(min(cut, length) for cut in cuts), array)
    assert digest(folder / "one.zarr") == digest(folder / "two.zarr")
    read = zarr.open_array(folder / "two.zarr", mode="r")
    np.testing.assert_array_equal(read[...], array, strict=True)
    assert read.chunks == (chunk, 2)
    assert len(os.listdir(folder / "two.zarr")) == -(-length // chunk) + 1


def test_a_chunk_has_four_mebibytes_by_default(tmp_path: Path) -> None:
    x = fc.source(np.zeros((3, 1024), "f4"))
    fc.run(x >> fc.save(tmp_path / "x.zarr"), progress=False)
    assert zarr.open_array(tmp_path / "x.zarr", mode="r").chunks == (1024, 1024)
    assert json.loads((tmp_path / "x.zarr" / "zarr.json").read_bytes())["shape"] == [3, 1024]


@pytest.mark.parametrize(("budget", "batch"), [("64MiB", 1 << 20), ("8MiB", 1000), ("8MiB", 1 << 14)])
def test_no_batch_and_no_budget_changes_a_byte(tmp_path: Path, budget: str, batch: int) -> None:
    x = np.random.default_rng(3).standard_normal((5001, 3)).astype("f4")
    for name, options in (("a", {}), ("b", {"memory": budget, "strategy": fc.Strategy(batch_bytes=batch)})):
        fc.run(fc.tanh(fc.source(x)) >> fc.save(tmp_path / f"{name}.zarr", chunk=700), progress=False, **options)  # type: ignore[arg-type]
    assert digest(tmp_path / "a.zarr") == digest(tmp_path / "b.zarr")


@pytest.mark.parametrize("old", [False, True], ids=["new", "replaced"])
@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EIO])
def test_a_fault_at_any_operation_leaves_the_folder_as_it_was(tmp_path: Path, old: bool, error: int) -> None:
    def run(folder: Path, files: FaultyFiles) -> None:
        folder.mkdir()
        if old:
            write(fc.save(folder / "y.zarr", chunk=9), array=ARRAY + 1)
        write(fc.save(folder / "y.zarr", chunk=5, overwrite=old, name="result", files=files), (3, 11))

    whole = FaultyFiles()
    run(tmp_path / "whole", whole)
    assert not whole.handles
    before = tmp_path / "before"
    before.mkdir()
    if old:
        write(fc.save(before / "y.zarr", chunk=9), array=ARRAY + 1)
    complete = digest(tmp_path / "whole")
    committed = False
    for k, step in enumerate(whole.log):
        folder = tmp_path / str(k)
        files = FaultyFiles(fail_at=k, error=error)
        committed = committed or whole.log[k - 1].name in {"exchange_folders", "rename_folder"}
        with pytest.raises(DestinationError) as caught:
            run(folder, files)
        assert not files.handles, step
        for word in ("result", str(folder / "y.zarr"), os.strerror(error)):
            assert word in str(caught.value)
        seen = [name for name in os.listdir(folder) if not name.startswith(".")]
        if committed and old:
            # The new array is complete, and the old one is gone, or lies under a hidden name.
            assert digest(folder / "y.zarr") == digest(tmp_path / "whole" / "y.zarr"), step
        elif old:
            assert digest(folder) == digest(before), step
        else:
            assert not seen, step
    assert complete


def test_what_is_no_array_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "folder.zarr").mkdir()
    (tmp_path / "folder.zarr" / "thesis.tex").write_text("years")
    (tmp_path / "file.zarr").write_text("years")
    (tmp_path / "link.zarr").symlink_to(tmp_path / "nowhere")
    for name in ("folder", "file", "link"):
        for overwrite in (False, True):
            with pytest.raises(DestinationError, match=f"{name}.zarr: it is"):
                fc.save(tmp_path / f"{name}.zarr", overwrite=overwrite).open(SPEC)
    assert (tmp_path / "folder.zarr" / "thesis.tex").read_text() == "years"


def test_an_array_is_replaced_where_that_was_said(tmp_path: Path) -> None:
    nested = tmp_path / "y.zarr"
    zarr.create_array(nested, data=np.ones((7, 9)), chunks=(2, 4))
    with pytest.raises(DestinationError, match=r"it is a Zarr array already(.|\n)*overwrite=True"):
        write(fc.save(nested))
    write(fc.save(nested, chunk=10, overwrite=True))
    np.testing.assert_array_equal(zarr.open_array(nested, mode="r")[...], ARRAY)
    assert os.listdir(tmp_path) == ["y.zarr"]


def test_arguments_are_checked_when_composed(tmp_path: Path) -> None:
    x = fc.source(np.zeros((3, 2), "f4"))
    for bad in (0, -1, 1.5, True):
        with pytest.raises(SpecError, match="chunk"):
            fc.save(tmp_path / "y.zarr", chunk=bad)  # type: ignore[arg-type]
    with pytest.raises(SpecError, match="overwrite"):
        fc.save(tmp_path / "y.zarr", overwrite="yes")  # type: ignore[arg-type]
    with pytest.raises(SpecError, match="chunk= or overwrite= for a npy file"):
        fc.save(tmp_path / "y.npy", chunk=3)
    with pytest.raises(SpecError, match="at most 268435456 records"):
        x >> fc.save(tmp_path / "y.zarr", chunk=1 << 30)
    with pytest.raises(SpecError, match="bfloat16"):
        x.astype("bfloat16") >> fc.save(tmp_path / "y.zarr")


# -- checkpoints -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("stops", [(300, 1900), (1000, 1000, 4000), (1, 2, 4100)], ids=str)
def test_a_job_that_is_frozen_goes_on_in_the_middle_of_a_chunk(tmp_path: Path, stops: tuple[int, ...]) -> None:
    x = np.random.default_rng(5).standard_normal((5003, 3)).astype("f4")
    np.save(tmp_path / "x.npy", x)
    job = fc.open(tmp_path / "x.npy") * 2
    fc.run(job >> fc.save(tmp_path / "whole.zarr", chunk=1000), progress=False)
    options = {"checkpoint": tmp_path / "kept", "strategy": fc.Strategy(batch_bytes=12 * 97), "progress": False}
    for stop in stops:
        done = job >> fc.save(tmp_path / "y.zarr", chunk=1000)

        def at(run: fc.Run, stop: int = stop) -> None:
            if run.progress.items >= stop:
                run.freeze()

        with pytest.raises(fc.RunError):
            done.run(on_batch=at, **options)  # type: ignore[arg-type]
        assert not (tmp_path / "y.zarr").exists()
    fc.thaw(tmp_path / "kept").resolve(progress=False)
    assert digest(tmp_path / "y.zarr") == digest(tmp_path / "whole.zarr")
    assert not [name for name in os.listdir(tmp_path) if "partial" in name]


def test_a_draft_that_was_changed_is_refused(tmp_path: Path) -> None:
    pieces = Pieces(16, "c.", ".0")
    draft = FolderDraft(FaultyFiles(), str(tmp_path / "y"), pieces, replaces=False, token="t")
    draft.write(bytes(range(40)), 0)
    path = draft.path
    assert path is not None
    draft.suspend()
    again = FolderDraft(FaultyFiles(), str(tmp_path / "y"), pieces, replaces=False, unfinished=Unfinished(path, 20))
    assert {name: os.path.getsize(os.path.join(path, name)) for name in os.listdir(path)} == {"c.0.0": 16, "c.1.0": 4}
    again.suspend()
    for damage in ("missing", "short", "folder", "link"):
        one = os.path.join(path, "c.0.0")
        os.remove(one)
        if damage == "short":
            Path(one).write_bytes(b"123")
        elif damage == "folder":
            os.mkdir(one)
        elif damage == "link":
            Path(one).symlink_to(tmp_path)
        files = FaultyFiles()
        with pytest.raises(OSError):
            FolderDraft(files, str(tmp_path / "y"), pieces, replaces=False, unfinished=Unfinished(path, 20))
        assert not files.handles
        os.rmdir(one) if damage == "folder" else Path(one).unlink(missing_ok=True)
        Path(one).write_bytes(bytes(16))


def test_a_state_that_names_another_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    sink = fc.save(tmp_path / "y.zarr")
    place = type("Place", (), {"token": "0" * 16})()
    with pytest.raises(CheckpointError, match="none of its own"):
        sink.reopen(SPEC, place, {"written": 0, "bytes": 0, "draft": str(tmp_path / "other")})


def test_folders_of_dead_processes_are_found_and_removed(tmp_path: Path) -> None:
    writer = fc.save(tmp_path / "y.zarr", chunk=4).open(SPEC)
    writer.write(ARRAY[:9], 0)
    (used,) = find_drafts(str(tmp_path))
    assert (used.fate, used.size) == ("in use", 72)
    assert not remove_draft(used)
    writer.suspend()
    (left,) = find_drafts(str(tmp_path))
    assert left.fate == "left behind"
    assert remove_draft(left)
    assert not os.listdir(tmp_path)


# -- a simulated disk ------------------------------------------------------------------------------------

PIECES = Pieces(4, "c.", ".0")


def commit(files: SimulatedFiles, content: bytes, *, replaces: bool) -> None:
    draft = FolderDraft(files, "/d/y", PIECES, replaces=replaces)
    draft.write(content, 0)
    draft.complete(len(content), {"zarr.json": b"{}"})
    draft.commit()


def start(old: bytes | None) -> Disk:
    disk = Disk()
    files = SimulatedFiles(disk)
    files.make_folder("/d")
    if old is not None:
        commit(files, old, replaces=False)
    return disk


def seen(disk: Disk) -> dict[str, bytes | None]:
    return {path: data for path, data in disk.tree().items() if path.startswith("/d/y") and data is not None}


@pytest.mark.parametrize("old", [None, b"older content"], ids=["new", "replaced"])
def test_a_power_cut_leaves_the_old_or_the_new_array(old: bytes | None) -> None:
    before = start(old)
    disk = before.copy()
    files = SimulatedFiles(disk)
    commit(files, b"new content", replaces=old is not None)
    whole, former = seen(disk), seen(before)
    outcomes = set()
    for index in range(len(files.log), -1, -1):
        for cut in power_cuts(before, files.log[:index], 64, 30, seed=index):
            found = seen(cut)
            assert found in (whole, former), files.log[index - 1]
            outcomes.add(found == whole)
            if index == len(files.log):
                assert found == whole
    assert outcomes == {True, False}


@pytest.mark.parametrize("deaf_to", range(5))
def test_each_sync_of_a_commit_is_needed(deaf_to: int) -> None:
    """Without one of them, some power cut leaves half an array, or none after the commit has returned."""
    before = start(None)
    disk = before.copy()
    files = SimulatedFiles(disk, deaf_to=deaf_to)
    commit(files, b"new content", replaces=False)
    whole = seen(disk)
    syncs = sum(step.name.startswith("fsync") for step in files.log)
    if deaf_to >= syncs:
        pytest.fail("there are fewer syncs")
    lost = [cut for cut in power_cuts(before, files.log, 64, 60, seed=1) if seen(cut) != whole]
    # The name of the draft itself need not be durable where it gets its final one.
    assert lost or files.log[[i for i, s in enumerate(files.log) if s.name.startswith("fsync")][deaf_to]].path == "/d"


@pytest.mark.parametrize("old", [None, b"older content"], ids=["new", "replaced"])
def test_a_sealed_folder_is_rolled_forward_after_any_crash(old: bytes | None) -> None:
    for at in range(40):
        disk = start(old)
        files = SimulatedFiles(disk)
        draft = FolderDraft(files, "/d/y", PIECES, replaces=old is not None)
        draft.write(b"new content", 0)
        draft.complete(11, {"zarr.json": b"{}"})
        sealed, path = draft.seal(), draft.path
        assert path is not None
        crashing = SimulatedFiles(disk, crash_at=at)
        try:
            roll_folder_forward(crashing, "/d/y", path, sealed, replaces=old is not None)
            ended = True
        except BaseException:  # noqa: BLE001 - the crash
            ended = False
        again = roll_folder_forward(SimulatedFiles(disk), "/d/y", path, sealed, replaces=old is not None)
        assert again == sealed
        assert (
            b"".join(data or b"" for name, data in sorted(seen(disk).items()) if "/c." in name)[:11] == b"new content"
        )
        assert not [name for name in disk.tree() if "partial" in name]
        if ended:
            return
    pytest.fail("it never ended")
