"""`a * b + c` rounded once, with NumPy: for products that are summed on the host as a device sums them.

Sums in more than twice the precision are rounded to odd first, so that rounding them once more
is rounding the exact value (S. Boldo and G. Melquiond, "Emulation of a FMA and correctly rounded
sums: proved algorithms using rounding to odd", 2008). Products of float64 are split into halves
(T. J. Dekker, 1971); where that could overflow or underflow numbers are taken one by one as fractions.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from flowcompute.spec import FLOAT32, FLOAT64

_SPLITTER = np.float64(2**27 + 1)
_LARGE, _SMALL = np.float64(2.0**900), np.float64(2.0**-900)
"""Between these all steps on float64 are exact."""


def fused_multiply_add(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """Compute `a * b + c` of arrays of equal shape in float32 or float64, rounded once to that dtype."""
    with np.errstate(all="ignore"):
        if a.dtype == FLOAT32:
            product = a.astype(FLOAT64) * b.astype(FLOAT64)
            return _added_to_odd(product, c.astype(FLOAT64)).astype(FLOAT32)
        return _in_halves(a, b, c)


def _exact_sum(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the rounded sum and what it lacks (D. E. Knuth)."""
    total = a + b
    other = total - a
    return total, (a - (total - other)) + (b - other)


def _added_to_odd(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the sum in float64; where it is inexact, of its two neighbours that with an odd last bit."""
    total, rest = _exact_sum(a, b)
    even = (total.view(np.int64) & 1) == 0
    towards = np.nextafter(total, np.where(rest > 0, np.inf, -np.inf))
    return np.where(even & (rest != 0) & np.isfinite(total) & np.isfinite(rest), towards, total)


def _halves(a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    high = a * _SPLITTER
    high = high - (high - a)
    return high, a - high


def _in_halves(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    product = a * b
    (a_high, a_low), (b_high, b_low) = _halves(a), _halves(b)
    rest = a_low * b_low - (((product - a_high * b_high) - a_low * b_high) - a_high * b_low)
    first, first_rest = _exact_sum(c, rest)
    total, total_rest = _exact_sum(product, first)
    result = total + _added_to_odd(first_rest, total_rest)
    finite = np.isfinite(a) & np.isfinite(b)
    plain = (a == 0) | (b == 0) | ~finite | ~np.isfinite(c)
    # A product of finite numbers is finite, also where float64 has none so large.
    result = np.where(plain, np.where(finite & np.isinf(c), c, product + c), result)
    tame = np.ones(a.shape, bool)
    for number in (a, b, product, c):
        size = np.abs(number)
        tame &= (size < _LARGE) & ((size > _SMALL) | ((number is c) & (size == 0)))
    for place in np.argwhere(~tame & ~plain):
        at = tuple(place)
        result[at] = _as_fraction(float(a[at]), float(b[at]), float(c[at]))
    return result


def _as_fraction(a: float, b: float, c: float) -> float:
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    try:
        return float(exact)
    except OverflowError:
        return np.inf if exact > 0 else -np.inf
