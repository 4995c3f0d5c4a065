"""Reductions over any axes: shapes, dtypes and values as NumPy's, as item maps, as folds and as both."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import flowcompute as fc
from flowcompute.elements.element import Element
from flowcompute.elements.op import Kind
from flowcompute.spec import BFLOAT16, BOOL, FLOAT16, FLOAT32, FLOAT64, INT64, SUPPORTED_DTYPES, UINT64

NAMES = ("sum", "prod", "mean", "var", "std", "min", "max", "argmin", "argmax", "any", "all")
ARRAY = np.random.default_rng(3).integers(-4, 5, (5, 2, 3, 4)).astype(np.float64)
AXES: list[Any] = [None, 0, 1, -1, np.int64(2), (1,), (0, 1), (1, 3), (2, 3), (-1, 0), (0, 1, 2, 3), (1, 2, 3)]


def value_of(*elements: Element) -> Any:
    return fc.resolve(*elements, device="numpy", progress=False)


@pytest.mark.parametrize(("name", "resident"), list(itertools.product(NAMES, [False, True])))
def test_every_axis(name: str, resident: bool) -> None:
    x: Element = fc.constant(ARRAY) if resident else fc.source(ARRAY)
    axes = [axis for axis in AXES if not (name.startswith("arg") and isinstance(axis, tuple))]
    made, want = [], []
    for axis, keepdims in itertools.product(axes, [False, True]):
        element = getattr(fc, name)(x, axis, keepdims=keepdims)
        result = getattr(np, name)(ARRAY, axis=axis, keepdims=keepdims)
        folded = axis is None or 0 in np.atleast_1d(axis) % 4
        assert element.shape == np.shape(result), (axis, keepdims)
        assert element.spec.is_stream == (not resident and not folded)
        assert element.dtype == result.dtype
        made.append(element)
        want.append(result)
    for value, result in zip(value_of(*made), want, strict=True):
        assert np.allclose(value, result)


@pytest.mark.parametrize("dtype", SUPPORTED_DTYPES, ids=str)
def test_dtypes(dtype: np.dtype) -> None:
    x = fc.source(np.ones((4, 3), dtype))
    total = INT64 if dtype.kind in "bi" else UINT64 if dtype.kind == "u" else dtype
    centre = FLOAT64 if dtype.kind in "biu" else dtype
    for axis in (0, 1, None):
        assert fc.sum(x, axis).dtype == fc.prod(x, axis).dtype == total
        assert fc.mean(x, axis).dtype == fc.var(x, axis).dtype == fc.std(x, axis).dtype == centre
        assert fc.min(x, axis).dtype == fc.max(x, axis).dtype == dtype
        assert fc.argmin(x, axis).dtype == fc.argmax(x, axis).dtype == INT64
        assert fc.any(x, axis).dtype == fc.all(x, axis).dtype == BOOL
        for wanted in (FLOAT32, INT64, FLOAT16):
            assert fc.sum(x, axis, dtype=wanted).dtype == fc.prod(x, axis, dtype=wanted).dtype == wanted
    if dtype.kind == "f":
        for name in ("sum", "prod", "mean", "var", "std"):
            assert getattr(fc, name)(x).dtype == getattr(np, name)(np.ones((4, 3), dtype)).dtype


def test_half_formats_are_reduced_in_float32_and_rounded_once() -> None:
    for dtype in (FLOAT16, BFLOAT16):
        array = np.full((3000, 2), 1.5, dtype)
        sums, means = value_of(fc.source(array).sum(axis=0), fc.source(array).mean(axis=0))
        assert (sums == np.float32(4500).astype(dtype)).all()
        assert (means == dtype.type(1.5)).all()
        big = np.full((4, 2), 60000 if dtype == FLOAT16 else 3e38, dtype)
        assert (value_of(fc.source(big.astype(FLOAT16) if dtype == FLOAT16 else big).max(axis=0)) == big[0]).all()


def test_correction() -> None:
    x = fc.source(ARRAY)
    made, want = [], []
    for axis, correction in itertools.product([None, 0, 1, (0, 2)], [0, 1, 0.5, 1.75]):
        made += [x.var(axis=axis, correction=correction), x.std(axis=axis, correction=correction)]
        want += [getattr(np, name)(ARRAY, axis=axis, correction=correction) for name in ("var", "std")]
    for value, result in zip(value_of(*made), want, strict=True):
        assert np.allclose(value, result)


@pytest.mark.parametrize("device", ["numpy", "cpu"])
def test_a_correction_beyond_the_count(device: str) -> None:
    """NumPy divides by 0 there: infinity, or NaN without any spread."""
    x = fc.source(np.array([[1.0, 2.0], [1.0, 4.0]]))
    values = fc.resolve(x.var(axis=0, correction=2), x.var(axis=1, correction=3), device=device, progress=False)
    assert np.array_equal(values[0], [np.nan, np.inf], equal_nan=True)
    assert np.array_equal(values[1], [np.inf, np.inf])


@pytest.mark.parametrize("device", ["numpy", "cpu"])
def test_nothing_to_reduce(device: str) -> None:
    stream, items = fc.source(np.ones((0, 3))), fc.source(np.ones((4, 0)))
    made = [stream.sum(axis=0), stream.prod(axis=0), stream.mean(axis=0), stream.var(axis=0), stream.any(axis=0)]
    made += [stream.all(axis=0), stream.sum(), stream.mean(), fc.vecdot(fc.source(np.ones(0)), fc.source(np.ones(0)))]
    first = fc.resolve(*made, device=device, progress=False)
    for value, want in zip(first, (0, 1, np.nan, np.nan, False, True, 0, np.nan, 0), strict=True):
        assert np.array_equal(value, np.full(np.shape(value), want), equal_nan=True)
    made = [items.sum(axis=1), items.prod(axis=1), items.mean(axis=1), items.var(axis=1), items.any(axis=1)]
    made += [items.all(axis=1), items.sum(), items.mean(), items.sum(axis=0), fc.vecdot(items, items)]
    second = fc.resolve(*made, device=device, progress=False)
    wanted = (0, 1, np.nan, np.nan, False, True, 0, np.nan, 0, 0)
    for value, element, want in zip(second, made, wanted, strict=True):
        assert np.shape(value) == element.shape
        assert np.array_equal(value, np.full(element.shape, want), equal_nan=True)
    assert not np.signbit(first[0]).any()
    assert not np.signbit(second[0]).any()


@pytest.mark.parametrize("device", ["numpy", "cpu"])
def test_zeros_keep_their_sign_in_sums(device: str) -> None:
    """-0 is the identity of floats, so a sum of nothing but -0 is -0 (NumPy's own is, too)."""
    array = np.full((40, 3), -0.0, np.float32)
    x = fc.source(array)
    for value in fc.resolve(x.sum(axis=0), x.sum(axis=1), x.sum(), device=device, progress=False):
        assert np.signbit(value).all()


def test_a_reduction_over_both_is_a_fold_of_the_items_reductions() -> None:
    total = fc.source(ARRAY).sum()
    assert total.op.kind is Kind.FOLD
    assert total.inputs[0].op.kind is Kind.REDUCE  # type: ignore[attr-defined]


@pytest.mark.parametrize("device", ["numpy", "cpu"])
def test_the_first_extreme_wins_and_nan_before_all(device: str) -> None:
    # Rows of one length have one kernel.
    for array, most, least in (
        (np.array([3.0, 7, 7, 4, 4, 7, 5, 3]), 1, 0),
        (np.array([3.0, 7, 7, np.nan, 9, np.nan, -2, -2]), 3, 3),
    ):
        x = fc.source(array)
        assert fc.resolve(x.argmax(), x.argmin(), device=device, progress=False) == (most, least)
        rows = fc.source(np.tile(array, (5, 1)))
        values = fc.resolve(rows.argmax(axis=1), rows.argmin(axis=1), rows.argmax(), device=device, progress=False)
        assert (values[0] == most).all()
        assert (values[1] == least).all()
        assert values[2] == most


@pytest.mark.parametrize(("dtype", "length"), [("f4", 17), ("f4", 1124), ("f8", 67), ("f2", 70), ("i1", 64), ("?", 83)])
def test_the_first_of_many_equal_ones_is_found_wherever_it_is(dtype: str, length: int) -> None:
    rng = np.random.default_rng(length)
    array = rng.integers(0, 2, (2 * length, length)).astype(dtype)
    array[:length] = np.eye(length, dtype=bool)
    array[length] = array[0, 0] * -np.inf if np.dtype(dtype).kind == "f" else 0
    if np.dtype(dtype).kind == "f":
        array[length + 1 :: 3, rng.integers(0, length, len(array[length + 1 :: 3]))] = np.nan
    x = fc.source(array)
    found = fc.resolve(x.argmax(axis=1), x.argmin(axis=1), device="cpu", progress=False)
    np.testing.assert_array_equal(found[0], array.argmax(axis=1))
    np.testing.assert_array_equal(found[1], array.argmin(axis=1))
    for row in (array[length - 1], array[length], array[-1]):
        both = np.concatenate([row, row[::-1]])
        assert fc.source(both).argmax().resolve(device="cpu", progress=False) == both.argmax()


VECTORS: list[tuple[tuple[int, ...], tuple[int, ...]]] = [
    ((3,), (3,)),
    ((2, 3), (3,)),
    ((2, 3), (2, 3)),
    ((4, 1, 3), (2, 3)),
]


@pytest.mark.parametrize(("left", "right"), VECTORS)
def test_vecdot_and_matmul_of_residents(left: tuple[int, ...], right: tuple[int, ...]) -> None:
    rng = np.random.default_rng(5)
    a, b = rng.integers(-9, 9, left).astype(float), rng.integers(-9, 9, right).astype(float)
    made = fc.vecdot(fc.constant(a), fc.constant(b))
    assert made.shape == np.vecdot(a, b).shape
    assert np.array_equal(value_of(made), np.vecdot(a, b))
    other = rng.integers(-9, 9, (right[-1], 4)).astype(float)
    product = fc.constant(a) @ fc.constant(other)
    assert product.shape == (a @ other).shape
    assert np.array_equal(value_of(product), a @ other)


PRODUCTS: list[tuple[tuple[int, ...], bool, tuple[int, ...], bool]] = [
    # shapes and whether the operand is a stream
    ((6, 3), True, (3, 4), False),
    ((6, 3), True, (3,), False),
    ((6, 2, 3), True, (3, 4), False),
    ((6, 2, 3), True, (3,), False),
    ((6, 2, 3), True, (6, 3, 4), True),
    ((6, 2, 3), True, (6, 3, 4), False),
    ((6, 2, 3), True, (1, 3, 4), False),
    ((5, 2), False, (6, 2, 3), True),
    ((2,), False, (6, 2, 3), True),
    ((6, 5, 2), False, (6, 2, 3), True),
    ((6, 5, 2, 3), True, (5, 3, 4), False),
    ((6, 5, 2, 3), True, (3, 4), False),
    ((6, 5, 2, 3), True, (1, 3, 4), False),
    ((6, 1, 2, 3), True, (5, 3, 4), False),
    ((6, 5, 2, 3), True, (6, 5, 3, 1), True),
    ((2, 3), False, (3, 4), False),
    ((5, 1, 2, 3), False, (6, 3, 4), False),
]


@pytest.mark.parametrize(("left", "left_stream", "right", "right_stream"), PRODUCTS)
@pytest.mark.parametrize("device", ["numpy", "cpu"])
def test_matmul_is_numpys(
    left: tuple[int, ...], left_stream: bool, right: tuple[int, ...], right_stream: bool, device: str
) -> None:
    rng = np.random.default_rng(5)
    arrays = [rng.integers(-9, 9, shape).astype(float) for shape in (left, right)]
    a, b = (
        (fc.source if s else fc.constant)(array) for array, s in zip(arrays, (left_stream, right_stream), strict=True)
    )
    product = a @ b
    assert product.shape == (arrays[0] @ arrays[1]).shape
    assert product.spec.is_stream == (left_stream or right_stream)
    small = fc.Strategy(batch_bytes=64)
    for strategy in (None, small):
        assert np.array_equal(
            fc.resolve(product, device=device, strategy=strategy, progress=False), arrays[0] @ arrays[1]
        )


@pytest.mark.parametrize("device", ["numpy", "cpu"])
def test_dot_products_are_one_op(device: str) -> None:
    """DESIGN.md's flows: two vectors, streams of vectors, two long streams, a stream and a resident vector."""
    rng = np.random.default_rng(6)
    a, b = rng.integers(-9, 9, (2, 7, 3)).astype(float)
    x, y, w = fc.source(a), fc.source(b), fc.constant(b[0])
    long_a, long_b = fc.source(a[:, 0].copy()), fc.source(b[:, 0].copy())
    made = [fc.vecdot(w, w), fc.vecdot(x, y), fc.vecdot(x, w), fc.vecdot(w, x), fc.vecdot(long_a, long_b)]
    made += [fc.vecdot(x, y, axis=0), fc.vecdot(x.sum(axis=1), y.max(axis=1)), fc.vecdot(long_a, fc.constant(b[:, 0]))]
    want = [b[0] @ b[0], (a * b).sum(1), (a * b[0]).sum(1), (a * b[0]).sum(1), a[:, 0] @ b[:, 0]]
    want += [(a * b).sum(0), a.sum(1) @ b.max(1), a[:, 0] @ b[:, 0]]
    for value, element, right in zip(fc.resolve(*made, device=device, progress=False), made, want, strict=True):
        assert element.shape == np.shape(right)
        assert np.array_equal(value, right)


@pytest.mark.parametrize("dtype", ["f4", "f2", "i8", "u1"])
def test_extremes_begin_with_a_number(dtype: str) -> None:
    array = np.arange(-12, 12).astype(dtype).reshape(4, 2, 3)
    if np.dtype(dtype).kind == "f":
        array[1, 0, 0] = np.nan
    for one, make in itertools.product((array, array[:, :0], array[:, :, :0]), (fc.source, fc.constant)):
        calls = list(itertools.product((("max", 3), ("min", 5), ("max", 100)), (1, (1, 2), None, 0)))
        x = make(one)
        made = [getattr(fc, name)(x, axis, initial=initial) for (name, initial), axis in calls]
        values = list(fc.resolve(*made, device="numpy", progress=False))
        if dtype == "f4" and make is fc.source:
            values += fc.resolve(*made[:6], device="cpu", progress=False)
        for got, ((name, initial), axis) in zip(values, calls + calls[:6], strict=False):
            want = np.asarray(getattr(np, name)(one, axis, initial=initial))
            assert (np.asarray(got).dtype, np.shape(got)) == (want.dtype, want.shape)
            np.testing.assert_array_equal(got, want)


def test_identities_of_extremes() -> None:
    nothing = fc.source(np.ones((3, 0), "f4"))
    assert fc.max(nothing, 1, initial=-fc.inf, keepdims=True).resolve(progress=False).tolist() == [[-np.inf]] * 3
    least, most = np.iinfo("i8").min, np.iinfo("i8").max
    assert fc.min(fc.constant(np.ones(0, "i8")), initial=most).resolve(progress=False) == most
    assert np.max(fc.constant(np.ones(0, "i8")), initial=least).resolve(progress=False) == least
    for initial in (1.5, fc.inf, 2**63, "a", [1, 2], np.ones(2)):
        with pytest.raises(fc.SpecError, match="cannot take initial="):
            fc.max(fc.source(np.arange(3)), initial=initial)


def test_integers_are_divided_towards_zero() -> None:
    a, b = (np.array(one, "i1") for one in ([-128, -7, 7, -7, 5], [-1, 2, -2, -2, 0]))
    with np.errstate(all="ignore"):
        got = fc.trunc_divide(fc.source(a), fc.source(b)).resolve(progress=False)
    assert (got.tolist(), got.dtype) == ([-128, -3, -3, 3, 0], "i1")
    with np.errstate(all="ignore"):
        assert np.fmod(fc.source(a), b).resolve(progress=False).tolist() == np.fmod(a, b).tolist()
    with pytest.raises(fc.SpecError, match="cannot compute with these dtypes"):
        fc.trunc_divide(fc.source(np.ones(3)), 2)
