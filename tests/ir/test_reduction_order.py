"""The order of reductions: what is described, what NumPy code does, and what folds do however they are cut."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flowcompute.engine.folds.fold import Fold
from flowcompute.ir.fold_spec import FoldSpec
from flowcompute.ir.reduction_order import column_block, fold_block, reduce_rows, row_lanes
from tests.engine import oracle
from tests.properties.cases import cases

OPS = ("sum", "prod", "max", "min", "any", "all", "argmax", "argmin")
LENGTHS = (
    1,
    2,
    3,
    4,
    5,
    7,
    8,
    9,
    16,
    31,
    32,
    33,
    100,
    255,
    256,
    257,
    511,
    512,
    513,
    1000,
    1023,
    1024,
    1025,
    2048,
    3000,
    5121,
)


def dtype_of(op: str, single: bool = True) -> np.dtype:
    return np.dtype(bool if op in ("any", "all") else np.float32 if single else np.int64)


def numbers_of(
    seed: int, op: str, shape: tuple[int, ...], dtype: np.dtype | None = None, special: bool = False
) -> np.ndarray:
    rng = np.random.default_rng(seed)
    dtype = dtype_of(op) if dtype is None else dtype
    if dtype == bool:
        return rng.random(shape) < (0.001 if op == "any" else 0.999)
    if dtype.kind == "i":
        return rng.integers(-5, 6, shape).astype(dtype)
    if op == "prod":
        return (1 + rng.standard_normal(shape) / 30).astype(dtype)
    data = (rng.standard_normal(shape) * np.exp2(rng.integers(-8, 9, shape))).astype(dtype)
    if special:
        odd = np.array([np.nan, -0.0, 0.0, np.inf, 1, 1], dtype)
        data = np.where(rng.random(shape) < 0.02, rng.choice(odd, shape), data).astype(dtype)
    return data


def bits(value: Any) -> bytes:
    """The bits of a result; of NaN only that it is one."""
    array = np.asarray(value)
    return (np.where(np.isnan(array), array.dtype.type(np.nan), array) if array.dtype.kind == "f" else array).tobytes()


@pytest.mark.parametrize("op", OPS)
def test_rows(op: str) -> None:
    with np.errstate(all="ignore"):
        for length in LENGTHS:
            for seed, special in ((length, False), (length + 1, op not in ("any", "all", "prod", "sum"))):
                data = numbers_of(seed, op, (2, length), special=special)
                index = np.broadcast_to(np.arange(length), data.shape)
                parts = reduce_rows(op, (data, index) if op.startswith("arg") else (data,))
                for line in (0, 1):
                    want = oracle.row(op, data[line])
                    got = tuple(part[line] for part in parts)
                    if op.startswith("arg"):
                        assert (bits(got[0]), got[1]) == (bits(data.dtype.type(want[0])), want[1]), length
                    else:
                        assert bits(got[0]) == bits(data.dtype.type(want)), length


def test_lanes_and_blocks() -> None:
    assert [row_lanes(length) for length in (0, 1, 2, 3, 4, 5, 8, 9, 511, 512, 513, 10**9)] == [
        1, 1, 1, 2, 2, 4, 4, 8, 256, 256, 256, 256,
    ]  # fmt: skip
    for length in range(1, 1025):
        assert math.ceil(length / row_lanes(length)) <= 4
    for numbers in (1, 2, 3, 15, 16, 17, 100, 4096, 4097, 10**7):
        block = column_block(numbers)
        assert block & (block - 1) == 0
        assert 16 <= block <= 4096
        assert block == 16 or block == 4096 or block * numbers <= 1 << 16 < 2 * block * numbers
    assert fold_block(1) == 1024
    assert fold_block(0) == 4096


def test_pairwise_sums_stay_close() -> None:
    """The error of a long sum of float32 stays within a few dozen roundings of its largest partial sums."""
    data = numbers_of(11, "sum", (1, 100_000))
    exact = sum(Fraction(float(number)) for number in data[0])
    size = sum(Fraction(float(abs(number))) for number in data[0])
    (total,) = reduce_rows("sum", (data,))
    assert abs(Fraction(float(total[0])) - exact) <= size * Fraction(32, 2**24)


# -- folds ------------------------------------------------------------------------------------------


def spec_of(op: str, item: tuple[int, ...], dtype: np.dtype, **more: Any) -> FoldSpec:
    result = np.dtype(np.int64) if op.startswith("arg") else dtype
    return FoldSpec(op, dtype, item, result, item, **more)


def cut(draw: Callable[[st.SearchStrategy[list[int]]], list[int]], length: int) -> list[int]:
    """Where a stream is cut into batches, empty ones among them."""
    return [0, *sorted(draw(st.lists(st.integers(0, length), max_size=6))), length]


@st.composite
def streams(draw: st.DrawFn, most: int = 40_000) -> tuple[str, np.ndarray, list[int]]:
    op = draw(st.sampled_from(OPS))
    item = draw(st.sampled_from([(), (1,), (2,), (3,), (2, 2), (40,), (5000,)]))
    numbers = math.prod(item)
    length = draw(st.sampled_from([1, 2, 15, 16, 17, 40, 1023, 1024, 1025, 2100, 3500]))
    if numbers * length > most:
        length = 40 if numbers < 100 else 17
    single = draw(st.booleans())
    special = draw(st.booleans()) and op in ("max", "min", "argmax", "argmin") and single
    data = numbers_of(draw(st.integers(0, 99)), op, (length, *item), dtype_of(op, single), special)
    return op, data, cut(draw, length)


def expected(op: str, data: np.ndarray) -> np.ndarray:
    item = data.shape[1:]
    flat = data.reshape(len(data), -1)
    with np.errstate(all="ignore"):
        if flat.shape[1] == 1:
            results = [oracle.stream_of_numbers(op, flat[:, 0])]
        else:
            results = [oracle.column(op, flat[:, i], fold_block(flat.shape[1])) for i in _few(flat.shape[1])]
    values = [result[1] if op.startswith("arg") else result for result in results]
    dtype = np.dtype(np.int64) if op.startswith("arg") else data.dtype
    return np.array(values).astype(dtype).reshape(item) if flat.shape[1] <= 40 else np.array(values).astype(dtype)


def _few(columns: int) -> list[int]:
    """All columns, or some of very many."""
    return list(range(columns)) if columns <= 40 else [0, 1, 777, columns - 1]


@cases(150)
@given(streams())
def test_a_fold_keeps_its_order_however_it_is_cut(case: tuple[str, np.ndarray, list[int]]) -> None:
    op, data, boundaries = case
    fold = Fold(spec_of(op, data.shape[1:], data.dtype))
    for start, stop in zip(boundaries, boundaries[1:], strict=False):
        fold.push_records([data[start:stop]])
    result = fold.result()
    assert result.shape == data.shape[1:]
    few = result if result.size <= 40 else result.reshape(-1)[_few(result.size)]
    assert bits(few) == bits(expected(op, data))
    assert bits(fold.result()) == bits(result), "asking for the result changes it"


@cases(100)
@given(streams(most=5000), st.data())
def test_blocks_that_a_kernel_has_reduced_merge_alike(
    case: tuple[str, np.ndarray, list[int]], data: st.DataObject
) -> None:
    """Whole blocks and the last one, or accumulators of blocks that a batch cuts through."""
    op, records, boundaries = case
    item = records.shape[1:]
    spec = spec_of(op, item, records.dtype)
    whole, fold = Fold(spec), Fold(spec)
    whole.push_records([records])
    flat = records.reshape(len(records), -1)
    if spec.numbers == 1 or data.draw(st.booleans(), label="whole blocks"):
        places = sorted({min(place // spec.block * spec.block, len(flat)) for place in boundaries} | {len(flat)})
        for start, stop in zip(places, places[1:], strict=False):
            fold.push_blocks(_blocks(spec, flat, start, stop), stop - start)
    else:
        for start, stop in zip(boundaries, boundaries[1:], strict=False):
            if stop > start:
                phase = start % spec.block
                # What a kernel that takes over the accumulators has: the block's records from its beginning.
                fold.push_open_blocks(_blocks(spec, flat, start - phase, stop), phase, stop - start)
    assert bits(fold.result()) == bits(whole.result())
    assert fold.records == len(records)


def _blocks(spec: FoldSpec, flat: np.ndarray, start: int, stop: int) -> list[np.ndarray]:
    """What a kernel leaves of the blocks of these records, computed number by number."""
    parts: list[list[Any]] = []
    pairs, step = spec.op.startswith("arg"), oracle.step_of(spec.op)
    in_lanes = spec.numbers == 1
    with np.errstate(all="ignore"):
        for begin in range(start, stop, spec.block):
            rows = flat[begin : min(stop, begin + spec.block)]
            index = np.arange(begin, begin + len(rows))
            columns = []
            for column in rows.T:
                listed: list[Any] = list(zip(column, index, strict=True)) if pairs else list(column)
                result = oracle.block(spec.op, listed, 256, rows.dtype) if in_lanes else functools.reduce(step, listed)
                columns.append(result if pairs else (result,))
            parts.append(columns)
    arrays = [
        np.array([[column[part] for column in columns] for columns in parts]) for part in range(len(spec.parts()))
    ]
    return [array.astype(dtype).reshape(-1, *spec.item) for array, dtype in zip(arrays, spec.parts(), strict=True)]


@cases(60)
@given(streams(), st.data())
def test_a_snapshot_continues_with_the_same_bits(case: tuple[str, np.ndarray, list[int]], data: st.DataObject) -> None:
    op, records, boundaries = case
    whole = Fold(spec_of(op, records.shape[1:], records.dtype))
    whole.push_records([records])
    stop_at = data.draw(st.integers(0, len(boundaries) - 1), label="freeze after")
    fold = Fold(whole.spec)
    for number, (start, stop) in enumerate(zip(boundaries, boundaries[1:], strict=False)):
        fold.push_records([records[start:stop]])
        if number == stop_at:
            state = fold.snapshot()
            fold.push_records([records[:3]])  # what comes after a snapshot does not change it
            fold.result()
            fold = Fold(whole.spec)
            fold.restore(state)
    assert bits(fold.result()) == bits(whole.result())


def test_a_snapshot_is_plain_data() -> None:
    fold = Fold(spec_of("argmax", (3,), np.dtype(np.float32)))
    fold.push_records([np.ones((5000, 3), np.float32)])

    def check(value: Any) -> None:
        if isinstance(value, dict):
            assert all(isinstance(key, str) for key in value)
            for inner in value.values():
                check(inner)
        elif isinstance(value, list):
            for inner in value:
                check(inner)
        else:
            assert value is None or isinstance(value, int | np.ndarray)

    check(fold.snapshot())


# -- means and variances ----------------------------------------------------------------------------


@cases(60)
@given(st.integers(1, 4000), st.sampled_from([(), (2,), (7,)]), st.sampled_from([0.0, 1.0, 1e4, -3e6]), st.data())
def test_moments_are_close_and_do_not_depend_on_cuts(
    length: int, item: tuple[int, ...], shift: float, data: st.DataObject
) -> None:
    rng = np.random.default_rng(length)
    records = (shift + rng.standard_normal((length, *item))).astype(np.float32)
    correction = 0.0 if length < 3 else 1.0
    exact = records.astype(np.float64).reshape(length, -1)
    places = cut(data.draw, length)
    for op in ("mean", "var"):
        spec = spec_of(op, item, np.dtype(np.float32), correction=correction if op == "var" else 0.0)
        whole, parts = Fold(spec), Fold(spec)
        whole.push_records([records])
        for start, stop in zip(places, places[1:], strict=False):
            parts.push_records([records[start:stop]])
        assert bits(whole.result()) == bits(parts.result())
        want = exact.mean(0) if op == "mean" else exact.var(0, ddof=int(correction)) if length > correction else None
        assert want is not None
        spread = np.ptp(exact, axis=0)
        # Float32 numbers summed in blocks; the shift keeps the variance free of the mean's size.
        room = 2.0**-24 * (600 * np.abs(exact).max(0) if op == "mean" else 2000 * spread**2)
        assert (np.abs(whole.result().reshape(-1) - want) <= room + 1e-30).all()


def test_a_variance_far_from_zero_keeps_its_digits() -> None:
    records = (1e7 + np.tile([0, 1, 2, 3], 5000)).astype(np.float32)
    fold = Fold(spec_of("var", (), np.dtype(np.float32)))
    fold.push_records([records])
    assert fold.result() == np.float32(1.25)


def test_a_variance_of_items_adds_what_is_inside_them() -> None:
    """Total variance from means of items and variances inside them."""
    rng = np.random.default_rng(0)
    data = rng.standard_normal((300, 8))
    fold = Fold(FoldSpec("var", np.dtype(np.float64), (), np.dtype(np.float64), (), inner=8, inputs=2))
    fold.push_records([data.mean(1), data.var(1)])
    assert math.isclose(float(fold.result()), data.var(), rel_tol=1e-12)


def test_folds_of_nothing() -> None:
    empty = {"sum": 0.0, "prod": 1.0, "vecdot": 0.0}
    for op, want in empty.items():
        result = Fold(spec_of(op, (2,), np.dtype(np.float32))).result()
        assert result.tolist() == [want, want]
        assert not np.signbit(result).any()
    for op in ("mean", "var"):
        assert np.isnan(Fold(spec_of(op, (2,), np.dtype(np.float32))).result()).all()
    for op in ("max", "min", "argmax", "argmin"):
        with pytest.raises(ValueError, match="empty stream"):
            Fold(spec_of(op, (2,), np.dtype(np.float32))).result()
    assert not Fold(spec_of("any", (), np.dtype(bool))).result()
    assert Fold(spec_of("all", (), np.dtype(bool))).result()
    nothing = Fold(spec_of("sum", (0, 3), np.dtype(np.float32)))
    nothing.push_records([np.zeros((9, 0, 3), np.float32)])
    assert nothing.result().shape == (0, 3)


def test_integers_wrap_as_in_numpy() -> None:
    records = np.full(3000, 2**62, np.int64)
    fold = Fold(spec_of("sum", (), np.dtype(np.int64)))
    fold.push_records([records])
    with np.errstate(over="ignore"):
        assert fold.result() == records.sum()


def test_arrays_given_to_a_fold_may_be_used_again() -> None:
    buffer = np.ones((10, 2), np.float32)
    fold = Fold(spec_of("sum", (2,), np.dtype(np.float32)))
    fold.push_records([buffer])
    buffer[:] = 100
    assert fold.result().tolist() == [10, 10]
