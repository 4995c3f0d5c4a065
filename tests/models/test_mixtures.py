"""Whole mixtures of experts that are larger than memory: of their experts they read what tokens choose."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flowcompute as fc
from flowcompute.files import Files
from tests.model_files.files import settle
from tests.models.architecture_files import write_architecture
from tests.models.exact import exact_logits
from tests.support.slow import slow_but

TOKENS = [5, 77, 130, 9, 200, 301]
EXPERTS, USED, LAYERS, PARTS = 40, 2, 2, 3


@pytest.mark.compiles
@pytest.mark.parametrize("kind", slow_but(["BF16"], ["F32", "F16", "BF16", "Q8_0"]))
def test_experts_of_any_type_are_read_when_they_are_chosen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    path = write_architecture(tmp_path / "model.gguf", "mixtral", kind=kind, metadata={"expert_count": EXPERTS})
    weights = fc.weights(settle(path))
    places = [weights.raw(name).tensor for name in weights if "_exps." in name]
    size = sum(one.size_bytes for one in places)
    found: list[tuple[int, int]] = []
    plain = Files.read_ahead

    def noted(self: Files, mapping: Any, begin: int, end: int) -> None:
        found.append((begin, end))
        plain(self, mapping, begin, end)

    monkeypatch.setattr(Files, "read_ahead", noted)
    logits = fc.models.load(path).logits(fc.source(np.array(TOKENS, np.int32)))

    def scores(memory: int) -> np.ndarray:
        strategy = fc.Strategy(batch_bytes=1)
        return np.asarray(logits.resolve(device="cpu", memory=memory, progress=False, strategy=strategy))

    little = scores(size * 9 // 10)
    np.testing.assert_allclose(little, exact_logits(path, TOKENS), atol=2e-4)
    # Each as a whole: the other parts of its expert are read as often.
    read: Counter[int] = Counter()
    for begin, end in found:
        own = [one for one in places if one.offset <= begin < one.offset + one.size_bytes]
        read.update(one.offset for one in own)
        assert all(
            end - begin == one.size_bytes // EXPERTS and (begin - one.offset) % (end - begin) == 0 for one in own
        )
    assert read == {one.offset: USED * len(TOKENS) for one in places}
    assert len(read) == LAYERS * PARTS
    found.clear()
    assert scores(1 << 30).tobytes() == little.tobytes()
    assert not found, "what fits the memory is left alone"
