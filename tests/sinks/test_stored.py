"""Results in files: complete under their name, or nothing at all, whatever fails."""

import errno
import io
import os
import stat
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flowcompute.elements.destination import Destination
from flowcompute.errors import DestinationError, SpecError
from flowcompute.sinks.npy_sink import _MAGIC, NpySink
from flowcompute.sinks.raw_sink import RawSink
from flowcompute.sinks.save_sink import save
from flowcompute.sources.array_source import MemorySource
from flowcompute.spec import BFLOAT16, FLOAT32, SUPPORTED_DTYPES, Spec, Stream
from tests.support.faulty_files import FaultyFiles

HERE = os.path.basename(__file__)
ARRAY = np.arange(60, dtype=np.float32).reshape(20, 3)
SPEC = Spec(FLOAT32, (3,), Stream(20))
OPEN_SPEC = Spec(FLOAT32, (3,), Stream(None))


def job(destination: Destination, spec: Spec = SPEC) -> str:
    """What a run does: write, commit, and abort when anything fails."""
    writer = destination.open(spec)
    try:
        for start in range(0, 20, 6):
            writer.write(ARRAY[start : start + 6], start)
        return writer.commit()
    except BaseException:
        writer.abort()
        raise


@given(
    st.sampled_from([dtype for dtype in SUPPORTED_DTYPES if dtype != BFLOAT16]),
    st.lists(st.integers(0, 4), min_size=0, max_size=5),
    st.sampled_from([0, 1, 9, 10, 99, 10**6, 10**12, 2**62]),
)
def test_headers_are_numpys_byte_by_byte(dtype: np.dtype, item_shape: list[int], length: int) -> None:
    sink = NpySink("y.npy")
    stream, resident = Spec(dtype, tuple(item_shape), Stream(length)), Spec(dtype, tuple(item_shape))
    for spec, shape, count in ((stream, (length, *item_shape), length), (resident, tuple(item_shape), None)):
        want = io.BytesIO()
        np.lib.format.write_array_header_1_0(want, {"descr": dtype.str, "fortran_order": False, "shape": shape})
        got = sink.header(spec, count)
        assert got == want.getvalue()
        assert len(got) % 64 == 0
        assert got.startswith(_MAGIC)


@given(st.integers(0, 2**63 - 1), st.lists(st.integers(0, 2**62), max_size=6))
def test_a_header_has_room_for_any_length(length: int, item_shape: list[int]) -> None:
    sink, spec = NpySink("y.npy"), Spec(FLOAT32, tuple(item_shape), Stream(None))
    assert len(sink.header(spec, length)) == len(sink.header(spec, 0))


@pytest.mark.parametrize("spec", [SPEC, OPEN_SPEC], ids=["known", "unknown"])
def test_files_are_the_very_bytes_of_numpy(tmp_path: Path, spec: Spec) -> None:
    np.save(tmp_path / "want.npy", ARRAY)
    job(save(tmp_path / "got.npy"), spec)
    assert (tmp_path / "got.npy").read_bytes() == (tmp_path / "want.npy").read_bytes()


@pytest.mark.parametrize("name", ["y.npy", "y.raw"])
@pytest.mark.parametrize("old", [None, b"old"])
@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EACCES, errno.EIO])
def test_a_fault_at_any_step_leaves_the_folder_as_it_was(
    tmp_path: Path, name: str, old: bytes | None, error: int
) -> None:
    def run(folder: Path, files: FaultyFiles) -> None:
        folder.mkdir()
        if old is not None:
            (folder / name).write_bytes(old)
        job(save(folder / name, name="result", files=files), OPEN_SPEC)

    whole = FaultyFiles(longest=100)
    run(tmp_path / "whole", whole)
    assert {"create_temporary", "write", "fsync", "close", "replace", "fsync_folder"} <= {
        step.name for step in whole.log
    }
    for k in range(len(whole.log)):
        folder = tmp_path / str(k)
        files = FaultyFiles(fail_at=k, error=error, longest=100)
        with pytest.raises(DestinationError) as caught:
            run(folder, files)
        text = str(caught.value)
        for word in ("result", str(folder / name), os.strerror(error), errno.errorcode[error], "do  ", HERE):
            assert word in text, text
        assert isinstance(caught.value.__cause__, OSError)
        assert not files.handles
        left = {path.name: path.read_bytes() for path in folder.iterdir()}
        if files.log[k].name == "fsync_folder" and old is not None:
            # The older file is gone by then, and the new one is whole.
            assert left == {name: (tmp_path / "whole" / name).read_bytes()}
        else:
            assert left == ({} if old is None else {name: old})


@pytest.mark.parametrize("step", ["write", "fsync", "close", "replace", "fsync_folder"])
def test_a_commit_that_fails_cleans_up_by_itself(tmp_path: Path, step: str) -> None:
    files = FaultyFiles(fail_at=0, only=frozenset({step}))
    writer = save(tmp_path / "y.npy", files=files).open(OPEN_SPEC)
    with pytest.raises(DestinationError):
        writer.commit()
    assert not os.listdir(tmp_path)
    assert not files.handles
    writer.abort()


def test_a_file_is_never_synced_again_after_its_sync_failed(tmp_path: Path) -> None:
    files = FaultyFiles(fail_at=0, only=frozenset({"fsync"}))
    with pytest.raises(DestinationError):
        job(save(tmp_path / "y.npy", files=files))
    assert [step.name for step in files.log] == ["fsync"]


def test_the_file_is_synced_before_the_rename_and_the_folder_after(tmp_path: Path) -> None:
    files = FaultyFiles()
    job(save(tmp_path / "y.npy", files=files))
    names = [step.name for step in files.log]
    assert names[-5:] == ["write", "fsync", "close", "replace", "fsync_folder"]
    assert names.count("replace") == 1


def test_a_temporary_left_by_a_killed_process_is_no_npy_file(tmp_path: Path) -> None:
    writer = save(tmp_path / "y.npy").open(SPEC)
    writer.write(ARRAY, 0)
    (left,) = tmp_path.iterdir()
    assert left.read_bytes()[:6] == bytes(6)
    assert not list(tmp_path.glob("*.npy"))
    writer.abort()


def test_a_temporary_that_cannot_be_removed_is_named(tmp_path: Path) -> None:
    writer = save(tmp_path / "y.npy", files=FaultyFiles(fail_at=0, only=frozenset({"remove"}))).open(SPEC)
    (left,) = tmp_path.iterdir()
    with pytest.raises(DestinationError) as caught:
        writer.abort()
    assert str(left) in str(caught.value)
    writer.abort()


@pytest.mark.parametrize("longest", [1, 7, 100])
def test_short_writes_change_nothing(tmp_path: Path, longest: int) -> None:
    job(save(tmp_path / "y.npy", files=FaultyFiles(longest=longest)))
    np.testing.assert_array_equal(np.load(tmp_path / "y.npy"), ARRAY)


def test_a_missing_folder_is_an_error_of_the_run_and_named(tmp_path: Path) -> None:
    target = tmp_path / "no" / "such" / "y.npy"
    destination = save(target)
    with pytest.raises(DestinationError) as caught:
        destination.open(SPEC)
    for word in (str(tmp_path / "no" / "such"), "No such file or directory (ENOENT)", HERE, "folder"):
        assert word in str(caught.value)


def test_a_folder_that_is_a_file_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "no").touch()
    with pytest.raises(DestinationError, match="ENOTDIR"):
        save(tmp_path / "no" / "y.npy").open(SPEC)


def test_a_folder_that_cannot_be_written_to_is_named(tmp_path: Path) -> None:
    files = FaultyFiles(fail_at=0, error=errno.EACCES, only=frozenset({"create_temporary"}))
    with pytest.raises(DestinationError, match="Permission denied") as caught:
        save(tmp_path / "y.npy", files=files).open(SPEC)
    assert f"folder {tmp_path}" in str(caught.value)


@pytest.mark.parametrize("kind", ["folder", "pipe", "device", "link to a folder", "link to a device"])
def test_what_is_no_file_is_not_replaced(tmp_path: Path, kind: str) -> None:
    target = tmp_path / "y.raw"
    if kind == "folder":
        target.mkdir()
    elif kind == "pipe":
        os.mkfifo(target)
    elif kind == "device":
        target = Path("/dev/null")
    else:
        target.symlink_to("/dev/null" if "device" in kind else tmp_path)
    with pytest.raises(DestinationError, match=r"folder|regular"):
        save(target, format="raw").open(SPEC)
    assert os.path.lexists(target)
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)


def test_a_link_is_replaced_and_not_followed(tmp_path: Path) -> None:
    for name, content in (("old.npy", b"old"), ("missing.npy", None)):
        original, link = tmp_path / name, tmp_path / f"link to {name}"
        if content is not None:
            original.write_bytes(content)
        link.symlink_to(original)
        job(save(link))
        assert not link.is_symlink()
        np.testing.assert_array_equal(np.load(link), ARRAY)
        assert (original.read_bytes() if original.exists() else None) == content


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o666])
def test_a_replaced_file_keeps_its_permission_bits(tmp_path: Path, mode: int) -> None:
    target = tmp_path / "y.npy"
    target.touch()
    target.chmod(mode)
    job(save(target))
    assert stat.S_IMODE(target.stat().st_mode) == mode


def test_a_new_file_obeys_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        job(save(tmp_path / "y.npy"))
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "y.npy").stat().st_mode) == 0o640


def test_a_relative_path_is_settled_when_composed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    destination = save("y.npy")
    monkeypatch.chdir("/")
    assert job(destination) == "y.npy"
    assert (tmp_path / "y.npy").exists()


@pytest.mark.parametrize("records", [0, 6, 19])
def test_an_incomplete_stream_is_not_committed(tmp_path: Path, records: int) -> None:
    writer = save(tmp_path / "y.npy").open(SPEC)
    writer.write(ARRAY[:records], 0)
    with pytest.raises(DestinationError, match="records are missing") as caught:
        writer.commit()
    assert caught.value.expected == "20 records"
    assert not os.listdir(tmp_path)


def test_nothing_is_written_after_the_end(tmp_path: Path) -> None:
    for end in ("commit", "abort"):
        writer = save(tmp_path / "y.raw").open(OPEN_SPEC)
        getattr(writer, end)()
        with pytest.raises(DestinationError, match="no longer open"):
            writer.write(ARRAY, 0)
        with pytest.raises(DestinationError, match="no longer open"):
            writer.commit()


def test_records_carry_into_the_error(tmp_path: Path) -> None:
    files = FaultyFiles(fail_at=1, error=errno.ENOSPC, only=frozenset({"write"}))
    writer = save(tmp_path / "y.npy", files=files).open(SPEC)
    writer.element = "save_2"
    writer.write(ARRAY[:6], 0)
    with pytest.raises(DestinationError, match="No space") as caught:
        writer.write(ARRAY[6:12], 6)
    assert caught.value.records == (6, 12)
    assert caught.value.element == "save_2"
    writer.abort()


def test_another_dtype_is_never_cast(tmp_path: Path) -> None:
    writer = save(tmp_path / "y.npy").open(SPEC)
    with pytest.raises(TypeError, match="cast"):
        writer.write(ARRAY.astype("f8"), 0)
    writer.abort()


def test_bfloat16_is_refused_for_npy_when_composed(tmp_path: Path) -> None:
    source = MemorySource(np.zeros((4, 3), BFLOAT16), name="weights")
    destination = save(tmp_path / "y.npy")
    with pytest.raises(SpecError) as caught:
        destination.bind(source)
    for word in ("bfloat16", "weights", "raw", HERE):
        assert word in str(caught.value)
    bound = save(tmp_path / "y.raw").bind(source)
    assert bound.input is source
    assert bound.spec == source.spec
    assert not destination.bound


@pytest.mark.parametrize(
    ("name", "kind"),
    [("y.npy", NpySink), ("y.NPY", NpySink), ("y.raw", RawSink), ("y.bin", RawSink), ("y.dat", RawSink)],
)
def test_the_extension_chooses_the_format(name: str, kind: type) -> None:
    assert type(save(name)) is kind
    assert type(save(name, format="raw")) is RawSink
    assert type(save("y", format="npy", name="n")) is NpySink


@pytest.mark.parametrize("path", ["y", "y.table", "folder.npy/"])
def test_unknown_formats_are_refused(path: str) -> None:
    with pytest.raises(SpecError) as caught:
        save(path)
    assert HERE in str(caught.value)
    with pytest.raises(SpecError, match="csv"):
        save("y.npy", format="csv")  # type: ignore[arg-type]


@pytest.mark.parametrize("path", ["", "\0.npy", "a/", b"y.npy", None, 3, "\udfff.npy"])
def test_what_can_be_no_path_is_refused(path: object) -> None:
    with pytest.raises(SpecError) as caught:
        save(path, format="npy")  # type: ignore[arg-type]
    assert HERE in str(caught.value)
    with pytest.raises(SpecError):
        save(path)  # type: ignore[arg-type]
