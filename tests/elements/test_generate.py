"""Ranges, and the positions that generated streams are made of, against NumPy's."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import flowcompute as fc
from flowcompute.elements.generated.generator import index
from flowcompute.errors import SpecError
from flowcompute.graph.graph import build_graph
from flowcompute.spec import SUPPORTED_DTYPES, is_float
from tests.properties.cases import cases

INTEGERS = [dtype for dtype in SUPPORTED_DTYPES if dtype.kind in "iu"]
FLOATS = [dtype for dtype in SUPPORTED_DTYPES if is_float(dtype)]
LENGTHS = (0, 1, 2, 15, 16, 17, 1023, 1024, 1025)


def resolved(element: fc.Element, **options: Any) -> np.ndarray:
    return np.asarray(element.resolve(progress=False, **options))


def everywhere(element: fc.Element) -> np.ndarray:
    """The value, of equal bits on every backend and for every batch size."""
    value = resolved(element)
    for options in ({"device": "numpy"}, {"strategy": fc.Strategy(batch_bytes=512)}):
        assert resolved(element, **options).tobytes() == value.tobytes(), options
    return value


# -- integers ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("length", LENGTHS)
def test_a_length_gives_the_numbers_below_it(length: int) -> None:
    value = everywhere(fc.range(length))
    assert value.dtype == np.int64
    assert np.array_equal(value, np.arange(length))


@settings(max_examples=10)
@given(
    dtype=st.sampled_from(INTEGERS),
    length=st.integers(0, 70),
    step=st.integers(-(2**64), 2**64).filter(bool),
    data=st.data(),
)
def test_integers_are_exact(dtype: np.dtype, length: int, step: int, data: st.DataObject) -> None:
    info = np.iinfo(dtype)
    reach = (info.max - info.min) // max(1, length - 1)
    step = max(-reach, min(reach, step)) or 1
    last = (length - 1) * step if length else 0
    start = data.draw(st.integers(info.min - min(0, last), info.max - max(0, last)))
    element = fc.range(start, start + length * step, step, dtype=dtype)
    assert element.shape == (length,)
    assert element.dtype == dtype
    expected = [start + i * step for i in range(length)]
    for device in ("auto", "numpy"):
        assert resolved(element, device=device).tolist() == expected


@cases(200)
@given(st.integers(-50, 50), st.integers(-50, 50), st.integers(-9, 9).filter(bool))
def test_the_length_is_pythons(start: int, stop: int, step: int) -> None:
    assert fc.range(start, stop, step).shape == (len(range(start, stop, step)),)
    assert fc.range(start, stop, step, dtype="float32").shape == (len(range(start, stop, step)),)


def test_the_largest_integers() -> None:
    top = 2**64 - 1
    assert everywhere(fc.range(top - 3, top, dtype="uint64")).tolist() == [top - 3, top - 2, top - 1]
    assert everywhere(fc.range(-(2**63), 2**63 - 1, 2**62)).tolist() == [-(2**63), -(2**62), 0, 2**62]
    assert everywhere(fc.range(2**63 - 1, -(2**63), -(2**63))).tolist() == [2**63 - 1, -1]


# -- floats -----------------------------------------------------------------------------------------


def as_stated(start: float, step: float, length: int, dtype: np.dtype) -> np.ndarray:
    """`start + i * delta` with each operation rounded to the dtype that it is computed in."""
    inner = np.dtype(np.float64 if dtype == np.float64 else np.float32)
    first, second = (np.array(number, np.float64).astype(dtype).astype(inner) for number in (start, start + step))
    return (first + np.arange(length).astype(inner) * (second - first)).astype(dtype)


@settings(max_examples=20)
@given(
    dtype=st.sampled_from(FLOATS),
    start=st.floats(-100, 100, width=16),
    step=st.floats(-10, 10).filter(lambda step: abs(step) > 1e-3),
    length=st.integers(0, 40),
)
def test_floats_are_numpys(dtype: np.dtype, start: float, step: float, length: int) -> None:
    stop = start + (length - 0.5) * step if length else start
    element = fc.range(start, stop, step, dtype=dtype)
    numpys = np.arange(start, stop, step, dtype=dtype)
    assert element.shape == numpys.shape
    value = resolved(element)
    assert value.tobytes() == resolved(element, device="numpy").tobytes()
    expected = as_stated(start, step, len(value), dtype)
    assert np.array_equal(value, expected)
    # NumPy's second number is what it takes its step from, rounded only once.
    assert np.array_equal(np.delete(value, [1] if length > 1 else []), np.delete(numpys, [1] if length > 1 else []))


@pytest.mark.parametrize("dtype", FLOATS, ids=lambda dtype: dtype.name)
def test_floats_have_equal_bits_everywhere(dtype: np.dtype) -> None:
    value = everywhere(fc.range(0.5, 0.1 * 1025, 0.1, dtype=dtype))
    assert value.dtype == dtype
    assert everywhere(fc.range(0.0, -3.0, -1.0, dtype=dtype)).tolist() == [0, -1, -2]
    assert not np.signbit(resolved(fc.range(0.0, -3.0, -1.0, dtype=dtype)).astype(np.float64)[0])


def test_the_dtype_follows_the_arguments() -> None:
    assert fc.range(3).dtype == np.int64
    assert fc.range(3.0).dtype == fc.range(0, 3, 0.5).dtype == fc.range(np.float32(0), 3).dtype == np.float64
    assert fc.range(np.int8(3), dtype="float16").dtype == np.float16
    assert fc.range(1e-300, 2e-300, 1e10).shape == (1,)


# -- positions --------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(), (1,), (3,), (16,), (17,), (4, 5), (2, 3, 4), (1, 7), (5, 1), (0,), (3, 0)])
def test_positions_count_all_numbers(shape: tuple[int, ...]) -> None:
    length = 257
    value = everywhere(index(length, shape))
    count = length * math.prod(shape)
    assert np.array_equal(value, np.arange(count).reshape(length, *shape))


def test_positions_take_part_in_any_kernel() -> None:
    length = 129
    data = np.arange(length * 60, dtype=np.int64).reshape(length, 3, 4, 5)[::-1].copy()
    x, i, whole = fc.source(data), index(length, (3, 4, 5)), np.arange(length * 60).reshape(length, 3, 4, 5)
    middle, rows = index(length, (4, 1)), np.arange(length * 4).reshape(length, 1, 4, 1)
    pairs: list[tuple[fc.Element, np.ndarray]] = [
        (x + i, data + whole),
        ((x * i).sum(axis=(1, 3)), (data * whole).sum(axis=(1, 3))),
        (i - i.max(axis=2, keepdims=True), whole - whole.max(axis=2, keepdims=True)),
        (i.sum(axis=0), whole.sum(axis=0)),
        (i.argmax(axis=0), whole.argmax(axis=0)),
        (x.max(axis=(1, 2)) + index(length, (5,)), data.max(axis=(1, 2)) + np.arange(length * 5).reshape(length, 5)),
        (middle + index(length, (1, 6)), rows[:, 0] + np.arange(length * 6).reshape(length, 1, 6)),
        (fc.range(length).sum(), np.asarray(length * (length - 1) // 2)),
        (x.sum(axis=(1, 2, 3)) * fc.range(length), data.sum(axis=(1, 2, 3)) * np.arange(length)),
    ]
    elements = [element for element, _ in pairs]
    numpys = fc.resolve(*elements, device="numpy", progress=False)
    for options in ({}, {"strategy": fc.Strategy(batch_bytes=1 << 14)}):
        values = fc.resolve(*elements, progress=False, **options)
        for value, same, (element, expected) in zip(values, numpys, pairs, strict=True):
            assert np.array_equal(value, expected), str(element)
            assert np.array_equal(same, expected), str(element)


def test_ranges_meet_other_streams() -> None:
    x = fc.source(np.arange(10.0))
    assert np.array_equal(resolved(x * fc.range(10)), np.arange(10) ** 2.0)
    assert fc.vecdot(x, fc.range(10.0)).resolve() == (np.arange(10.0) ** 2).sum()
    with pytest.raises(SpecError, match="different length"):
        x + fc.range(11)


def test_equal_ranges_are_one() -> None:
    graph = build_graph([fc.range(9) + fc.range(0, 9), fc.range(1, 9) * fc.range(1, 9)])
    assert sum(node.op is not None and node.op.name == "range" for node in graph.nodes) == 2
    assert fc.range(9).hash == fc.range(8).hash


def test_a_range_reads_nothing() -> None:
    plan = fc.range(2**40).sum().plan()
    assert plan.passes[0].sources == ()
    assert fc.range(2**62).shape == (2**62,)


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: fc.range(0, 5, 0), "cannot go by a step of 0"),
        (lambda: fc.range(math.nan), "cannot take stop"),
        (lambda: fc.range(0.0, math.inf), "cannot take stop"),
        (lambda: fc.range("5"), "cannot take stop"),
        (lambda: fc.range(True), "cannot take stop"),
        (lambda: fc.range(1, fc.constant(5)), "cannot take stop"),
        (lambda: fc.range(0, 5, 1.5, dtype="int32"), "cannot hold fractions in int32"),
        (lambda: fc.range(5, dtype="bool"), "cannot make a range of bools"),
        (lambda: fc.range(5, dtype="complex64"), "is not supported"),
        (lambda: fc.range(300, dtype="int8"), r"cannot hold the numbers in int8[\s\S]*-128 to 127[\s\S]*0 to 299"),
        (lambda: fc.range(-1, 3, dtype="uint64"), "cannot hold the numbers in uint64"),
        (lambda: fc.range(2**63, dtype="uint64"), "cannot count so many numbers"),
        (lambda: fc.range(0.0, 1e300), "cannot count so many numbers"),
        (lambda: fc.range(-1e308, 1e308, 1e-5), "cannot count so many numbers"),
        (lambda: fc.range(10**400), "cannot hold the numbers in int64"),
        (lambda: fc.range(0, 10**400, dtype="float64"), "cannot count so many numbers"),
        (lambda: fc.range(10**400, 10**400 + 5, dtype="float64"), "cannot hold the numbers in float64"),
        (lambda: fc.range(0.0, 1e6, 1e5, dtype="float16"), "cannot hold the numbers in float16"),
    ],
)
def test_what_makes_no_sense_is_refused(make: Callable[[], object], text: str) -> None:
    with pytest.raises(SpecError, match=text) as caught:
        make()
    assert "test_generate.py" in str(caught.value)
