"""Folds beyond reductions, from composing to the value: NumPy's answers, dtypes and refusals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import flowcompute as fc
from flowcompute.schedule.steps import NodeStep
from flowcompute.spec import BFLOAT16, BOOL, FLOAT16, FLOAT32, FLOAT64, INT64, SUPPORTED_DTYPES, UINT64, is_float
from tests.properties.cases import cases

RNG = np.random.default_rng(11)
LENGTH = 3000
ROWS = RNG.standard_normal((LENGTH, 4)).astype(np.float32)
NUMBERS = np.round(RNG.standard_normal(LENGTH) * 4, 2)
KEYS = RNG.integers(0, 7, LENGTH)
SMALL = fc.Strategy(batch_bytes=1 << 10)


def values_of(*elements: Any, device: str = "numpy", strategy: fc.Strategy | None = None) -> tuple[Any, ...]:
    return fc.run(*elements, device=device, strategy=strategy, progress=False).values


def by_key(function: Callable[..., np.ndarray], array: np.ndarray) -> np.ndarray:
    return np.stack([function(array[np.equal(KEYS, key)], axis=0) for key in range(7)])


def everything() -> tuple[list[Any], list[np.ndarray]]:
    """All of them over three streams, beside NumPy's answers."""
    rows, numbers, keys = fc.source(ROWS), fc.source(NUMBERS), fc.source(KEYS)
    order = np.argsort(-NUMBERS, kind="stable")[:9]
    counts, edges = fc.histogram(rows, 12, (-2, 2))
    made = {
        fc.cov(rows): np.cov(ROWS.astype("f8"), rowvar=False),
        fc.cov(rows * 2, correction=0): np.cov(ROWS.astype("f8") * 2, rowvar=False, ddof=0),
        fc.cov(numbers): np.cov(NUMBERS),
        fc.corrcoef(rows): np.corrcoef(ROWS.astype("f8"), rowvar=False),
        fc.corrcoef(numbers): np.corrcoef(NUMBERS),
        counts: np.histogram(ROWS, 12, (-2, 2))[0],
        edges: np.histogram(ROWS, 12, (-2, 2))[1],
        fc.histogram(numbers, [-3, -1, 0.5, 2])[0]: np.histogram(NUMBERS, [-3, -1, 0.5, 2])[0],
        fc.bincount(keys, 9): np.bincount(KEYS, minlength=9),
        fc.segment_sum(rows, keys, 7): by_key(np.sum, ROWS.astype("f8")),
        fc.segment_mean(rows, keys, 7): by_key(np.mean, ROWS.astype("f8")),
        fc.segment_min(rows, KEYS, 7): by_key(np.min, ROWS),
        fc.segment_max(numbers, keys, 7): by_key(np.max, NUMBERS),
        fc.top_k(numbers, 9)[0]: NUMBERS[order],
        fc.top_k(numbers, 9)[1]: order,
        fc.quantile(numbers, [0, 0.3, 0.5, 1]): np.quantile(NUMBERS, [0, 0.3, 0.5, 1]),
        fc.count_nonzero(numbers > 0): np.count_nonzero(NUMBERS > 0),
        fc.count_nonzero(rows.astype("i4"), axis=0): np.count_nonzero(ROWS.astype("i4"), axis=0),
        fc.count_nonzero(rows.astype("i4"), axis=1): np.count_nonzero(ROWS.astype("i4"), axis=1),
        fc.first(rows): ROWS[0],
        fc.last(numbers + 1): NUMBERS[-1] + 1,
    }
    return list(made), [np.asarray(want) for want in made.values()]


@pytest.mark.parametrize("device", ["numpy", "cpu"])
def test_numpys_answers_whatever_the_batches(device: str) -> None:
    made, wanted = everything()
    values = values_of(*made, device=device)
    for element, value, want in zip(made, values, wanted, strict=True):
        assert element.shape == want.shape, element
        assert np.shape(value) == want.shape
        assert np.allclose(value, want, rtol=2e-6, atol=2e-5), element
        if element.label != "segment_sum" and element.label != "segment_mean":
            assert value.dtype == want.dtype, element
        if want.dtype.kind in "iu":
            assert np.array_equal(value, want)
    again = values_of(*everything()[0], device=device, strategy=SMALL)
    assert [value.tobytes() for value in again] == [value.tobytes() for value in values]


def test_devices_agree_in_every_bit() -> None:
    found = {
        tuple(value.tobytes() for value in values_of(*everything()[0], device=device)) for device in ("numpy", "cpu")
    }
    assert len(found) == 1


@pytest.mark.parametrize("dtype", SUPPORTED_DTYPES, ids=str)
def test_dtypes(dtype: np.dtype) -> None:
    rows, numbers = fc.source(np.ones((4, 2), dtype)), fc.source(np.ones(4, dtype))
    keys = np.array([0, 1, 1, 0])
    total = INT64 if dtype.kind in "bi" else UINT64 if dtype.kind == "u" else dtype
    assert fc.segment_sum(rows, keys, 2).dtype == total
    assert fc.segment_mean(rows, keys, 2).dtype == (dtype if is_float(dtype) else FLOAT64)
    assert fc.segment_min(rows, keys, 2).dtype == fc.segment_max(rows, keys, 2).dtype == dtype
    assert fc.cov(rows).dtype == fc.corrcoef(rows).dtype == FLOAT64
    assert fc.first(rows).dtype == fc.last(rows).dtype == dtype
    assert [one.dtype for one in fc.top_k(numbers, 2)] == [dtype, INT64]
    assert fc.count_nonzero(rows).dtype == INT64
    made = [fc.segment_sum(rows, keys, 2), fc.segment_mean(rows, keys, 2), fc.segment_max(rows, keys, 2)]
    made += [fc.first(rows), fc.top_k(numbers, 1)[0], fc.quantile(numbers, 0.5), fc.histogram(rows, 2, (0, 2))[0]]
    made += [fc.cov(rows), fc.count_nonzero(rows)]
    values = values_of(*made)
    for element, value in zip(made, values, strict=True):
        assert value.dtype == element.dtype
    for value, want in zip(values, [2, 1, 1, 1, 1, 1, [0, 8], 0, 8], strict=True):
        assert np.array_equal(value.astype("f8"), np.broadcast_to(want, value.shape))


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "i1", "i8", "u4"])
@pytest.mark.parametrize(
    "q", [0.5, [0.5], np.float32(0.5), np.float64(0.5), np.array([[0.1, 0.9]], np.float32), 1, [0, 1]]
)
def test_dtypes_of_quantiles_are_numpys(dtype: str, q: Any) -> None:
    array = np.arange(5, dtype=dtype)
    want = np.quantile(array, q)
    value = values_of(fc.quantile(fc.source(array), q))[0]
    assert value.dtype == (want.dtype if want.dtype.kind == "f" else FLOAT64)
    assert np.array_equal(np.shape(value), np.shape(want))
    assert np.allclose(value, want, rtol=1e-3)


def test_dtypes_of_bfloat16_quantiles() -> None:
    x = fc.source(np.arange(5).astype(BFLOAT16))
    assert fc.quantile(x, 0.5).dtype == BFLOAT16
    assert fc.quantile(x, [0.5]).dtype == FLOAT64


FLOATS = hnp.arrays(
    np.float32, st.integers(0, 50), elements=st.floats(-100, 100, width=32) | st.sampled_from([np.nan, np.inf, -np.inf])
)


@cases(40)
@given(
    array=FLOATS,
    bins=st.integers(1, 9),
    low=st.floats(-50, 50, width=32),
    width=st.floats(0, 100, width=32),
)
def test_histograms_are_numpys(array: np.ndarray, bins: int, low: float, width: float) -> None:
    try:
        want, edges = np.histogram(array[np.isfinite(array)], bins, (low, low + width))
    except ValueError:
        with pytest.raises(fc.SpecError, match="cannot make bins"):
            fc.histogram(fc.source(array), bins, (low, low + width))
        return
    made = fc.histogram(fc.source(array), bins, (low, low + width))
    by_edges = fc.histogram(fc.source(array), edges)[0]
    counts, found, same = values_of(*made, by_edges)
    assert np.array_equal(counts, want)
    assert np.array_equal(same, want)
    assert found.tobytes() == edges.tobytes()


@pytest.mark.parametrize(
    ("array", "bins", "limits"),
    [
        (np.arange(256, dtype=np.uint8), 10, (0, 255)),
        (np.array([2**53, 2**53 + 1, 2**60, 2**62]), 8, (0, 2**62)),
        (np.array([2**64 - 1, 0, 5], np.uint64), 4, (0, 2.0**64)),
        (np.array([-3e38, 0, 1e38, 3e38], np.float32), 4, (-3e38, 3e38)),
        (np.array([0.1, 0.2, 0.30000000000000004, 0.3, 0.6, 0.7]), 10, (0, 1)),
        (np.array([1, 2, 3], np.float16), 3, (1, 3)),
    ],
)
def test_histograms_at_the_edges(array: np.ndarray, bins: int, limits: tuple[float, float]) -> None:
    made = fc.histogram(fc.source(array), bins, limits)
    want = np.histogram(array.astype("f8"), made[1].value.astype("f8"))[0]
    assert np.array_equal(values_of(made[0])[0], want)
    assert want.sum() == len(array)


# -- nothing, and too little ------------------------------------------------------------------


def test_empty_streams() -> None:
    rows, numbers, keys = fc.source(np.ones((0, 2))), fc.source(np.ones(0)), fc.source(np.ones(0, np.int64))
    made = [fc.cov(rows), fc.corrcoef(rows), fc.histogram(rows, 3, (0, 1))[0], fc.bincount(keys, 2)]
    made += [fc.segment_sum(rows, keys, 2), fc.segment_mean(rows, keys, 2), fc.quantile(numbers, [0.5])]
    made += [fc.count_nonzero(numbers)]
    wanted: list[Any] = [np.nan, np.nan, 0, 0, 0, np.nan, np.nan, 0]
    for value, element, want in zip(values_of(*made), made, wanted, strict=True):
        assert np.array_equal(value, np.full(element.shape, want), equal_nan=True)


def test_one_record() -> None:
    rows = fc.source(np.array([[2.0, 3.0]]))
    made = [fc.cov(rows), fc.cov(rows, correction=0), fc.quantile(rows.sum(axis=1), 0.3), fc.first(rows), fc.last(rows)]
    values = values_of(*made)
    assert np.isnan(values[0]).all()
    assert np.array_equal(values[1], np.zeros((2, 2)))
    assert values[2] == 5
    assert values[3].tolist() == values[4].tolist() == [2, 3]


def test_streams_of_unknown_length() -> None:
    def batches() -> Any:
        yield from (ROWS[:100, 0], ROWS[100:101, 0], ROWS[101:, 0])

    x = fc.iterate(batches(), shape=(), dtype="f4")
    top, where = fc.top_k(x, 3)
    order = np.argsort(-ROWS[:, 0], kind="stable")[:3]
    found = values_of(
        top, where, fc.last(x), fc.segment_sum(x, fc.constant(KEYS), 7), fc.bincount((x > 0).astype("u1"), 2)
    )
    assert found[0].tolist() == ROWS[order, 0].tolist()
    assert found[1].tolist() == order.tolist()
    assert found[2] == ROWS[-1, 0]
    assert found[4].tolist() == [(ROWS[:, 0] <= 0).sum(), (ROWS[:, 0] > 0).sum()]

    for made in (
        fc.top_k(fc.iterate(iter([]), shape=(), dtype="f4"), 2)[1],
        fc.first(fc.iterate(iter([]), dtype="f4", shape=())),
    ):
        with pytest.raises(fc.RunError) as caught:
            values_of(made)
        assert made.label in str(caught.value)
    with pytest.raises(fc.RunError, match="3000 records, as the resident value has rows"):
        values_of(fc.segment_sum(fc.iterate(iter([ROWS[:10]]), shape=(4,), dtype="f4"), KEYS, 7))


@pytest.mark.parametrize("device", ["numpy", "cpu"])
def test_a_key_out_of_range_names_its_record(device: str) -> None:
    keys = KEYS.copy()
    keys[2222] = 7
    for made in (fc.bincount(fc.source(keys), 7), fc.segment_max(fc.source(ROWS), fc.source(keys) + 0, 7)):
        with pytest.raises(fc.RunError) as caught:
            values_of(made, device=device, strategy=SMALL)
        assert caught.value.records == (2222, 2223)
        assert "key 7 at record 2222" in str(caught.value)


def test_equal_folds_are_one() -> None:
    x = fc.source(NUMBERS)
    plan = fc.plan(*fc.top_k(x, 3), *fc.top_k(x, 3), fc.quantile(x, 0.5), fc.quantile(x, 0.5), device="numpy")
    assert len([step for step in plan.steps if isinstance(step, NodeStep)]) == 3


@pytest.mark.parametrize("device", ["numpy", "cpu"])
def test_the_plan_says_that_they_run_on_the_host(device: str) -> None:
    x = fc.source(ROWS) * 2
    plan = fc.plan(fc.cov(x), x.sum(axis=0), device=device)
    assert "cut at cov: its state is kept on the host, which takes the records in order" in plan.text
    assert "fold cov" in plan.text


def test_the_budget_counts_their_state() -> None:
    wide = fc.source(np.ones((4, 3000), np.float32))
    with pytest.raises(fc.PlanError, match="cannot fit what is held throughout"):
        fc.plan(wide.T @ wide, memory="64MiB", device="numpy")


REFUSED: list[tuple[Callable[[], Any], str]] = [
    (lambda: fc.cov(ROWS), "fc.source(array)"),
    (lambda: fc.cov(fc.source(np.ones((3, 2, 2)))), "stream of numbers or rows"),
    (lambda: fc.corrcoef(fc.constant(2.0)), "cannot fold what is no stream"),
    (lambda: fc.histogram(fc.source(ROWS)), "range=(low, high)"),
    (lambda: fc.histogram(fc.source(ROWS), 0, (0, 1)), "bins"),
    (lambda: fc.histogram(fc.source(ROWS), 3, (1, 0)), "max must be larger than min"),
    (lambda: fc.histogram(fc.source(ROWS), 3, (0, np.inf)), "not finite"),
    (lambda: fc.histogram(fc.source(NUMBERS), 3, (-1.7e308, 1.7e308)), "overflow"),
    (lambda: fc.histogram(fc.source(ROWS), [0, 2, 1]), "never descend"),
    (lambda: fc.histogram(fc.source(ROWS), [0, np.nan]), "never descend"),
    (lambda: fc.histogram(fc.source(ROWS), [[0, 1]]), "never descend"),
    (lambda: fc.histogram(fc.source(ROWS), "auto"), "never descend"),
    (lambda: fc.bincount(fc.source(NUMBERS), 3), 'astype("int64")'),
    (lambda: fc.bincount(fc.source(KEYS), 0), "cannot take length="),
    (lambda: fc.bincount(fc.source(KEYS), 2.5), "cannot take length="),
    (lambda: fc.bincount(fc.source(np.ones((3, 2), int)), 3), "cannot fold a stream of such items"),
    (lambda: fc.segment_sum(fc.source(ROWS), fc.source(KEYS[:-1]), 7), "2999"),
    (lambda: fc.segment_sum(fc.source(ROWS), KEYS[:-1], 7), "2999"),
    (lambda: fc.segment_sum(fc.source(ROWS), fc.source(NUMBERS), 7), "cannot fold by keys that are no integers"),
    (lambda: fc.segment_sum(fc.source(ROWS), fc.source(ROWS.astype(int)), 7), "cannot fold by keys of several numbers"),
    (lambda: fc.segment_min(ROWS, KEYS, 7), "cannot fold what is no stream"),
    (lambda: fc.segment_max(fc.source(ROWS), KEYS, -1), "cannot take num_segments="),
    (lambda: fc.top_k(fc.source(NUMBERS), 3001), "k <= 3000"),
    (lambda: fc.top_k(fc.source(NUMBERS), 0), "cannot take k="),
    (lambda: fc.top_k(fc.source(ROWS), 3), "cannot fold a stream of such items"),
    (lambda: fc.quantile(fc.source(NUMBERS), 1.01), "cannot take q="),
    (lambda: fc.quantile(fc.source(NUMBERS), [0.1, np.nan]), "cannot take q="),
    (lambda: fc.quantile(fc.source(NUMBERS), "half"), "cannot take q="),
    (lambda: fc.first(fc.source(np.ones(0))), "cannot take the first record"),
    (lambda: fc.last(fc.constant(ROWS)), "cannot fold what is no stream"),
]


@pytest.mark.parametrize(("attempt", "text"), REFUSED)
def test_what_does_not_fit_is_refused(attempt: Callable[[], Any], text: str) -> None:
    with pytest.raises(fc.SpecError) as caught:
        attempt()
    assert text in str(caught.value)
    assert __file__ in str(caught.value)


def test_half_formats_are_added_wide() -> None:
    for dtype in (FLOAT16, BFLOAT16):
        x = np.full(5000, 1.5, dtype)
        total, mean = values_of(
            fc.segment_sum(fc.source(x), np.zeros(5000, int), 1), fc.segment_mean(fc.source(x), np.zeros(5000, int), 1)
        )
        assert total[0] == dtype.type(7500)
        assert mean[0] == dtype.type(1.5)


def test_counting_counts_nan() -> None:
    x = fc.source(np.array([0.0, -0.0, np.nan, 3, np.inf]))
    assert values_of(fc.count_nonzero(x))[0] == 3
    assert fc.count_nonzero(fc.constant(ROWS), axis=1, keepdims=True).shape == (LENGTH, 1)
    assert fc.count_nonzero(x > 0).dtype == INT64
    assert (x > 0).dtype == BOOL
    assert fc.segment_sum(x.astype("f4"), np.zeros(5, "u1"), 1).dtype == FLOAT32
