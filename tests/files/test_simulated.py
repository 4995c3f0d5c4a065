"""The disk in memory: what a kill and a power cut leave, and that no operation of the file layer goes past it."""

import errno
import inspect
import os
import re

import pytest

from flowcompute.files import Draft, Files
from flowcompute.files.folders import Folders
from tests.support.disk import Disk, power_cuts
from tests.support.faulty_files import FaultyFiles
from tests.support.simulated_files import Crash, SimulatedFiles


def calls_of_the_system(layer: type) -> set[str]:
    """Methods that ask the system for something themselves."""
    return {
        name
        for name, method in vars(layer).items()
        if inspect.isfunction(method) and re.search(r"\b(os|mmap|glob|fcntl)\.\w+\(", inspect.getsource(method))
    }


@pytest.mark.parametrize("layer", [FaultyFiles, SimulatedFiles])
def test_no_operation_goes_past_the_layers_for_tests(layer: type) -> None:
    ours = calls_of_the_system(Files) | calls_of_the_system(Folders)
    assert len(ours) > 20
    assert ours - set(vars(layer)) == set()


def lost(before: Disk, files: SimulatedFiles, most: int = 1000) -> list[dict[str, bytes | None]]:
    found = {repr(disk.tree()): disk.tree() for disk in power_cuts(before, files.log, most, most, seed=1)}
    return list(found.values())


def test_what_was_not_synced_may_be_lost_in_any_part() -> None:
    disk = Disk()
    files = SimulatedFiles(disk)
    handle = files.create("/a")
    files.write_at(handle, b"1234", 0)
    # No name, or a name with all, half, zeros or nothing under it.
    assert sorted(lost(Disk(), files), key=repr) == sorted(
        [{}, *({"/a": data} for data in (b"1234", b"12", bytes(4), b""))], key=repr
    )
    files.fsync(handle)
    assert lost(Disk(), files) == [{}, {"/a": b"1234"}]
    files.fsync_folder("/")
    assert lost(Disk(), files) == [{"/a": b"1234"}]


def test_a_rename_is_all_or_nothing_and_may_overtake() -> None:
    before = Disk()
    files = SimulatedFiles(before)
    handle = files.create("/a")
    files.write_at(handle, b"old", 0)
    after = before.copy()
    files = SimulatedFiles(after)
    handle = files.create("/b")
    files.write_at(handle, b"new", 0)
    files.fsync(handle)
    files.replace("/b", "/a")
    files.make_folder("/c")
    names = [sorted(one) for one in lost(before, files)]
    assert [one for one in (["/a"], ["/a", "/b"], ["/a", "/b", "/c"]) if one not in names] == []
    assert {one["/a"] for one in lost(before, files)} == {b"old", b"new"}
    assert after.tree() == {"/a": b"new", "/c": None}
    assert before.tree() == {"/a": b"old"}


def test_more_combinations_than_allowed_are_drawn_the_same_way_each_time() -> None:
    files = SimulatedFiles(Disk())
    for name in "abcdefgh":
        files.create(f"/{name}")
    assert sum(1 for _ in power_cuts(Disk(), files.log, 1 << 8, 10, seed=1)) == 1 << 8
    drawn = [[list(disk.tree()) for disk in power_cuts(Disk(), files.log, 255, 10, seed)] for seed in (1, 1, 2)]
    assert len(drawn[0]) == 10
    assert drawn[0] == drawn[1] != drawn[2]


@pytest.mark.parametrize(("moment", "left"), [("before", b""), ("torn", b"12"), ("after", b"1234")])
def test_after_a_crash_nothing_is_done_any_more(moment: str, left: bytes) -> None:
    disk = Disk()
    files = SimulatedFiles(disk, crash_at=1, moment=moment)  # type: ignore[arg-type]
    handle = files.create("/a")
    with pytest.raises(Crash):
        files.write_at(handle, b"1234", 0)
    for operate in (lambda: files.remove("/a"), lambda: files.close(handle), lambda: files.stat("/a")):
        with pytest.raises(Crash):
            operate()
    assert disk.tree() == {"/a": left}
    assert [step.name for step in files.log] == ["create", "write"]


def test_it_refuses_what_a_disk_refuses() -> None:
    files = SimulatedFiles(Disk())
    files.make_folders("/a/b")
    files.close(files.create("/a/file"))
    refusals = {
        errno.ENOENT: [lambda: files.open_read("/x"), lambda: files.remove("/a/x"), lambda: files.list_folder("/x/y")],
        errno.EEXIST: [lambda: files.create("/a/file"), lambda: files.make_folder("/a")],
        errno.ENOTDIR: [lambda: files.stat("/a/file/x"), lambda: files.list_folder("/a/file")],
        errno.EISDIR: [lambda: files.open_read("/a"), lambda: files.open_update("/a")],
        errno.ENOTEMPTY: [lambda: files.remove_folder("/a"), lambda: files.rename_folder("/a/b", "/a")],
    }
    for code, operations in refusals.items():
        for operate in operations:
            with pytest.raises(OSError, match=re.escape(os.strerror(code))) as caught:
                operate()
            assert caught.value.errno == code
    files.rename_folder("/a", "/c")
    files.remove_folder("/c/b")
    assert files.disk.tree() == {"/c": None, "/c/file": b""}


def test_locks_are_between_descriptors_and_end_with_them() -> None:
    files = SimulatedFiles(Disk())
    one, other = files.create("/LOCK"), files.open_update("/LOCK")
    assert files.lock(one)
    assert not files.lock(other)
    files.close(one)
    assert files.lock(other)


def test_a_draft_is_durable_when_it_is_committed() -> None:
    before = Disk()
    files = SimulatedFiles(before.copy())
    draft = Draft(files, "/result")
    draft.write(b"all of it", 0)
    assert all("/result" not in one for one in lost(before, files))
    draft.commit()
    assert {one["/result"] for one in lost(before, files)} == {b"all of it"}


def test_temporary_files_of_two_runs_have_two_names() -> None:
    disk = Disk()
    names = {SimulatedFiles(disk).create_temporary("/a")[1] for _ in range(3)}
    assert len(names) == 3
