"""Sources in another order: the contract of all sources, over what can and cannot be read anywhere."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flowcompute as fc
from flowcompute.elements.generated import Permutation
from flowcompute.elements.source import Reader, Source
from flowcompute.errors import SourceError
from flowcompute.sources.array_source import MemorySource
from flowcompute.sources.open_source import open as fc_open
from flowcompute.sources.shuffled_source import ShuffledSource
from flowcompute.sources.view import SourceView
from flowcompute.spec import BOOL, SUPPORTED_DTYPES
from flowcompute.testing.contracts import SourceContract

FEW = SUPPORTED_DTYPES[:4]


def placed(records: np.ndarray, order: Permutation) -> np.ndarray:
    """Return an array that has these records in that order."""
    inner = np.empty_like(records)
    inner[order.records(np.arange(len(records)))] = records
    return inner


def order_for(records: np.ndarray, block: int = 1, window: int = 1) -> Permutation:
    return Permutation(9, 1, len(records), block, window)


def stored(records: np.ndarray, folder: Path, *, settled: bool = True) -> Any:
    path = folder / f"{len(os.listdir(folder))}.npy"
    np.save(path, records)
    if settled:
        os.utime(path, (1e9, 1e9))
    return fc_open(path)


class TestShuffledArray(SourceContract):
    dtypes = FEW

    def make(self, records: np.ndarray, folder: Path) -> Source:
        order = order_for(records, 3, 8)
        return ShuffledSource(MemorySource(placed(records, order)), order)


class TestShuffledFile(SourceContract):
    dtypes = FEW

    def make(self, records: np.ndarray, folder: Path) -> Source:
        order = order_for(records)
        return ShuffledSource(stored(placed(records, order), folder), order)


class TestShuffledColumns(SourceContract):
    dtypes = FEW

    def make(self, records: np.ndarray, folder: Path) -> Source:
        order = order_for(records)
        return ShuffledSource(stored(np.asfortranarray(placed(records, order)), folder), order)


class TestShuffledOtherByteOrder(SourceContract):
    dtypes = FEW[:2]

    def make(self, records: np.ndarray, folder: Path) -> Source:
        order = order_for(records, 4)
        inner = placed(records, order)
        return ShuffledSource(stored(inner.astype(inner.dtype.newbyteorder()), folder), order)


class TestShuffledFiles(SourceContract):
    dtypes = FEW[:2]

    def make(self, records: np.ndarray, folder: Path) -> Source:
        order = order_for(records)
        inner = placed(records, order)
        parts = [stored(part, folder).path for part in (inner[:3], inner[3:3], inner[3:17], inner[17:])]
        return ShuffledSource(fc_open(parts), order)


class TestShuffledSteps(SourceContract):
    dtypes = FEW[:2]

    def make(self, records: np.ndarray, folder: Path) -> Source:
        order = order_for(records)
        room = np.zeros((1 + 4 * len(records), *records.shape[1:]), records.dtype)
        room[1::4] = placed(records, order)
        view = SourceView(stored(room, folder), first=1, step=4, every=0, length=len(records))
        return ShuffledSource(view, order)


class TestUnshuffled(SourceContract):
    dtypes = FEW[:2]

    def make(self, records: np.ndarray, folder: Path) -> Source:
        order = order_for(records)
        return ShuffledSource(MemorySource(records[order.records(np.arange(len(records)))]), order, inverse=True)


class InOrderOnly(MemorySource):
    """An array that a user's reader reads in order."""

    def open(self, *, position: int = 0, mapped: bool = True) -> Any:
        reader = super().open(position=position, mapped=mapped)
        reader.gather = lambda *_: False  # type: ignore[method-assign]
        return reader


class TestShuffledInOrderOnly(SourceContract):
    dtypes = FEW[:2]

    def make(self, records: np.ndarray, folder: Path) -> Source:
        order = order_for(records, 4)
        return ShuffledSource(InOrderOnly(placed(records, order)), order)


def read(source: Source, records: int, threads: int = 1) -> np.ndarray:
    reader = source.open()
    reader.threads = threads
    out = np.empty((records, *source.spec.shape), source.dtype)
    try:
        assert reader.read(out) == records
    finally:
        reader.close()
    return out


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("settled", [False, True])
@pytest.mark.parametrize("numbers", [1, 40, 5000])
def test_large_batches_of_records_of_any_size(numbers: int, settled: bool, threads: int, tmp_path: Path) -> None:
    """Gaps are read over where they are small, and pieces are of about a MiB."""
    length = 100_000 // numbers
    records = np.arange(length * numbers, dtype="f4").reshape(length, numbers)
    source = ShuffledSource(stored(records, tmp_path, settled=settled), order := order_for(records, 7, 64))
    np.testing.assert_array_equal(read(source, length, threads), records[order.records(np.arange(length))])


def test_several_orders_one_after_the_other() -> None:
    orders = [Permutation(1, epoch, 10) for epoch in range(3)]
    source = ShuffledSource(MemorySource(np.arange(10)), *orders)
    whole = np.concatenate([order.records(np.arange(10)) for order in orders])
    np.testing.assert_array_equal(read(source, 30), whole)
    reader = source.open(position=17)
    out = np.empty(20, np.int64)
    assert reader.read(out) == 13
    np.testing.assert_array_equal(out[:13], whole[17:])
    reader.close()


@pytest.mark.parametrize("settled", [False, True])
def test_a_file_that_changes_is_refused(settled: bool, tmp_path: Path) -> None:
    source = ShuffledSource(stored(np.arange(10.0), tmp_path, settled=settled), Permutation(0, 0, 10))
    reader = source.open()
    os.utime(tmp_path / "0.npy", (2e9, 2e9))
    with pytest.raises(SourceError, match="changed"):
        reader.read(np.empty(10))
    reader.close()


def test_a_byte_that_is_no_bool_is_refused_by_its_record(tmp_path: Path) -> None:
    bad = np.zeros(10, np.uint8)
    bad[6] = 2
    inner = stored(bad.view(BOOL), tmp_path)
    reader: Reader = ShuffledSource(inner, Permutation(0, 0, 10)).open()
    with pytest.raises(SourceError, match="not a bool") as caught:
        reader.read(np.empty(10, BOOL))
    assert caught.value.records == (6, 7)
    reader.close()


def test_gathering_names_the_line_of_the_source(tmp_path: Path) -> None:
    x = stored(np.arange(10.0), tmp_path)
    shuffled = fc.shuffle(x, seed=1)
    os.utime(tmp_path / "0.npy", (2e9, 2e9))
    with pytest.raises(SourceError, match=r"test_shuffled\.py"):
        shuffled.resolve(device="numpy", progress=False)
