"""Special cases, from the standard's text: of residents and of streams, computed by NumPy and by OpenCL."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np
import pytest

import flowcompute as fc
import flowcompute.array_api as xp

nan, inf, pi = math.nan, math.inf, math.pi
up = np.nextafter(1.0, 2.0)

# (x1, x2): the result, or several where the standard allows them.
BINARY: dict[str, list[tuple[float, float, Any]]] = {
    "add": [(nan, 1, nan), (1, nan, nan), (inf, -inf, nan), (-inf, inf, nan), (inf, inf, inf), (-inf, 1, -inf),
            (1, inf, inf), (-0.0, -0.0, -0.0), (-0.0, 0.0, 0.0), (0.0, -0.0, 0.0), (5, -5, 0.0)],
    "atan2": [(nan, 1, nan), (1, nan, nan), (2, 0.0, pi / 2), (2, -0.0, pi / 2), (0.0, 3, 0.0), (0.0, 0.0, 0.0),
              (0.0, -0.0, pi), (0.0, -3, pi), (-0.0, 3, -0.0), (-0.0, 0.0, -0.0), (-0.0, -0.0, -pi), (-0.0, -3, -pi),
              (-2, 0.0, -pi / 2), (-2, -0.0, -pi / 2), (2, inf, 0.0), (2, -inf, pi), (-2, inf, -0.0), (-2, -inf, -pi),
              (inf, 2, pi / 2), (-inf, 2, -pi / 2), (inf, inf, pi / 4), (inf, -inf, 3 * pi / 4), (-inf, inf, -pi / 4),
              (-inf, -inf, -3 * pi / 4)],
    "copysign": [(3, -2, -3), (3, -0.0, -3), (-3, 0.0, 3), (-3, 2, 3), (nan, 2, nan), (inf, -1, -inf)],
    "divide": [(nan, 1, nan), (inf, -inf, nan), (0.0, -0.0, nan), (0.0, 2, 0.0), (-0.0, 2, -0.0), (0.0, -2, -0.0),
               (-0.0, -2, 0.0), (2, 0.0, inf), (2, -0.0, -inf), (-2, 0.0, -inf), (-2, -0.0, inf), (inf, 2, inf),
               (inf, -2, -inf), (-inf, 2, -inf), (-inf, -2, inf), (2, inf, 0.0), (2, -inf, -0.0), (-2, inf, -0.0),
               (-2, -inf, 0.0)],
    "floor_divide": [(nan, 1, nan), (inf, -inf, nan), (0.0, -0.0, nan), (0.0, 2, 0.0), (-0.0, 2, -0.0),
                     (0.0, -2, -0.0), (-0.0, -2, 0.0), (2, 0.0, inf), (2, -0.0, -inf), (-2, 0.0, -inf),
                     (-2, -0.0, inf), (inf, 2, (inf, nan)), (inf, -2, (-inf, nan)), (-inf, 2, (-inf, nan)),
                     (-inf, -2, (inf, nan)), (2, inf, 0.0), (2, -inf, (-0.0, -1)), (-2, inf, (-0.0, -1)),
                     (-2, -inf, 0.0), (7, 2, 3), (-7, 2, -4), (7, -2, -4)],
    "hypot": [(inf, 1, inf), (-inf, nan, inf), (nan, inf, inf), (1, -inf, inf), (1, nan, nan), (nan, 1, nan),
              (0.0, -0.0, 0.0), (3, 4, 5)],
    "logaddexp": [(nan, 1, nan), (1, nan, nan), (inf, 1, inf), (1, inf, inf)],
    "maximum": [(nan, 1, nan), (1, nan, nan), (inf, nan, nan), (2, 3, 3)],
    "minimum": [(nan, 1, nan), (1, nan, nan), (-inf, nan, nan), (2, 3, 2)],
    "multiply": [(nan, 1, nan), (inf, 0.0, nan), (-0.0, inf, nan), (inf, -2, -inf), (-inf, -inf, inf), (-0.0, 2, -0.0)],
    "nextafter": [(nan, 1, nan), (1, nan, nan), (0.0, -0.0, -0.0), (-0.0, 0.0, 0.0), (1, 2, up), (2, 2, 2)],
    "pow": [(2, nan, nan), (nan, 0.0, 1), (nan, -0.0, 1), (5, 0.0, 1), (5, -0.0, 1), (nan, 2, nan), (2, inf, inf),
            (-2, inf, inf), (2, -inf, 0.0), (1, inf, 1), (1, -inf, 1), (-1, inf, 1), (-1, -inf, 1), (1, 7, 1),
            (0.5, inf, 0.0), (-0.5, inf, 0.0), (0.5, -inf, inf), (inf, 2, inf), (inf, -2, 0.0), (-inf, 3, -inf),
            (-inf, 2, inf), (-inf, 2.5, inf), (-inf, -3, -0.0), (-inf, -2, 0.0), (0.0, 2, 0.0), (0.0, -2, inf),
            (-0.0, 3, -0.0), (-0.0, 2, 0.0), (-0.0, 2.5, 0.0), (-0.0, -3, -inf), (-0.0, -2, inf), (-8, 1.5, nan)],
    "remainder": [(nan, 1, nan), (1, nan, nan), (inf, -inf, nan), (0.0, -0.0, nan), (0.0, 2, 0.0), (-0.0, 2, 0.0),
                  (0.0, -2, -0.0), (-0.0, -2, -0.0), (2, 0.0, nan), (-2, -0.0, nan), (inf, 2, nan), (-inf, -2, nan),
                  (2, inf, 2), (2, -inf, -inf), (-2, inf, inf), (-2, -inf, -2), (-7, 2, 1), (7, -2, -1)],
    "subtract": [(inf, inf, nan), (0.0, 0.0, 0.0), (-0.0, 0.0, -0.0), (inf, -inf, inf)],
    **{name: [(nan, 1, False), (1, nan, False), (nan, nan, False), (0.0, -0.0, name in ("equal", "less_equal"))]
       for name in ("equal", "less", "less_equal", "greater")},
    "not_equal": [(nan, nan, True), (0.0, -0.0, False)],
    "logical_and": [(nan, 1, True), (-0.0, 1, False)],
}  # fmt: skip

_ODD_AT_ZERO = [(0.0, 0.0), (-0.0, -0.0), (nan, nan)]
_WHOLE = [*_ODD_AT_ZERO, (inf, inf), (-inf, -inf), (3.0, 3.0)]

UNARY: dict[str, list[tuple[float, Any]]] = {
    "abs": [(nan, nan), (-0.0, 0.0), (-inf, inf)],
    "acos": [(nan, nan), (1.5, nan), (-1.5, nan), (1, 0.0)],
    "acosh": [(nan, nan), (0.5, nan), (1, 0.0), (inf, inf)],
    "asin": [*_ODD_AT_ZERO, (1.5, nan), (-1.5, nan)],
    "asinh": [*_ODD_AT_ZERO, (inf, inf), (-inf, -inf)],
    "atan": [*_ODD_AT_ZERO, (inf, pi / 2), (-inf, -pi / 2)],
    "atanh": [*_ODD_AT_ZERO, (1.5, nan), (-1.5, nan), (1, inf), (-1, -inf)],
    "ceil": [*_WHOLE, (1.2, 2), (-1.2, -1)],
    "cos": [(nan, nan), (0.0, 1), (-0.0, 1), (inf, nan), (-inf, nan)],
    "cosh": [(nan, nan), (0.0, 1), (-0.0, 1), (inf, inf), (-inf, inf)],
    "exp": [(nan, nan), (0.0, 1), (-0.0, 1), (inf, inf), (-inf, 0.0)],
    "expm1": [*_ODD_AT_ZERO, (inf, inf), (-inf, -1)],
    "floor": [*_WHOLE, (1.2, 1), (-1.2, -2)],
    "isfinite": [(nan, False), (inf, False), (1, True)],
    "isinf": [(nan, False), (-inf, True), (1, False)],
    "isnan": [(nan, True), (inf, False)],
    "log": [(nan, nan), (-1, nan), (0.0, -inf), (-0.0, -inf), (1, 0.0), (inf, inf)],
    "log1p": [*_ODD_AT_ZERO, (-1.5, nan), (-1, -inf), (inf, inf)],
    "log2": [(nan, nan), (-1, nan), (0.0, -inf), (-0.0, -inf), (1, 0.0), (inf, inf)],
    "log10": [(nan, nan), (-1, nan), (0.0, -inf), (-0.0, -inf), (1, 0.0), (inf, inf)],
    "logical_not": [(nan, False), (-0.0, True)],
    "negative": [(0.0, -0.0), (-0.0, 0.0), (inf, -inf)],
    "reciprocal": [(0.0, inf), (-0.0, -inf), (inf, 0.0)],
    "round": [*_WHOLE, (0.5, 0.0), (1.5, 2), (2.5, 2), (-0.5, -0.0), (-1.5, -2), (-2.5, -2), (1e300, 1e300)],
    "sign": [(nan, nan), (0.0, 0.0), (-0.0, 0.0), (-3, -1), (inf, 1)],
    "signbit": [(0.0, False), (-0.0, True), (inf, False), (-inf, True), (-3, True)],
    "sin": [*_ODD_AT_ZERO, (inf, nan), (-inf, nan)],
    "sinh": [*_ODD_AT_ZERO, (inf, inf), (-inf, -inf)],
    "sqrt": [*_ODD_AT_ZERO, (-1, nan), (inf, inf)],
    "tan": [*_ODD_AT_ZERO, (inf, nan), (-inf, nan)],
    "tanh": [*_ODD_AT_ZERO, (inf, 1), (-inf, -1)],
    "trunc": [*_WHOLE, (1.2, 1), (-1.2, -1)],
}


def same(got: Any, expected: Any) -> bool:
    """Whether a number is the expected one, with its sign where it is a zero; multiples of pi are rounded."""
    if isinstance(expected, tuple):
        return any(same(got, one) for one in expected)
    if isinstance(expected, bool):
        return bool(got) is expected
    if math.isnan(expected):
        return math.isnan(got)
    return math.isclose(got, expected, rel_tol=1e-15) and math.copysign(1, got) == math.copysign(1, expected)


def wrong(name: str, cases: list[tuple[Any, ...]], got: np.ndarray) -> list[str]:
    pairs = zip(cases, got.tolist(), strict=True)
    return [f"{name}{case[:-1]} is {one}, not {case[-1]}" for case, one in pairs if not same(one, case[-1])]


@functools.cache
def results(device: str, form: str) -> dict[str, np.ndarray]:
    """All results, in one run."""

    def array(values: list[float]) -> xp.LazyArray:
        numbers = np.array(values, np.float64)
        return xp.asarray(numbers if form == "resident" else fc.source(numbers))

    built = {}
    for name, cases in (BINARY | UNARY).items():
        operands = [array([case[place] for case in cases]) for place in range(len(cases[0]) - 1)]
        built[name] = getattr(xp, name)(*operands).element
    return dict(zip(built, fc.resolve(*built.values(), device=device), strict=True))


@pytest.mark.parametrize("form", ["resident", "stream"])
@pytest.mark.parametrize("device", ["numpy", pytest.param("cpu", marks=pytest.mark.compiles)])
def test_element_wise_functions(device: str, form: str) -> None:
    got = results(device, form)
    found = [line for name, cases in (BINARY | UNARY).items() for line in wrong(name, cases, got[name])]
    assert found == []


@pytest.mark.parametrize("form", ["resident", "stream"])
def test_a_limit_that_is_nan_gives_nan(form: str) -> None:
    values = np.array([nan, 1.0, 1.0, -5.0, 5.0])
    x = xp.asarray(values if form == "resident" else fc.source(values))
    low, high = xp.asarray([0.0, nan, 0.0, -1.0, -1.0]), xp.asarray([1.0, 1.0, nan, 2.0, 2.0])
    np.testing.assert_array_equal(xp.clip(x, low, high).resolve(device="numpy"), [nan, nan, nan, -1, 2])
    np.testing.assert_array_equal(xp.clip(x).resolve(device="numpy"), values)


@pytest.mark.parametrize("dtype", [np.int8, np.int64])
def test_integers_divide_towards_minus_infinity(dtype: type) -> None:
    x1, x2 = (xp.asarray(np.array(row, dtype)) for row in ([7, -7, 7, -7, 6, -6], [2, 2, -2, -2, 3, 3]))
    quotient, rest = fc.resolve((x1 // x2).element, (x1 % x2).element, device="numpy")
    assert quotient.tolist() == [3, -4, -4, 3, 2, -2]
    assert rest.tolist() == [1, 1, -1, -1, 0, 0]


@pytest.mark.parametrize("form", ["resident", "stream"])
def test_reductions_of_nothing_and_of_nan(form: str) -> None:
    def array(rows: Any) -> xp.LazyArray:
        values = np.array(rows, np.float64)
        return xp.asarray(values if form == "resident" else fc.source(values))

    none, some = array(np.empty((0, 2))), array([[1.0, nan], [2.0, 3.0], [4.0, 5.0]])
    cases: list[tuple[xp.LazyArray, Any]] = [
        (xp.sum(none, axis=0), [0, 0]),
        (xp.prod(none, axis=0), [1, 1]),
        (xp.mean(none, axis=0), [nan, nan]),
        (xp.var(none, axis=0), [nan, nan]),
        (xp.any(none), False),
        (xp.all(none), True),
        (xp.sum(some, axis=0), [7, nan]),
        (xp.mean(some, axis=1), [nan, 2.5, 4.5]),
        (xp.max(some, axis=0), [4, nan]),
        (xp.min(some, axis=0), [1, nan]),
        (xp.any(some != some), True),
        (xp.all(some), True),
        (xp.count_nonzero(some), 6),
    ]
    values = fc.resolve(*(made.element for made, _ in cases), device="numpy")
    for got, (made, expected) in zip(values, cases, strict=True):
        np.testing.assert_array_equal(got, expected, err_msg=repr(made))


@pytest.mark.parametrize("axis", [None, 0, 1])
@pytest.mark.parametrize("form", ["resident", "stream", "unknown length"])
def test_a_variance_of_too_few_numbers_is_nan(form: str, axis: int | None) -> None:
    values = np.array([[1.0, 2.0, 4.0], [8.0, 1.0, 1.0]])
    if form == "resident":
        x = xp.asarray(values)
    elif form == "stream":
        x = xp.asarray(fc.source(values))
    else:
        x = xp.asarray(fc.iterate(iter([values[:1], values[1:]]), shape=(3,), dtype="float64"))
        x = xp.asarray(fc.spool(x.element))
    count = values.size if axis is None else values.shape[axis]
    corrections = (0, 1, count - 0.5, count, count + 1)
    built = [xp.var(x, axis=axis, correction=one, keepdims=True).element for one in corrections]
    built += [xp.std(x, axis=axis, correction=one).element for one in corrections]
    got = fc.resolve(*built, device="numpy")
    for position, one in enumerate(corrections):
        expected = values.var(axis=axis, ddof=one, keepdims=True) if one < count else np.nan
        np.testing.assert_allclose(got[position], expected, rtol=1e-12)
        assert got[position].shape == values.var(axis=axis, keepdims=True).shape
        np.testing.assert_allclose(got[position + 5], np.sqrt(np.squeeze(expected, axis=axis)) if one < count else nan)
