"""What destinations keep for a job that is killed and resumed: what was written after the last checkpoint is dropped."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import flowcompute as fc
from flowcompute.elements.destination import Destination
from flowcompute.elements.keeping import StagingArea
from flowcompute.errors import CheckpointError, DestinationError
from flowcompute.files.scratch import Scratch
from flowcompute.sinks.callback_sink import Delivery
from flowcompute.sinks.spool_sink import SpoolSink
from flowcompute.spec import FLOAT32, Spec, Stream
from tests.support.faulty_files import FaultyFiles

DATA = np.arange(60, dtype=np.float32).reshape(20, 3)


class Side:
    def __init__(self) -> None:
        self.data = bytearray()
        self.synced = 0

    def write_at(self, data: memoryview | bytes, offset: int) -> None:
        assert offset <= len(self.data), "a gap"
        self.data[offset : offset + len(data)] = data

    def read_into(self, buffer: memoryview, offset: int) -> int:
        part = self.data[offset : offset + len(buffer)]
        buffer[: len(part)] = part
        return len(part)

    def mark(self) -> bytes:
        return bytes(self.data)

    def restore(self, mark: bytes) -> None:
        if not self.data.startswith(mark):
            raise CheckpointError("not what was written")
        del self.data[len(mark) :]

    def fsync(self) -> None:
        self.synced = len(self.data)


def place(side: Side) -> StagingArea:
    return StagingArea("a1b2", lambda: side, lambda: 3)


def sinks(folder: Path) -> dict[str, Callable[[], Destination]]:
    return {
        "npy": lambda: fc.save(folder / "y.npy"),
        "raw": lambda: fc.save(folder / "y.raw"),
        "memory": fc.to_array,
    }


def content(value: object) -> bytes:
    return Path(value).read_bytes() if isinstance(value, str) else np.asarray(value).tobytes()


@pytest.mark.parametrize("length", [20, None])
@pytest.mark.parametrize("kind", ["npy", "raw", "memory"])
def test_what_was_written_after_the_checkpoint_is_written_again(tmp_path: Path, kind: str, length: int | None) -> None:
    spec = Spec(FLOAT32, (3,), Stream(length))
    plain = sinks(tmp_path)[kind]().open(spec)
    plain.write(DATA, 0)
    expected = content(plain.commit())
    side = Side()
    sink = sinks(tmp_path)[kind]()
    writer = sink.open_at(spec, place(side))
    writer.write(DATA[:7], 0)
    state = writer.snapshot()
    writer.write(-DATA[7:12], 7)
    kept = writer.persist(state, place(side))
    writer.write(-DATA[12:14], 12)
    writer.suspend()
    again = sink.reopen(spec, place(side), kept)
    assert again.snapshot() == state
    for start in range(7, 20, 5):
        again.write(DATA[start : start + 5], start)
        again.persist(again.snapshot(), place(side))
    sealed = again.seal(place(side))
    copy = Side()
    copy.data[:] = side.data
    # The process may die before the rename, or after it.
    if kind != "memory":
        again.suspend()
        assert content(sink.recover(spec, place(copy), sealed)) == expected
    else:
        assert content(again.commit()) == expected
    assert content(sink.recover(spec, place(copy), sealed)) == expected
    assert [name for name in os.listdir(tmp_path) if name.endswith(".partial")] == []


@pytest.mark.parametrize("kind", ["npy", "raw", "memory"])
def test_a_whole_value_is_kept_whole(tmp_path: Path, kind: str) -> None:
    spec, side = Spec(FLOAT32, (20, 3)), Side()
    sink = sinks(tmp_path)[kind]()
    writer = sink.open_at(spec, place(side))
    nothing = writer.persist(writer.snapshot(), place(side))
    writer.suspend()
    writer = sink.reopen(spec, place(side), nothing)
    writer.write(DATA, 0)
    sealed = writer.seal(place(side))
    value = writer.commit()
    np.testing.assert_array_equal(DATA, np.fromfile(value, "f4")[-60:].reshape(20, 3) if kind != "memory" else value)
    assert content(sink.recover(spec, place(side), sealed)) == content(value)


def test_memory_is_written_once_and_synced(tmp_path: Path) -> None:
    side = Side()
    writer = fc.to_array().open_at(Spec(FLOAT32, (3,), Stream(20)), place(side))
    for start in range(0, 20, 4):
        room = writer.buffer(start, start + 4)
        assert room is not None
        room[...] = DATA[start : start + 4]
        writer.write(room, start)
        writer.persist(writer.snapshot(), place(side))
        assert bytes(side.data) == DATA[: start + 4].tobytes()
        assert side.synced == len(side.data)


def test_a_spool_goes_on_in_the_checkpoint() -> None:
    x = fc.source(DATA)
    side = Side()
    spec = Spec(FLOAT32, (3,), Stream(20))
    sink = SpoolSink(Scratch(None, None), x, "kept")
    writer = sink.open_at(spec, place(side))
    writer.write(DATA[:5], 0)
    state = writer.snapshot()
    writer.write(DATA[5:9], 5)
    state = writer.persist(state, place(side))
    writer.suspend()
    fresh = SpoolSink(Scratch(None, None), x, "kept")
    writer = fresh.reopen(spec, place(side), state)
    writer.write(DATA[5:], 5)
    assert bytes(side.data) == DATA.tobytes()
    assert fresh.scratch.records == 20
    state = writer.persist(writer.snapshot(), place(side))
    writer.commit()
    side.data[17] ^= 1
    with pytest.raises(CheckpointError, match="kept: cannot resume: the checkpoint does not hold"):
        fresh.reopen(spec, place(side), state)


def test_a_nameless_spool_is_copied_into_the_checkpoint() -> None:
    side = Side()
    sink = SpoolSink(Scratch(None, None), fc.source(DATA), "kept")
    writer = sink.open(Spec(FLOAT32, (3,), Stream(20)))
    writer.write(DATA[:11], 0)
    writer.persist(writer.snapshot(), place(side))
    writer.write(DATA[11:], 11)
    writer.persist(writer.snapshot(), place(side))
    assert bytes(side.data) == DATA.tobytes()
    writer.abort()


def test_a_callback_is_told_what_may_come_again() -> None:
    seen: list[object] = []
    sink = fc.callback(lambda array, delivery: seen.append((len(array), delivery)), labels=True)
    assert sink.promise == "at least once"
    spec = Spec(FLOAT32, (3,), Stream(20))
    sink.open(spec).write(DATA[:4], 0)
    sink.reopen(spec, place(Side()), {}).write(DATA[4:9], 4)
    assert seen == [(4, Delivery(0, 0)), (5, Delivery(3, 4))]


def test_an_unfinished_file_that_is_gone_or_cut_short_is_an_error(tmp_path: Path) -> None:
    spec, side = Spec(FLOAT32, (3,), Stream(20)), Side()
    sink = fc.save(tmp_path / "y.npy", name="out")
    writer = sink.open_at(spec, place(side))
    writer.write(DATA[:7], 0)
    state = writer.snapshot()
    writer.suspend()
    (draft,) = tmp_path.glob(".*.partial")
    draft.write_bytes(draft.read_bytes()[:-1])
    with pytest.raises(
        CheckpointError, match=r"out: cannot continue the unfinished result (.|\n)*it has 211 bytes where 212"
    ):
        sink.reopen(spec, place(side), state)
    draft.unlink()
    with pytest.raises(CheckpointError, match="No such file"):
        sink.reopen(spec, place(side), state)


def test_a_finished_file_that_was_changed_or_removed_is_an_error(tmp_path: Path) -> None:
    spec, side = Spec(FLOAT32, (3,), Stream(20)), Side()
    sink = fc.save(tmp_path / "y.npy", name="out")
    writer = sink.open_at(spec, place(side))
    writer.write(DATA, 0)
    sealed = writer.seal(place(side))
    writer.commit()
    path = tmp_path / "y.npy"
    os.utime(path, ns=(0, sealed["mtime_ns"] + 1))
    with pytest.raises(CheckpointError, match=r"out: .*y\.npy: it is not what the finished job has written"):
        sink.recover(spec, place(side), sealed)
    os.utime(path, ns=(0, sealed["mtime_ns"]))
    assert sink.recover(spec, place(side), sealed) == str(path)
    path.unlink()
    with pytest.raises(CheckpointError, match="no file"):
        sink.recover(spec, place(side), sealed)


def test_a_result_in_memory_that_the_checkpoint_lost_is_an_error() -> None:
    spec, side = Spec(FLOAT32, (3,), Stream(20)), Side()
    sink = fc.to_array(name="all")
    with pytest.raises(CheckpointError, match=r"all: cannot resume: the checkpoint does not hold(.|\n)*0 of 60 bytes"):
        sink.reopen(spec, place(side), {"written": 5, "side": b""})
    with pytest.raises(CheckpointError, match="21 records"):
        sink.reopen(spec, place(side), {"written": 21, "side": b""})
    with pytest.raises(CheckpointError, match="not what was written"):
        sink.reopen(spec, place(side), {"written": 1, "side": bytes(12)})


def test_a_sync_that_fails_is_told(tmp_path: Path) -> None:
    spec, side = Spec(FLOAT32, (3,), Stream(20)), Side()
    for name in ("fsync", "fsync_folder"):
        files = FaultyFiles(fail_at=0, only=frozenset({name}))
        sink = fc.save(tmp_path / "y.npy", name="out")
        sink.freeze_fields(files=files)
        writer = sink.open_at(spec, place(side))
        writer.write(DATA[:7], 0)
        with pytest.raises(DestinationError, match=r"out: cannot make durable .*EIO"):
            writer.persist(writer.snapshot(), place(side))
        writer.abort()
    assert os.listdir(tmp_path) == []
