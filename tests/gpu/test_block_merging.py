"""Blocks of folds of columns that kernels merge have the bits that the host's merging gives."""

from __future__ import annotations

import numpy as np
import pytest

import flowcompute as fc
from flowcompute.gpu.run.folds import block_merging
from flowcompute.ir import FoldSpec, largest_nodes
from flowcompute.ir.reduction_order import column_block

COLUMNS = 67
BLOCK = column_block(COLUMNS)


def test_largest_nodes() -> None:
    for first in range(20):
        for count in range(40):
            nodes = list(largest_nodes(first, count))
            places = [place for place, _ in nodes]
            assert places == [sum(1 << level for _, level in nodes[:i]) for i in range(len(nodes))]
            assert sum(1 << level for _, level in nodes) == count
            assert all((first + place) % (1 << level) == 0 for place, level in nodes)
    assert list(largest_nodes(0, 256)) == [(0, 8)]
    assert list(largest_nodes(3, 7)) == [(0, 0), (1, 2), (5, 1)]


@pytest.mark.parametrize("blocks_in_batch", [64, 5])
def test_the_same_bits(monkeypatch: pytest.MonkeyPatch, blocks_in_batch: int) -> None:
    rng = np.random.default_rng(5)
    numbers = (rng.standard_normal((BLOCK * 21 + 100, COLUMNS)) * 100 + 7).astype(np.float32)
    numbers[BLOCK * 9, 3] = np.nan
    numbers[:, 5] = -0.0
    x = fc.source(numbers)
    roots = (x.mean(axis=0), x.var(axis=0), x.argmin(axis=0), x.astype(np.int32).sum(axis=0))
    strategy = fc.Strategy(batch_bytes=blocks_in_batch * BLOCK * COLUMNS * 4)
    monkeypatch.setattr(block_merging, "MANY_NUMBERS", 0)
    monkeypatch.setattr(block_merging, "RUN_NUMBERS", 1)
    run = fc.run(*roots, device="cpu", strategy=strategy)
    monkeypatch.setattr(block_merging, "RUN_NUMBERS", 1 << 62)
    plain = fc.run(*roots, device="cpu", strategy=strategy)
    assert run.launches > plain.launches
    for own, other, right in zip(run.values, plain.values, fc.resolve(*roots, device="numpy"), strict=True):
        assert own.tobytes() == other.tobytes() == right.tobytes()


def test_a_kernel_of_an_earlier_run_merges_from_the_first_batch_on(monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = np.random.default_rng(6).standard_normal((BLOCK * 16, COLUMNS)).astype(np.float32)

    def run() -> fc.Run:
        x = fc.source(numbers)
        strategy = fc.Strategy(batch_bytes=8 * BLOCK * COLUMNS * 4)
        return fc.run(x.mean(axis=0), x.var(axis=0), device="cpu", strategy=strategy)

    monkeypatch.setattr(block_merging, "RUN_NUMBERS", 1)
    block_merging.MERGES.clear()
    # The first of two batches is merged by the host.
    monkeypatch.setattr(block_merging, "MANY_NUMBERS", 16 * COLUMNS)
    first, second = run(), run()
    assert second.launches - first.launches == 2, "a node of each fold, in the first batch"
    monkeypatch.setattr(block_merging, "MANY_NUMBERS", 1 << 62)
    assert run().launches == second.launches
    block_merging.MERGES.clear()
    assert run().launches == second.launches - 4
    for one, other in zip(first.values, second.values, strict=True):
        assert one.tobytes() == other.tobytes()


def test_the_kernels_that_were_used_last_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(block_merging, "_MOST_KERNELS", 2)
    merges = block_merging.LoweredMerges()
    float32 = np.dtype(np.float32)
    specs = [FoldSpec(op, float32, (COLUMNS,), float32, (COLUMNS,)) for op in ("sum", "max", "min")]
    first, _, again = (merges.get(spec, 0, 8) for spec in (specs[0], specs[1], specs[0]))
    assert again is first
    merges.get(specs[2], 0, 8)
    assert [(spec, 0, 8) in merges for spec in specs] == [True, False, True]
