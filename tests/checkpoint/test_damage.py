"""Rotten bytes: every bit flipped, every truncation. It is noticed, and what is used instead is whole."""

from __future__ import annotations

import errno
import os
import shutil
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from flowcompute.checkpoint.store.envelope import checksum
from flowcompute.checkpoint.store.folder import CheckpointFolder
from flowcompute.checkpoint.store.values import DamagedError
from flowcompute.errors import CheckpointError, CheckpointWarning
from flowcompute.files.file_layer import FILES
from tests.checkpoint import scenarios
from tests.checkpoint.scenarios import LONG, PATH, SECOND, advance, first, prepared, resumed
from tests.support.disk import Disk
from tests.support.simulated_files import SimulatedFiles

TWO = SECOND._replace(before=2)


def damaged(disk: Disk, name: str, content: bytes) -> Disk:
    changed = disk.copy()
    changed.files[SimulatedFiles(disk).find(f"{PATH}/{name}")] = content
    return changed


def judged(disk: Disk) -> tuple[int | None, str, list[bool]]:
    """The generation that is used (its content is compared), what was said, and which generations verify."""
    files = SimulatedFiles(disk)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            folder, _, k = resumed(files, PATH)
        except CheckpointError as error:
            return None, str(error), []
    with folder:
        assert all(one.category is CheckpointWarning for one in said)
        return k, " ".join(str(one.message) for one in said), [one.ok for one in folder.generations()]


def contents(disk: Disk) -> Iterator[tuple[str, bytes]]:
    for path, data in disk.tree().items():
        if data is not None:
            yield path.removeprefix(f"{PATH}/"), data


def check(disk: Disk, name: str, what: object) -> int | None:
    k, said, ok = judged(disk)
    if k == 1 and not said:
        # Nothing that the newest generation needs: LOCK's text, or a file of the older one, which does not verify.
        assert name == "LOCK" or ok == [False, True], (name, what)
    elif k is not None:
        assert name in ("HEAD", "result.side") or "00000001" in name or name.startswith("blob"), (name, what)
        assert "Using generation" in said
    return k


def test_any_flipped_bit_is_noticed() -> None:
    disk = prepared(TWO)
    found = set()
    for name, data in contents(disk):
        # 17 and 8 have no common divisor: bits of every place in a byte are flipped.
        for bit in range(0, 8 * len(data), 1 if LONG else 17):
            flipped = bytearray(data)
            flipped[bit // 8] ^= 1 << bit % 8
            found.add(check(damaged(disk, name, bytes(flipped)), name, bit))
    assert found == {None, 0, 1}


def test_any_truncation_is_noticed() -> None:
    disk = prepared(TWO)
    found = set()
    for name, data in contents(disk):
        for size in range(0, len(data), 1 if LONG else 7):
            found.add(check(damaged(disk, name, data[:size]), name, size))
        if name != "result.side":
            # What a side file has beyond its mark was never committed.
            found.add(check(damaged(disk, name, data + b"\0"), name, "longer"))
    assert found == {None, 0, 1}


def test_no_bit_of_an_envelope_is_without_its_checksum() -> None:
    data = dict(contents(prepared(TWO)))["gen-00000001.msgpack"]
    checksum(data)
    for bit in range(8 * len(data)):
        flipped = bytearray(data)
        flipped[bit // 8] ^= 1 << bit % 8
        with pytest.raises(DamagedError):
            checksum(bytes(flipped))


@pytest.mark.parametrize("name", ["HEAD", "gen-00000001.msgpack", "gen-00000001.bin"])
def test_what_is_missing_is_said_and_the_job_goes_on_from_what_is_there(name: str) -> None:
    disk = prepared(TWO)
    files = SimulatedFiles(disk)
    files.remove(f"{PATH}/{name}")
    with pytest.warns(CheckpointWarning, match=f"cannot read .*{name}.*No such file.*Using generation") as said:
        folder, side, k = resumed(files, PATH)
    assert said[0].filename == scenarios.__file__
    assert k == (1 if name == "HEAD" else 0)
    with folder:
        advance(folder, side, k + 1)
        assert folder.newest().number == 2
        assert [one.number for one in folder.generations()] == ([0, 1, 2] if k else [0, 2])
        assert all(one.ok for one in folder.generations())


def test_without_any_whole_generation_all_that_is_wrong_is_said() -> None:
    disk = prepared(TWO)
    bad = damaged(damaged(disk, "gen-00000000.msgpack", b"?"), "gen-00000001.bin", b"")
    folder = CheckpointFolder.open(PATH, SimulatedFiles(bad))
    with pytest.raises(CheckpointError) as caught:
        folder.newest()
    text = str(caught.value)
    assert "cannot use any generation in /data/job" in text
    assert "gen-00000001.msgpack: cannot read gen-00000001.bin: it ends before an array does" in text
    assert "gen-00000000.msgpack: its bytes do not match the checksum" in text
    assert "restore the folder from a copy" in text
    with pytest.raises(CheckpointError, match="cannot use any generation"):
        folder.commit({})
    assert f"{PATH}/gen-00000001.msgpack" in bad.tree()


def test_a_damaged_job_or_blob_is_named() -> None:
    disk = prepared(TWO)
    with pytest.raises(CheckpointError, match=r"job.msgpack: its bytes do not match the checksum"):
        resumed(SimulatedFiles(damaged(disk, "job.msgpack", b"")), PATH)
    blobs = [name for name, _ in contents(disk) if name.startswith("blob")]
    assert len(blobs) == 2
    for name in blobs:
        with pytest.raises(CheckpointError, match=f"cannot read {name}: it does not hold what was written"):
            resumed(SimulatedFiles(damaged(disk, name, b"12345678")), PATH)


def test_a_damaged_blob_is_written_again_when_it_is_put_again() -> None:
    disk = prepared(TWO)
    folder, _, k = resumed(SimulatedFiles(disk), PATH)
    blob = folder.put_blob(scenarios.blob_array(0))
    number = SimulatedFiles(disk).find(f"{PATH}/blob-{blob.sha256}.bin")
    folder.close()
    disk.files[number] = b"rotten"
    folder = CheckpointFolder.open(PATH, SimulatedFiles(disk))
    with pytest.raises(CheckpointError):
        folder.newest()
    assert folder.put_blob(scenarios.blob_array(0)) == blob
    assert folder.newest().body["k"] == k == 1


def test_a_generation_under_another_name_or_checksum_is_not_taken_for_it() -> None:
    disk = prepared(TWO)
    renamed = disk
    for kind in ("msgpack", "bin"):
        renamed = damaged(renamed, f"gen-00000001.{kind}", dict(contents(disk))[f"gen-00000000.{kind}"])
    k, said, ok = judged(renamed)
    assert (k, ok) == (0, [True, False])
    assert "it is the envelope of another generation" in said
    head = dict(contents(disk))["HEAD"]
    k, said, _ = judged(damaged(disk, "HEAD", head[:2] + b"00" * 32 + b"\n"))
    assert k == 1
    assert "cannot use generation 1: it is not the one that HEAD names" in said


@pytest.mark.parametrize("change", [bytes.upper, bytes.strip, lambda head: b"0" + head, lambda head: head + b"\n"])
def test_a_head_that_is_written_otherwise_is_none(change: Callable[[bytes], bytes]) -> None:
    disk = prepared(TWO)
    k, said, _ = judged(damaged(disk, "HEAD", change(dict(contents(disk))["HEAD"])))
    assert k == 1
    assert "HEAD: it is not a generation and its checksum" in said


@pytest.mark.parametrize("name", ["HEAD", "gen-00000001.msgpack", "gen-00000001.bin"])
def test_pipes_and_folders_in_place_of_files_do_no_harm(tmp_path: Path, name: str) -> None:
    path = tmp_path / "job"
    first(FILES, str(path), lambda _: None)
    folder, side, _ = resumed(FILES, str(path))
    with folder:
        advance(folder, side, 1)
    for put in (os.mkfifo, os.mkdir):
        (path / name).unlink()
        put(path / name)
        with pytest.warns(CheckpointWarning, match="Using generation"):
            resumed(FILES, str(path))[0].close()
        shutil.move(path / name, tmp_path / put.__name__)
        (path / name).touch()


def test_what_is_no_property_of_a_file_is_no_reason_to_go_back() -> None:
    # Permissions, descriptors, memory: with an older generation it would be the same, or it is better soon.
    class Refusing(SimulatedFiles):
        def open_read(self, path: str) -> int:
            if path.endswith("1.msgpack"):
                raise OSError(errno.EMFILE, os.strerror(errno.EMFILE), path)
            return super().open_read(path)

    folder = CheckpointFolder.open(PATH, Refusing(prepared(TWO)))
    with pytest.raises(CheckpointError, match=r"cannot read /data/job/gen-00000001\.msgpack: Too many open files"):
        folder.newest()
