"""Parts of sources: the contract of all sources, over what can and cannot be seen in place; and what is read for them."""

from __future__ import annotations

import os
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flowcompute.elements.source import Source
from flowcompute.errors import SourceError
from flowcompute.sources.array_source import MemorySource
from flowcompute.sources.open_source import open as fc_open
from flowcompute.sources.view import SourceView
from flowcompute.spec import SUPPORTED_DTYPES
from flowcompute.testing.contracts import SourceContract
from tests.sources.tape import Tape

FEW = SUPPORTED_DTYPES[:4]


def among(records: np.ndarray, before: int, step: int, after: int) -> np.ndarray:
    """An array of which these are records `before`, `before + step`, ..."""
    room = np.zeros((before + max(0, (len(records) - 1) * step + 1) + after, *records.shape[1:]), records.dtype)
    room[before : before + len(records) * step : step][: len(records)] = records
    return room


class TestSection(SourceContract):
    dtypes = FEW

    def make(self, records: np.ndarray, folder: Path) -> Source:
        inner = MemorySource(among(records, 3, 1, 2))
        return SourceView(inner, first=3, step=1, every=0, length=len(records))


class TestSteps(SourceContract):
    dtypes = FEW

    def make(self, records: np.ndarray, folder: Path) -> Source:
        return SourceView(MemorySource(among(records, 1, 4, 0)), first=1, step=4, every=0, length=len(records))


class TestStepsOfAFile(SourceContract):
    dtypes = FEW

    def make(self, records: np.ndarray, folder: Path) -> Source:
        path = folder / "x.npy"
        np.save(path, among(records, 0, 3, 0))
        os.utime(path, (1e9, 1e9))
        return SourceView(fc_open(path), first=0, step=3, every=0, length=len(records))


class TestStepsThatAreRead(SourceContract):
    dtypes = FEW

    def make(self, records: np.ndarray, folder: Path) -> Source:
        return SourceView(Tape(among(records, 2, 5, 9)), first=2, step=5, every=0, length=len(records))


class TestSectionOfSeveralFiles(SourceContract):
    dtypes = FEW

    def make(self, records: np.ndarray, folder: Path) -> Source:
        parts = np.array_split(among(records, 2, 1, 1), 3)
        for number, part in enumerate(parts):
            np.save(folder / f"{number}.npy", part)
        source = fc_open([folder / f"{number}.npy" for number in range(3)])
        return SourceView(source, first=2, step=1, every=0, length=len(records))


# -- runs, and what is read -----------------------------------------------------------------------


def all_of(source: Source, batch: int, position: int = 0, *, mapped: bool = True) -> np.ndarray:
    """Everything from a position on."""
    reader = source.open(position=position, mapped=mapped)
    pieces = [np.empty((0, *source.spec.shape), source.dtype)]
    while True:
        seen = reader.view(batch)
        if seen is None:
            seen = np.empty((batch, *source.spec.shape), source.dtype)
            seen = seen[: reader.read(seen)]
        pieces.append(seen)
        if len(seen) < batch:
            reader.close()
            return np.concatenate(pieces)


@given(st.data())
def test_runs_apart_are_what_numpy_slices(data: st.DataObject) -> None:
    every, item = data.draw(st.integers(1, 4)), data.draw(st.sampled_from([(), (3,)]))
    step = data.draw(st.integers(every, 7))
    first, runs, rest = (data.draw(st.integers(0, most)) for most in (5, 9, 3))
    records = max(0, (runs - 1) * step + every) if runs else 0
    array = np.arange((first + records + rest) * int(np.prod(item))).reshape(-1, *item)
    inner = data.draw(st.sampled_from([MemorySource(array), Tape(array), MemorySource(array.repeat(2, axis=0)[::2])]))
    wanted = np.array([array[first + i * step : first + i * step + every] for i in range(runs)], array.dtype)
    source = SourceView(inner, first=first, step=step, every=every, length=runs)
    position = data.draw(st.integers(0, runs))
    result = all_of(source, data.draw(st.integers(1, 10)), position)
    np.testing.assert_array_equal(result, wanted.reshape(runs, every, *item)[position:])


def test_only_what_is_wanted_is_read() -> None:
    tape = Tape(np.arange(1000, dtype=np.float32))
    np.testing.assert_array_equal(
        all_of(SourceView(tape, first=100, step=1, every=0, length=50), 20), np.arange(100, 150)
    )
    assert tape.log == [(100, 120), (120, 140), (140, 150)]
    tape.log.clear()
    np.testing.assert_array_equal(all_of(SourceView(tape, first=10, step=300, every=0, length=3), 2), [10, 310, 610])
    assert max(stop for _, stop in tape.log) == 611, "nothing behind the last record is read"


def test_a_step_of_many_records_takes_no_memory() -> None:
    records = np.broadcast_to(np.arange(40, dtype=np.float32)[:, None, None], (40, 100_000, 4)).reshape(-1, 4)
    source = SourceView(Tape(records), first=0, step=400_000, every=0, length=10)
    tracemalloc.start()
    try:
        result = all_of(source, 4)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    np.testing.assert_array_equal(result[:, 0], np.arange(0, 40, 4))
    assert peak < 3 << 20, "6.4 MB lie between two records"


@pytest.mark.parametrize("step", [1, 3, 400_000])
def test_a_source_that_ends_early_is_an_error(step: int) -> None:
    tape = Tape(np.zeros((3 * step, 2), np.float32), ends_at=2 * step - 1)
    with pytest.raises(SourceError, match="ended early"):
        all_of(SourceView(tape, first=0, step=step, every=0, length=3), 2)


def test_dense_parts_are_seen_in_place() -> None:
    array = np.arange(24, dtype=np.float32).reshape(12, 2)
    reader = SourceView(MemorySource(array), first=2, step=3, every=3, length=3).open()
    seen = reader.view(2)
    assert seen is not None
    assert np.shares_memory(seen, array)
    np.testing.assert_array_equal(seen, array[2:8].reshape(2, 3, 2))
    assert reader.snapshot() == {"position": 2}


def test_flattened_parts() -> None:
    array = np.arange(24, dtype=np.float32).reshape(12, 2)
    flat = SourceView(MemorySource(array), first=2, step=3, every=3, length=3).flattened()
    assert flat is not None
    np.testing.assert_array_equal(all_of(flat, 5), array[2:11].reshape(-1))
    assert SourceView(MemorySource(array), first=2, step=3, every=0, length=3).flattened() is None
    assert SourceView(Tape(array), first=0, step=1, every=0, length=3).flattened() is None


def test_equal_parts_of_one_source_are_one() -> None:
    inner = MemorySource(np.zeros(9, np.float32))
    part, again, other = (SourceView(inner, first=first, step=1, every=0, length=3) for first in (1, 1, 2))
    assert part.identity == again.identity
    assert part.identity != other.identity
