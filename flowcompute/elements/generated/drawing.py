"""The operations that draw random numbers from Philox blocks; `elements/random` tells what of which words."""

from __future__ import annotations

from typing import Any

import numpy as np

from flowcompute.elements.generated.generator import Generator, declared_dtypes, rebuild_generator
from flowcompute.elements.generated.philox import blocks, box_muller, words
from flowcompute.elements.op import Kind
from flowcompute.spec import BFLOAT16, FLOAT16, FLOAT32, FLOAT64

KEPT_BITS = {FLOAT16: 11, BFLOAT16: 8, FLOAT32: 24, FLOAT64: 53}
"""Bits of uniform numbers."""

_UNIFORM_TAG, _NORMAL_TAG, _INTEGERS_TAG = 1, 2, 3
_LOWER = np.uint64(0xFFFFFFFF)


def _uniform(first: int, count: int, dtype: np.dtype, key: np.ndarray) -> np.ndarray:
    width, kept = 8 * dtype.itemsize, KEPT_BITS[dtype]
    word = words(first, count, width, int(key), _UNIFORM_TAG)
    return np.asarray((word >> (width - kept)).astype(dtype) * dtype.type(2.0**-kept))


def _normal(first: int, count: int, dtype: np.dtype, key: np.ndarray) -> np.ndarray:
    start = first - first % 2
    word = words(start, count + first % 2 + 1, 8 * dtype.itemsize, int(key), _NORMAL_TAG)
    pairs = word[: len(word) // 2 * 2].reshape(-1, 2)
    even, odd = box_muller(pairs[:, 0], pairs[:, 1], dtype)
    return np.stack([even, odd], axis=1).reshape(-1)[first - start :][:count]


def _scaled(first: int, count: int, dtype: np.dtype, key: np.ndarray, last: np.ndarray) -> np.ndarray:
    del dtype
    word = words(first, count, 64, int(key), _INTEGERS_TAG)
    lower, upper = word & _LOWER, word >> np.uint64(32)
    carried = (lower * last + lower) >> np.uint64(32)
    return np.asarray((upper * last + upper + carried) >> np.uint64(32))


def _scaled_wide(first: int, count: int, dtype: np.dtype, key: np.ndarray, last: np.ndarray) -> np.ndarray:
    del dtype
    low, high = blocks(first, count, int(key), _INTEGERS_TAG)
    bottom, middle = low * last + low, high * last + high
    total = middle + _multiply_high(low, last)
    result = total + (bottom < low)
    carries = (middle < high).astype(np.uint64) + (total < middle) + (result < total)
    return np.asarray(_multiply_high(high, last) + carries)


def _multiply_high(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the upper 64 bits of products."""
    shift = np.uint64(32)
    a0, a1, b0, b1 = a & _LOWER, a >> shift, b & _LOWER, b >> shift
    middle = a1 * b0 + ((a0 * b0) >> shift)
    return np.asarray(a1 * b1 + (middle >> shift) + ((a0 * b1 + (middle & _LOWER)) >> shift))


def _drawing(name: str, arity: int, meaning: Any, body: str, doc: str, **fields: Any) -> Generator:
    return Generator(
        name,
        arity,
        Kind.ELEMENTWISE,
        meaning,
        declared_dtypes,
        helper={"any": body},
        arithmetic=False,
        doc=doc,
        rebuild=rebuild_generator,
        **fields,
    )


_UNIFORM_DOC = "A number in [0, 1)."
UNIFORM = {
    FLOAT32: _drawing("uniform", 1, _uniform, "return convert_{T}(as_{I}(w >> 8)) * ({T})(0x1p-24f);", _UNIFORM_DOC,
                      form="word", bits=32, tag=_UNIFORM_TAG, cost=12),
    # In two parts, since vector units rarely convert 64-bit integers; what is below 2^52 is one sum from a float.
    FLOAT64: _drawing(
        "uniform", 1, _uniform,
        """
    {T} upper = as_{T}((w >> 32) | 0x4330000000000000UL) - ({T})(0x1p52);
    {T} lower = as_{T}(((w >> 11) & 0x1fffffUL) | 0x4330000000000000UL) - ({T})(0x1p52);
    return upper * ({T})(0x1p-32) + lower * ({T})(0x1p-53);""",
        _UNIFORM_DOC, form="word", bits=64, tag=_UNIFORM_TAG, cost=24,
    ),
}  # fmt: skip

_NORMAL_DOC = "A number of the standard normal distribution."
NORMAL = {
    FLOAT32: _drawing("normal", 1, _normal, "{BOX_MULLER}(x, y, even, odd);", _NORMAL_DOC,
                      form="pair", bits=32, tag=_NORMAL_TAG, cost=30),
    FLOAT64: _drawing("normal", 1, _normal, "{BOX_MULLER}(x, y, even, odd);", _NORMAL_DOC,
                      form="pair", bits=64, tag=_NORMAL_TAG, cost=60),
}  # fmt: skip

_INTEGERS_DOC = "A whole number from 0 to the last one, all equally likely."
# floor(w * (last + 1) / 2^64), in halves of 32 bits, whose products vector units have.
SCALED = _drawing(
    "integers", 2, _scaled,
    """
    {T} lower = w & ({T})(0xffffffffUL), upper = w >> 32;
    ulong b = a & 0xffffffffUL;
    return (upper * b + upper + ((lower * b + lower) >> 32)) >> 32;""",
    _INTEGERS_DOC, form="word", bits=64, tag=_INTEGERS_TAG, cost=24,
)  # fmt: skip
# floor(w * (last + 1) / 2^128) by school multiplication; what is carried into the highest 64 bits is counted.
SCALED_WIDE = _drawing(
    "integers", 2, _scaled_wide,
    """
    {T} one = ({T})(1), zero = ({T})(0), b = ({T})(a);
    {T} bottom = low * b + low, middle = high * b + high;
    {T} total = middle + mul_hi(low, b);
    {T} result = total + (bottom < low ? one : zero);
    {T} carries = (middle < high ? one : zero) + (total < middle ? one : zero) + (result < total ? one : zero);
    return mul_hi(high, b) + carries;""",
    _INTEGERS_DOC, form="block", bits=128, tag=_INTEGERS_TAG, cost=60,
)  # fmt: skip
