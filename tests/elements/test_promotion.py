"""Dtypes of results: NumPy's own (NEP 50), for every operation, every pair of dtypes and every kind of Python number."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import flowcompute as fc
from flowcompute.elements.elementwise_functions import Function
from flowcompute.elements.math.logic import ComparisonFunction, Logical
from flowcompute.elements.operators import FUNCTIONS
from flowcompute.errors import SpecError
from flowcompute.spec import BFLOAT16, BOOL, FLOAT16, SUPPORTED_DTYPES

PAIRS = list(itertools.product(SUPPORTED_DTYPES, repeat=2))
HALVES = (FLOAT16, BFLOAT16)
"""`nextafter` is not defined for them: its meaning hangs on the storage format, and they are computed in float32."""
UNARY = {n: f for n, f in FUNCTIONS.items() if isinstance(f, Function) and f.op.arity == 1}
BINARY = {n: f for n, f in FUNCTIONS.items() if isinstance(f, Function) and f.op.arity == 2}
WEAK = (True, 0, 1, -1, 2, 100, 300, -300, 70_000, 2**40, 2**63, 2**64, 0.0, -0.5, 2.5, 1e10, 1e300, math.inf, math.nan)


def dtype_or_none(build: Callable[[], Any]) -> np.dtype | None:
    """The dtype of what is built, None where it is refused."""
    try:
        return np.dtype(build().dtype)
    except (SpecError, TypeError, OverflowError):
        return None


def ones(dtype: np.dtype) -> np.ndarray:
    return np.ones(1, dtype)


def numpys(function: Function, *operands: Any) -> np.dtype | None:
    with np.errstate(all="ignore"):
        return dtype_or_none(lambda: function.op.numpy(*operands))


@pytest.mark.parametrize("name", BINARY)
def test_two_arrays(name: str) -> None:
    function = BINARY[name]
    for left, right in PAIRS:
        ours = dtype_or_none(lambda: function(fc.source(ones(left)), fc.source(ones(right))))  # noqa: B023
        theirs = numpys(function, ones(left), ones(right))
        assert ours == (None if name == "nextafter" and theirs in HALVES else theirs), (name, left.name, right.name)


@pytest.mark.parametrize("name", UNARY)
def test_one_array(name: str) -> None:
    for dtype in SUPPORTED_DTYPES:
        ours = dtype_or_none(lambda: UNARY[name](fc.source(ones(dtype))))  # noqa: B023
        # Rounding keeps integers and bools as they are, as floor, ceil and trunc do in NumPy too.
        theirs = dtype if name == "round" and dtype.kind == "b" else numpys(UNARY[name], ones(dtype))
        assert ours == theirs, (name, dtype.name)


@pytest.mark.parametrize(
    "name", [name for name in BINARY if not isinstance(BINARY[name], ComparisonFunction | Logical)]
)
def test_python_numbers_are_weak(name: str) -> None:
    function = BINARY[name]
    for dtype, number in itertools.product(SUPPORTED_DTYPES, WEAK):
        if dtype == BFLOAT16:
            continue  # ml_dtypes knows no weak numbers: see below
        for swapped in (False, True):
            operands = (number, ones(dtype)) if swapped else (ones(dtype), number)
            lazy = tuple(fc.source(one) if isinstance(one, np.ndarray) else one for one in operands)
            with np.errstate(all="ignore"):
                ours = dtype_or_none(lambda: function(*lazy))  # noqa: B023
            theirs = numpys(function, *operands)
            assert ours == (None if name == "nextafter" and theirs in HALVES else theirs), (
                name,
                dtype.name,
                number,
                swapped,
            )


def test_python_numbers_beside_bfloat16_take_its_dtype() -> None:
    stream = fc.source(np.ones(3, BFLOAT16))
    for number in (True, 2, 2.5):
        assert (stream + number).dtype == BFLOAT16
        assert (number * stream).dtype == BFLOAT16
        assert fc.where(stream > number, stream, number).dtype == BFLOAT16


def test_numpy_scalars_are_strong() -> None:
    single = fc.source(np.ones(3, np.float32))
    assert (single * np.float64(2)).dtype == np.float64
    assert (single * np.int8(2)).dtype == np.float32
    assert (np.float64(2) * single).dtype == np.float64
    assert (fc.source(np.ones(3, np.int8)) + np.int64(1)).dtype == np.int64
    assert (fc.constant(1.5)).dtype == np.float64
    assert (single + fc.constant(1.5)).dtype == np.float64


@pytest.mark.parametrize("name", [name for name in BINARY if isinstance(BINARY[name], ComparisonFunction)])
def test_integers_compare_by_value_whatever_they_are(name: str) -> None:
    values = {d: _whole_numbers(d) for d in SUPPORTED_DTYPES if d.kind in "iu"}
    compare = getattr(np, name)
    for left, right in itertools.product(values, repeat=2):
        grid = np.array(list(itertools.product(values[left], values[right])), object)
        a, b = grid[:, 0].astype(left), grid[:, 1].astype(right)
        result = fc.resolve(BINARY[name](fc.source(a), fc.source(b)), device="numpy", progress=False)
        assert np.array_equal(result, compare(grid[:, 0], grid[:, 1]).astype(bool)), (left.name, right.name)


@pytest.mark.parametrize("number", [-(2**63), -1, 0, 255, 256, 2**31, 2**63 - 1, 2**63, 2**64 - 1])
def test_integers_compare_with_python_numbers_beyond_their_dtype(number: int) -> None:
    for dtype in SUPPORTED_DTYPES:
        if dtype.kind not in "iu":
            continue
        array = np.array(_whole_numbers(dtype), dtype)
        lazy = fc.source(array)
        pairs = [(lazy < number, array < number), (number >= lazy, number >= array), (lazy == number, array == number)]
        values = fc.resolve(*(ours for ours, _ in pairs), device="numpy", progress=False)
        for value, (_, want) in zip(values, pairs, strict=True):
            assert np.array_equal(value, want), dtype.name


def _whole_numbers(dtype: np.dtype) -> list[int]:
    info = np.iinfo(dtype)
    return sorted({int(info.min), int(info.max), *(n for n in (-1, 0, 1, 127, 128) if info.min <= n <= info.max)})


def test_a_python_integer_beyond_64_bits_is_refused() -> None:
    for operation in (fc.less, fc.equal, fc.add):
        with pytest.raises(SpecError):
            operation(fc.source(np.ones(3, np.int64)), 2**70)


@pytest.mark.parametrize("left", SUPPORTED_DTYPES, ids=str)
def test_where_promotes_its_values(left: np.dtype) -> None:
    condition = fc.source(np.array([True, False]))
    for right in SUPPORTED_DTYPES:
        ours = fc.where(condition, fc.source(np.ones(2, left)), fc.source(np.ones(2, right))).dtype
        try:
            assert ours == np.where([True, False], np.ones(2, left), np.ones(2, right)).dtype
        except TypeError:
            # NumPy knows no common dtype of bfloat16 and wider integers, but adds them.
            assert ours == np.add(np.ones(2, left), np.ones(2, right)).dtype
    for number in (True, 1, 2.5):
        ours = fc.where(condition, fc.source(np.ones(2, left)), number).dtype
        if left != BFLOAT16:
            assert ours == np.where([True, False], np.ones(2, left), number).dtype


def test_where_of_python_numbers_alone() -> None:
    condition = fc.source(np.array([True, False]))
    assert fc.where(condition, 1, 2).dtype == np.int64
    assert fc.where(condition, 1, 2.5).dtype == np.float64
    assert fc.where(condition, True, False).dtype == BOOL


def test_python_numbers_out_of_range_are_refused_with_both_sides() -> None:
    with pytest.raises(SpecError) as caught:
        fc.source(np.ones(3, np.int8)) + 300
    text = str(caught.value)
    assert text.startswith("add: ")
    assert "expected  a value that int8 can hold" in text
    assert "got       300" in text
    assert "test_promotion.py:" in text


def test_logic_takes_numbers_as_true_where_they_are_not_zero() -> None:
    array = np.array([0, -0.0, 2, math.nan, math.inf])
    lazy = fc.source(array)
    values = fc.resolve(
        fc.logical_not(lazy), fc.logical_and(lazy, 1), fc.logical_xor(lazy, True), device="numpy", progress=False
    )
    assert np.array_equal(values[0], np.logical_not(array))
    assert np.array_equal(values[1], np.logical_and(array, 1))
    assert np.array_equal(values[2], np.logical_xor(array, True))
