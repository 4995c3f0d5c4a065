"""Roots of unity as constants of transforms. Angles are reduced in integers, so that each is right to the last bit."""

from __future__ import annotations

import functools
import math

import numpy as np

MOST_DIRECT = 256
"""Lengths up to this one are one product with a matrix of roots; and so are the factors of longer ones."""

MOST_LENGTH = 1 << 15
"""The longest transform. One without factors is a convolution of twice its length, which two factors hold."""


def roots(numerators: np.ndarray, n: int, sign: int) -> np.ndarray:
    """Return `exp(sign * 2j * pi * numerators / n)`, in complex128."""
    angles = np.remainder(numerators, n) * (2 * math.pi / n)
    return np.asarray(np.cos(angles) + 1j * sign * np.sin(angles))


def factors(n: int) -> tuple[int, int] | None:
    """Return two factors of `n` as equal as can be, the larger one first; None if that one is too large."""
    small = next(one for one in range(math.isqrt(n), 0, -1) if n % one == 0)
    return (n // small, small) if n // small <= MOST_DIRECT else None


def as_parts(matrix: np.ndarray, given: int, made: int) -> np.ndarray:
    """Return a complex matrix `(inputs, outputs)` as the real one of the same product, on parts.

    Args:
        matrix: complex.
        given: parts of an input: 1 for real numbers, 2 for real and imaginary parts.
        made: parts of an output; with 1 the imaginary part is left out.

    Returns:
        An array `(given, inputs, made, outputs)`.
    """
    whole = np.stack([np.stack([matrix.real, matrix.imag], 1), np.stack([-matrix.imag, matrix.real], 1)])
    return whole[:given, :, :made]


@functools.lru_cache(64)
def direct(n: int, sign: int, inputs: int, outputs: int, given: int, made: int) -> np.ndarray:
    """Return the matrix of a whole transform, `(given * inputs, made * outputs)` in float64."""
    matrix = roots(np.outer(np.arange(inputs), np.arange(outputs)), n, sign)
    return as_parts(matrix, given, made).reshape(given * inputs, made * outputs)


@functools.lru_cache(64)
def first_level(n1: int, sign: int, given: int) -> np.ndarray:
    """Return the matrices of transforms of `n1` numbers, `(2, given * n1, n1)`: one for each part of the result."""
    matrix = roots(np.outer(np.arange(n1), np.arange(n1)), n1, sign)
    return as_parts(matrix, given, 2).reshape(given * n1, 2, n1).swapaxes(0, 1)


@functools.lru_cache(64)
def twiddles(n1: int, n2: int, sign: int) -> np.ndarray:
    """Return what both levels are joined by, complex `(n2, n1)`."""
    return roots(np.outer(np.arange(n2), np.arange(n1)), n1 * n2, sign)


@functools.lru_cache(64)
def second_level(n2: int, sign: int, rows: int, made: int) -> np.ndarray:
    """Return the matrices of transforms of `n2` numbers, `(made, rows, 2 * n2)`, of which the first `rows` are made."""
    matrix = roots(np.outer(np.arange(n2), np.arange(rows)), n2, sign)
    return as_parts(matrix, 2, made).reshape(2 * n2, made, rows).transpose(1, 2, 0)


@functools.lru_cache(64)
def chirp(n: int, sign: int) -> np.ndarray:
    """Return `exp(sign * 1j * pi * k**2 / n)` for k from 0 to n - 1."""
    return roots(np.arange(n) ** 2, 2 * n, sign)


@functools.lru_cache(64)
def chirp_spectrum(n: int, size: int, sign: int) -> np.ndarray:
    """Return the transform of the filter that a chirp is convolved with, over `size` numbers and divided by that."""
    other = np.conj(chirp(n, sign))
    taps = np.zeros(size, complex)
    taps[:n] = other
    taps[size - n + 1 :] = other[:0:-1]
    return np.fft.fft(taps) / size
