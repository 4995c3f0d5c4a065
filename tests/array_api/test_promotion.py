"""Dtypes of results, by the standard's tables of type promotion."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import flowcompute as fc
import flowcompute.array_api as xp
from flowcompute.errors import SpecError, SpecTypeError

SIGNED = ("int8", "int16", "int32", "int64")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
FLOATS = ("float32", "float64")
DTYPES = ("bool", *SIGNED, *UNSIGNED, *FLOATS)

# From "Type promotion rules": rows are the first operand, columns the second one.
_MIXED = {
    "int8": ("int16", "int32", "int64", None),
    "int16": ("int16", "int32", "int64", None),
    "int32": ("int32", "int32", "int64", None),
    "int64": ("int64", "int64", "int64", None),
}
PROMOTED: dict[tuple[str, str], str | None] = {
    **dict.fromkeys(itertools.product(DTYPES, repeat=2)),
    ("bool", "bool"): "bool",
    **{(a, b): row[max(row.index(a), row.index(b))] for row in (SIGNED, UNSIGNED, FLOATS) for a in row for b in row},
    **{(a, b): dtype for a, row in _MIXED.items() for b, dtype in zip(UNSIGNED, row, strict=True)},
    **{(b, a): dtype for a, row in _MIXED.items() for b, dtype in zip(UNSIGNED, row, strict=True)},
}

ARITHMETIC = (xp.add, xp.multiply, xp.remainder, xp.maximum, xp.floor_divide)
COMPARISONS = (xp.equal, xp.not_equal, xp.less, xp.less_equal, xp.greater, xp.greater_equal)
SCALARS: dict[Any, tuple[str, ...]] = {
    True: ("bool",),
    3: (*SIGNED, *UNSIGNED, *FLOATS),
    2.5: FLOATS,
    np.float64(2.5): FLOATS,
    1j: (),
}
"""Python's numbers, and the dtypes of arrays that each may stand beside."""


def made(dtype: str, *, stream: bool) -> xp.LazyArray:
    array = np.ones((3, 2), dtype)
    return xp.asarray(fc.source(array)) if stream else xp.asarray(array)


@pytest.fixture(params=[False, True], ids=["resident", "stream"])
def stream(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


@pytest.mark.parametrize(("pair", "expected"), PROMOTED.items(), ids=lambda one: str(one))
def test_two_arrays(pair: tuple[str, str], expected: str | None, stream: bool) -> None:
    left, right = (made(dtype, stream=stream) for dtype in pair)
    combining = {
        "result_type": lambda: xp.result_type(left, right.dtype),
        "where": lambda: xp.where(xp.asarray([True, False]), left, right),
        "concat": lambda: xp.concat([left, right], axis=1),
        "stack": lambda: xp.stack([left, right], axis=-1),
        "diff": lambda: xp.diff(left, prepend=right),
        "vecdot": lambda: xp.vecdot(left, right),
        **{function.__name__: lambda f=function: f(left, right) for function in (*ARITHMETIC, *COMPARISONS)},
        "+": lambda: left + right,
        "<": lambda: left < right,
    }
    for name, build in combining.items():
        if expected is None:
            with pytest.raises(SpecTypeError, match="cannot mix kinds of dtypes"):
                build()
        elif expected != "bool" or name in ("where", "concat", "stack", "result_type", "equal"):
            result = build()
            comparison = name == "<" or name in {function.__name__ for function in COMPARISONS}
            assert getattr(result, "dtype", result) == ("bool" if comparison else expected), name


@pytest.mark.parametrize("dtype", DTYPES)
def test_an_array_and_a_python_number(dtype: str, stream: bool) -> None:
    x = made(dtype, stream=stream)
    for number, partners in SCALARS.items():
        builds = (
            lambda: xp.equal(x, number),  # noqa: B023
            lambda: xp.equal(number, x),  # noqa: B023
            lambda: x == number,  # noqa: B023
            lambda: xp.where(xp.asarray([True, False]), x, number),  # noqa: B023
        )
        for position, build in enumerate(builds):
            if dtype in partners:
                assert build().dtype == (dtype if position == 3 else "bool")
            else:
                with pytest.raises(SpecTypeError, match=r"cannot (mix kinds of dtypes|take this argument)"):
                    build()
        if dtype in partners and dtype != "bool":
            assert (x + number).dtype == (number + x).dtype == xp.result_type(number, x, number) == dtype
            assert xp.clip(x, number).dtype == xp.clip(x, max=number).dtype == dtype


def test_python_numbers_alone_have_no_dtype() -> None:
    for build in (lambda: xp.add(1, 2), lambda: xp.result_type(1, 2.0), xp.result_type):
        with pytest.raises(SpecTypeError, match="cannot promote without an array"):
            build()


def test_result_type_takes_any_number_of_them() -> None:
    assert xp.result_type(xp.int8, xp.uint8, xp.asarray([1], dtype=xp.int32)) == xp.int32
    with pytest.raises(SpecTypeError, match="cannot mix kinds of dtypes") as caught:
        xp.result_type(xp.uint64, xp.int8)
    assert caught.value.got == "uint64 and int8"


def test_can_cast_is_promotion() -> None:
    for (left, right), expected in PROMOTED.items():
        assert xp.can_cast(np.dtype(left), np.dtype(right)) == (expected == right)
    assert xp.can_cast(xp.asarray(1.0, dtype=xp.float32), xp.float64)


def test_isdtype_knows_the_standards_kinds() -> None:
    kinds = {
        "bool": {"bool"},
        "signed integer": set(SIGNED),
        "unsigned integer": set(UNSIGNED),
        "integral": {*SIGNED, *UNSIGNED},
        "real floating": set(FLOATS),
        "complex floating": set(),
        "numeric": {*SIGNED, *UNSIGNED, *FLOATS},
    }
    info = xp.__array_namespace_info__()
    for kind, names in kinds.items():
        assert {name for name in DTYPES if xp.isdtype(getattr(xp, name), kind)} == names
        assert set(info.dtypes(kind=kind)) == names
    assert set(info.dtypes()) == set(DTYPES)
    assert set(info.dtypes(kind=("bool", "real floating"))) == {"bool", *FLOATS}
    assert xp.isdtype(xp.int8, (xp.float32, "signed integer"))
    assert not xp.isdtype(xp.int8, xp.int16)
    assert not xp.isdtype(xp.int8, ())
    with pytest.raises(SpecError, match="cannot take kind="):
        xp.isdtype(xp.int8, ("signed integer", "integer"))


def test_limits_of_dtypes() -> None:
    for name in FLOATS:
        info = xp.finfo(getattr(xp, name))
        assert (info.bits, info.dtype) == (8 * np.dtype(name).itemsize, name)
        assert 1 + info.eps > 1
        assert -info.max == info.min < 0 < info.smallest_normal
    assert (xp.iinfo(xp.uint8).max, xp.iinfo(xp.asarray([1], dtype=xp.int8)).min) == (255, -128)
    for limits, dtype in ((xp.finfo, xp.int8), (xp.iinfo, xp.float32), (xp.iinfo, xp.bool)):
        with pytest.raises(SpecTypeError, match="cannot tell the limits of"):
            limits(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_results_of_reductions(dtype: str, stream: bool) -> None:
    x = made(dtype, stream=stream)
    summed = dtype if dtype in FLOATS else "uint64" if dtype in UNSIGNED else "int64"
    for axis in (None, 0, 1):
        for function in (xp.argmax, xp.argmin, xp.count_nonzero):
            assert function(x, axis=axis).dtype == "int64"
        for function in (xp.any, xp.all):
            assert function(x, axis=axis).dtype == "bool"
        for function in (xp.sum, xp.prod):
            assert function(x, axis=axis).dtype == summed
            assert function(x, axis=axis, dtype=xp.float32).dtype == "float32"
        for function in (xp.min, xp.max):
            assert function(x, axis=axis).dtype == dtype
        for function in (xp.mean, xp.std, xp.var):
            assert function(x, axis=axis).dtype == (dtype if dtype in FLOATS else "float64")
    for initial in (False, True):
        for running in (xp.cumulative_sum, xp.cumulative_prod):
            assert running(x, axis=1, include_initial=initial).dtype == summed
            assert running(x, axis=0, include_initial=initial, dtype=xp.float64).dtype == "float64"


def test_dtypes_of_python_numbers() -> None:
    default = xp.__array_namespace_info__().default_dtypes()
    assert default == {
        "real floating": xp.float64,
        "complex floating": None,
        "integral": xp.int64,
        "indexing": xp.int64,
    }
    for value, dtype in ((True, xp.bool), ([True, 2], xp.int64), (1, xp.int64), ([1, 2.0], xp.float64)):
        assert xp.asarray(value).dtype == dtype
    assert (xp.arange(3).dtype, xp.arange(3.0).dtype, xp.arange(3, dtype=xp.uint8).dtype) == (
        xp.int64,
        xp.float64,
        xp.uint8,
    )
    with pytest.raises(SpecTypeError):
        xp.asarray(1j)
