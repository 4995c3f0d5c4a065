"""Drafts of parts on a disk in memory: power cuts, several processes side by side, and drafts that were changed."""

from __future__ import annotations

import errno
import itertools
import os
from pathlib import Path
from typing import Any

import pytest

from flowcompute.files import EncodedParts, Files, PartsDraft, Unfinished
from tests.support.disk import Disk, power_cuts
from tests.support.faulty_files import FaultyFiles
from tests.support.simulated_files import SimulatedFiles

SIZE = 10
"""Bytes of rows in a part of the simulated ones."""


def doubled(read_into: Any, size: int, write: Any) -> None:
    """Encode as a format that needs all rows at once would."""
    rows = bytearray(size)
    if read_into(memoryview(rows), 0) < size:
        raise OSError(errno.EIO, "rows that were written are missing")
    for at in range(0, 2 * size, 3):
        write(bytes(rows + rows)[at : at + 3], at)


PARTS = EncodedParts(SIZE, ".parquet", doubled)
CONTENT = bytes(range(1, 38))
WHOLE = {f"/d/y/part-{i:010}.parquet": CONTENT[at : at + SIZE] * 2 for i, at in enumerate(range(0, len(CONTENT), SIZE))}


def draft(
    files: Any, unfinished: Unfinished | None = None, *, replaces: bool = False, joined: str | None = None
) -> PartsDraft:
    return PartsDraft(files, "/d/y", PARTS, replaces=replaces, token="t", unfinished=unfinished, joined=joined)


def seen(disk: Disk) -> dict[str, bytes | None]:
    return {path: data for path, data in disk.tree().items() if path.startswith("/d/y") and data is not None}


def new_disk() -> Disk:
    disk = Disk()
    SimulatedFiles(disk).make_folder("/d")
    return disk


@pytest.mark.parametrize("cadence", [1, 2, 5])
@pytest.mark.parametrize("step", [3, 7, 10, 24])
def test_what_a_checkpoint_has_said_survives_any_power_cut(cadence: int, step: int) -> None:
    """Every state that was persisted goes on, until the next one is; whatever was written after it."""
    before = new_disk()
    disk = before.copy()
    files = SimulatedFiles(disk)
    one, kept, written, states = draft(files), 0, 0, []
    marks: list[tuple[int, int]] = []  # operations done, and the bytes that a checkpoint counts from then on
    while written < len(CONTENT):
        part = CONTENT[written : written + step]
        one.write(part, written)
        written += len(part)
        states.append(written)
        if len(states) % cadence == 0:
            one.pin(written)
            one.sync()
            marks.append((len(files.log), written))
            one.unpin(kept)
            kept = written
    path = one.path
    assert path is not None
    for (at, size), (end, _) in zip(marks, [*marks[1:], (len(files.log), 0)], strict=False):
        # The checkpoint of this state counts until the next one is written, which is after its sync.
        for index in (at, (at + end) // 2, end):
            for cut in power_cuts(before, files.log[:index], 8, 6, seed=index):
                again = draft(SimulatedFiles(cut), Unfinished(path, size))
                again.write(CONTENT[size:], size)
                again.complete(len(CONTENT), {})
                again.commit()
                assert seen(cut) == WHOLE, (size, index)


@pytest.mark.parametrize("border", [10, 14])
@pytest.mark.parametrize("step", [3, 10, 24])
def test_what_processes_write_side_by_side_survives_any_power_cut(border: int, step: int) -> None:
    """Each goes on from its last synced byte, or from its first; who began the draft completes it, perhaps twice."""
    before = new_disk()
    begun = draft(SimulatedFiles(before))
    begun.sync()
    path = begun.path
    assert path is not None
    ranges = ((0, border), (border, len(CONTENT)))
    disk = before.copy()
    files = SimulatedFiles(disk)
    marks: list[tuple[int, list[int]]] = [(0, [0, border])]  # operations done, and the bytes that count from then on
    for number, (start, stop) in reversed([*enumerate(ranges)]):
        one = draft(files, joined=path)
        for at in range(start, stop, step):
            one.write(CONTENT[at : min(at + step, stop)], at)
            one.sync()
            kept = marks[-1][1].copy()
            kept[number] = min(at + step, stop)
            marks.append((len(files.log), kept))
        one.suspend()
    last = draft(files, joined=path)
    last.complete(len(CONTENT), {})
    marks.append((len(files.log), marks[-1][1]))
    for (at, kept), (end, _) in itertools.pairwise(marks):
        for index in (at, (at + end) // 2, end):
            for cut in power_cuts(before, files.log[:index], 6, 4, seed=index):
                for begin, (_, stop) in zip(kept, ranges, strict=True):
                    again = draft(SimulatedFiles(cut), joined=path)
                    if begin < stop:
                        again.write(CONTENT[begin:stop], begin)
                    again.suspend()
                final = draft(SimulatedFiles(cut), joined=path)
                final.complete(len(CONTENT), {})
                final.commit()
                assert seen(cut) == WHOLE, (index, kept)


def test_a_part_is_encoded_by_who_has_written_all_of_it(tmp_path: Path) -> None:
    begun = PartsDraft(Files(), str(tmp_path / "y"), PARTS, replaces=False)
    path = begun.path
    assert path is not None
    for start, stop in ((0, 14), (14, len(CONTENT))):
        one = PartsDraft(Files(), str(tmp_path / "y"), PARTS, replaces=False, joined=path)
        one.write(CONTENT[start:stop], start)
        one.suspend()
    left = sorted(os.listdir(path))
    assert [name for name in left if name.startswith(".")] == [".rows-1", f".rows-{len(CONTENT) // 10}"]
    assert "part-0000000001.parquet" not in left
    assert {"part-0000000000.parquet", "part-0000000002.parquet"} <= {*left}
    begun.complete(len(CONTENT), {})
    begun.commit()
    assert {path.name: path.read_bytes() for path in (tmp_path / "y").iterdir()} == {
        os.path.basename(name): data for name, data in WHOLE.items()
    }


def test_rows_that_nobody_has_written_are_noticed(tmp_path: Path) -> None:
    begun = PartsDraft(Files(), str(tmp_path / "y"), PARTS, replaces=False)
    begun.write(CONTENT[:14], 0)
    for size in (19, 20, 31):
        with pytest.raises(OSError, match="missing"):
            begun.complete(size, {})
    begun.discard()
    assert not os.listdir(tmp_path)


@pytest.mark.parametrize("old", [None, b"older content"], ids=["new", "replaced"])
def test_a_power_cut_leaves_the_old_or_the_new_table(old: bytes | None) -> None:
    before = new_disk()
    if old is not None:
        first = draft(SimulatedFiles(before))
        first.write(old, 0)
        first.complete(len(old), {})
        first.commit()
    former, disk = seen(before), before.copy()
    files = SimulatedFiles(disk)
    one = draft(files, replaces=old is not None)
    one.write(CONTENT, 0)
    one.complete(len(CONTENT), {})
    one.commit()
    outcomes = set()
    for index in range(len(files.log), -1, -1):
        for cut in power_cuts(before, files.log[:index], 64, 20, seed=index):
            found = seen(cut)
            assert found in (WHOLE, former), files.log[index - 1]
            outcomes.add(found == WHOLE)
            if index == len(files.log):
                assert found == WHOLE
    assert outcomes == {True, False}


def test_a_draft_that_was_changed_is_refused(tmp_path: Path) -> None:
    def begun() -> tuple[PartsDraft, str]:
        one = PartsDraft(Files(), str(tmp_path / "y"), PARTS, replaces=False, token="t")
        one.write(CONTENT[:24], 0)
        path = one.path
        assert path is not None
        one.suspend()
        return one, path

    _, path = begun()
    assert sorted(os.listdir(path)) == [".rows-2", "part-0000000000.parquet", "part-0000000001.parquet"]
    damages = (("part-0000000001.parquet", "missing"), *((".rows-2", how) for how in ("missing", "short", "link")))
    for name, damage in damages:
        _, path = begun()
        one = os.path.join(path, name)
        os.remove(one)
        if damage == "short":
            Path(one).write_bytes(b"1")
        elif damage == "link":
            Path(one).symlink_to(tmp_path / "other")
        files = FaultyFiles()
        with pytest.raises(OSError):
            PartsDraft(files, str(tmp_path / "y"), PARTS, replaces=False, unfinished=Unfinished(path, 24))
        assert not files.handles
