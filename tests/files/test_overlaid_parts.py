"""Memory over mapped files: whoever reads a mapping reads the bytes of its file, whatever lies over it."""

from __future__ import annotations

import errno
import mmap
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from flowcompute.files import Files, OverlaidParts

PAGE = mmap.PAGESIZE
SIZE = 40 * PAGE + 100


class MarkingFiles(Files):
    """A file layer whose direct reads give the bytes of a file plus one, so that one sees who shows them."""

    def read_direct(self, handle: int, buffer: memoryview, offset: int) -> int:
        count = super().read_direct(handle, buffer, offset)
        np.frombuffer(buffer, np.uint8)[:] += 1
        return count


class Mapped:
    """A mapped file with memory for parts of two pages, which take three."""

    def __init__(self, folder: Path, files: Files, room_bytes: int = 9 * PAGE) -> None:
        path = folder / "parts.bin"
        self.bytes = np.random.default_rng(3).integers(0, 200, SIZE, np.uint8)
        path.write_bytes(self.bytes.tobytes())
        self.files = files
        self.handle, self.direct = files.open_read(str(path)), files.open_direct(str(path))
        os.fsync(self.handle)
        self.mapping = files.map_read(self.handle, SIZE)
        self.parts = OverlaidParts(files, 2 * PAGE, room_bytes)

    def read(self, begin: int, end: int) -> None:
        read = self.parts.begin(self.mapping, self.handle, self.direct, begin, end)
        assert read is not None
        read()

    @property
    def shown(self) -> np.ndarray:
        """Return the bytes that the mapping shows less those of the file: 1 where memory lies over it."""
        return np.frombuffer(self.mapping, np.uint8) - self.bytes

    def close(self) -> None:
        self.parts.close()
        self.parts.close()
        self.files.close(self.handle)
        self.files.close(self.direct)


@pytest.fixture
def marked(tmp_path: Path) -> Iterator[Mapped]:
    one = Mapped(tmp_path, MarkingFiles())
    yield one
    one.close()
    assert not one.shown.any(), "it shows the file"


def test_a_part_lies_over_its_pages_until_it_is_given_back(marked: Mapped) -> None:
    expected = np.zeros(SIZE, np.uint8)
    marked.read(3 * PAGE + 7, 5 * PAGE + 7)
    expected[3 * PAGE : 6 * PAGE] = 1
    assert np.array_equal(marked.shown, expected)
    marked.read(SIZE - PAGE, SIZE)
    expected[39 * PAGE :] = 1
    assert np.array_equal(marked.shown, expected), "the last page ends with the file"
    marked.parts.give_back(1)
    expected[: 6 * PAGE] = 0
    assert np.array_equal(marked.shown, expected), "the first one goes, others stay"


def test_parts_share_pages_with_their_neighbours(marked: Mapped) -> None:
    marked.read(PAGE // 2, PAGE * 3 // 2)
    marked.read(PAGE * 3 // 2, PAGE * 5 // 2)
    assert marked.shown[: 3 * PAGE].all()
    marked.parts.give_back(1)
    assert not marked.shown[: 2 * PAGE].any()
    assert marked.shown[2 * PAGE : 3 * PAGE].all()


def test_what_is_given_back_makes_room(marked: Mapped) -> None:
    for place in range(3):
        marked.read(place * PAGE, (place + 1) * PAGE)
    assert marked.parts.begin(marked.mapping, marked.handle, marked.direct, 0, PAGE) is None, "there is no room"
    assert (marked.parts.free, marked.parts.begun) == (0, 3)
    marked.parts.give_back(2)
    assert (marked.parts.free, marked.parts.begun) == (2, 1)
    marked.read(8 * PAGE, 9 * PAGE)
    assert np.flatnonzero(marked.shown).tolist() == [*range(2 * PAGE, 3 * PAGE), *range(8 * PAGE, 9 * PAGE)]


def test_the_system_keeps_no_pieces_of_a_mapping(tmp_path: Path) -> None:
    one = Mapped(tmp_path, Files())
    one.files.read_alone(one.mapping, 0, SIZE)

    def pieces() -> int:
        return sum("parts.bin" in line for line in Path("/proc/self/maps").read_text().splitlines())

    before = pieces()
    for place in (9, 2, 17, 3):
        one.read(place * PAGE, (place + 1) * PAGE)
        one.parts.give_back(one.parts.begun - 1)
        assert not one.shown.any(), "the bytes are those of the file"
    assert pieces() > before
    one.parts.give_back(1)
    assert pieces() == before
    one.close()


@pytest.mark.parametrize("kind", ["refused", "short"])
def test_where_a_read_fails_the_file_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    def fail(self: Files, handle: int, buffer: memoryview, offset: int) -> int:
        buffer[:] = b"x" * len(buffer)
        if kind == "refused":
            raise OSError(errno.EINVAL, "no such sizes")
        return len(buffer) - 1

    one = Mapped(tmp_path, Files())
    monkeypatch.setattr(Files, "read_direct", fail)
    one.read(0, PAGE)
    assert not one.shown.any()
    assert not one.parts.works
    assert one.parts.begin(one.mapping, one.handle, one.direct, 0, PAGE) is None, "it is not tried again"
    one.close()


def test_no_room_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="Cannot allocate memory"):
        OverlaidParts(Files(), 2 * PAGE, 3 * PAGE - 1)


def test_memory_that_cannot_be_mapped_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(handle: int, size: int) -> mmap.mmap:
        raise OSError(errno.ENOMEM, os.strerror(errno.ENOMEM))

    before = os.listdir("/proc/self/fd")
    monkeypatch.setattr(mmap, "mmap", refuse)
    with pytest.raises(OSError, match="Cannot allocate memory"):
        OverlaidParts(Files(), 2 * PAGE, 3 * PAGE)
    assert os.listdir("/proc/self/fd") == before


@pytest.mark.parametrize("place", [(SIZE - PAGE, SIZE + 1), (SIZE + PAGE, SIZE + 2 * PAGE), (-PAGE, PAGE)])
def test_nothing_lies_beyond_the_mapping(marked: Mapped, place: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match=f"cannot lay memory over a mapping: got bytes {place[0]} to {place[1]}"):
        marked.read(*place)
    assert (marked.parts.free, marked.parts.begun) == (3, 0)


def test_an_interrupt_frees_no_memory_twice(marked: Mapped, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = Files.show

    def interrupted(files: Files, *place: Any) -> None:
        plain(files, *place)
        raise KeyboardInterrupt

    marked.read(0, PAGE)
    monkeypatch.setattr(Files, "show", interrupted)
    with pytest.raises(KeyboardInterrupt):
        marked.parts.give_back(1)
    monkeypatch.setattr(Files, "show", plain)
    for _ in range(2):
        marked.parts.give_back(1)
        assert (marked.parts.free, marked.parts.begun) == (3, 0)


def test_memory_that_cannot_be_taken_away_takes_no_other_part(marked: Mapped, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(files: Files, *place: Any) -> None:
        raise OSError(errno.ENOMEM, os.strerror(errno.ENOMEM))

    plain = Files.show
    marked.read(0, PAGE)
    monkeypatch.setattr(Files, "show", refuse)
    marked.parts.give_back(1)
    assert (marked.parts.free, marked.parts.begun) == (2, 0)
    monkeypatch.undo()
    assert np.flatnonzero(marked.shown).tolist() == [*range(PAGE)]
    plain(marked.files, marked.mapping, 0, PAGE, marked.handle, 0)


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_child_sees_the_file(marked: Mapped) -> None:
    marked.read(0, PAGE)
    assert marked.shown.any()
    child = os.fork()
    if child == 0:
        refused = marked.parts.begin(marked.mapping, marked.handle, marked.direct, 0, PAGE) is None
        os._exit(0 if refused and not marked.shown.any() else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert marked.shown.any(), "its parent goes on"


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_child_sees_the_file_that_is_made_while_parts_go(marked: Mapped, monkeypatch: pytest.MonkeyPatch) -> None:
    # Any other thread may fork here.
    plain, children = Files.show, list[int]()

    def forking(files: Files, *place: Any) -> None:
        monkeypatch.setattr(Files, "show", plain)
        children.append(os.fork())
        if children == [0]:
            os._exit(1 if marked.shown.any() else 0)
        plain(files, *place)

    for place in range(2):
        marked.read(place * PAGE, (place + 1) * PAGE)
    monkeypatch.setattr(Files, "show", forking)
    marked.parts.give_back(2)
    assert os.waitpid(children[0], 0)[1] == 0
