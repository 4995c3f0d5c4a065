"""Chosen matrices that are larger than memory: some stay in the system's cache, the others pass by it."""

from __future__ import annotations

import errno
import os
import threading
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest

import flowcompute as fc
from flowcompute.engine.streams.passing_matrices import PassingMatrices
from flowcompute.files import Files, OverlaidParts
from flowcompute.gpu import OpenCLBackend
from flowcompute.thread_pool import ThreadPool
from tests.gpu.test_sharing import DEVICES
from tests.model_files.files import settle

EXPERTS, OUT, IN = 40, 32, 128
SIZE = OUT * IN * 4
STAYING = 27
"""Matrices that three quarters of 600 KiB hold, less what comes after them."""


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("flowcompute.model_files.weight.is_cached", lambda *place: False)
    rng = np.random.default_rng(4)
    writer = gguf.GGUFWriter(tmp_path / "weights.gguf", "none")
    writer.add_tensor("after", rng.standard_normal((OUT, OUT), dtype=np.float32))
    writer.add_tensor("experts", rng.standard_normal((EXPERTS, OUT, IN), dtype=np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return settle(tmp_path / "weights.gguf")


class Passed:
    """The matrices that are read past the cache.

    Args:
        wrong: whether they get other bytes, which shows who reads them.
        error: of the system in place of a read.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, wrong: bool = False, error: OSError | None = None) -> None:
        self.places: list[int] = []
        plain = Files.read_direct

        def noted(files: Files, handle: int, buffer: memoryview, offset: int) -> int:
            self.places.append(offset)
            if error is not None:
                raise error
            count = plain(files, handle, buffer, offset)
            if wrong:
                np.frombuffer(buffer, np.uint8)[:] = 0
            return count

        monkeypatch.setattr(Files, "read_direct", noted)

    def numbers(self, path: Path) -> list[int]:
        begin = fc.weights(path).raw("experts").tensor.offset
        return sorted(-(-(place - begin) // SIZE) for place in self.places)


def resolved(
    path: Path, chosen: np.ndarray, memory: str, device: str = "cpu", batch_bytes: int | None = 1
) -> np.ndarray:
    """Resolve, with one record a batch by default."""
    weights = fc.weights(path)
    x = fc.source(np.random.default_rng(5).standard_normal((len(chosen), IN), dtype=np.float32))
    made: Any = fc.nn.experts(x, weights["experts"], fc.source(chosen)).sum(axis=1) @ weights["after"]
    return np.asarray(
        made.resolve(device=device, memory=memory, progress=False, strategy=fc.Strategy(batch_bytes=batch_bytes))
    )


def test_what_is_chosen_rarely_passes(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    passed = Passed(monkeypatch)
    chosen = np.array([[number] for number in [*range(EXPERTS), 39, 39]], np.int32)
    expected = resolved(path, chosen, "1GiB")
    assert not passed.places, "what fits the memory is left alone"
    assert resolved(path, chosen, "600KiB").tobytes() == expected.tobytes()
    assert passed.numbers(path) == [*range(STAYING, EXPERTS)], "39 is chosen more often than what stayed"


def test_a_choice_of_more_than_there_is_room_for_passes_in_part(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    passed = Passed(monkeypatch)
    chosen = np.array([[number] for number in range(EXPERTS)], np.int32)
    expected = resolved(path, chosen, "1GiB")
    assert resolved(path, chosen, "600KiB", batch_bytes=None).tobytes() == expected.tobytes()
    # Those that pass have seven places of 149 KiB, with their last pages.
    assert passed.numbers(path) == [*range(STAYING, STAYING + 7)]


@pytest.mark.parametrize("device", ["cpu", "numpy"])
def test_products_wait_for_what_passes(path: Path, monkeypatch: pytest.MonkeyPatch, device: str) -> None:
    # No two neighbours follow each other: the page that they share shows the file again once the first one went.
    order = [*range(STAYING), *range(STAYING, EXPERTS, 2), *range(STAYING + 1, EXPERTS, 2)]
    chosen = np.array([[number] for number in order], np.int32)
    expected = resolved(path, chosen, "1GiB", device)
    Passed(monkeypatch, wrong=True)
    found = resolved(path, chosen, "600KiB", device)
    assert found[:STAYING].tobytes() == expected[:STAYING].tobytes()
    assert not found[STAYING:].any(), "the products read what was read for them"
    monkeypatch.undo()
    assert resolved(path, chosen, "1GiB", device).tobytes() == expected.tobytes(), "the file is shown again"


@pytest.mark.parametrize("files", ["one", "two"])
def test_products_of_the_same_matrices_read_them_once(path: Path, monkeypatch: pytest.MonkeyPatch, files: str) -> None:
    weights = fc.weights(path)
    again = weights if files == "one" else fc.weights(path)
    rng, chosen = np.random.default_rng(5), np.arange(EXPERTS, dtype=np.int32)[:, None]
    x, y = (fc.source(rng.standard_normal((EXPERTS, IN), dtype=np.float32)) for _ in range(2))

    def computed(memory: str, *, other: np.ndarray | None = None) -> bytes:
        c = fc.source(chosen)
        d = c if other is None else fc.source(other)
        made: Any = fc.nn.experts(x, weights["experts"], c) + fc.nn.experts(y, again["experts"], d)
        made = made.sum(axis=1) @ weights["after"]
        strategy = fc.Strategy(batch_bytes=1)
        return np.asarray(made.resolve(device="numpy", memory=memory, progress=False, strategy=strategy)).tobytes()

    passed = Passed(monkeypatch)
    assert computed("600KiB") == computed("1GiB")
    assert passed.numbers(path) == [*range(STAYING, EXPERTS)]
    # Another choice comes before the products of the first one are computed.
    assert computed("600KiB", other=chosen[::-1]) == computed("1GiB", other=chosen[::-1])
    assert len(passed.places) > EXPERTS - STAYING


def test_batches_in_flight_share_the_memory(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    most: dict[int, int] = {}
    plain = OverlaidParts.begin

    def noted(parts: OverlaidParts, *place: Any) -> Any:
        read = plain(parts, *place)
        most[id(parts)] = max(most.get(id(parts), 0), parts.begun)
        return read

    chosen = np.array([[number] for number in range(EXPERTS)], np.int32)
    expected = resolved(path, chosen, "1GiB", "numpy")
    monkeypatch.setattr(OverlaidParts, "begin", noted)
    monkeypatch.setattr(OpenCLBackend, "select", lambda *_args, **_options: DEVICES["gpu", 2])
    assert np.allclose(resolved(path, chosen, "600KiB"), expected, rtol=1e-4, atol=1e-4)
    # Each would keep all that it is asked for if it had all of the memory, and none would pass.
    assert len(most) > 1
    assert sum(most.values()) <= 7, "one of them has as many places; see above"


def test_what_is_no_entry_of_a_file_is_not_chosen(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    passed = Passed(monkeypatch)
    writer = gguf.GGUFWriter(path.with_name("few.gguf"), "none")
    writer.add_tensor("few", np.random.default_rng(6).standard_normal((4, 10 * OUT, IN)).astype(np.float16))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    few = fc.weights(settle(path.with_name("few.gguf")))["few"].astype("float32")
    chosen = fc.source(np.arange(EXPERTS, dtype=np.int32)[:, None])
    x = fc.source(np.ones((EXPERTS, IN), np.float32))
    made = fc.nn.experts(x, fc.reshape(few, (EXPERTS, OUT, IN)), chosen)
    made = made + fc.nn.experts(x, fc.weights(path)["experts"], chosen)

    def computed(memory: str) -> bytes:
        strategy = fc.Strategy(batch_bytes=1)
        return np.asarray(made.resolve(device="numpy", memory=memory, progress=False, strategy=strategy)).tobytes()

    assert computed("800KiB") == computed("2MiB")
    # Entry 39 of four would lie beyond the file.
    assert passed.places
    assert min(passed.numbers(path)) >= 0
    assert max(passed.numbers(path)) < EXPERTS


def test_nothing_passes_where_memory_is_short(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = np.array([[number] for number in range(EXPERTS)], np.int32)
    expected = resolved(path, chosen, "1GiB")
    passed = Passed(monkeypatch)
    spare = iter([1 << 30] * (STAYING + 2))
    monkeypatch.setattr("flowcompute.engine.streams.chosen_matrices.spare_memory_bytes", lambda: next(spare, 1 << 17))
    assert resolved(path, chosen, "600KiB").tobytes() == expected.tobytes()
    assert passed.numbers(path) == [STAYING, STAYING + 1], "a compiler takes the rest"


def test_where_reads_fail_the_cache_reads(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = np.array([[number] for number in range(EXPERTS)], np.int32)
    expected = resolved(path, chosen, "1GiB")
    passed = Passed(monkeypatch, error=OSError(errno.EINVAL, "no such sizes"))
    assert resolved(path, chosen, "600KiB").tobytes() == expected.tobytes()
    assert passed.numbers(path) == [STAYING], "it is tried once"


def test_another_file_in_its_place_is_not_read(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    passed = Passed(monkeypatch)
    weight: Any = fc.weights(path)["experts"]
    other = path.with_suffix(".other")
    other.write_bytes(path.read_bytes())
    other.replace(path)
    before = os.listdir("/proc/self/fd")
    with pytest.raises(OSError, match="Stale"):
        weight.file.open_direct()
    assert not passed.places

    def refuse(files: Files, handle: int) -> os.stat_result:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(Files, "status", refuse)
    with pytest.raises(OSError, match="Input/output"):
        weight.file.open_direct()
    assert os.listdir("/proc/self/fd") == before


def test_no_reads_of_a_product_are_lost(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    weight: Any = fc.weights(path)["experts"]
    free, begun, ended, plain = threading.Event(), list[int](), list[int](), Files.read_direct

    def slow(files: Files, handle: int, buffer: memoryview, offset: int) -> int:
        begun.append(offset)
        if begun[0] == offset:
            free.wait()
        ended.append(plain(files, handle, buffer, offset))
        return ended[-1]

    monkeypatch.setattr(Files, "read_direct", slow)
    passing = PassingMatrices([weight], 8 * SIZE)
    passing.begin_choice(2)
    threading.Timer(0.1, free.set).start()
    for number in (3, 7):
        assert passing.add(weight, number)
        passing.begin(weight)
    passing.wait(weight)
    assert len(ended) == 2
    passing.close()


def test_what_an_error_has_left_is_not_read(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    passed = Passed(monkeypatch)
    weight: Any = fc.weights(path)["experts"]
    passing = PassingMatrices([weight], 8 * SIZE)
    for number in (3, 7):
        passing.begin_choice(1)
        assert passing.add(weight, number)
    passing.begin(weight)
    passing.close()
    assert passed.numbers(path) == [7]


@pytest.mark.parametrize("kind", ["stop", "close"])
def test_reads_that_an_interrupt_has_left_end_first(path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    weight: Any = fc.weights(path)["experts"]
    expected = np.array(weight.value)
    begun, ended, plain, close = threading.Event(), threading.Event(), Files.read_direct, ThreadPool.close

    def slow(files: Files, handle: int, buffer: memoryview, offset: int) -> int:
        begun.set()
        ended.wait()
        return plain(files, handle, buffer, offset)

    def closing(pool: ThreadPool) -> None:
        ended.set()
        close(pool)

    monkeypatch.setattr(Files, "read_direct", slow)
    monkeypatch.setattr(ThreadPool, "close", closing)
    passing = PassingMatrices([weight], 4 * SIZE)
    passing.begin_choice(1)
    assert passing.add(weight, 3)
    # The interrupt comes before what was begun is noted.
    monkeypatch.setattr(passing, "_pending", Forgetful())
    passing.begin(weight)
    begun.wait()
    getattr(passing, kind)()
    passing.close()
    assert np.array_equal(weight.value, expected)


class Forgetful(dict[int, Any]):
    """A dict that keeps nothing."""

    def __setitem__(self, key: int, value: object) -> None:
        pass
