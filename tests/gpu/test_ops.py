"""Every operation of the table on every dtype at the edges of what it can hold, against NumPy in wider numbers.

Operations of one dtype and arity are resolved a dozen at a time: few kernels instead of hundreds.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import flowcompute as fc
from flowcompute.elements import nn
from flowcompute.elements.element import Element
from flowcompute.elements.elementwise_functions import Function
from flowcompute.elements.op import Op
from flowcompute.elements.operators import FUNCTIONS
from flowcompute.errors import SpecError
from flowcompute.spec import BFLOAT16, BOOL, FLOAT16, FLOAT32, FLOAT64, SUPPORTED_DTYPES, is_float

OPS: dict[str, Callable[..., Any]] = {
    **{name: function for name, function in FUNCTIONS.items() if isinstance(function, Function)},
    "pow": fc.pow,
    "bitwise_right_shift": fc.bitwise_right_shift,
    **{name: function for name, function in vars(nn).items() if isinstance(function, Function)},
}
"""The table itself: what is added to it is tested here without a line of test."""

COPIES = 17
"""Each number stands at so many places: with an odd number of numbers that is every lane of 16, and a tail."""


ALONE = 16
"""Numbers in the widest vector."""


def edges(dtype: np.dtype) -> np.ndarray:
    """An odd number of numbers at which something may go wrong."""
    if dtype == BOOL:
        return np.array([True, False, True])
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        near = [0, 1, 2, 3, 5, 7, 8, 10, 13, 15, 16, 31, 32, 63, 64, 100]
        whole = {*near, info.max, info.max - 1, info.max // 2, info.max // 3}
        if info.min < 0:
            whole |= {-1, -2, -3, -5, -8, -64, info.min, info.min + 1, info.min // 2}
        for power in (24, 53):
            whole |= {2**power - 1, 2**power, 2**power + 1}
        kept = sorted(number for number in whole if info.min <= number <= info.max)
        return np.array([*kept, *kept[: 1 - len(kept) % 2]], dtype)
    return _float_edges(dtype)


def _float_edges(dtype: np.dtype) -> np.ndarray:
    info = ml_dtypes.finfo(dtype)
    largest, tiny, unit = float(info.max), float(info.tiny), float(info.eps)
    numbers = [0.0, 1.0, 0.5, 1.5, 2.5, 3.0, 0.1, math.pi, math.e, 10.0, 0.75, 7.0, 100.3, 1e-3, 60.0, 88.7, 300.0]
    numbers += [1 + unit, 1 - unit / 2, 2 + 2 * unit, largest, largest / 2, largest * (1 - unit), math.sqrt(largest)]
    numbers += [tiny, tiny * (1 - unit), tiny / 4, float(info.smallest_subnormal), math.sqrt(tiny)]
    numbers += [2.0**24 - 1, 2.0**24, 2.0**24 + 2, 2.0**31, 2.0**53, 1e5, 65504.0, 65520.0, math.pi / 2, 0.9999]
    with np.errstate(over="ignore"):
        array = np.array(numbers, np.float64).astype(dtype)
    array = np.concatenate([array, -array, np.array([np.nan, np.inf, -np.inf], dtype)])
    unique = list({number.tobytes(): number for number in array}.values())
    return np.array(unique[: len(unique) - 1 + len(unique) % 2], dtype)


def wide(dtype: np.dtype) -> np.dtype:
    """A dtype in which an operation on `dtype` is as good as exact."""
    return np.dtype(np.longdouble) if dtype == FLOAT64 else FLOAT64


# -- what is decided (DECISIONS 3 and 6) ---------------------------------------------------------


def wrapped(value: int, dtype: np.dtype) -> int:
    """A whole number modulo the range of a dtype."""
    bits = 8 * dtype.itemsize
    value %= 1 << bits
    return value - (1 << bits) if dtype.kind == "i" and value >> (bits - 1) else value


def power(a: int, b: int, dtype: np.dtype) -> int:
    if b >= 0:
        return wrapped(pow(a, b, 1 << 64), dtype)
    return a if a == 1 else (1 if b % 2 == 0 else -1) if a == -1 else 0


WHOLE: dict[str, Callable[[int, int, np.dtype], int]] = {
    "add": lambda a, b, d: wrapped(a + b, d),
    "subtract": lambda a, b, d: wrapped(a - b, d),
    "multiply": lambda a, b, d: wrapped(a * b, d),
    "floor_divide": lambda a, b, d: wrapped(a // b, d) if b else 0,
    "remainder": lambda a, b, d: a % b if b else 0,
    "trunc_divide": lambda a, b, d: wrapped((abs(a) // abs(b)) * (1 if (a < 0) == (b < 0) else -1), d) if b else 0,
    "fmod": lambda a, b, d: (abs(a) % abs(b)) * (-1 if a < 0 else 1) if b else 0,
    "pow": power,
    "bitwise_left_shift": lambda a, b, d: wrapped(a << b, d) if 0 <= b < 8 * d.itemsize else 0,
    "bitwise_right_shift": lambda a, b, d: a >> b if 0 <= b < 8 * d.itemsize else -1 if a < 0 else 0,
    "negative": lambda a, _, d: wrapped(-a, d),
    "abs": lambda a, _, d: wrapped(abs(a), d),
    "square": lambda a, _, d: wrapped(a * a, d),
    "reciprocal": lambda a, _, d: a if abs(a) == 1 else 0,
    "sign": lambda a, _, d: (a > 0) - (a < 0),
}
"""Integers in Python's own arithmetic: overflow wraps, a division by 0 gives 0, shifts never reach beyond the width."""


def expected(op: Op, dtype: np.dtype, result: np.dtype, operands: list[np.ndarray]) -> np.ndarray:
    """The right result in `result`, or in wider floats where it is rounded."""
    if dtype.kind in "iu" and op.name in WHOLE:
        pairs = zip(operands[0].tolist(), operands[-1].tolist(), strict=True)
        return np.array([WHOLE[op.name](a, b, dtype) for a, b in pairs], result)
    if op.name in ("maximum", "minimum") and is_float(dtype):
        return _extreme(op.name, *operands)
    if not is_float(dtype):
        return np.asarray(op.numpy(*operands))
    if op.name in ("nextafter", "signbit", "isnan", "isinf", "isfinite", "floor_divide", "remainder"):
        return np.asarray(op.numpy(*(o.astype(FLOAT32) if dtype in (FLOAT16, BFLOAT16) else o for o in operands)))
    if dtype == FLOAT64 and not op.ulp:
        return np.asarray(op.numpy(*operands))  # rounding twice is not rounding once
    return np.asarray(op.numpy(*(operand.astype(wide(dtype)) for operand in operands)))


def _extreme(name: str, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """NaN if either is; of two zeros maximum takes +0 and minimum -0."""

    def one(x: float, y: float) -> float:
        if math.isnan(x) or math.isnan(y):
            return math.nan
        upper = (lambda v: (v, math.copysign(1, v))) if name == "maximum" else (lambda v: (-v, -math.copysign(1, v)))
        return max(x, y, key=upper)

    pairs = zip(a.astype(FLOAT64).tolist(), b.astype(FLOAT64).tolist(), strict=True)
    return np.array([one(x, y) for x, y in pairs])


CANCELS = {"logaddexp"}
"""Sums that may cancel: their bound is in units of the operands."""


def check_floats(
    op: Op, result: np.ndarray, want: np.ndarray, operands: list[np.ndarray], describe: Callable[[int], str]
) -> None:
    """Equal positions of NaN, infinities and signs of zero; the rest within the table's bound."""
    dtype = result.dtype
    with np.errstate(all="ignore"):
        target = want.astype(dtype)
        got, near = result.astype(wide(dtype)), target.astype(wide(dtype))
        # Half formats are computed in float32: what is left of its error is a rounding to the other side.
        ulps = op.ulp if dtype in (FLOAT32, FLOAT64) else float(op.ulp > 0)
        scale = [near, *(operand.astype(wide(dtype)) for operand in operands if op.name in CANCELS)]
        within = np.abs(got - near) <= ulps * np.max([_spacing(value, dtype) for value in scale], axis=0)
        # At the brink of the largest number a permitted error may round to infinity, and the other way.
        brink = float(ml_dtypes.finfo(dtype).max) * (1 - ulps * float(ml_dtypes.finfo(dtype).eps))
        over = (ulps > 0) & (np.abs(want) >= brink) & (np.abs(got) >= brink) & (np.sign(got) == np.sign(near))
        right = (np.isnan(got) & np.isnan(near)) | (got == near) | within | over
        zeros = (got == 0) & (near == 0) & (np.signbit(got) != np.signbit(near))
    wrong = np.flatnonzero(~right | zeros)
    assert not wrong.size, (
        "; ".join(f"{describe(i)} = {result[i]!r}, expected {target[i]!r} within {ulps} ulp" for i in wrong[:5])
        + f" ({wrong.size} in all)"
    )


def _spacing(values: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """The distance to the next number of `dtype`."""
    info = ml_dtypes.finfo(dtype)
    size = np.maximum(np.abs(values), float(info.tiny))
    _, exponent = np.frexp(np.where(np.isfinite(size), size, 1))
    return np.ldexp(np.ones_like(size), exponent - 1) * float(info.eps)


# -- the tests ------------------------------------------------------------------------------------


def spread(numbers: np.ndarray) -> np.ndarray:
    """Every number at every lane of a vector, and in a tail."""
    assert len(numbers) % 2
    return np.tile(numbers, COPIES)


def crowd(numbers: np.ndarray) -> np.ndarray:
    """Every number in whole vectors of nothing but itself."""
    return np.repeat(numbers, ALONE)


def made(arity: int, operands: list[Element], dtype: np.dtype) -> dict[str, tuple[Op, Element]]:
    """Each operation of an arity that takes `dtype` as it is, applied."""
    found: dict[str, tuple[Op, Element]] = {}
    for name, function in OPS.items():
        try:
            element = function(*operands[:arity]) if _arity(name) == arity else None
        except SpecError:
            continue
        if element is not None and all(one.dtype == dtype for one in element.inputs) and element.op.arity == arity:
            found[name] = (element.op, element)
    return found


def _arity(name: str) -> int:
    return 2 if name in ("pow", "bitwise_right_shift") else OPS[name].op.arity


def resolved(made_of: dict[str, tuple[Op, Element]]) -> dict[str, np.ndarray]:
    found: dict[str, np.ndarray] = {}
    every = list(made_of)
    # A dozen at a time: the compiler's time grows faster than the text.
    for names in (every[start : start + 12] for start in range(0, len(every), 12)):
        values = fc.resolve(*(made_of[name][1] for name in names), device="cpu", progress=False)
        found |= dict(zip(names, values if len(names) > 1 else (values,), strict=True))
    return found


def check_places(name: str, spread_out: np.ndarray, alone: np.ndarray, first: np.ndarray) -> None:
    """Each copy of the operands has given the same bits, whatever lane it is in and whatever lies beside it."""
    bits = [np.frombuffer(array.tobytes(), np.uint8) for array in (spread_out, alone, first)]
    assert (bits[0].reshape(COPIES, -1) == bits[2]).all(), f"{name} depends on the lane"
    size = first.dtype.itemsize
    same = bits[1].reshape(-1, ALONE, size) == bits[2].reshape(-1, 1, size)
    assert same.all(), f"{name} depends on its neighbours at {np.flatnonzero(~same.all(axis=(1, 2)))}"


def check(op: Op, dtype: np.dtype, result: np.ndarray, operands: list[np.ndarray]) -> None:
    with np.errstate(all="ignore"):
        want = expected(op, dtype, result.dtype, operands)

    def describe(place: int) -> str:
        return f"{op.name}({', '.join(repr(operand[place]) for operand in operands)})"

    if is_float(result.dtype):
        check_floats(op, result, want, operands, describe)
        return
    wrong = np.flatnonzero(result != want)
    assert not wrong.size, (
        f"{describe(wrong[0])} = {result[wrong[0]]!r}, expected {want[wrong[0]]!r} ({wrong.size} in all)"
    )


INT8 = np.dtype("int8")
LEFT_TO_NIGHT = {FLOAT16, *map(np.dtype, ("int16", "uint16", "uint32"))}
"""Kernels of float16 take the compiler two minutes; bfloat16 goes the same way. The others lie between the narrowest and
the widest integers of their kind, which have the same texts."""

DTYPES = [
    pytest.param(
        dtype,
        id=dtype.name,
        marks=pytest.mark.compiles if dtype in LEFT_TO_NIGHT else () if dtype in (FLOAT32, INT8) else pytest.mark.slow,
    )
    for dtype in SUPPORTED_DTYPES
]


@pytest.mark.parametrize("dtype", DTYPES)
def test_operations_on_one_number(dtype: np.dtype) -> None:
    numbers = edges(dtype)
    stream = fc.source(np.concatenate([crowd(numbers), spread(numbers)]))
    # The same numbers as values of rows, which are computed apart from any vector.
    rows = fc.max(fc.source(np.repeat(numbers[:, None], 3, axis=1)), axis=1)
    flat, of_rows = made(1, [stream], dtype), made(1, [rows], dtype)
    results, row_results = resolved(flat), resolved(of_rows)
    for name, (op, _) in flat.items():
        alone, spread_out = np.split(results[name], [ALONE * len(numbers)])
        first = spread_out[: len(numbers)]
        check(op, dtype, first, [numbers])
        check_places(name, spread_out, alone, first)
        assert row_results[name].tobytes() == first.tobytes(), f"{name} of a row's value has other bits"


@pytest.mark.parametrize("dtype", DTYPES)
def test_operations_on_two_numbers(dtype: np.dtype) -> None:
    numbers = edges(dtype)
    grid = np.array(list(itertools.product(range(len(numbers)), repeat=2)))
    left, right = numbers[grid[:, 0]], numbers[grid[:, 1]]
    assert len(left) % 2
    operands: list[Element] = [fc.source(np.concatenate([crowd(side), spread(side)])) for side in (left, right)]
    results_of = made(2, operands, dtype)
    results = resolved(results_of)
    for name, (op, _) in results_of.items():
        alone, spread_out = np.split(results[name], [ALONE * len(left)])
        first = spread_out[: len(left)]
        check(op, dtype, first, [left, right])
        check_places(name, spread_out, alone, first)


def test_the_whole_table_was_tried() -> None:
    tried: set[str] = set()
    for dtype in SUPPORTED_DTYPES:
        stream = fc.source(edges(dtype))
        for arity in (1, 2):
            tried |= set(made(arity, [stream, stream], dtype))
    assert tried == set(OPS)
