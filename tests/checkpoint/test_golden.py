"""Checkpoints of every released format stay readable: the folders in golden/ are never written again.

`FLOWCOMPUTE_GOLDEN=write` makes the one of today's format where there is none yet.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from flowcompute.checkpoint.store.encode import encode
from flowcompute.checkpoint.store.envelope import FORMAT
from flowcompute.checkpoint.store.folder import CheckpointFolder
from flowcompute.checkpoint.store.lock import LOCK
from flowcompute.spec import BFLOAT16, SUPPORTED_DTYPES
from tests.checkpoint.scenarios import reproducible
from tests.checkpoint.test_values import same

GOLDEN = Path(__file__).parent / "golden"


def plain() -> dict[str, Any]:
    """A value of every kind, format 1.0."""
    numbers = np.array([0, 1, 2, 3, 100, 127])
    return {
        "none": None,
        "bools": [True, False],
        "integers": [0, -1, 127, 128, -(2**63), 2**64 - 1, 2**64, 2**128 - 1, -(2**127)],
        "floats": [0.0, -0.0, 1.5, float("inf"), float("-inf")],
        "nan": np.array([0x7FF8000000000123]).view(np.float64)[0].item(),
        "text": ["", "ä€𝄞", "\udcff", "x" * 300],
        "bytes": [b"", bytes(range(256))],
        "lists": [[], [[]], [1, [2, [3]]]],
        "maps": {"": {}, "a": {"b": 1}},
        "arrays": {dtype.name: numbers.astype(dtype).reshape(2, 3) for dtype in SUPPORTED_DTYPES},
        "shapes": [np.zeros(()), np.zeros((0,)), np.zeros((2, 0, 3)), np.arange(3.0)],
        "scalars": [np.float32(1.5), np.int8(-3), np.bool_(True), np.uint64(2**64 - 1), ml_dtypes.bfloat16(2)],
        "exact": np.array([0xFFC1], np.uint16).view(BFLOAT16),
    }


def make(path: Path) -> None:
    with reproducible(), CheckpointFolder.create(str(path)) as folder:
        weights = folder.put_blob(np.arange(4, dtype=np.float32))
        folder.set_job({"nodes": [{"op": "source"}, {"op": "constant", "value": weights}]})
        side = folder.side("results-0")
        side.write_at(b"first;", 0)
        folder.commit({"number": 0, "side": side.mark(), "blob": folder.put_blob(np.ones((2, 2)))})
        folder.publish()
        side.write_at(b"second;", 6)
        folder.commit({"plain": plain(), "side": side.mark(), "blob": weights})
        side.write_at(b"never committed", 13)
    (path / LOCK).unlink()


def test_a_checkpoint_of_format_1_is_read(tmp_path: Path) -> None:
    # Resuming writes, and the golden one must stay as it is.
    path = tmp_path / "job"
    shutil.copytree(GOLDEN / "format-1", path)
    with CheckpointFolder.open(str(path)) as folder:
        generation = folder.newest()
        assert (generation.number, generation.created) == (1, 1_700_000_000.5)
        assert folder.token == f"{0:032x}"
        assert same(plain(), generation.body["plain"])
        weights = folder.get_blob(generation.body["blob"])
        assert same(weights, np.arange(4, dtype=np.float32))
        assert folder.job() == {"nodes": [{"op": "source"}, {"op": "constant", "value": generation.body["blob"]}]}
        assert [(one.number, one.newest, one.ok) for one in folder.generations()] == [(0, False, True), (1, True, True)]
        side = folder.side("results-0")
        side.restore(generation.body["side"])
        assert (path / "results-0.side").read_bytes() == b"first;second;"
        assert folder.commit({"next": side.mark()}) == 2


def test_what_is_written_today_is_what_format_1_wrote(tmp_path: Path) -> None:
    if os.environ.get("FLOWCOMPUTE_GOLDEN") == "write" and not (GOLDEN / f"format-{FORMAT[0]}").exists():
        make(GOLDEN / f"format-{FORMAT[0]}")
    assert FORMAT == (1, 0)
    make(tmp_path / "job")
    for made in sorted((tmp_path / "job").iterdir()):
        if not made.name.endswith((".msgpack", "HEAD")):
            assert made.read_bytes() == (GOLDEN / "format-1" / made.name).read_bytes(), made.name
    # Envelopes tell the version of the library; their bodies are the same bytes.
    golden = (GOLDEN / "format-1" / "gen-00000001.msgpack").read_bytes()
    body = encode({"plain": plain()}).data.removeprefix(b"\x81\xa5plain")
    assert body in golden


@pytest.mark.parametrize("folder", sorted(GOLDEN.glob("format-*")), ids=lambda one: one.name)
def test_every_golden_checkpoint_verifies_without_being_touched(folder: Path) -> None:
    with CheckpointFolder.peek(str(folder)) as checkpoint:
        assert all(one.ok for one in checkpoint.generations())
        assert checkpoint.newest().number == 1
