"""Matrices that are larger than memory are read from their file when they are chosen, and nothing else is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest

import flowcompute as fc
from flowcompute.files import Files
from tests.model_files.files import settle

EXPERTS, OUT, IN = 40, 32, 128
SIZE = OUT * IN * 4


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
