"""Files larger than a job's memory leave the system's cache behind the job, and nothing else does."""

from __future__ import annotations

import mmap
import os
from pathlib import Path

import numpy as np
import pytest

import flowcompute as fc
from flowcompute.files import FILES, PassedPages
from flowcompute.files.passing_pages import WINDOW_BYTES, is_cached
from tests.support.faulty_files import FaultyFiles

SIZE = 4 * WINDOW_BYTES
ITEM = 1 << 16
SMALL, LARGE = "8MiB", "200MiB"
PIECE = 1 << 20


def cached_pieces(path: Path) -> list[bool]:
    """Whether any page of each MiB of a file is in the system's cache."""
    size = path.stat().st_size
    with path.open("rb") as file, mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ) as mapping:
        return [is_cached(mapping, begin, min(begin + PIECE, size)) for begin in range(0, size, PIECE)]


def stays(pieces: list[bool]) -> bool:
    """Check whether most of it is cached: the system may take some for others at any time."""
    return sum(pieces) >= len(pieces) * 3 // 4


def forget(path: Path) -> None:
    """Take a file out of the cache."""
    handle = os.open(path, os.O_RDONLY)
    os.fsync(handle)
    FILES.let_go(handle, 0, path.stat().st_size)
    os.close(handle)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file of zeros without blocks on the disk: its pages are cached as any others."""
    path = tmp_path / "x.raw"
    path.touch()
    os.truncate(path, SIZE)
    os.utime(path, (0, 0))
    path.read_bytes()
    cached = stays(cached_pieces(path))
    forget(path)
    if not cached or any(cached_pieces(path)):
        pytest.skip("the system does not say what it caches, or this file system keeps all in memory")
    return path


def opened(path: Path) -> fc.Element:
    return fc.open(path, dtype="uint8", shape=(ITEM,))


def add_up(x: fc.Element, memory: str, how: str) -> None:
    total = x.sum(dtype="int64").resolve(device="numpy", memory=memory, progress=False, strategy=strategy(how))
    assert total == 0


def strategy(how: str) -> fc.Strategy:
    if how == "threads":
        return fc.Strategy(input="read", reader_threads=3)
    return fc.Strategy(input="mapped" if how == "mapped" else "read")


@pytest.mark.parametrize("how", ["mapped", "read", "threads"])
def test_a_file_larger_than_memory_leaves_the_cache(path: Path, how: str) -> None:
    add_up(opened(path), SMALL, how)
    # The system reads ahead behind the end of what was looked at last.
    assert sum(cached_pieces(path)) <= 3


@pytest.mark.parametrize("how", ["mapped", "read"])
def test_what_was_cached_before_stays(path: Path, how: str) -> None:
    warm = 2 * WINDOW_BYTES
    with path.open("rb") as file:
        file.read(warm)
    before = cached_pieces(path)
    assert stays(before[: warm // PIECE])
    assert not any(before[warm // PIECE + 16 :])
    add_up(opened(path), SMALL, how)
    after = cached_pieces(path)
    assert stays(after[: warm // PIECE])
    assert not any(after[warm // PIECE + 16 :])


@pytest.mark.parametrize("how", ["mapped", "read"])
def test_a_file_that_fits_into_memory_stays(path: Path, how: str) -> None:
    add_up(opened(path), LARGE, how)
    assert stays(cached_pieces(path))


@pytest.mark.slow
def test_what_a_later_pass_reads_again_stays_for_it(path: Path) -> None:
    seen: list[list[bool]] = []
    x = opened(path).astype("float32")
    job = (x - x.max(axis=0)).min()
    look = lambda _: seen.append(cached_pieces(path))  # noqa: E731
    assert fc.run(job, device="numpy", memory="16MiB", progress=False, on_batch=look).value == 0
    assert any(map(stays, seen))


@pytest.mark.slow
def test_parts_and_several_files_leave_it_too(path: Path) -> None:
    other = path.with_name("y.raw")
    other.touch()
    os.truncate(other, SIZE // 2)
    os.utime(other, (0, 0))
    forget(other)
    add_up(fc.open([path, other], dtype="uint8", shape=(ITEM,)), SMALL, "read")
    assert sum(cached_pieces(path)) + sum(cached_pieces(other)) <= 6
    add_up(opened(path)[100:], SMALL, "mapped")
    assert sum(cached_pieces(path)) <= 6


@pytest.mark.parametrize(("memory", "fits"), [(SMALL, False), (LARGE, True)])
def test_a_result_larger_than_memory_leaves_the_cache(path: Path, memory: str, fits: bool) -> None:
    target = path.with_name("y.raw")
    (opened(path) + np.uint8(3) >> fc.save(target)).run(device="numpy", memory=memory, progress=False)
    kept = cached_pieces(target)
    assert stays(kept) if fits else sum(kept) <= 3
    assert target.stat().st_size == SIZE
    assert target.read_bytes() == b"\3" * SIZE


def test_plans_say_which_files_do_not_stay(path: Path) -> None:
    x = opened(path)
    job = x + np.uint8(1) >> fc.save(path.with_name("y.raw"), name="copy")

    def said(memory: str) -> list[str]:
        return [one.element for one in job.plan(device="numpy", memory=memory).reasons if one.kind == "cache"]

    assert said(SMALL) == [x.plan(device="numpy").passes[0].sources[0].name, "copy"]
    assert said(LARGE) == []


def test_nobody_is_asked_to_forget_what_the_reader_has_not_passed(path: Path) -> None:
    files = FaultyFiles()
    handle = files.open_read(str(path))
    pages = PassedPages(files, handle, SIZE)
    pages.ask(0)
    pages.let_go(2 * WINDOW_BYTES - 1)
    assert [end for _, end in files.let_go_of] == [WINDOW_BYTES]
    pages.ask(SIZE)
    pages.let_go(3 * WINDOW_BYTES)
    pages.let_go(0)
    assert [end for _, end in files.let_go_of] == [WINDOW_BYTES, 2 * WINDOW_BYTES, 3 * WINDOW_BYTES]
    pages.close()
    pages.close()
    assert files.let_go_of[-1][1] == SIZE
    assert len(files.let_go_of) == SIZE // WINDOW_BYTES
    files.close(handle)


def test_where_a_file_cannot_be_mapped_all_stays(path: Path) -> None:
    files = FaultyFiles(fail_at=0, only=frozenset({"map_read"}))
    handle = files.open_read(str(path))
    pages = PassedPages(files, handle, SIZE)
    pages.ask(SIZE)
    pages.let_go(SIZE)
    pages.close()
    assert files.let_go_of == []
    files.close(handle)


def test_a_file_that_was_cut_short_says_nothing_of_its_pages(tmp_path: Path) -> None:
    """The reader finds out itself, and says what it expected."""
    path = tmp_path / "short.raw"
    path.write_bytes(b"123")
    handle = FILES.open_read(str(path))
    try:
        pages = PassedPages(FILES, handle, SIZE)
        pages.ask(0)
        pages.let_go(SIZE)
        pages.close()
    finally:
        FILES.close(handle)
