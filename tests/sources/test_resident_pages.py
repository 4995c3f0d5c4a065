"""Pages of a mapped file that lie behind the reader are let go: memory that `top` shows stays flat."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

import flowcompute as fc
from flowcompute.sources.file_source import StoredReader

SIZE = 96 << 20
ITEM = 1 << 16

pytestmark = pytest.mark.skipif(not os.path.exists("/proc/self/smaps"), reason="the system does not show pages")


def resident_bytes(path: Path) -> int:
    """Bytes of this file that are mapped into this process now."""
    found, ours = 0, False
    with open("/proc/self/smaps") as lines:
        for line in lines:
            if "-" in line.split(" ", 1)[0]:
                ours = line.rstrip().endswith(str(path))
            elif ours and line.startswith("Rss:"):
                found += int(line.split()[1]) << 10
    return found


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "x.npy"
    np.save(path, np.arange(SIZE // 8, dtype=np.int64).reshape(-1, ITEM // 8))
    os.utime(path, (0, 0))
    return path


@pytest.mark.parametrize("items", [1, 7, 64])
def test_what_lies_behind_the_reader_is_let_go(path: Path, items: int) -> None:
    reader = fc.open(path).open()
    assert isinstance(reader, StoredReader)
    total, most, views = 0, 0, []
    while len(view := reader.view(items)):
        views.append(view)
        total += int(view.sum())
        if reader.position % 64 < items:
            most = max(most, resident_bytes(path))
    # The system maps some pages around each that is looked at.
    assert most <= (24 << 20) + 5 * items * ITEM
    assert total == sum(range(SIZE // 8))
    # Views of pages that were let go show what they showed.
    assert all(int(view[0, 0]) == index * items * ITEM // 8 for index, view in enumerate(views))
    reader.close()


def test_a_run_leaves_little_of_the_file_mapped(path: Path) -> None:
    seen: list[int] = []
    x = fc.open(path)
    value = x.max().resolve(
        memory="8MiB",
        device="numpy",
        strategy=fc.Strategy(input="mapped", batch_bytes=1 << 20),
        on_batch=lambda run: seen.append(resident_bytes(path)),
    )
    assert value == SIZE // 8 - 1
    assert len(seen) > 10
    assert max(seen) <= 40 << 20
