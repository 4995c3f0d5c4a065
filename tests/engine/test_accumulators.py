"""Folds whose state is kept on the host: NumPy's values, and the same bits however records are cut and states merged."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import flowcompute as fc
from flowcompute.engine.accumulators.table import make_fold
from flowcompute.engine.folds.accumulator import Accumulator
from flowcompute.ir.fold_spec import HostFold, host_fold
from flowcompute.ir.reduction_order import SKETCH_RECORDS, product_block
from flowcompute.schedule.memory.fold_bytes import fold_state_bytes
from flowcompute.spec import FLOAT64, INT64, Spec, Stream

SIZES = st.sampled_from([0, 1, 2, 3, 255, 256, 257, 1023, 1024, 1025, 4095, 4096, 4097, 8191, 8193, 20_000, 40_000])
EDGES = np.array([-2.0, -1, -1, 0, 0.25, 1, 1])


@dataclass(frozen=True)
class Case:
    """A fold, what its records are made of, and its meaning."""

    op: str
    items: tuple[tuple[int, ...], ...]
    dtypes: tuple[str, ...]
    result: tuple[tuple[int, ...], str]
    meaning: Callable[..., Any]
    attrs: dict[str, Any] = field(default_factory=dict)
    least: int = 0
    exact: bool = True
    merges_exactly: bool = True
    resident: np.ndarray | None = None

    def spec(self) -> HostFold:
        operands = [
            Spec(np.dtype(dtype), item, Stream(None)) for item, dtype in zip(self.items, self.dtypes, strict=True)
        ]
        if self.resident is not None:
            operands.append(Spec(self.resident.dtype, self.resident.shape))
        return host_fold(self.op, operands, self.attrs, Spec(np.dtype(self.result[1]), self.result[0]))

    def records(self, length: int, seed: int) -> list[np.ndarray]:
        rng = np.random.default_rng(seed)
        made = []
        for item, dtype in zip(self.items, self.dtypes, strict=True):
            if dtype in ("i8", "u1", "i4"):
                made.append(rng.integers(0, 5, (length, *item)).astype(dtype))
            else:
                made.append((rng.standard_normal((length, *item)) * 2 - 0.5).round(3).astype(dtype))
        return made


def by_key(function: Callable[[np.ndarray], np.ndarray], nothing: float) -> Callable[..., np.ndarray]:
    def meaning(x: np.ndarray, keys: np.ndarray) -> np.ndarray:
        rows = [function(x[keys == key]) if (keys == key).any() else np.full(x.shape[1:], nothing) for key in range(6)]
        return np.stack(rows)

    return meaning


def largest(x: np.ndarray) -> np.ndarray:
    return np.argsort(-x.astype("f8"), kind="stable")[:3]


def padded(found: np.ndarray, size: int = 80_000) -> np.ndarray:
    return np.concatenate([found, np.zeros(size - len(found), found.dtype)])


CASES = {
    "products": Case("matmul", ((5,), (3,)), ("f4", "f4"), ((5, 3), "f4"), lambda x, y: x.T @ y, exact=False),
    "product_with_itself": Case("matmul", ((8,),), ("f8",), ((8, 8), "f8"), lambda x: x.T @ x, exact=False),
    "products_of_rows": Case(
        "matmul",
        ((3, 5), (3, 2)),
        ("f4", "f4"),
        ((5, 2), "f4"),
        lambda x, y: np.einsum("ntd,nte->de", x, y),
        exact=False,
    ),
    "products_of_numbers": Case("matmul", ((4,), ()), ("i4", "i4"), ((4,), "i4"), lambda x, y: x.T @ y),
    "cov": Case(
        "cov",
        ((4,),),
        ("f4",),
        ((4, 4), "f8"),
        lambda x: np.cov(x.astype("f8"), rowvar=False, ddof=0),
        {"correction": 0.0},
        least=1,
        exact=False,
    ),
    "corrcoef": Case(
        "corrcoef", ((3,),), ("i4",), ((3, 3), "f8"), lambda x: np.corrcoef(x, rowvar=False), least=255, exact=False
    ),
    "histogram": Case(
        "histogram",
        ((2,),),
        ("f4",),
        ((6,), "i8"),
        lambda x: np.histogram(x.astype("f8"), EDGES)[0],
        {"equal": False},
        resident=EDGES,
    ),
    "equal_bins": Case(
        "histogram",
        ((),),
        ("f8",),
        ((7,), "i8"),
        lambda x: np.histogram(x, 7, (-1.5, 2.25))[0],
        {"equal": True},
        resident=np.histogram_bin_edges(np.empty(0), 7, (-1.5, 2.25)),
    ),
    "bincount": Case("bincount", ((),), ("u1",), ((5,), "i8"), lambda x: np.bincount(x, minlength=5)),
    "segment_sum": Case(
        "segment_sum",
        ((2,), ()),
        ("f4", "i8"),
        ((6, 2), "f4"),
        by_key(lambda x: x.sum(axis=0, dtype="f8"), 0),
        exact=False,
        merges_exactly=False,
    ),
    "segment_sum_of_integers": Case(
        "segment_sum", ((), ()), ("i8", "u1"), ((6,), "i8"), by_key(lambda x: x.sum(axis=0), 0)
    ),
    "segment_mean": Case(
        "segment_mean",
        ((), ()),
        ("f8", "i4"),
        ((6,), "f8"),
        by_key(lambda x: x.mean(axis=0), np.nan),
        exact=False,
        merges_exactly=False,
    ),
    "segment_min": Case(
        "segment_min", ((3,), ()), ("f2", "i4"), ((6, 3), "f2"), by_key(lambda x: x.min(axis=0), np.inf)
    ),
    "segment_max": Case("segment_max", ((), ()), ("i4", "i4"), ((6,), "i4"), by_key(lambda x: x.max(axis=0), -(2**31))),
    "top_k_values": Case("top_k_values", ((),), ("f4",), ((3,), "f4"), lambda x: x[largest(x)], least=3),
    "top_k_indices": Case("top_k_indices", ((),), ("i4",), ((3,), "i8"), largest, least=3),
    "unique_values": Case("unique_values", ((2,),), ("f4",), ((40_000 * 2,), "f4"), lambda x: padded(np.unique(x))),
    "unique_counts": Case(
        "unique_counts", ((),), ("i4",), ((5,), "i8"), lambda x: padded(np.unique(x, return_counts=True)[1], 5)
    ),
    "quantile": Case(
        "quantile",
        ((),),
        ("f4",),
        ((2, 2), "f8"),
        lambda x: np.quantile(x.astype("f8"), [[0, 0.25], [0.5, 1]]) if len(x) <= SKETCH_RECORDS else None,
        {"q": (0.0, 0.25, 0.5, 1.0)},
        least=1,
        exact=False,
    ),
    "first": Case("first", ((2,),), ("i4",), ((2,), "i4"), lambda x: x[0], least=1),
    "last": Case("last", ((),), ("f8",), ((), "f8"), lambda x: x[-1], least=1),
}


def push(case: Case, accumulator: Accumulator, records: Sequence[np.ndarray], boundaries: Sequence[int]) -> Accumulator:
    """Push records cut at these places, from memory that is overwritten afterwards."""
    bounds = [0, *sorted(boundaries), len(records[0])]
    for start, stop in zip(bounds, bounds[1:], strict=False):
        batch = [array[start:stop].copy() for array in records]
        accumulator.push_records([*batch, *([] if case.resident is None else [case.resident])])
        for array in batch:
            array.fill(1)
    return accumulator


def bits(accumulator: Accumulator) -> bytes:
    return accumulator.result().tobytes()


def cuts_of(data: st.DataObject, length: int) -> list[int]:
    return data.draw(st.lists(st.integers(0, length), max_size=6))


@pytest.mark.parametrize("name", CASES)
@settings(max_examples=25)
@given(data=st.data(), length=SIZES, seed=st.integers(0, 99))
def test_any_cut_and_any_merge(name: str, data: st.DataObject, length: int, seed: int) -> None:
    case = CASES[name]
    length = max(length, case.least)
    spec, records = case.spec(), case.records(length, seed)
    whole = push(case, make_fold(spec), records, [])
    value = whole.result()
    assert value.shape == spec.result.shape
    assert value.dtype == spec.result.dtype
    meaning = case.meaning(*records)
    if meaning is not None and case.exact:
        assert np.array_equal(value, meaning, equal_nan=True)
    elif meaning is not None:
        scale = length if case.op in ("matmul", "segment_sum") else 1
        assert np.allclose(value, meaning, rtol=1e-5, atol=1e-6 * (1 + scale), equal_nan=True)

    cut = push(case, make_fold(spec), records, cuts_of(data, length))
    assert bits(cut) == value.tobytes()
    assert bits(cut) == value.tobytes(), "asking changes nothing"

    stop = data.draw(st.integers(0, length))
    before = push(case, make_fold(spec), [array[:stop] for array in records], cuts_of(data, stop))
    thawed = make_fold(spec)
    thawed.restore(before.snapshot())
    assert bits(push(case, thawed, [array[stop:] for array in records], [])) == value.tobytes()

    bounds = [0, *sorted(data.draw(st.lists(st.integers(0, length), min_size=1, max_size=4))), length]
    parts = []
    for start, end in zip(bounds, bounds[1:], strict=False):
        rows = [array[start:end] for array in records]
        part = push(case, make_fold(spec, start), rows, cuts_of(data, end - start))
        copy = make_fold(spec, start)
        copy.restore(part.snapshot())
        parts.append(copy)
    while len(parts) > 1:
        position = data.draw(st.integers(0, len(parts) - 2))
        parts[position].merge(parts.pop(position + 1))
    assert parts[0].records == length
    if case.merges_exactly:
        assert bits(parts[0]) == value.tobytes()
    else:
        assert np.allclose(parts[0].result(), value, rtol=1e-6, atol=1e-9, equal_nan=True)
    assert whole.records == length


# So wide that BLAS shares a block among threads.
WIDE = Case("matmul", ((40,),), ("f8",), ((40, 40), "f8"), lambda x: x.T @ x)


@pytest.mark.parametrize("case", [CASES["products"], WIDE, CASES["cov"]], ids=["products", "with itself", "cov"])
def test_how_a_batch_lies_in_memory_changes_no_bit(case: Case) -> None:
    records = case.records(9000, 3)
    want = bits(push(case, make_fold(case.spec()), records, []))
    for spread in (
        [np.asfortranarray(array) for array in records],
        [np.repeat(array, 2, axis=-1)[:, ::2] for array in records],
        [np.repeat(array, 2, axis=0)[::2] for array in records],
    ):
        accumulator = make_fold(case.spec())
        accumulator.push_records([array[:5000] for array in spread])
        accumulator.push_records([array[5000:] for array in spread])
        assert bits(accumulator) == want


def test_both_operands_may_be_one_array() -> None:
    case = Case("matmul", ((40,), (40,)), ("f4", "f4"), ((40, 40), "f4"), lambda x, y: x.T @ y)
    x = np.random.default_rng(1).standard_normal((5000, 40), dtype=np.float32)
    want = bits(push(case, make_fold(case.spec()), [x, x.copy()], [700]))
    one = make_fold(case.spec())
    for part in (x[:3000], x[3000:]):
        one.push_records([part, part])
    assert bits(one) == want


def test_states_that_do_not_meet_are_not_merged() -> None:
    case = CASES["segment_sum_of_integers"]
    first = push(case, make_fold(case.spec()), case.records(10, 1), [])
    with pytest.raises(ValueError, match="records 11 to 11 do not follow records 0 to 10"):
        first.merge(make_fold(case.spec(), 11))
    with pytest.raises(ValueError, match="states of different folds"):
        first.merge(make_fold(CASES["segment_max"].spec(), 10))
    with pytest.raises(ValueError, match="states of different folds"):
        first.merge(make_fold(CASES["bincount"].spec(), 10))


@pytest.mark.parametrize("dtype", ["bool", "u1", "u8", "i1", "i8"])
def test_a_key_out_of_range_is_named(dtype: str) -> None:
    keys = np.zeros(70_000, dtype)
    keys[69_000] = True
    want = {"bool": 1, "u1": 200, "u8": 2**64 - 1, "i1": -1, "i8": -(2**40)}[dtype]
    keys[69_123] = want
    length = 1 if dtype == "bool" else 2
    record = 69_000 if dtype == "bool" else 69_123
    spec = host_fold("bincount", [Spec(keys.dtype, (), Stream(None))], {}, Spec(INT64, (length,)))
    accumulator = make_fold(spec, 30)
    accumulator.push_records([keys[:100]])
    with pytest.raises(fc.RunError) as caught:
        accumulator.push_records([keys[100:]])
    assert caught.value.records == (30 + record, 31 + record)
    assert caught.value.got == f"key {int(want)} at record {30 + record}"
    assert f"0 to {length - 1}" in str(caught.value)


# -- bounds -----------------------------------------------------------------------------------


def test_covariance_far_from_zero() -> None:
    rng = np.random.default_rng(9)
    x = rng.standard_normal((50_000, 3)) + 1e7
    accumulator = make_fold(
        host_fold("cov", [Spec(FLOAT64, (3,), Stream(None))], {"correction": 1.0}, Spec(FLOAT64, (3, 3)))
    )
    accumulator.push_records([x])
    assert np.allclose(accumulator.result(), np.cov(x, rowvar=False), rtol=1e-9, atol=1e-9)
    assert np.array_equal(accumulator.result(), accumulator.result().T)


def test_products_keep_float32_exact_enough() -> None:
    x = np.random.default_rng(4).standard_normal((200_000, 4), dtype=np.float32)
    accumulator = make_fold(host_fold("matmul", [Spec(x.dtype, (4,), Stream(None))], {}, Spec(np.dtype("f4"), (4, 4))))
    accumulator.push_records([x])
    exact = x.T.astype("f8") @ x
    magnitude = np.abs(x.T.astype("f8")) @ np.abs(x)
    assert (np.abs(accumulator.result() - exact) <= 1e-6 * magnitude).all()


def test_blocks_of_products() -> None:
    assert [product_block(numbers) for numbers in (0, 1, 2, 256, 257, 2048, 1 << 20)] == [
        4096,
        4096,
        4096,
        4096,
        2048,
        512,
        256,
    ]


@pytest.mark.parametrize("name", CASES)
def test_state_stays_within_what_was_said(name: str) -> None:
    """Counted by what a snapshot holds, which leaves out scratch memory."""
    case = CASES[name]
    spec = case.spec()
    accumulator = push(case, make_fold(spec), case.records(30_000, 2), [11_111])

    def nbytes(state: Any) -> int:
        if isinstance(state, np.ndarray):
            return state.nbytes
        values = state.values() if isinstance(state, dict) else state if isinstance(state, list) else ()
        return sum(nbytes(value) for value in values)

    held = nbytes(accumulator.snapshot())
    assert held <= fold_state_bytes(spec, 30_000) <= fold_state_bytes(spec, None)
