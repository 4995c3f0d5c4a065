"""Sorting, searching and lookups inside of items: NumPy's answers on every backend, independent of batches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flowcompute as fc
from flowcompute.errors import RunError, SpecError
from flowcompute.spec import BFLOAT16, SUPPORTED_DTYPES, is_float
from tests.gpu.shapes import plan_for_gpu, resolve_on_gpu


def drawn(rng: np.random.Generator, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """Numbers with many equal ones, and with what floats have beside numbers."""
    array = rng.integers(0 if np.dtype(dtype).kind in "ub" else -4, 5, shape).astype(dtype)
    if is_float(array.dtype):
        for one in (np.nan, -0.0, np.inf, -np.inf):
            array[rng.random(shape) < 0.1] = one
    return array


def order_of(array: np.ndarray, axis: int, *, descending: bool) -> np.ndarray:
    """The stable order by its definition, number by number: NaN is the largest."""

    def places(row: np.ndarray) -> list[int]:
        keys = [(True, 0.0) if one != one else (False, float(one)) for one in row]
        down = [(not nan, -number) for nan, number in keys]
        return sorted(range(len(row)), key=(down if descending else keys).__getitem__)

    return np.apply_along_axis(lambda at: np.array(places(at), dtype=np.int64), axis, array.astype("f8"))


def same_bits(value: np.ndarray, want: np.ndarray) -> None:
    assert (value.shape, value.dtype) == (want.shape, want.dtype)
    np.testing.assert_array_equal(value.astype("f8"), want.astype("f8"))
    if is_float(want.dtype):
        known = ~np.isnan(want.astype("f8"))
        np.testing.assert_array_equal(np.signbit(value)[known], np.signbit(want)[known])


@given(data=st.data())
def test_sorts_are_stable_for_any_dtype_axis_and_batch_size(data: st.DataObject) -> None:
    dtype = data.draw(st.sampled_from(SUPPORTED_DTYPES))
    shape = (data.draw(st.integers(1, 6)), data.draw(st.integers(1, 5)), data.draw(st.integers(1, 40)))
    array = drawn(np.random.default_rng(data.draw(st.integers(0, 99))), shape, dtype)
    axis, descending = data.draw(st.sampled_from([1, 2, -1])), data.draw(st.booleans())
    x = fc.source(array) if data.draw(st.booleans()) else fc.constant(array)
    made = [
        fc.sort(x, axis, descending=descending),
        fc.argsort(x, axis, descending=descending),
        fc.take_along_axis(x, fc.argsort(x, axis, descending=descending), axis),
    ]
    strategy = fc.Strategy(batch_bytes=data.draw(st.integers(8, 4000)))
    values = fc.resolve(*made, device="numpy", progress=False, strategy=strategy)
    order = order_of(array, axis, descending=descending)
    for value, want in zip(values, (np.take_along_axis(array, order, axis), order), strict=False):
        same_bits(value, want)
    same_bits(values[2], values[0])


def test_long_items_and_items_of_no_numbers() -> None:
    array = np.random.default_rng(1).standard_normal((3, 400_000))
    x = fc.source(array)
    np.testing.assert_array_equal(fc.sort(x, descending=True).resolve(progress=False), -np.sort(-array))
    np.testing.assert_array_equal(fc.argsort(x).resolve(progress=False), np.argsort(array))
    assert fc.sort(x[:, :0]).resolve(progress=False).shape == (3, 0)


def test_beside_kernels_on_every_device() -> None:
    array = drawn(np.random.default_rng(2), (50, 12), "f4")
    x = fc.source(array)
    made = (fc.sort(x * 2) + 1, fc.take_along_axis(x, fc.argsort(x)[:, -3:]).sum(axis=1), fc.isin(x, np.arange(200.0)))
    with np.errstate(invalid="ignore"):
        wanted = (np.sort(array * 2) + 1, np.sort(array)[:, -3:].sum(axis=1), np.isin(array, np.arange(200.0)))
    for values in (
        fc.resolve(*made, device="numpy", progress=False),
        fc.resolve(*made, device="cpu", progress=False),
        resolve_on_gpu(*made),
    ):
        for value, want in zip(values, wanted, strict=True):
            np.testing.assert_array_equal(value, want)


def sorted_in_kernels(array: np.ndarray, axis: int) -> None:
    x = fc.source(array)
    made = [function(x, axis, descending=turn) for function in (fc.sort, fc.argsort) for turn in (False, True)]
    assert len(plan_for_gpu(*made).kernels) == 4
    for value, want in zip(resolve_on_gpu(*made), fc.resolve(*made, device="numpy", progress=False), strict=True):
        same_bits(value, want)


def test_gpus_sort_in_kernels() -> None:
    sorted_in_kernels(drawn(np.random.default_rng(7), (9, 33, 2), "f4"), 1)


@pytest.mark.compiles
@pytest.mark.parametrize("dtype", [one for one in SUPPORTED_DTYPES if one != np.dtype(bool)], ids=str)
def test_gpus_sort_any_dtype(dtype: np.dtype) -> None:
    sorted_in_kernels(drawn(np.random.default_rng(6), (5, 37), dtype), 1)


@pytest.mark.compiles
@pytest.mark.parametrize("length", [1, 2, 64, 600])
def test_gpus_sort_rows_of_any_length(length: int) -> None:
    sorted_in_kernels(drawn(np.random.default_rng(length), (5, length), "f4"), 1)


def test_what_gpus_leave_to_the_host() -> None:
    for x, text in [
        (np.ones((3, 2049), "f4"), "cut at sort: rows of more than 2048 numbers"),
        (np.ones((3, 4), bool), "cut at sort: no kernel sorts bool"),
    ]:
        plan = plan_for_gpu(fc.sort(fc.source(x)))
        assert text in str(plan)
        assert not plan.kernels


def test_a_kernel_holds_what_is_before_and_after_a_sort() -> None:
    x = fc.source(np.random.default_rng(9).integers(-9, 9, (20, 10)).astype("f4"))
    made = fc.sort(x * 2 + 1, descending=True) - 3
    assert len(plan_for_gpu(made).kernels) == 1
    np.testing.assert_array_equal(resolve_on_gpu(made)[0], made.resolve(device="numpy", progress=False))


def test_residents() -> None:
    array = drawn(np.random.default_rng(3), (4, 5), "f4")
    x = fc.constant(array)
    for made, want in [
        (fc.sort(x, axis=0), np.sort(array, axis=0)),
        (fc.sort(x, axis=None), np.sort(array, axis=None)),
        (np.argsort(x, axis=0), np.argsort(array, axis=0, stable=True)),
        (fc.take_along_axis(x, np.array([[0], [-1], [2], [3]])), np.take_along_axis(array, np.array([[0], [-1], [2], [3]]), 1)),
        (fc.take_along_axis(x, np.array([[3, 1]]), 1), np.take_along_axis(array, np.array([[3, 1]]), 1)),
        (fc.sort(x.sum(axis=0)), np.sort(array.sum(axis=0))),
    ]:  # fmt: skip
        np.testing.assert_array_equal(made.resolve(device="numpy", progress=False), want)


def test_lookups_between_streams_and_residents() -> None:
    table, places = np.arange(24.0).reshape(4, 6), np.array([[0, -1], [5, 2], [3, 3], [1, 0]])
    want = np.take_along_axis(table, places, 1)
    first = np.take_along_axis(table[:1], places, 1)
    for made, wanted in [
        (fc.take_along_axis(fc.source(table), places), want),
        (fc.take_along_axis(fc.source(table), places[:1]), np.take_along_axis(table, places[:1], 1)),
        (fc.take_along_axis(table, fc.source(places)), want),
        (fc.take_along_axis(table[:1], fc.source(places)), first),
        (np.take_along_axis(fc.source(table), fc.source(places.astype("u1") % 6), 1),
         np.take_along_axis(table, (places.astype("u1") % 6).astype(int), 1)),
    ]:  # fmt: skip
        np.testing.assert_array_equal(made.resolve(device="numpy", progress=False), wanted)


@given(data=st.data())
def test_searches_in_small_and_in_large_tables(data: st.DataObject) -> None:
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    dtypes = st.sampled_from(["i1", "u2", "i8", "f2", "f4", "f8", "?"])
    array, table = (drawn(rng, shape, data.draw(dtypes)) for shape in ((5, 7), (data.draw(st.integers(0, 130)),)))
    side = data.draw(st.sampled_from(["left", "right"]))
    x = fc.source(array) if data.draw(st.booleans()) else fc.constant(array)
    ascending, order = np.sort(table), np.argsort(table, stable=True)
    made = [
        np.searchsorted(fc.constant(ascending), x, side),
        fc.searchsorted(table, x, side=side, sorter=order),
        fc.isin(x, table),
        np.isin(x, table, invert=True),
    ]
    strategy = fc.Strategy(batch_bytes=data.draw(st.integers(8, 400)))
    values = fc.resolve(*made, device="numpy", progress=False, strategy=strategy)
    want = np.searchsorted(ascending, array, side)
    for value, wanted in zip(
        values, (want, want, np.isin(array, table), np.isin(array, table, invert=True)), strict=True
    ):
        assert value.dtype == wanted.dtype
        np.testing.assert_array_equal(value, wanted)


def test_searches_in_odd_dtypes() -> None:
    large = np.array([2**63, 2**53 + 1, 2**53], "u8")
    x = fc.source(np.array([2**53, 2**53 + 1, -1]))
    np.testing.assert_array_equal(fc.isin(x, np.tile(large, 50)).resolve(progress=False), [True, True, False])
    x = fc.source(np.array([0.5, 3, 70], BFLOAT16))
    np.testing.assert_array_equal(fc.searchsorted(np.arange(99, dtype="f4"), x).resolve(progress=False), [1, 3, 70])
    computed = fc.source(np.arange(300.0)).reshape(-1, 1).sum(axis=1)
    assert fc.isin(computed, fc.constant(np.arange(100.0)) * 2).resolve(progress=False).sum() == 100


@pytest.mark.parametrize("device", ["numpy", "cpu"])
def test_positions_of_what_is_not_zero(device: str) -> None:
    array = drawn(np.random.default_rng(5), (9, 3, 4), "f4")
    unknown = fc.iterate([array[:4], array[4:]], shape=(3, 4), dtype="f4")
    for x, numbers in [
        (fc.source(array), array), (unknown, array), (fc.constant(array), array), (fc.source(array[:, 0, 0]), array[:, 0, 0]),
        (fc.constant(array[0, 0]), array[0, 0]), (fc.source(array[..., :0]), array[..., :0]),
    ]:  # fmt: skip
        made, wanted = fc.nonzero(x), np.nonzero(numbers)
        assert len(made) == len(wanted)
        for value, want in zip(fc.resolve(*made, 1 * made[0], device=device, progress=False), wanted, strict=False):
            assert value.dtype == want.dtype
            np.testing.assert_array_equal(value, want)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda x: fc.sort(x, axis=0), "cannot sort a stream.*fc.top_k.*numpy.sort"),
        (lambda x: fc.sort(x, axis=None), "axis=None, all axes"),
        (lambda x: fc.argsort(x[:, 0]), "cannot sort a stream.*items that have axes"),
        (lambda x: fc.sort(x, axis=2), "cannot find axis 2"),
        (lambda x: fc.sort(x, descending="yes"), "descending="),
        (lambda x: fc.take_along_axis(x, np.zeros((5, 2))), "cannot take by these indices"),
        (lambda x: fc.take_along_axis(x, [1, 2]), "integers with 2 axes"),
        (lambda x: fc.take_along_axis(x, [[3]]), "cannot take a number outside the axis"),
        (lambda x: fc.take_along_axis(x, [[0]], axis=0), "cannot take records of a stream in any order"),
        (lambda x: fc.take_along_axis(fc.stack([x, x], 2), np.zeros((5, 1, 4), int), 1), "cannot broadcast the indices"),
        (lambda x: fc.searchsorted(x[:, 0], x), "expected  a resident vector"),
        (lambda x: fc.searchsorted([[1.0]], x), "expected  a resident vector"),
        (lambda x: fc.searchsorted([1.0], x, side="both"), "side="),
        (lambda x: fc.isin(x, x), "expected  a resident value"),
        (lambda x: fc.nonzero(2), "cannot find positions in a number"),
    ],
)  # fmt: skip
def test_what_is_refused(call: Callable[..., Any], text: str) -> None:
    with pytest.raises(SpecError, match=f"(?s){text}"):
        call(fc.source(np.zeros((5, 3))))


def test_an_index_that_is_computed_and_out_of_range() -> None:
    x = fc.source(np.arange(12).reshape(4, 3))
    with pytest.raises(
        RunError, match=r"take_along_axis: cannot take an index that is out of range(?s:.*)-3 to 2\n  got       3"
    ):
        fc.take_along_axis(x, x).resolve(device="numpy", progress=False)


def test_the_plan_says_where() -> None:
    plan = fc.plan(fc.sort(fc.source(np.ones((4, 3))) * 2), device="cpu")
    assert "cut at sort: the host sorts" in str(plan)
