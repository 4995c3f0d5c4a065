"""The folder of a checkpoint: one owner, names that appear whole, what is kept and what goes, side files."""

from __future__ import annotations

import hashlib
import os
import shutil
import threading
from pathlib import Path

import numpy as np
import pytest

from flowcompute.checkpoint.store.folder import CheckpointFolder
from flowcompute.checkpoint.store.side_files import SideFile
from flowcompute.checkpoint.store.values import Blob, SideMark
from flowcompute.errors import CheckpointError
from flowcompute.files.file_layer import Files
from tests.support.disk import Disk
from tests.support.simulated_files import Crash, SimulatedFiles


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "job")


def published(path: str, files: Files | None = None, body: dict[str, object] | None = None) -> CheckpointFolder:
    folder = CheckpointFolder.create(path, files or Files())
    folder.commit(body or {})
    folder.publish()
    return folder


def names(path: str) -> list[str]:
    return sorted(name for name in os.listdir(path) if name not in ("HEAD", "LOCK"))


def test_nothing_is_seen_before_it_is_published_and_nothing_stays_without(path: str) -> None:
    with CheckpointFolder.create(path) as folder:
        assert folder.commit({"k": 1}) == 0
        assert not CheckpointFolder.exists(path)
        assert folder.newest().body == {"k": 1}
    assert os.listdir(os.path.dirname(path)) == []
    published(path).close()
    assert os.listdir(os.path.dirname(path)) == ["job"]
    assert names(path) == ["gen-00000000.msgpack"]


def test_a_checkpoint_has_one_owner(path: str) -> None:
    with CheckpointFolder.create(path) as folder:
        with pytest.raises(
            CheckpointError, match=rf"cannot lock {path}: it is in use by process {os.getpid()}\n"
        ) as caught:
            CheckpointFolder.create(path)
        assert caught.value.hint
        folder.commit({})
        folder.publish()
        with pytest.raises(CheckpointError, match=f"in use by process {os.getpid()}"):
            CheckpointFolder.open(path)
        Path(path, "LOCK").write_text("\x1b[31m rotten")
        with pytest.raises(CheckpointError, match="in use by another process"):
            CheckpointFolder.open(path)
        with pytest.raises(CheckpointError, match="is there already"):
            CheckpointFolder.create(path)
    Path(path, "LOCK").write_text("99999999999999")
    CheckpointFolder.open(path).close()
    assert Path(path, "LOCK").read_text() == f"{os.getpid()}\n"


def left_by_a_crash() -> CheckpointFolder:
    trial = SimulatedFiles(Disk())
    CheckpointFolder.create("/job", trial)
    folder = CheckpointFolder.create("/job", SimulatedFiles(Disk(), crash_at=len(trial.log)))
    with pytest.raises(Crash):
        folder.commit({})
    return folder


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_process_that_was_forked_off_does_not_own_it(tmp_path: Path) -> None:
    path = tmp_path / "job"
    _others = [left_by_a_crash() for _ in range(20)]  # closing their locks, met in any order, raises Crash
    folder = CheckpointFolder.create(path)
    folder.commit({})
    folder.publish()
    hold, let_go = os.pipe()
    begun, begin = os.pipe()
    child = os.fork()
    if child == 0:
        code = 0
        try:
            os.close(let_go)
            with pytest.raises(CheckpointError, match="spawn"):
                folder.commit({})
            folder.close()
            os.write(begin, b".")
            os.read(hold, 1)  # the parent goes on, and may be killed
            code = 1
        finally:
            os._exit(code)
    os.close(begin)
    try:
        assert os.read(begun, 1)
        with pytest.raises(CheckpointError, match="in use"):
            CheckpointFolder.open(path)
        folder.close()
        CheckpointFolder.open(path).close()
    finally:
        os.close(let_go)
        os.close(hold)
        os.close(begun)
        ended = os.waitpid(child, 0)[1]
    assert os.waitstatus_to_exitcode(ended) == 1


def test_who_comes_second_while_a_checkpoint_is_published_owns_nothing(path: str) -> None:
    first = CheckpointFolder.create(path)
    first.commit({})

    class Late(Files):
        def lock(self, handle: int) -> bool:
            # The other one publishes and ends between our opening LOCK and locking it.
            first.publish()
            first.close()
            return super().lock(handle)

    with pytest.raises(CheckpointError, match=r"LOCK: No such file|another run changed it"):
        CheckpointFolder.create(path, Late())
    with CheckpointFolder.open(path) as folder:
        assert folder.newest().number == 0


def test_who_comes_when_a_checkpoint_was_just_published_makes_no_second_one(path: str) -> None:
    first = CheckpointFolder.create(path)
    first.commit({})

    class Late(Files):
        def make_folder(self, path: str, mode: int = 0o700) -> None:
            first.publish()
            first.close()
            super().make_folder(path, mode)

    with pytest.raises(CheckpointError, match=r"cannot create .*job: something is there already"):
        CheckpointFolder.create(path, Late())
    assert os.listdir(os.path.dirname(path)) == ["job"]


def test_a_link_where_a_checkpoint_would_be_built_is_not_followed(path: str, tmp_path: Path) -> None:
    published(path).close()
    (tmp_path / ".other.building").symlink_to(path)
    with pytest.raises(CheckpointError, match=r"\.other\.building: something else has this name"):
        CheckpointFolder.create(str(tmp_path / "other"))
    assert names(path) == ["gen-00000000.msgpack"]


def test_an_empty_folder_is_nothing_and_a_foreign_one_is_left_alone(path: str, tmp_path: Path) -> None:
    Path(path).mkdir()
    assert not CheckpointFolder.exists(path)
    with pytest.raises(CheckpointError, match="is not a checkpoint"):
        CheckpointFolder.open(path)
    published(path).close()
    assert CheckpointFolder.exists(path)
    foreign = tmp_path / "photos"
    foreign.mkdir()
    (foreign / "cat.jpg").touch()
    assert CheckpointFolder.exists(foreign)
    for use in (CheckpointFolder.open, CheckpointFolder.peek):
        with pytest.raises(CheckpointError, match="photos: it is not a checkpoint"):
            use(foreign)
    with pytest.raises(CheckpointError, match="is there already"):
        CheckpointFolder.create(foreign)
    assert os.listdir(foreign) == ["cat.jpg"]


def test_paths(path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(CheckpointError, match=r"cannot open .*job: No such file"):
        CheckpointFolder.open(path)
    file = tmp_path / "file"
    file.touch()
    assert CheckpointFolder.exists(file)
    with pytest.raises(CheckpointError, match=r"file: it is not a checkpoint"):
        CheckpointFolder.open(file)
    for bad in ("", b"bytes", 3):
        with pytest.raises(CheckpointError, match="as a path"):
            CheckpointFolder.create(bad)  # type: ignore[arg-type]
    monkeypatch.chdir(tmp_path)
    with CheckpointFolder.create("job/") as folder:
        assert folder.path == path
        folder.commit({})
        monkeypatch.chdir("/")
        folder.publish()
    with pytest.raises(CheckpointError, match=r"'/nowhere/\\x1b\[31m'"):
        CheckpointFolder.open("/nowhere/\x1b[31m")


def test_a_copied_checkpoint_is_one(path: str, tmp_path: Path) -> None:
    with published(path, body={"array": np.arange(3)}) as folder:
        token = folder.token
    assert len(bytes.fromhex(token)) == 16
    copy = tmp_path / "copy"
    shutil.copytree(path, copy)
    with CheckpointFolder.open(copy) as folder, CheckpointFolder.open(path):
        assert folder.token == token
        assert folder.newest().body["array"].tolist() == [0, 1, 2]


def test_what_is_out_of_order_is_refused(path: str) -> None:
    folder = CheckpointFolder.create(path)
    with pytest.raises(ValueError, match="published once, after its first commit"):
        folder.publish()
    folder.set_job({})
    with pytest.raises(ValueError, match="cannot set the job"):
        folder.set_job({})
    with pytest.raises(CheckpointError, match=r"cannot store body.a\[0\] in a checkpoint"):
        folder.commit({"a": [set()]})
    assert folder.commit({}) == 0
    folder.publish()
    with pytest.raises(ValueError, match="published once"):
        folder.publish()
    looking = CheckpointFolder.peek(path)
    for write in (lambda: looking.commit({}), lambda: looking.put_blob(np.zeros(1)), lambda: looking.set_job({})):
        with pytest.raises(ValueError, match="cannot write a checkpoint that was opened by peek"):
            write()
    folder.close()
    folder.close()
    for use in (folder.newest, folder.generations, folder.job, lambda: folder.commit({}), lambda: folder.side("x")):
        with pytest.raises(ValueError, match="is closed"):
            use()
    with CheckpointFolder.open(path) as folder:
        folder.newest()
        with pytest.raises(ValueError, match="cannot set the job"):
            folder.set_job({})


def test_a_job_may_refer_to_blobs_and_hold_no_arrays(path: str) -> None:
    with CheckpointFolder.create(path) as folder:
        with pytest.raises(CheckpointError, match="cannot store the job") as caught:
            folder.set_job({"weights": np.zeros(3)})
        assert caught.value.hint == "put its arrays with put_blob"
        assert folder.commit({}) == 0
        with pytest.raises(CheckpointError, match="cannot read a job"):
            folder.job()


def test_three_generations_and_what_they_refer_to_are_kept(path: str) -> None:
    with CheckpointFolder.create(path) as folder:
        used = [folder.put_blob(np.array([k])) for k in range(6)]
        folder.set_job({"first": used[0]})
        early = folder.put_blob(np.array([99]))
        for k in range(6):
            folder.commit({"blob": used[k], "array": np.arange(k)})
        kept = {f"blob-{one.sha256}.bin" for one in (used[0], *used[3:], early)}
        assert {
            name for name in os.listdir(os.path.dirname(path) + "/.job.building") if name.startswith("blob")
        } == kept
        # Put long ago and not referred to by anything yet.
        folder.commit({"blob": early})
        folder.publish()
    assert [name for name in names(path) if name.startswith("gen")] == [
        f"gen-{k:08d}.{kind}" for k in (4, 5) for kind in ("bin", "msgpack")
    ] + ["gen-00000006.msgpack"]
    with CheckpointFolder.open(path) as folder:
        assert folder.newest().number == 6
        abandoned = folder.put_blob(np.array([7, 7]))
    with CheckpointFolder.open(path) as folder:
        # What an owner put and never referred to goes with the next commit; generations that are not the newest keep theirs.
        assert folder.commit({"k": 1}) == 7
        assert f"blob-{abandoned.sha256}.bin" not in names(path)
        assert folder.get_blob(used[5]).tolist() == [5]
        with pytest.raises(CheckpointError, match="No such file"):
            folder.get_blob(used[4])
        assert all(one.ok for one in folder.generations())


def test_a_blob_is_written_once() -> None:
    disk = Disk()
    files = SimulatedFiles(disk)
    with CheckpointFolder.create("/job", files) as folder:
        blob = folder.put_blob(np.arange(6).reshape(2, 3))
        done = len(files.log)
        assert folder.put_blob(np.arange(6).reshape(2, 3).copy(order="F")) == blob
        # The same bytes are another array's too.
        other = folder.put_blob(np.arange(6))
        assert (other.sha256, other.shape) == (blob.sha256, (6,))
        assert len(files.log) == done
        folder.commit({"blobs": [blob, other]})
        folder.publish()
    files = SimulatedFiles(disk)
    with CheckpointFolder.open("/job", files) as folder:
        folder.newest()
        done = len(files.log)
        assert folder.put_blob(np.arange(6)) == other
        assert len(files.log) == done
        assert folder.get_blob(blob).tolist() == [[0, 1, 2], [3, 4, 5]]
        with pytest.raises(CheckpointError, match="it has 48 bytes, but 1152921504606846976 were written"):
            folder.get_blob(Blob(blob.sha256, blob.dtype, (2**57,)))


def test_a_blob_that_was_removed_is_written_again(path: str) -> None:
    with published(path) as folder:
        folder.commit({"blob": folder.put_blob(np.arange(3))})
        for _ in range(3):
            folder.commit({})
        assert not [name for name in names(path) if name.startswith("blob")]
        folder.commit({"blob": folder.put_blob(np.arange(3))})
        assert folder.newest().number == 5


def test_an_array_that_cannot_be_made_is_an_error_of_the_checkpoint(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with published(path, body={"x": np.arange(3)}) as folder:
        nothing = folder.put_blob(np.zeros(0, np.int8))
        with pytest.raises(CheckpointError, match=r"cannot allocate an array of shape \(4611686018427387904, 0, 4\)"):
            folder.get_blob(Blob(nothing.sha256, nothing.dtype, (2**62, 0, 4)))

        def full(shape: object, dtype: object) -> np.ndarray:
            raise MemoryError("no room")

        monkeypatch.setattr(np, "empty", full)
        with pytest.raises(CheckpointError, match=r"cannot allocate an array of shape \(3,\): no room"):
            folder.newest()


def test_looking_while_the_owner_goes_on(path: str) -> None:
    folder = published(path, body={"k": 0, "array": np.full(1000, 0)})

    def own() -> None:
        for k in range(1, 16):
            folder.commit({"k": k, "array": np.full(1000, k)})

    owner = threading.Thread(target=own)
    owner.start()
    seen = [0]
    with CheckpointFolder.peek(path) as looking:
        while owner.is_alive() or seen[-1] < 15:
            generation = looking.newest()
            assert (generation.body["array"] == generation.body["k"]).all()
            assert generation.number == generation.body["k"] >= seen[-1]
            seen.append(generation.number)
    owner.join()
    folder.close()


def test_a_side_file_goes_back_to_its_mark(path: str) -> None:
    with CheckpointFolder.create(path) as folder:
        side = folder.side("out")
        side.write_at(b"abc", 0)
        side.write_at(memoryview(b"def"), 3)
        folder.commit({"out": side.mark()})
        folder.publish()
        side.write_at(b"lost", side.size)
    with CheckpointFolder.open(path) as folder:
        side = folder.side("out")
        assert side.size == 10
        mark = folder.newest().body["out"]
        side.restore(mark)
        assert (side.size, side.mark()) == (6, mark)
        buffer = bytearray(4)
        assert side.read_into(memoryview(buffer), 4) == 2
        assert buffer == b"ef\0\0"
        # The checksum follows whatever is written, wherever.
        for change, content in (
            (lambda: side.write_at(b"XY", 1), b"aXYdef"),
            (lambda: side.write_at(b"ghi", 6), b"aXYdefghi"),
            (lambda: side.write_at(b"", 9), b"aXYdefghi"),
            (lambda: side.truncate(8), b"aXYdefgh"),
        ):
            change()
            assert side.mark() == SideMark("out", len(content), hashlib.sha256(content).digest())
        half = SideMark("out", 3, hashlib.sha256(b"aXY").digest())
        side.restore(half)
        assert side.mark() == half
        side.write_at(b"defgh", 3)
        folder.commit({"out": side.mark()})
        side.close()
        side.close()
        with pytest.raises(CheckpointError, match=r"does not hold the 6 bytes that were committed"):
            folder.side("out").restore(mark)
    assert Path(path, "out.side").read_bytes() == b"aXYdefgh"
    with CheckpointFolder.peek(path) as folder:
        body = folder.newest().body
        side = folder.side("out")
        assert side.mark() == body["out"]
        for write in (lambda: side.write_at(b"", 0), lambda: side.truncate(0), side.fsync):
            with pytest.raises(ValueError, match="open for reading only"):
                write()


def test_side_files_that_cannot_be_opened(path: str) -> None:
    with published(path) as folder:
        for name in ("", "a/b", "..", "a.b", "x" * 65, "ä"):
            with pytest.raises(ValueError, match="cannot name a side file"):
                folder.side(name)
        side = folder.side("x" * 64)
        with pytest.raises(ValueError, match="is open already"):
            folder.side("x" * 64)
        side.close()
        with pytest.raises(ValueError, match="is closed"):
            side.mark()
        os.symlink("/etc/passwd", f"{path}/link.side")
        os.mkfifo(f"{path}/pipe.side")
        for name in ("link", "pipe"):
            with pytest.raises(CheckpointError, match=f"cannot open .*{name}.side"):
                folder.side(name)


def test_a_side_file_whose_fsync_failed_is_not_synced_again() -> None:
    class Failing(SimulatedFiles):
        broken = False

        def fsync(self, handle: int) -> None:
            if self.broken:
                raise OSError(5, "Input/output error")
            super().fsync(handle)

    files = Failing(Disk())
    with published("/job", files) as folder:
        side: SideFile = folder.side("out")
        side.write_at(b"1", 0)
        files.broken = True
        with pytest.raises(CheckpointError, match=r"cannot write /job/out\.side: Input/output error"):
            folder.commit({"out": side.mark()})
        files.broken = False
        for again in (side.fsync, lambda: side.write_at(b"2", 1), lambda: folder.commit({"out": side.mark()})):
            with pytest.raises(CheckpointError, match=r"cannot write /job/out\.side: its fsync failed"):
                again()
        side.close()
        side = folder.side("out")
        assert folder.commit({"out": side.mark()}) == 1
        assert folder.newest().number == 1
