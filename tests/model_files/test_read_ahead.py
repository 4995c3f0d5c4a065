"""Matrices that are larger than memory are read from their file when they are chosen, and nothing else is.

Here they are read by the system's cache, as where there is no way past it; see `test_passing_matrices`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest

import flowcompute as fc
from flowcompute.files import Files
from flowcompute.model_files import Weight
from tests.model_files.files import settle

EXPERTS, OUT, IN = 40, 32, 128
SIZE = OUT * IN * 4


@pytest.fixture(autouse=True)
def no_way_past_the_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: Files, size: int) -> int:
        raise OSError("there is none")

    monkeypatch.setattr(Files, "open_memory", refuse)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    rng = np.random.default_rng(4)
    made = {
        "experts": rng.standard_normal((EXPERTS, OUT, IN), dtype=np.float32),
        "after": rng.standard_normal((OUT, OUT), dtype=np.float32),
    }
    writer = gguf.GGUFWriter(tmp_path / "weights.gguf", "none")
    for name, one in made.items():
        writer.add_tensor(name, one)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return settle(tmp_path / "weights.gguf")


def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """Note what the system is told to read."""
    found: list[tuple[int, int]] = []
    plain = Files.read_ahead

    def noted(self: Files, mapping: Any, begin: int, end: int) -> None:
        found.append((begin, end))
        plain(self, mapping, begin, end)

    monkeypatch.setattr(Files, "read_ahead", noted)
    return found


def resolved(path: Path, chosen: np.ndarray, memory: str) -> tuple[np.ndarray, Any]:
    weights = fc.weights(path)
    x = fc.source(np.random.default_rng(5).standard_normal((len(chosen), IN), dtype=np.float32))
    made = fc.nn.experts(x, weights["experts"], fc.source(chosen)).sum(axis=1) @ weights["after"]
    return made.resolve(device="cpu", memory=memory, progress=False), weights


def test_chosen_matrices_are_read_ahead(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = np.array([[3, -1], [3, 17]], np.int32)
    found = asked(monkeypatch)
    expected, _ = resolved(path, chosen, "1GiB")
    assert not found, "what fits the memory is left alone"
    result, weights = resolved(path, chosen, "600KiB")
    assert result.tobytes() == expected.tobytes()
    begins = {name: weights.raw(name).tensor.offset for name in weights}
    parts = {(begins["experts"] + one * SIZE, begins["experts"] + (one + 1) * SIZE) for one in (3, 17, EXPERTS - 1)}
    assert set(found) == {*parts, (begins["after"], begins["after"] + OUT * OUT * 4)}


def test_a_batch_that_chooses_much_is_not_read_ahead(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("flowcompute.engine.streams.chosen_matrices.MOST_BYTES", 3 * SIZE)
    found = asked(monkeypatch)
    resolved(path, np.array([[0, 1, 2, 3]], np.int32), "600KiB")
    assert [end - begin for begin, end in found] == [OUT * OUT * 4]
    found.clear()
    resolved(path, np.array([[0, 1, 2, 2]], np.int32), "600KiB")
    assert [end - begin for begin, end in found] == [SIZE] * 3 + [OUT * OUT * 4]
    found.clear()
    resolved(path, np.zeros((0, 2), np.int32), "600KiB")
    assert not found


def let_go_by(
    path: Path, monkeypatch: pytest.MonkeyPatch, chosen: np.ndarray, memory: str, cached: set[int]
) -> tuple[list[int], bytes]:
    """Resolve with one record a batch; numbers of matrices that the system is told to forget, and the answer."""
    begins = fc.weights(path).raw("experts").tensor.offset
    found: list[int] = []
    plain = Files.let_go

    def noted(self: Files, handle: int, begin: int, end: int) -> None:
        assert end - begin == SIZE
        found.append((begin - begins) // SIZE)
        plain(self, handle, begin, end)

    def is_cached(mapping: Any, begin: int, end: int) -> bool:
        return (begin - begins) // SIZE in cached

    monkeypatch.setattr(Files, "let_go", noted)
    monkeypatch.setattr("flowcompute.model_files.weight.is_cached", is_cached)
    weights = fc.weights(path)
    x = fc.source(np.random.default_rng(5).standard_normal((len(chosen), IN), dtype=np.float32))
    made = fc.nn.experts(x, weights["experts"], fc.source(chosen)).sum(axis=1) @ weights["after"]
    answer = made.resolve(device="cpu", memory=memory, progress=False, strategy=fc.Strategy(batch_bytes=1))
    return found, np.asarray(answer).tobytes()


def test_of_equals_the_oldest_matrices_leave_the_cache(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # 600 KiB less what comes after them hold 37 matrices.
    chosen = np.array([[number] for number in [*range(30), 2, *range(30, 40)]], np.int32)
    found, answer = let_go_by(path, monkeypatch, chosen, "600KiB", set())
    assert found[:3] == [0, 1, 3], "2 was chosen once more"
    assert sorted(found) == list(range(EXPERTS)), "all go at the end, each of them once"
    monkeypatch.undo()
    kept, expected = let_go_by(path, monkeypatch, chosen, "1GiB", set())
    assert not kept, "what fits the memory stays"
    assert answer == expected


def test_a_matrix_that_is_chosen_often_outlives_newer_ones(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = np.array([[number] for number in [5, 5, 5, *range(6, 40), *range(5)]], np.int32)
    found, _ = let_go_by(path, monkeypatch, chosen, "600KiB", set())
    assert found[:4] == [6, 7, 8, 9], "5 is older"
    assert sorted(found) == list(range(EXPERTS))


def test_counts_of_long_ago_fade(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = np.array([[number] for number in [5] * 40 + [*range(6, 40), *range(5)] * 12], np.int32)
    found, _ = let_go_by(path, monkeypatch, chosen, "600KiB", set())
    assert 5 in found[: len(found) - EXPERTS], "it went before the end"


def test_the_disk_reads_while_matrices_go(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    events: list[str] = []
    for name in ("read_ahead", "let_go"):
        plain = getattr(Files, name)
        monkeypatch.setattr(
            Files, name, lambda self, *places, name=name, plain=plain: (events.append(name), plain(self, *places))[1]
        )
    monkeypatch.setattr("flowcompute.model_files.weight.is_cached", lambda *place: False)
    weights = fc.weights(path)
    chosen = np.arange(EXPERTS, dtype=np.int32)[:, None]
    x = fc.source(np.ones((EXPERTS, IN), np.float32))
    made = fc.nn.experts(x, weights["experts"], fc.source(chosen)).sum(axis=1)
    made.resolve(device="cpu", memory="600KiB", progress=False, strategy=fc.Strategy(batch_bytes=1))
    # 600 KiB hold 37, and one of them is that of the next choice.
    assert events[:39] == ["read_ahead"] * 37 + ["let_go", "read_ahead"]
    assert events.count("let_go") == EXPERTS


def test_matrices_that_were_cached_stay_in_the_cache(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = np.arange(EXPERTS, dtype=np.int32)[:, None]
    found, _ = let_go_by(path, monkeypatch, chosen, "600KiB", {0, 7, 39})
    assert sorted(found) == sorted({*range(EXPERTS)} - {0, 7, 39})


def test_matrices_of_a_batch_stay_until_it_is_computed(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = np.stack([np.arange(EXPERTS), np.arange(EXPERTS)[::-1]]).astype(np.int32)
    monkeypatch.setattr("flowcompute.engine.streams.chosen_matrices.MOST_BYTES", 1 << 30)
    found, _ = let_go_by(path, monkeypatch, chosen, "600KiB", set())
    assert sorted(found) == list(range(EXPERTS)), "the batch is larger than the memory: all go at its end"


def test_a_file_that_is_gone_has_nothing_to_let_go(path: Path) -> None:
    weight = fc.weights(path)["experts"]
    assert isinstance(weight, Weight)
    expected = np.array(weight.value[3])
    path.unlink()
    weight.let_go(3)
    assert np.array_equal(weight.value[3], expected)


@pytest.mark.parametrize("kind", ["F16", "BF16"])
def test_chosen_half_matrices_alone_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    rng = np.random.default_rng(6)
    drawn = rng.standard_normal((EXPERTS, OUT, IN), dtype=np.float32)
    writer = gguf.GGUFWriter(tmp_path / "halves.gguf", "none")
    type_ = gguf.GGMLQuantizationType[kind]
    writer.add_tensor("experts", gguf.quants.quantize(drawn, type_), raw_dtype=type_)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    weights = fc.weights(settle(tmp_path / "halves.gguf"))
    begin = weights.raw("experts").tensor.offset
    rows = rng.standard_normal((2, IN), dtype=np.float32)
    found = asked(monkeypatch)
    made = fc.nn.experts(fc.source(rows), weights["experts"].astype("float32"), fc.source(np.array([[3], [17]])))
    got = made.resolve(device="cpu", memory="300KiB", progress=False)
    assert set(found) == {(begin + one * SIZE // 2, begin + (one + 1) * SIZE // 2) for one in (3, 17)}
    stored = gguf.quants.dequantize(gguf.quants.quantize(drawn, type_), type_)
    wanted = np.stack([stored[one] @ row for one, row in zip((3, 17), rows, strict=True)])[:, None]
    assert np.allclose(np.asarray(got), wanted, rtol=1e-4, atol=1e-4)
