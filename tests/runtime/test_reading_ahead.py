"""Sources that several reads of may be under way at a time."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from unittest import mock

import numpy as np
import pytest

import flowcompute as fc
from flowcompute.errors import SourceError
from flowcompute.runtime.channels.workers import WorkerThreads
from flowcompute.sources.file_source import StoredReader
from tests.gpu.shapes import run_on_gpu

BATCH = fc.Strategy(batch_bytes=4096, input="read", reader_threads=2)
DATA = np.arange(10_000, dtype=np.float32)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    np.save(tmp_path / "x.npy", DATA)
    return tmp_path / "x.npy"


def test_a_batch_is_read_while_the_one_before_it_still_is(path: Path) -> None:
    real, begun, ended = StoredReader.read_at, threading.Event(), []

    def read_at(reader: StoredReader, position: int, out: np.ndarray) -> int:
        if position == 1024:
            begun.set()
        if position == 0:
            assert begun.wait(20), "the second read waits for the first"
        items = real(reader, position, out)
        ended.append(position)
        return items

    with mock.patch.object(StoredReader, "read_at", read_at):
        result = (fc.open(path) * 2).resolve(device="numpy", progress=False, strategy=BATCH)
    np.testing.assert_array_equal(result, DATA * 2)
    assert sorted(ended) == list(range(0, 10_000, 1024))


def test_errors_come_in_the_order_of_the_records(path: Path) -> None:
    real, failed, seen = StoredReader.read_at, threading.Event(), []

    def read_at(reader: StoredReader, position: int, out: np.ndarray) -> int:
        if position == 2048:
            failed.wait(20)
            raise OSError("earlier")
        if position == 3072:
            failed.set()
            raise OSError("later")
        return real(reader, position, out)

    job = fc.open(path) >> fc.callback(lambda batch: seen.append(len(batch)))
    with mock.patch.object(StoredReader, "read_at", read_at), pytest.raises(fc.FlowError, match="earlier") as caught:
        job.run(device="numpy", progress=False, strategy=BATCH)
    assert caught.value.records == (2048, 3072)
    assert sum(seen) <= 2048


def test_a_reader_is_left_when_nobody_wants_more(path: Path) -> None:
    first = fc.open(path)[:2000].resolve(device="numpy", progress=False, strategy=BATCH)
    np.testing.assert_array_equal(first, DATA[:2000])


def test_a_mapped_file_is_seen_where_it_lies_whatever_threads_might_read_it(path: Path) -> None:
    strategy = fc.Strategy(batch_bytes=4096, input="mapped", reader_threads=4)
    os.utime(path, (0, 0))  # files that were just changed are not mapped
    with mock.patch.object(StoredReader, "read_at", side_effect=AssertionError("copied")):
        result = (fc.open(path) * 2).resolve(device="numpy", progress=False, strategy=strategy)
    np.testing.assert_array_equal(result, DATA * 2)


def test_a_file_that_became_shorter_is_told(path: Path) -> None:
    def read_at(_reader: StoredReader, position: int, out: np.ndarray) -> int:
        return min(len(out), 5000 - position)

    with mock.patch.object(StoredReader, "read_at", read_at), pytest.raises(SourceError, match="ended early") as caught:
        fc.open(path).sum().resolve(device="numpy", progress=False, strategy=BATCH)
    assert caught.value.got == "5000"


def test_what_the_device_reads_by_itself_is_asked_for_without_a_thread(path: Path) -> None:
    calls, real = [], WorkerThreads.call

    async def call(workers: WorkerThreads, function, *arguments):  # type: ignore[no-untyped-def]
        calls.append(getattr(function, "__name__", ""))
        return await real(workers, function, *arguments)

    with mock.patch.object(WorkerThreads, "call", call):
        total = run_on_gpu(fc.open(path).sum(), strategy=fc.Strategy(batch_bytes=4096, depth=3))
        assert calls.count("upload") == calls.count("download") == 0
        assert calls.count("read_at") == 10
        run_on_gpu(fc.source(DATA) * 2, strategy=fc.Strategy(batch_bytes=4096, depth=3))
        assert calls.count("upload") == calls.count("download") == 10
    assert float(total.values[0]) == float(DATA.sum(dtype=np.float64))
