"""Values that are filled, spaced or on a diagonal, and questions about dtypes: NumPy's answers, without reading."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flowcompute as fc
from flowcompute.graph import build_graph
from flowcompute.spec import BFLOAT16, SUPPORTED_DTYPES, is_float
from tests.support.slow import compiled_but

DEVICES = ("numpy", "cpu")
SHAPES = st.lists(st.integers(0, 4), max_size=3).map(tuple)


def value_of(element: Any, device: str = "numpy", **options: Any) -> np.ndarray:
    return np.asarray(element.resolve(device=device, progress=False, **options))


@given(shape=SHAPES, dtype=st.sampled_from(SUPPORTED_DTYPES), device=st.sampled_from(DEVICES))
def test_filled_values_are_numpys(shape: tuple[int, ...], dtype: np.dtype, device: str) -> None:
    fill = 1 if dtype == np.bool_ else 3
    pairs = [
        (fc.zeros(shape, dtype=dtype), np.zeros(shape, dtype)),
        (fc.ones(shape, dtype=dtype), np.ones(shape, dtype)),
        (fc.empty(shape, dtype=dtype), np.zeros(shape, dtype)),
        (fc.full(shape, fill, dtype=dtype), np.full(shape, fill, dtype)),
    ]
    for made, want in pairs:
        value = value_of(made, device)
        assert made.shape == value.shape == want.shape
        assert made.dtype == value.dtype == want.dtype
        assert value.tobytes() == want.tobytes()


@pytest.mark.parametrize("fill", [True, 3, -0.0, np.nan, np.inf, np.float32(0.1), np.int8(-3), BFLOAT16.type(2)])
def test_dtypes_of_what_is_filled(fill: Any) -> None:
    want = np.full((2, 2), fill)
    assert fc.full((2, 2), fill).dtype == want.dtype
    assert value_of(fc.full((2, 2), fill)).tobytes() == want.tobytes()
    assert fc.zeros(3).dtype == fc.ones(3).dtype == fc.eye(3).dtype == fc.linspace(0, 1).dtype == np.float64


@pytest.mark.parametrize(
    ("device", "shape"),
    [
        *itertools.product(DEVICES, [(7,), (4, 0)]),
        *compiled_but([("numpy", (0, 3))], itertools.product(DEVICES, [(0, 3), (5, 3), (4, 2, 3)])),
    ],
)
def test_like_a_stream(shape: tuple[int, ...], device: str) -> None:
    made, wanted, sums, added = [], [], [], []
    for dtype in SUPPORTED_DTYPES:
        array = np.ones(shape, dtype)
        x = fc.source(array)
        for fill in [0, 1, *([-0.0, np.nan, -np.inf] if is_float(dtype) else [])]:
            made.append(fc.full_like(x, fill))
            wanted.append(np.full_like(array, fill))
            assert made[-1].spec == x.spec
        sums.append(fc.ones_like(x) + x)
        added.append(array + array)
    # All dtypes are resolved at once, since one text of many kernels compiles sooner than many texts.
    for value, want in zip(fc.resolve(*made, device=device, progress=False), wanted, strict=True):
        assert (value.dtype, value.tobytes()) == (want.dtype, want.tobytes())
    small = fc.Strategy(batch_bytes=16)
    for value, want in zip(fc.resolve(*sums, device=device, strategy=small, progress=False), added, strict=True):
        assert (value.dtype, value.tobytes()) == (want.dtype, want.tobytes())


def test_like_a_stream_of_known_length_reads_nothing() -> None:
    x = fc.source(np.ones((50, 3)))
    assert not [node for node in build_graph([fc.zeros_like(x)]).nodes if isinstance(node.element, fc.Source)]
    both = build_graph([fc.full_like(x, 2) * x])
    assert len([node for node in both.nodes if isinstance(node.element, fc.Source)]) == 1


@pytest.mark.parametrize("device", DEVICES)
def test_like_a_stream_of_unknown_length(device: str) -> None:
    array = np.array([[1, np.nan], [np.inf, 2], [3, 4]])
    x = fc.iterate([array, array[:1]], shape=(2,), dtype="f8")
    made = fc.full_like(x, 7, dtype="i2")
    assert made.spec.length is None
    assert value_of(made, device).tobytes() == np.full((4, 2), 7, "i2").tobytes()
    selected = fc.source(array)[array[:, 0] > 0]
    assert value_of(fc.ones_like(selected) * selected, device).tobytes() == array[array[:, 0] > 0].tobytes()


def test_like_a_resident_value() -> None:
    x = fc.source(np.ones((6, 3))).sum(axis=0)
    assert value_of(fc.full_like(x, 2)).tolist() == [2, 2, 2]
    assert value_of(fc.zeros_like(np.ones((2, 1), "i1"))).tobytes() == np.zeros((2, 1), "i1").tobytes()
    assert value_of(fc.ones_like(5)).tolist() == 1


def test_large_shapes_cost_nothing_until_they_are_computed() -> None:
    huge = fc.zeros((1 << 20, 1 << 20))
    assert huge.nbytes == 1 << 43
    with pytest.raises(fc.PlanError, match="8796093022208 bytes"):
        huge.plan(device="numpy", memory="64MiB")


@given(
    rows=st.sampled_from([0, 1, 3, 5]),
    columns=st.sampled_from([None, 0, 1, 4]),
    k=st.integers(-7, 7),
    device=st.sampled_from(DEVICES),
)
def test_eye(rows: int, columns: int | None, k: int, device: str) -> None:
    dtypes = ("?", "i2", "f4", BFLOAT16)
    made = [fc.eye(rows, columns, k=k, dtype=dtype) for dtype in dtypes]
    for dtype, value in zip(dtypes, fc.resolve(*made, device=device, progress=False), strict=True):
        assert value.tobytes() == np.eye(rows, columns, k, dtype).tobytes()


@given(
    start=st.floats(-1e6, 1e6), stop=st.floats(-1e6, 1e6), num=st.integers(0, 50), endpoint=st.booleans(),
    dtype=st.sampled_from([None, "f4", "f8"]),
)  # fmt: skip
def test_linspace(start: float, stop: float, num: int, endpoint: bool, dtype: Any) -> None:
    want = np.linspace(start, stop, num, endpoint=endpoint, dtype=dtype)
    made = fc.linspace(start, stop, num, endpoint=endpoint, dtype=dtype)
    assert made.value.tobytes() == want.tobytes()


@pytest.mark.parametrize("dtype", SUPPORTED_DTYPES, ids=str)
def test_limits_and_kinds(dtype: np.dtype) -> None:
    x = fc.source(np.ones(3, dtype))
    if is_float(dtype):
        for one in (dtype, x, np.ones(1, dtype)):
            limits = fc.finfo(one)
            assert limits.dtype == dtype
            assert limits.bits == 8 * dtype.itemsize
            assert dtype.type(1) + dtype.type(limits.eps) > dtype.type(1)
            assert limits.max == -limits.min
    else:
        with pytest.raises(TypeError, match="limits of floats"):
            fc.finfo(x)
    if dtype.kind in "iu":
        assert fc.iinfo(x).max == np.iinfo(dtype).max
    else:
        with pytest.raises(fc.SpecTypeError, match="limits of integers"):
            fc.iinfo(dtype)
    kinds = ("bool", "signed integer", "unsigned integer", "integral", "real floating", "complex floating", "numeric")
    for kind in kinds:
        want = np.isdtype(dtype if dtype != BFLOAT16 else np.dtype("f4"), kind)
        assert fc.isdtype(dtype, kind) == want
        assert fc.isdtype(dtype, (kind, dtype))
    for other in SUPPORTED_DTYPES:
        assert fc.isdtype(dtype, other) == (dtype == other)
        assert fc.can_cast(dtype, other) == np.can_cast(dtype, other)


@given(a=st.sampled_from(SUPPORTED_DTYPES), b=st.sampled_from(SUPPORTED_DTYPES))
def test_types_of_results_are_those_of_operations(a: np.dtype, b: np.dtype) -> None:
    x, y = fc.source(np.ones(3, a)), fc.source(np.ones(3, b))
    assert fc.result_type(x, y) == fc.result_type(x, b) == fc.result_type(a, y) == fc.where(x != x, x, y).dtype
    for number in (True, 2, 2.0):
        assert fc.result_type(a, number) == fc.where(x != x, x, number).dtype


def test_types_of_numbers_alone() -> None:
    assert [fc.result_type(one) for one in (True, 1, 1.0)] == [np.dtype(one) for one in ("?", "i8", "f8")]
    assert fc.result_type("i2", "u2", "f4") == np.result_type("i2", "u2", "f4")
    assert fc.result_type("u1", 10**6, 1.5) == np.result_type(np.uint8, 1.5)


def test_parts_of_real_numbers() -> None:
    x = fc.source(np.arange(3.0))
    assert fc.real(x) is x
    assert fc.conj(x) is x
    assert np.conj(x) is x
    assert np.real(x) is x
    assert value_of(np.imag(x)).tolist() == [0, 0, 0]
    assert value_of(np.full_like(x, 2, "i4")).dtype == np.int32


def test_constants_of_numpy() -> None:
    assert (fc.pi, fc.e, fc.inf, fc.newaxis) == (np.pi, np.e, np.inf, None)
    assert np.isnan(fc.nan)
    assert fc.source(np.ones((3, 2)))[:, fc.newaxis].shape == (3, 1, 2)


@pytest.mark.parametrize(
    ("call", "kind", "text"),
    [
        (lambda: fc.zeros(-1), ValueError, "shape="),
        (lambda: fc.zeros((2.5,)), TypeError, "shape="),
        (lambda: fc.zeros((2**40, 2**40)), ValueError, "of this shape"),
        (lambda: fc.zeros((2**40, 2**40, 0)), ValueError, "of this shape"),
        (lambda: fc.zeros(3, dtype="c8"), TypeError, "complex64"),
        (lambda: fc.full(3, 300, dtype="u1"), ValueError, "cannot hold this number in uint8"),
        (lambda: fc.full(3, 1.5, dtype="i4"), ValueError, "cannot hold this number in int32"),
        (lambda: fc.full(3, np.nan, dtype="i4"), ValueError, "cannot hold this number in int32"),
        (lambda: fc.full(3, 2, dtype="?"), ValueError, "cannot hold this number in bool"),
        (lambda: fc.full(3, [1, 2, 3]), TypeError, "fc.broadcast_to"),
        (lambda: fc.full(3, 1j), TypeError, "a real number"),
        (lambda: fc.eye(2**30), ValueError, "n_rows="),
        (lambda: fc.linspace(0, np.inf), ValueError, "finite"),
        (lambda: fc.linspace(0, 1, -1), ValueError, "num="),
        (lambda: fc.linspace(0, 1, dtype="i4"), ValueError, "a dtype of floats"),
        (lambda: fc.isdtype("f4", "float"), ValueError, "kind="),
        (lambda: fc.isdtype("nonsense", "bool"), TypeError, "nonsense"),
        (lambda: fc.result_type(), TypeError, "nothing"),
        (lambda: fc.real(np.ones(3, complex)), ValueError, "complex numbers"),
        (lambda: fc.imag(1j), ValueError, "complex numbers"),
    ],
)
def test_refusals(call: Callable[[], Any], kind: type[Exception], text: str) -> None:
    with pytest.raises(fc.SpecError, match=text) as caught:
        call()
    assert isinstance(caught.value, kind)
