"""Canonical folds of ranges of records, merged: the bits of one fold over all of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flowcompute.engine.accumulators.table import make_fold
from flowcompute.engine.folds import fold
from flowcompute.engine.folds.accumulator import Accumulator
from flowcompute.engine.folds.fold import Fold
from flowcompute.ir.fold_spec import CANONICAL_FOLDS, FoldSpec
from flowcompute.spec import BOOL, FLOAT32, INT64

OPS = sorted(CANONICAL_FOLDS)
LENGTHS = st.sampled_from([1, 2, 15, 16, 17, 1023, 1024, 1025, 3000, 5000, 9000])


def fold_of(op: str, item: tuple[int, ...]) -> FoldSpec:
    dtype = BOOL if op in ("any", "all") else FLOAT32
    result = INT64 if op.startswith("arg") else dtype
    return FoldSpec(op, dtype, item, result, item, inputs=2 if op == "vecdot" else 1)


def records_of(spec: FoldSpec, length: int, seed: int) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    if spec.dtype == BOOL:
        return [rng.random((length, *spec.item)) < 0.001]
    values = rng.standard_normal((length, *spec.item)).astype(FLOAT32)
    return [1 + values / 100 if spec.op == "prod" else values.round(3) for _ in range(spec.inputs)]


def pushed(spec: FoldSpec, start: int, records: list[np.ndarray]) -> Accumulator:
    accumulator = make_fold(spec, start)
    half = len(records[0]) // 3
    accumulator.push_records([array[:half] for array in records])
    accumulator.push_records([array[half:] for array in records])
    return accumulator


@pytest.mark.parametrize("item", [(), (2, 3), (5000,)], ids=str)
@pytest.mark.parametrize("op", OPS)
@settings(max_examples=8)
@given(data=st.data(), length=LENGTHS, seed=st.integers(0, 99))
def test_ranges_merged_are_one_fold(
    op: str, item: tuple[int, ...], data: st.DataObject, length: int, seed: int
) -> None:
    length = min(length, 100) if item == (5000,) else length
    spec = fold_of(op, item)
    records = records_of(spec, length, seed)
    want = pushed(spec, 0, records).result().tobytes()
    bounds = [0, *sorted(data.draw(st.lists(st.integers(0, length), min_size=1, max_size=5))), length]
    parts = [
        pushed(spec, start, [array[start:stop] for array in records])
        for start, stop in zip(bounds, bounds[1:], strict=False)
    ]
    while len(parts) > 1:
        position = data.draw(st.integers(0, len(parts) - 2))
        parts[position].merge(parts.pop(position + 1))
    assert parts[0].result().tobytes() == want
    assert parts[0].records == length


def blocks_of(spec: FoldSpec, records: np.ndarray) -> list[np.ndarray]:
    """Sums of blocks as a kernel gives them."""
    return [np.stack([records[i : i + spec.block].sum(axis=0) for i in range(0, len(records), spec.block)])]


@pytest.mark.parametrize("item", [(), (3,)], ids=str)
def test_what_kernels_reduced_is_merged_at_whole_blocks(item: tuple[int, ...]) -> None:
    spec = FoldSpec("sum", INT64, item, INT64, item)
    records = np.random.default_rng(1).integers(0, 100, (5 * spec.block + 7, *item))
    cut = 3 * spec.block
    first, second = make_fold(spec), make_fold(spec, cut)
    first.push_blocks(blocks_of(spec, records[:cut]), cut)
    second.push_blocks(blocks_of(spec, records[cut:]), len(records) - cut)
    assert np.array_equal(second.result(), records[cut:].sum(axis=0))
    first.merge(second)
    assert np.array_equal(first.result(), records.sum(axis=0))
    with pytest.raises(ValueError, match="merged at whole blocks only"):
        first.merge(make_fold(spec, len(records)))
    with pytest.raises(ValueError, match="a block goes on after 7 records, not after 0"):
        first.push_blocks(blocks_of(spec, records[:cut]), cut)


@pytest.mark.parametrize("op", ["sum", "mean", "var", "argmax"])
def test_no_bit_depends_on_how_many_blocks_are_merged_at_a_time(op: str, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = fold_of(op, (6,))
    rng = np.random.default_rng(4)
    parts = [(rng.standard_normal((29, 6)) * 100).astype(dtype) for dtype in spec.parts()]
    found = []
    for together in (fold.TOGETHER, 1, 18, 100):
        monkeypatch.setattr(fold, "TOGETHER", together)
        made = make_fold(spec)
        for part in (slice(0, 11), slice(11, 29)):
            made.push_open_blocks([array[part] for array in parts], 0, (part.stop - part.start) * spec.block)
        found.append(made.result().tobytes())
    assert len(set(found)) == 1


def test_open_blocks_go_on() -> None:
    spec = FoldSpec("sum", INT64, (3,), INT64, (3,))
    records = np.random.default_rng(1).integers(0, 100, (2 * spec.block, 3))
    begun = make_fold(spec)
    begun.push_open_blocks([records[:10].sum(axis=0)[None]], 0, 10)
    assert np.array_equal(begun.result(), records[:10].sum(axis=0))
    twin: Any = make_fold(spec)
    twin.restore(begun.snapshot())
    assert np.array_equal(twin.open_accumulators[0], records[:10].sum(axis=0))
    twin.push_open_blocks(blocks_of(spec, records), 10, len(records) - 10)
    assert twin.open_accumulators is None
    assert np.array_equal(twin.result(), records.sum(axis=0))


def test_folds_of_other_specs_are_not_merged() -> None:
    fold = Fold(fold_of("sum", ()))
    for other in (fold_of("max", ()), fold_of("sum", (1,))):
        with pytest.raises(ValueError, match="states of different folds"):
            fold.merge(make_fold(other))


@pytest.mark.parametrize("item", [(), (2, 3)], ids=str)
@pytest.mark.parametrize("op", OPS)
@settings(max_examples=8)
@given(lots=st.integers(1, 5), length=st.sampled_from([1, 2, 16, 17, 100, 128]), seed=st.integers(0, 99))
def test_lots_that_are_folded_together_have_the_bits_of_each_alone(
    op: str, item: tuple[int, ...], lots: int, length: int, seed: int
) -> None:
    spec = fold_of(op, item)
    several = [records_of(spec, length, seed + lot) for lot in range(lots)]
    accumulator = make_fold(spec)
    assert isinstance(accumulator, Fold)
    made = accumulator.values_of(several)
    assert made is not None
    for value, records in zip(made, several, strict=True):
        alone = accumulator.value_of(records)
        assert alone is not None
        assert (value.dtype, value.shape) == (alone.dtype, alone.shape)
        assert value.tobytes() == alone.tobytes()
