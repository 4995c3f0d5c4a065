"""The file layer: whole reads and writes, refusals, and files that are complete or not there."""

import ast
import errno
import mmap
import os
import re
import resource
import signal
import socket
import stat
import sys
from pathlib import Path

import pytest

import flowcompute.files.file_layer as files_module
from flowcompute.files import FILES, Draft, Files, Fingerprint, atomic_write_bytes
from flowcompute.files.explained import explain, shown
from tests.support.faulty_files import FaultyFiles


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "data"
    path.write_bytes(bytes(range(100)))
    return str(path)


@pytest.mark.parametrize("longest", [1, 7, 99, 100, 1000])
def test_short_reads_are_continued(file: str, longest: int) -> None:
    files = FaultyFiles(longest=longest)
    handle = files.open_read(file)
    buffer = bytearray(60)
    assert files.read_into(handle, memoryview(buffer), 30) == 60
    assert buffer == bytes(range(30, 90))
    files.close(handle)
    assert not files.handles


def test_a_read_beyond_the_end_says_how_much_came(file: str) -> None:
    handle = FILES.open_read(file)
    buffer = bytearray(b"x" * 20)
    assert FILES.read_into(handle, memoryview(buffer), 90) == 10
    assert buffer == bytes(range(90, 100)) + b"x" * 10
    assert FILES.read_into(handle, memoryview(buffer), 500) == 0
    FILES.close(handle)


@pytest.mark.parametrize("longest", [1, 7, 1000])
def test_short_writes_are_continued(tmp_path: Path, longest: int) -> None:
    files = FaultyFiles(longest=longest)
    handle, path = files.create_temporary(str(tmp_path / "y"))
    files.write_at(handle, b"", 3)
    files.write_at(handle, bytes(range(50)), 10)
    files.write_at(handle, b"0123456789", 0)
    files.truncate(handle, 58)
    files.close(handle)
    assert Path(path).read_bytes() == b"0123456789" + bytes(range(48))


def test_a_limit_on_file_size_is_an_error_after_a_short_write(tmp_path: Path) -> None:
    # The system itself writes as much as fits and then refuses, in a child so that the limit stays there.
    pid = os.fork()
    if pid == 0:
        try:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
            handle, _ = FILES.create_temporary(str(tmp_path / "y"))
            try:
                FILES.write_at(handle, b"x" * 1500, 0)
            except OSError as error:
                os._exit(0 if error.errno == errno.EFBIG else 2)
            os._exit(3)
        finally:
            os._exit(4)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert os.path.getsize(tmp_path / os.listdir(tmp_path)[0]) == 1000


def _special(kind: str, tmp_path: Path) -> str:
    path = str(tmp_path / kind)
    if kind == "folder":
        os.mkdir(path)
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as server:
            os.chdir(tmp_path)
            server.bind(kind)
    elif kind == "device":
        return "/dev/zero"
    elif kind == "link to a folder":
        os.symlink(tmp_path, path)
    return path


@pytest.mark.parametrize("kind", ["folder", "pipe", "socket", "device", "link to a folder"])
def test_only_regular_files_are_opened_and_nothing_is_waited_for(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    files = FaultyFiles()
    with pytest.raises(OSError, match=r"folder|pipe|socket|device"):
        files.open_read(_special(kind, tmp_path))
    assert not files.handles


def test_a_pipe_that_takes_the_place_of_a_file_is_refused_too(file: str, tmp_path: Path) -> None:
    class Swapped(FaultyFiles):
        def stat(self, path: str) -> os.stat_result:
            status = super().stat(path)
            os.unlink(path)
            os.mkfifo(path)
            return status

    files = Swapped()
    with pytest.raises(OSError, match="pipe"):
        files.open_read(file)
    assert not files.handles


def test_descriptors_are_not_inherited(file: str, tmp_path: Path) -> None:
    reading = FILES.open_read(file)
    writing, _ = FILES.create_temporary(str(tmp_path / "y"))
    assert not os.get_inheritable(reading)
    assert not os.get_inheritable(writing)
    FILES.close(reading)
    FILES.close(writing)


def test_the_map_shows_the_file(file: str) -> None:
    handle = FILES.open_read(file)
    mapping = FILES.map_read(handle, 100)
    assert mapping[:] == bytes(range(100))
    with pytest.raises(TypeError):
        mapping[0] = 1
    mapping.close()
    FILES.close(handle)


def test_fingerprints_tell_states_apart(file: str) -> None:
    first = Fingerprint.of(FILES.stat(file))
    assert Fingerprint.of(FILES.stat(file)) == first
    os.utime(file, ns=(0, first.mtime_ns + 1))
    assert Fingerprint.of(FILES.stat(file)) != first
    os.utime(file, ns=(0, first.mtime_ns))
    with open(file, "ab") as stream:
        stream.write(b"!")
    assert Fingerprint.of(FILES.stat(file)).size == 101


def test_temporary_names_are_beside_the_target_hidden_and_unlike(tmp_path: Path) -> None:
    target = str(tmp_path / ("long" * 60 + ".npy"))
    made = [FILES.create_temporary(target) for _ in range(3)]
    names = os.listdir(tmp_path)
    assert len(set(names)) == 3
    assert all(name.startswith(".long") and name.endswith(".partial") for name in names)
    for handle, _ in made:
        FILES.close(handle)


def test_matching_is_sorted(tmp_path: Path) -> None:
    for name in ("b2", "b10", "a", ".hidden"):
        (tmp_path / name).touch()
    assert [os.path.basename(path) for path in FILES.matching(str(tmp_path / "*"))] == ["a", "b10", "b2"]
    assert FILES.matching(str(tmp_path / "z*")) == []


def test_folders_are_made_private(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b"
    FILES.make_folders(str(path))
    FILES.make_folders(str(path))
    assert stat.S_IMODE(path.stat().st_mode) == 0o700


@pytest.mark.parametrize("old", [None, b"old"])
def test_what_was_written_is_read_whole(tmp_path: Path, old: bytes | None) -> None:
    target = str(tmp_path / "y")
    atomic_write_bytes(FILES, target, old or b"")
    files = FaultyFiles(longest=2)
    assert files.read_bytes(target) == (old or b"")
    assert not files.handles


@pytest.mark.parametrize("old", [None, b"old"])
def test_an_atomic_write_is_whole(tmp_path: Path, old: bytes | None) -> None:
    target = tmp_path / "y"
    if old is not None:
        target.write_bytes(old)
    atomic_write_bytes(FILES, str(target), b"new")
    assert target.read_bytes() == b"new"
    assert os.listdir(tmp_path) == ["y"]


def test_an_atomic_write_syncs_the_file_before_the_rename_and_the_folder_after(tmp_path: Path) -> None:
    files = FaultyFiles()
    atomic_write_bytes(files, str(tmp_path / "y"), b"new")
    names = [operation.name for operation in files.log]
    assert names == ["stat", "create_temporary", "write", "fsync", "close", "replace", "fsync_folder"]


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EACCES, errno.EIO])
@pytest.mark.parametrize("old", [None, b"old"])
def test_an_atomic_write_that_fails_anywhere_leaves_no_part_of_it(
    tmp_path: Path, old: bytes | None, error: int
) -> None:
    steps, k = 1, 0
    while k < steps:
        folder = tmp_path / str(k)
        folder.mkdir()
        target = folder / "y"
        if old is not None:
            target.write_bytes(old)
        files = FaultyFiles(fail_at=k, error=error, longest=2)
        with pytest.raises(OSError) as caught:
            atomic_write_bytes(files, str(target), b"new contents")
        assert caught.value.errno == error
        assert not files.handles
        left = {name: (folder / name).read_bytes() for name in os.listdir(folder)}
        if files.log[k].name == "fsync_folder" and old is not None:
            assert left == {"y": b"new contents"}
        else:
            assert left == ({} if old is None else {"y": old})
        k += 1
        if k == 1:
            whole = FaultyFiles(longest=2)
            atomic_write_bytes(whole, str(tmp_path / "whole"), b"new contents")
            steps = len(whole.log)
    assert k > 8


@pytest.mark.parametrize("mode", [0o600, 0o644, 0o640, 0o4755])
def test_a_replaced_file_keeps_its_permission_bits(tmp_path: Path, mode: int) -> None:
    target = tmp_path / "y"
    target.write_bytes(b"old")
    target.chmod(mode)
    atomic_write_bytes(FILES, str(target), b"new")
    assert stat.S_IMODE(target.stat().st_mode) == mode & 0o777


@pytest.mark.parametrize("mask", [0o022, 0o077, 0o002])
def test_a_new_file_obeys_the_umask(tmp_path: Path, mask: int) -> None:
    before = os.umask(mask)
    try:
        atomic_write_bytes(FILES, str(tmp_path / "y"), b"new")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "y").stat().st_mode) == 0o666 & ~mask


def test_a_draft_is_over_after_commit_or_discard(tmp_path: Path) -> None:
    draft = Draft(FILES, str(tmp_path / "y"))
    assert draft.path is not None
    draft.commit()
    assert draft.path is None
    draft.discard()
    assert (tmp_path / "y").exists()
    for act in (draft.commit, lambda: draft.write(b"x", 0)):
        with pytest.raises(OSError, match=os.strerror(errno.EBADF)):
            act()


def test_a_draft_whose_temporary_was_taken_away_is_discarded_all_the_same(tmp_path: Path) -> None:
    draft = Draft(FILES, str(tmp_path / "y"))
    assert draft.path is not None
    os.unlink(draft.path)
    draft.discard()
    assert not os.listdir(tmp_path)


def test_folders_that_cannot_be_synced_are_accepted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(code: int) -> None:
        def fsync(handle: int) -> None:
            raise OSError(code, os.strerror(code))

        monkeypatch.setattr(os, "fsync", fsync)

    refuse(errno.EINVAL)
    Files().fsync_folder(str(tmp_path))
    refuse(errno.EIO)
    with pytest.raises(OSError, match=os.strerror(errno.EIO)):
        Files().fsync_folder(str(tmp_path))


def test_errors_are_explained_with_code_and_advice() -> None:
    text, hint = explain(OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)))
    assert text == "No space left on device (ENOSPC)"
    assert "space" in hint
    assert explain(OSError("odd")) == ("odd", "see what the system says above")
    assert explain(OSError())[0] == "OSError"


def test_paths_are_shown_without_control_characters() -> None:
    assert shown("/data/größe x.npy") == "/data/größe x.npy"
    for path in ("/a\x1b[2J", "/a\nb", "/a\udc80", "/a\u202eb"):
        assert shown(path).isprintable()


def test_the_log_names_each_operation(tmp_path: Path) -> None:
    files = FaultyFiles(only=frozenset({"fsync"}), fail_at=1)
    atomic_write_bytes(files, str(tmp_path / "a"), b"1")
    with pytest.raises(OSError, match=re.escape(os.strerror(errno.EIO))):
        atomic_write_bytes(files, str(tmp_path / "b"), b"2")
    assert [operation.name for operation in files.log] == ["fsync", "fsync"]
    assert os.listdir(tmp_path) == ["a"]


_OF_OS = ["open", "rename", "replace", "unlink", "remove", "fsync", "truncate", "ftruncate", "mkdir", "makedirs"]
_OF_OS += ["pread", "preadv", "pwrite", "pwritev"]
_OF_NUMPY = ["load", "save", "savez", "fromfile", "memmap"]


@pytest.mark.parametrize("room", ["sources", "sinks"])
def test_files_are_touched_through_the_file_layer_only(room: str) -> None:
    touched = {"open", *(f"os.{name}" for name in _OF_OS), *(f"np.{name}" for name in _OF_NUMPY)}
    paths = list((Path(files_module.__file__).parents[1] / room).rglob("*.py"))
    assert paths
    for path in paths:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call):
                assert ast.unparse(node.func) not in touched, f"{path}:{node.lineno}"


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_pages_behind_a_reader_leave_the_process(tmp_path: Path) -> None:
    size = 64 * mmap.PAGESIZE
    (tmp_path / "pages").write_bytes(bytes(size))
    handle = FILES.open_read(str(tmp_path / "pages"))
    mapping = FILES.map_read(handle, size)

    def resident_bytes() -> int:
        text = Path("/proc/self/smaps").read_text().partition(str(tmp_path / "pages"))[2]
        return int(text.partition("Rss:")[2].split()[0]) << 10

    assert not any(mapping[:])
    assert resident_bytes() == size
    FILES.drop_pages(mapping, 1, 2 * mmap.PAGESIZE - 1)
    assert resident_bytes() == size, "no page lies between the two as a whole"
    FILES.drop_pages(mapping, 0, size)
    assert resident_bytes() == 0
    assert not any(mapping[:]), "whoever still reads has them mapped again"
    mapping.close()
    FILES.close(handle)
