"""Contracts of every source and every destination, as test suites to inherit.

A new source is tested by a class that makes one. pytest then runs the whole suite, with pytest-trio, since a
source may be asynchronous:

    class TestMySource(SourceContract):
        def make(self, records, folder):
            return MySource(write_somehow(records, folder))
"""
# ruff: noqa: D102 (a test's name says what it checks)

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from flowcompute.elements import AsyncReader, Destination, Reader, Source, Writer
from flowcompute.errors import SourceError
from flowcompute.spec import FLOAT32, SUPPORTED_DTYPES, Spec, Stream, is_float

ITEM_SHAPES = [(), (1,), (3,), (2, 3), (2, 1, 3), (2, 3, 2)]
BATCH_SIZES = [1, 7, 20, 1000]


def sample(dtype: np.dtype, shape: tuple[int, ...]) -> np.ndarray:
    """Return an array of values that are easily damaged.

    These are extremes, and for floats also NaN, infinities, -0 and subnormals.
    """
    count = int(np.prod(shape))
    rng = np.random.default_rng(count)
    if dtype == np.bool_:
        return rng.integers(0, 2, count).astype(dtype).reshape(shape)
    if is_float(dtype):
        numbers = rng.standard_normal(count).astype(dtype)
        special = np.array([np.nan, np.inf, -np.inf, -0.0, 1e-7, 0.0], dtype)
    else:
        limits = np.iinfo(dtype)
        numbers = rng.integers(limits.min, limits.max, count, dtype, endpoint=True)
        special = np.array([limits.min, limits.max, 0], dtype)
    numbers[1 : 1 + len(special)] = special[: max(0, count - 1)]
    return numbers.reshape(shape)


def assert_same(got: np.ndarray, want: np.ndarray) -> None:
    """Assert equal dtype, shape and bits."""
    assert got.dtype == want.dtype
    assert got.shape == want.shape
    np.testing.assert_array_equal(_bits(got), _bits(want))


def assert_plain(value: object) -> None:
    """Assert that a snapshot is plain data: numbers, text, bytes, arrays, and lists and dicts of them."""
    if isinstance(value, dict):
        for key, inner in value.items():
            assert type(key) is str
            assert_plain(inner)
    elif isinstance(value, (list, tuple)):
        for inner in value:
            assert_plain(inner)
    else:
        assert value is None or type(value) in (bool, int, float, str, bytes, np.ndarray), value


def _bits(array: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


async def read(reader: Reader, out: np.ndarray) -> int:
    """Fill `out` with `reader.read`, or its asynchronous form."""
    if isinstance(reader, AsyncReader):
        return await reader.read_async(out)
    return reader.read(out)


async def read_rest(reader: Reader, spec: Spec, batch: int) -> np.ndarray:
    """Read all records from the reader's position on, in batches of `batch` records."""
    pieces = [np.empty((0, *spec.shape), spec.dtype)]
    while True:
        out = np.empty((batch, *spec.shape), spec.dtype)
        count = await read(reader, out)
        assert 0 <= count <= batch
        pieces.append(out[:count])
        if count < batch:
            return np.concatenate(pieces)


class SourceContract(ABC):
    """Test suite for a Source. Inherit it, name the class `Test...` and define `make`."""

    pytestmark = pytest.mark.trio

    dtypes: tuple[np.dtype, ...] = SUPPORTED_DTYPES
    """Dtypes that the source can hold."""

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Run the tests that take a dtype once for each of `dtypes`."""
        if "dtype" in metafunc.fixturenames:
            metafunc.parametrize("dtype", self.dtypes, ids=str)

    @abstractmethod
    def make(self, records: np.ndarray, folder: Path) -> Source:
        """Make a source of exactly these records. `folder` is empty and for this source alone."""

    @pytest.fixture
    def records(self) -> np.ndarray:
        """Return twenty records of three numbers."""
        return sample(FLOAT32, (20, 3))

    @pytest.fixture
    def source(self, records: np.ndarray, tmp_path: Path) -> Source:
        """Make a source of `records`."""
        return self.make(records, tmp_path)

    async def test_reads_every_dtype_bit_by_bit(self, dtype: np.dtype, tmp_path: Path) -> None:
        records = sample(dtype, (20, 3))
        source = self.make(records, tmp_path)
        assert source.spec.dtype == dtype
        reader = source.open()
        assert_same(await read_rest(reader, source.spec, 7), records)
        reader.close()

    @pytest.mark.parametrize("item_shape", ITEM_SHAPES, ids=str)
    @pytest.mark.parametrize("batch", BATCH_SIZES)
    async def test_reads_items_of_any_shape_in_any_batches(
        self, item_shape: tuple[int, ...], batch: int, tmp_path: Path
    ) -> None:
        records = sample(FLOAT32, (20, *item_shape))
        source = self.make(records, tmp_path)
        assert source.spec.shape == item_shape
        assert source.spec.stream is not None
        assert source.spec.length in (None, 20)
        reader = source.open(mapped=False)
        assert_same(await read_rest(reader, source.spec, batch), records)
        reader.close()

    async def test_an_empty_stream_ends_at_once(self, tmp_path: Path) -> None:
        source = self.make(np.empty((0, 3), FLOAT32), tmp_path)
        assert source.spec.length in (None, 0)
        for mapped in (True, False):
            source = source if source.rereadable else self.make(np.empty((0, 3), FLOAT32), tmp_path)
            reader = source.open(mapped=mapped)
            assert await read(reader, np.empty((5, 3), FLOAT32)) == 0
            view = reader.view(5)
            assert view is None or view.shape == (0, 3)
            reader.close()

    async def test_the_end_stays_the_end(self, source: Source) -> None:
        reader = source.open()
        await read_rest(reader, source.spec, 6)
        out = np.full((4, 3), 5, FLOAT32)
        assert await read(reader, out) == 0
        assert await read(reader, out) == 0
        assert (out == 5).all()
        assert reader.position == 20
        reader.close()

    async def test_nothing_beyond_the_count_is_touched(self, source: Source, records: np.ndarray) -> None:
        reader = source.open()
        whole = np.full((30, 3), 5, FLOAT32)
        assert await read(reader, whole[:25]) == 20
        assert_same(whole[:20], records)
        assert (whole[20:] == 5).all()
        reader.close()

    async def test_resumes_after_every_record(self, records: np.ndarray, tmp_path: Path) -> None:
        for k in range(len(records) + 1):
            folder = tmp_path / str(k)
            folder.mkdir()
            source = self.make(records, folder)
            reader = source.open()
            assert await read(reader, np.empty((k, 3), FLOAT32)) == k
            state = reader.snapshot()
            assert_plain(state)
            assert state["position"] == reader.position == k
            reader.close()
            if not source.rereadable:
                source = self.make(records, folder)
            reader = source.open(position=state["position"])
            assert_same(await read_rest(reader, source.spec, 3), records[k:])
            assert reader.position == len(records)
            reader.close()

    @pytest.mark.parametrize("position", [-1, 21, 10**15])
    async def test_a_position_outside_is_refused(self, source: Source, position: int) -> None:
        async def start() -> None:
            reader = source.open(position=position)
            try:
                await read(reader, np.empty((1, 3), FLOAT32))
            finally:
                reader.close()

        with pytest.raises(SourceError):
            await start()

    @pytest.mark.parametrize("batch", BATCH_SIZES)
    async def test_views_equal_reads(self, source: Source, records: np.ndarray, batch: int) -> None:
        reader = source.open(mapped=True)
        views: list[np.ndarray] = []
        for start in range(0, 40, batch):
            view = reader.view(batch)
            if view is None:
                assert not views
                assert reader.position == 0
                reader.close()
                return
            assert len(view) == max(0, min(batch, 20 - start))
            assert view.flags.c_contiguous
            assert view.flags.aligned
            assert not view.flags.writeable
            views.append(view)
        # They are compared at the end, since an earlier view must not change while later ones are taken.
        assert_same(np.concatenate(views), records)
        del views, view
        reader.close()

    async def test_views_and_reads_mix(self, source: Source, records: np.ndarray) -> None:
        reader = source.open()
        out = np.empty((4, 3), FLOAT32)
        assert await read(reader, out) == 4
        view = reader.view(5)
        if view is not None:
            assert_same(np.concatenate([out, view]), records[:9])
            assert await read(reader, out) == 4
            assert_same(out, records[9:13])
        del view
        reader.close()

    async def test_gathers_records_in_any_order(self, source: Source, records: np.ndarray) -> None:
        for mapped in (False, True) if source.rereadable else (True,):
            reader = source.open(mapped=mapped)
            assert await read(reader, np.empty((2, 3), FLOAT32)) == 2
            for places in ([], [19], [3, 4, 5], [0, 19, 7, 7, 1, 18], list(range(19, -1, -1))):
                out = np.full((len(places), 3), 5, FLOAT32)
                if not reader.gather(np.array(places, np.int64), out):
                    assert (out == 5).all()
                    continue
                assert_same(out, records[places])
            assert reader.position == 2
            assert_same(await read_rest(reader, source.spec, 7), records[2:])
            reader.close()

    async def test_closing_twice_is_harmless(self, source: Source) -> None:
        reader = source.open()
        await read(reader, np.empty((2, 3), FLOAT32))
        reader.close()
        reader.close()

    async def test_closing_before_reading_is_harmless(self, source: Source) -> None:
        source.open(mapped=False).close()

    async def test_readers_are_independent(self, source: Source, records: np.ndarray) -> None:
        first = source.open()
        if not source.rereadable:
            with pytest.raises(SourceError, match="once"):
                source.open()
            first.close()
            return
        second = source.open()
        await read(first, np.empty((5, 3), FLOAT32))
        assert_same(await read_rest(second, source.spec, 6), records)
        second.close()
        assert_same(await read_rest(first, source.spec, 6), records[5:])
        first.close()

    async def test_an_unchanged_source_passes_its_check(self, source: Source) -> None:
        reader = source.open()
        reader.check()
        await read_rest(reader, source.spec, 6)
        reader.check()
        reader.close()

    async def test_identity_is_stable_and_hashable(self, source: Source) -> None:
        assert hash(source.identity) == hash(source.identity)
        assert source.identity == source.identity


class DestinationContract(ABC):
    """Test suite for a Destination. Inherit it, name the class `Test...` and define `make` and `load`."""

    dtypes: tuple[np.dtype, ...] = SUPPORTED_DTYPES
    """Dtypes that can be written."""

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Run the tests that take a dtype once for each of `dtypes`."""
        if "dtype" in metafunc.fixturenames:
            metafunc.parametrize("dtype", self.dtypes, ids=str)

    @abstractmethod
    def make(self, folder: Path) -> Destination:
        """Make an unbound destination. `folder` is empty and for this destination alone."""

    @abstractmethod
    def load(self, value: Any, spec: Spec, folder: Path) -> np.ndarray:
        """Read the result without the code under test. `value` is the value that `commit` returned."""

    def visible(self, folder: Path) -> bool:
        """Check whether anybody can see a result."""
        return any(not name.startswith(".") for name in os.listdir(folder))

    def _write(self, writer: Writer, array: np.ndarray, sizes: Iterator[int]) -> None:
        start = 0
        while start < len(array):
            stop = min(start + next(sizes), len(array))
            writer.write(array[start:stop], start)
            start = stop

    @pytest.mark.parametrize("known", [True, False], ids=["known length", "unknown length"])
    def test_writes_every_dtype_bit_by_bit(self, dtype: np.dtype, known: bool, tmp_path: Path) -> None:
        array = sample(dtype, (20, 3))
        spec = Spec(dtype, (3,), Stream(20 if known else None))
        writer = self.make(tmp_path).open(spec)
        self._write(writer, array, iter([6] * 4))
        assert_same(self.load(writer.commit(), spec, tmp_path), array)

    @pytest.mark.parametrize("known", [True, False], ids=["known length", "unknown length"])
    @pytest.mark.parametrize("sizes", [[1] * 20, [7] * 3, [20], [1, 11, 2, 6]], ids=str)
    @pytest.mark.parametrize("item_shape", ITEM_SHAPES, ids=str)
    def test_writes_items_of_any_shape_in_any_sizes(
        self, item_shape: tuple[int, ...], sizes: list[int], known: bool, tmp_path: Path
    ) -> None:
        array = sample(FLOAT32, (20, *item_shape))
        spec = Spec(FLOAT32, item_shape, Stream(20 if known else None))
        writer = self.make(tmp_path).open(spec)
        self._write(writer, array, iter(sizes))
        assert_same(self.load(writer.commit(), spec, tmp_path), array)

    @pytest.mark.parametrize("known", [True, False], ids=["known length", "unknown length"])
    def test_an_empty_stream_gives_an_empty_result(self, known: bool, tmp_path: Path) -> None:
        spec = Spec(FLOAT32, (3,), Stream(0 if known else None))
        writer = self.make(tmp_path).open(spec)
        assert_same(self.load(writer.commit(), spec, tmp_path), np.empty((0, 3), FLOAT32))

    @pytest.mark.parametrize("shape", [(), (1,), (3,), (2, 3), (2, 0)], ids=str)
    def test_a_resident_value_is_written_whole(self, shape: tuple[int, ...], tmp_path: Path) -> None:
        array = sample(FLOAT32, shape) if shape else np.array(2.5, FLOAT32)
        spec = Spec(FLOAT32, shape)
        writer = self.make(tmp_path).open(spec)
        writer.write(array, 0)
        assert_same(np.asarray(self.load(writer.commit(), spec, tmp_path)), array)

    @pytest.mark.parametrize("known", [True, False], ids=["known length", "unknown length"])
    def test_what_was_written_is_not_looked_at_again(self, known: bool, tmp_path: Path) -> None:
        spec = Spec(FLOAT32, (3,), Stream(20 if known else None))
        array = sample(FLOAT32, (20, 3))
        writer = self.make(tmp_path).open(spec)
        batch = np.empty((5, 3), FLOAT32)
        for start in range(0, 20, 5):
            batch[:] = array[start : start + 5]
            writer.write(batch, start)
            batch[:] = 0
        assert_same(self.load(writer.commit(), spec, tmp_path), array)

    def test_arrays_of_any_strides_are_written(self, tmp_path: Path) -> None:
        spec = Spec(FLOAT32, (3,), Stream(20))
        array = sample(FLOAT32, (3, 40)).T[::2]
        assert not array.flags.c_contiguous
        writer = self.make(tmp_path).open(spec)
        self._write(writer, array, iter([8] * 3))
        assert_same(self.load(writer.commit(), spec, tmp_path), np.ascontiguousarray(array))

    @pytest.mark.parametrize("known", [True, False], ids=["known length", "unknown length"])
    def test_its_own_buffers_may_be_filled_instead(self, known: bool, tmp_path: Path) -> None:
        spec = Spec(FLOAT32, (3,), Stream(20 if known else None))
        array = sample(FLOAT32, (20, 3))
        writer = self.make(tmp_path).open(spec)
        lent = [(start, writer.buffer(start, start + 5)) for start in range(0, 20, 5)]
        for start, buffer in lent:
            batch = array[start : start + 5]
            if buffer is not None:
                assert buffer.shape == batch.shape
                assert buffer.flags.c_contiguous
                buffer[:] = batch
                batch = buffer
            writer.write(batch, start)
        assert_same(self.load(writer.commit(), spec, tmp_path), array)

    @pytest.mark.parametrize("known", [True, False], ids=["known length", "unknown length"])
    def test_nothing_is_visible_before_commit(self, known: bool, tmp_path: Path) -> None:
        spec = Spec(FLOAT32, (3,), Stream(20 if known else None))
        destination = self.make(tmp_path)
        assert not os.listdir(tmp_path), "composing must not touch anything"
        writer = destination.open(spec)
        for start in range(0, 20, 5):
            assert not self.visible(tmp_path)
            writer.write(sample(FLOAT32, (5, 3)), start)
        assert not self.visible(tmp_path)
        writer.commit()

    @pytest.mark.parametrize("batches", range(5))
    def test_abort_leaves_nothing(self, batches: int, tmp_path: Path) -> None:
        writer = self.make(tmp_path).open(Spec(FLOAT32, (3,), Stream(20)))
        for k in range(batches):
            writer.write(sample(FLOAT32, (5, 3)), 5 * k)
        writer.abort()
        assert not os.listdir(tmp_path)
        writer.abort()
        assert not os.listdir(tmp_path)

    def test_abort_after_commit_changes_nothing(self, tmp_path: Path) -> None:
        spec = Spec(FLOAT32, (3,), Stream(20))
        array = sample(FLOAT32, (20, 3))
        writer = self.make(tmp_path).open(spec)
        writer.write(array, 0)
        value = writer.commit()
        before = sorted(os.listdir(tmp_path))
        writer.abort()
        assert sorted(os.listdir(tmp_path)) == before
        assert_same(self.load(value, spec, tmp_path), array)

    def test_a_snapshot_is_plain_data(self, tmp_path: Path) -> None:
        writer = self.make(tmp_path).open(Spec(FLOAT32, (3,), Stream(20)))
        assert_plain(writer.snapshot())
        writer.write(sample(FLOAT32, (5, 3)), 0)
        assert_plain(writer.snapshot())
        writer.abort()

    def test_it_is_made_unbound(self, tmp_path: Path) -> None:
        destination = self.make(tmp_path)
        assert not destination.bound
        assert destination.inputs == ()
