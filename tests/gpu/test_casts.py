"""Casts between all pairs of dtypes, at edges, at ties of every rounding, and on random bits."""

from __future__ import annotations

import math

import numpy as np
import pytest

import flowcompute as fc
from flowcompute.spec import BFLOAT16, BOOL, FLOAT16, FLOAT32, FLOAT64, INT32, SUPPORTED_DTYPES, is_float
from tests.gpu.test_ops import edges
from tests.support.slow import slow_but

_HALF_DIGITS = {FLOAT16: (11, -24), BFLOAT16: (8, -133), FLOAT32: (24, -149)}
"""Significant bits, and the exponent of the smallest subnormal."""


def ties() -> np.ndarray:
    """Numbers halfway between two halves (of any format), and the closest numbers on either side."""
    middles = [
        math.ldexp(odd, exponent - (bits if exponent > lowest + bits - 1 else 1))
        for bits, lowest in _HALF_DIGITS.values()
        for exponent in (0, 5, lowest, lowest + 3, lowest + bits)
        for odd in (1, 3, 2**bits - 1, 2**bits + 1)
    ]
    middles += [
        65504.0,
        65519.999,
        65520.0,
        65536.0,
        3.3895313892515355e38,
        3.3961775292304957e38,
        3.4028235677973366e38,
    ]
    array = np.array(middles)
    return np.concatenate([array, np.nextafter(array, 0), np.nextafter(array, np.inf), -array])


def numbers(dtype: np.dtype) -> np.ndarray:
    """Edges, ties and random bits."""
    if dtype == BOOL:
        return np.array([True, False] * 9)
    rng = np.random.default_rng(7)
    noise = np.frombuffer(rng.bytes(1021 * dtype.itemsize), dtype)
    with np.errstate(over="ignore"):
        extra = ties().astype(dtype) if is_float(dtype) else np.zeros(0, dtype)
    if dtype.kind in "iu":
        # The largest integers that floats of 24 and 53 bits can hold, and their ties.
        info = np.iinfo(dtype)
        near = [sign * (2**power + step) for power in range(info.bits) for step in (-1, 0, 1) for sign in (1, -1)]
        near += [2**power + 2 ** (power - 24) + step for power in range(25, info.bits) for step in (-1, 0, 1)]
        near += [2**power + 2 ** (power - 53) + step for power in range(54, info.bits) for step in (-1, 0, 1)]
        extra = np.array([number for number in near if info.min <= number <= info.max], dtype)
    return np.concatenate([edges(dtype), noise, extra])


def to_integer(number: float, dtype: np.dtype) -> int:
    """Towards zero, limited to the dtype; NaN is 0."""
    info = np.iinfo(dtype)
    if math.isnan(number):
        return 0
    if math.isinf(number):
        return int(info.max if number > 0 else info.min)
    return min(max(int(number), int(info.min)), int(info.max))


def nearest(number: float, dtype: np.dtype) -> float:
    """The nearest number of a float dtype, ties to even, by whole numbers."""
    bits, lowest = _HALF_DIGITS[dtype]
    if number == 0 or not math.isfinite(number):
        return number
    _, exponent = math.frexp(number)
    if exponent > 129:
        return math.copysign(math.inf, number)
    step = max(exponent - bits, lowest)
    # A float64 divided by a power of two is exact here, and Python rounds halves to even.
    rounded = math.ldexp(round(math.ldexp(abs(number), -step)), step)
    top = {FLOAT16: 2.0**16, BFLOAT16: 2.0**128, FLOAT32: 2.0**128}[dtype]
    return math.copysign(math.inf if rounded >= top else rounded, number)


def cast(array: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """What a cast must give."""
    with np.errstate(all="ignore"):
        if is_float(array.dtype) and dtype.kind in "iu":
            return np.array([to_integer(float(number), dtype) for number in array], dtype)
        if array.dtype == FLOAT64 and dtype in (FLOAT16, FLOAT32):
            return np.array([nearest(float(number), dtype) for number in array], dtype)
        return array.astype(dtype)


BETWEEN = [np.dtype(name) for name in ("int8", "int16", "uint16", "uint32")]
"""Integers whose kernels are those of uint8, int32, int64 and uint64 in all but the name of a type."""


@pytest.mark.parametrize("source", slow_but([FLOAT32, BFLOAT16, INT32], SUPPORTED_DTYPES, BETWEEN), ids=str)
@pytest.mark.parametrize("device", ["cpu", "numpy"])
def test_every_cast(source: np.dtype, device: str) -> None:
    array = numbers(source)
    stream = fc.source(array)
    values = fc.resolve(*(fc.astype(stream, target) for target in SUPPORTED_DTYPES), device=device, progress=False)
    for target, value in zip(SUPPORTED_DTYPES, values, strict=True):
        want = cast(array, target)
        assert value.dtype == target
        wrong = np.flatnonzero(~_same(value, want))
        assert not wrong.size, f"{array[wrong[0]]!r} to {target} = {value[wrong[0]]!r}, expected {want[wrong[0]]!r}"


def _same(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    if not is_float(a.dtype):
        return np.asarray(a == b)
    with np.errstate(invalid="ignore"):  # signalling NaNs
        wide = [array.astype(np.float64) for array in (a, b)]
    nan = np.isnan(wide[0]) & np.isnan(wide[1])
    return np.asarray(nan | ((wide[0] == wide[1]) & (np.signbit(wide[0]) == np.signbit(wide[1]))))


def test_a_cast_to_half_rounds_once() -> None:
    """Just above a tie of float16 that float32 would round onto the tie."""
    value = 1 + 2.0**-11 + 2.0**-40
    for device in ("cpu", "numpy"):
        half = fc.resolve(fc.source(np.full(40, value)).astype("float16"), device=device, progress=False)
        assert (half == np.float16(1 + 2.0**-10)).all()
