"""What stored sources share: changes that are noticed, views only where they are safe, faults at every step."""

import errno
import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import flowcompute as fc
from flowcompute.errors import SourceError
from flowcompute.sources import file_source
from flowcompute.sources.file_source import StoredSource
from flowcompute.sources.npy_source import NpySource
from flowcompute.sources.open_source import open as fc_open
from flowcompute.sources.raw_source import RawSource
from tests.sources.test_contracts import settled
from tests.support.faulty_files import FaultyFiles

OUT = np.empty((4, 3), np.float32)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    np.save(tmp_path / "x.npy", np.arange(300, dtype=np.float32).reshape(100, 3))
    return settled(tmp_path / "x.npy")


def _touch(path: Path) -> None:
    os.utime(path, (2e9, 2e9))


def _grow(path: Path) -> None:
    with path.open("ab") as stream:
        stream.write(b"more")


def _shrink(path: Path) -> None:
    os.truncate(path, 700)


def _overwrite(path: Path) -> None:
    with path.open("r+b") as stream:
        stream.write(b"\0" * 200)


def _replace(path: Path) -> None:
    other = path.with_name("other")
    other.write_bytes(path.read_bytes())
    settled(other)
    other.rename(path)


CHANGES = [_touch, _grow, _shrink, _overwrite]


@pytest.mark.parametrize("mapped", [True, False])
@pytest.mark.parametrize("change", CHANGES)
def test_a_change_while_reading_is_seen_with_both_values(
    file: Path, change: Callable[[Path], None], mapped: bool
) -> None:
    source = fc_open(file, name="x")
    reader = source.open(mapped=mapped)
    act = (lambda: reader.view(4)) if mapped else (lambda: reader.read(OUT))
    assert act() is not None
    change(file)
    for again in (act, reader.check, act):
        with pytest.raises(SourceError, match="changed") as caught:
            again()
        assert str(file) in str(caught.value)
        assert caught.value.element == "x"
        assert caught.value.expected != caught.value.got
        assert caught.value.hint is not None
    if change is _shrink:
        assert "1328 bytes" in str(caught.value.expected)
        assert "700 bytes" in str(caught.value.got)
    assert reader.position == 4
    reader.close()


@pytest.mark.parametrize("mapped", [True, False])
@pytest.mark.parametrize("change", [*CHANGES, _replace])
def test_a_change_between_composing_and_opening_is_seen(
    file: Path, change: Callable[[Path], None], mapped: bool
) -> None:
    files = FaultyFiles()
    source = NpySource(file, files=files)
    change(file)
    with pytest.raises(SourceError, match="changed"):
        source.open(mapped=mapped)
    assert not files.handles


def test_a_file_replaced_by_its_own_job_is_read_to_the_end(file: Path) -> None:
    reader = NpySource(file).open(mapped=False)
    reader.read(OUT)
    _replace(file)
    assert reader.read(OUT) == 4
    reader.check()
    reader.close()


def test_a_file_that_is_gone_is_an_error(file: Path) -> None:
    source = NpySource(file)
    file.unlink()
    for act in (source.open, source.must_read):
        with pytest.raises(SourceError, match="No such file"):
            act()


@pytest.mark.parametrize("mode", [0o664, 0o646, 0o666])
def test_files_that_others_may_write_are_not_mapped(file: Path, mode: int) -> None:
    file.chmod(mode)
    source = NpySource(file)
    assert "others may write" in str(source.must_read())
    reader = source.open(mapped=True)
    assert reader.view(4) is None
    assert reader.read(OUT) == 4
    reader.close()


def test_files_changed_a_moment_ago_are_not_mapped(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1_700_000_000.0
    monkeypatch.setattr(file_source, "time", SimpleNamespace(time=lambda: now))
    for age, young in ((-3600, True), (0, True), (1.9, True), (2.1, False), (3600, False)):
        os.utime(file, (now - age,) * 2)
        source = NpySource(file)
        assert (source.must_read() is not None) == young
        reader = source.open(mapped=True)
        view = reader.view(4)
        assert (view is None) == young
        del view
        reader.close()


def test_views_outlive_the_reader_for_those_who_hold_them(file: Path) -> None:
    reader = NpySource(file).open()
    view = reader.view(100)
    assert view is not None
    reader.close()
    np.testing.assert_array_equal(view.reshape(-1), np.arange(300))


@pytest.mark.skipif(sys.platform != "linux", reason="counts descriptors and maps in /proc")
def test_nothing_stays_open_or_mapped(file: Path) -> None:
    def mapped() -> bool:
        return str(file) in Path("/proc/self/maps").read_text()

    before = len(os.listdir("/proc/self/fd"))
    reader = NpySource(file).open()
    view = reader.view(5)
    assert view is not None
    assert mapped()
    del view
    reader.close()
    assert not mapped()
    assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.parametrize("mapped", [True, False])
@pytest.mark.parametrize("error", [errno.EIO, errno.EACCES])
def test_a_fault_at_any_step_is_a_source_error_and_leaves_nothing_open(file: Path, mapped: bool, error: int) -> None:
    def job(files: FaultyFiles) -> None:
        source = NpySource(file, name="x", files=files)
        reader = source.open(mapped=mapped)
        try:
            for _ in range(2):
                if not (mapped and reader.view(4) is not None):
                    reader.read(OUT)
            reader.check()
        finally:
            reader.close()

    whole = FaultyFiles()
    job(whole)
    assert len(whole.log) > 12
    for k in range(len(whole.log)):
        files = FaultyFiles(fail_at=k, error=error)
        with pytest.raises(SourceError) as caught:
            job(files)
        text = str(caught.value)
        for word in (str(file), os.strerror(error), errno.errorcode[error], "do  ", os.path.basename(__file__)):
            assert word in text, (whole.log[k], text)
        assert isinstance(caught.value.__cause__, OSError)
        assert not files.handles


@pytest.mark.parametrize("longest", [1, 5, 13])
@pytest.mark.parametrize("kind", ["plain", "fortran", "swapped"])
def test_short_reads_change_nothing(tmp_path: Path, kind: str, longest: int) -> None:
    array = np.arange(60, dtype=np.float32).reshape(20, 3)
    stored = {"plain": array, "fortran": np.asfortranarray(array), "swapped": array.astype(">f4")}[kind]
    np.save(tmp_path / "x.npy", stored)
    reader = NpySource(tmp_path / "x.npy", files=FaultyFiles(longest=longest)).open()
    out = np.empty((20, 3), np.float32)
    assert reader.read(out) == 20
    np.testing.assert_array_equal(out, array)
    reader.close()


class Shrinking(FaultyFiles):
    """Reads end early although the status of the file does not show it, as on some network file systems."""

    def _read_some(self, handle: int, buffer: memoryview, offset: int) -> int:
        return super()._read_some(handle, buffer[: max(0, 400 - offset)], offset) if offset < 400 else 0


@pytest.mark.parametrize("kind", ["plain", "fortran", "swapped"])
def test_reads_that_end_early_are_an_error(tmp_path: Path, kind: str) -> None:
    array = np.ones((100, 3), np.float32)
    stored = {"plain": array, "fortran": np.asfortranarray(array), "swapped": array.astype(">f4")}[kind]
    np.save(tmp_path / "x.npy", stored)
    reader = NpySource(tmp_path / "x.npy", files=Shrinking()).open()
    with pytest.raises(SourceError, match="ends before") as caught:
        reader.read(np.empty((100, 3), np.float32))
    assert caught.value.records == (0, 100)
    assert reader.position == 0
    reader.close()


def test_a_closed_reader_reads_nothing(file: Path) -> None:
    reader = RawSource(file, dtype="u1").open()
    reader.close()
    with pytest.raises(SourceError, match="EBADF"):
        reader.read(np.empty(3, np.uint8))
    assert reader.view(3) is None


def test_sources_are_frozen(file: Path) -> None:
    source = NpySource(file)
    assert isinstance(source, StoredSource)
    with pytest.raises(AttributeError, match="frozen"):
        source.path = "other"


@pytest.mark.parametrize("dtype", ["<f4", ">f4"])
@pytest.mark.parametrize("threads", [2, 7])
def test_threads_that_read_together_give_the_same_records(tmp_path, threads, dtype):
    data = np.arange(300_000, dtype=dtype).reshape(-1, 3)
    np.save(tmp_path / "x.npy", data)
    pinned = fc.Strategy(reader_threads=threads, input="read", batch_bytes=1_100_001)
    x = fc.open(tmp_path / "x.npy")
    np.testing.assert_array_equal(fc.resolve(x, device="numpy", strategy=pinned, progress=False), data)
    assert not any("not applied" in str(reason) for reason in fc.plan(x, device="numpy", strategy=pinned).reasons)
    assert not any("flowcompute-reader" in thread.name for thread in threading.enumerate())


def test_a_file_that_is_cut_short_is_an_error_of_whichever_thread_sees_it(tmp_path):
    np.save(tmp_path / "x.npy", np.zeros((400_000, 2), np.float32))
    reader = fc.open(tmp_path / "x.npy").open(mapped=False)
    reader.threads = 3
    os.truncate(tmp_path / "x.npy", 2_000_000)
    with pytest.raises(SourceError, match=r"changed|ends before"):
        reader.read(np.empty((400_000, 2), np.float32))
    reader.close()


def test_threads_that_have_nothing_to_read_together_are_told():
    plan = fc.plan(fc.source(np.ones(3)), device="numpy", strategy=fc.Strategy(reader_threads=2))
    assert "knob at reader_threads: accepted, not applied" in plan.explain()
