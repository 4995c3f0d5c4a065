"""The discrete Fourier transform as products with small matrices.

Values are items `(..., parts, n)`: one part for real numbers, two for real and imaginary parts.

- Up to 256 numbers it is one product with the matrix of roots.
- A longer n with factors n1 * n2, both up to 256, takes two levels. They are n2 transforms of n1 numbers, a
  multiplication by roots, and n1 transforms of n2 numbers. (Gentleman and Sande, "Fast Fourier Transforms: for fun
  and profit", 1966.)
- Any other n is a convolution with a chirp, over a power of two. (Bluestein, "A linear filtering approach to the
  computation of discrete Fourier transform", 1970.)
"""

from __future__ import annotations

from typing import Any

import numpy as np

from flowcompute.elements.axes import flip, pad, permute_dims, reshape
from flowcompute.elements.compute import Constant
from flowcompute.elements.fft.roots_of_unity import (
    MOST_DIRECT,
    chirp,
    chirp_spectrum,
    direct,
    factors,
    first_level,
    second_level,
    twiddles,
)
from flowcompute.elements.math import add, matmul, multiply


def transform(x: Any, n: int, sign: int, outputs: int, made: int, scale: float) -> Any:
    """Return the first `outputs` coefficients of transforms of `n` numbers.

    Args:
        x: items `(..., parts, k)` with `k <= n`; behind them zeros are meant.
        n: length of the transform.
        sign: of the exponent: -1 forward, 1 backward.
        outputs: how many coefficients.
        made: parts of the result; 1 for the real part alone.
        scale: what coefficients are multiplied by.

    Returns:
        Items `(..., made, outputs)` of the same dtype.
    """
    if n <= MOST_DIRECT:
        given, inputs = x.spec.shape[-2:]
        matrix = _constant(x, direct(n, sign, inputs, outputs, given, made) * scale)
        rows = _reshaped(x, 2, (given * inputs,))
        return _reshaped(matmul(rows, matrix), 1, (made, outputs))
    pair = factors(n)
    if pair is None:
        return _by_chirp(x, n, sign, outputs, made, scale)
    return _by_levels(x, pair, sign, outputs, made, scale)


def _by_levels(x: Any, pair: tuple[int, int], sign: int, outputs: int, made: int, scale: float) -> Any:
    n1, n2 = pair
    n, given = n1 * n2, x.spec.shape[-2]
    # Number n2 * i1 + i2 stands in row i1 and column i2; the transforms of the first level go down the columns.
    columns = _reshaped(_padded(x, n), 2, (1, given * n1, n2))
    first = matmul(_transposed(columns), _constant(x, first_level(n1, sign, given)))
    turned = multiplied(first, twiddles(n1, n2, sign), 3)
    rows = -(-outputs // n1)
    second = _constant(x, second_level(n2, sign, rows, made) * scale)
    coefficients = matmul(second, _reshaped(turned, 3, (1, 2 * n2, n1)))
    return _reshaped(coefficients, 3, (made, rows * n1))[..., :outputs]


def _by_chirp(x: Any, n: int, sign: int, outputs: int, made: int, scale: float) -> Any:
    size = 1 << (2 * n - 2).bit_length()
    chirped = multiplied(x, chirp(n, sign)[: x.spec.shape[-1]], 2)
    spectrum = transform(chirped, size, -1, size, 2, 1.0)
    filtered = multiplied(spectrum, chirp_spectrum(n, size, sign), 2)
    convolved = transform(filtered, size, 1, outputs, 2, 1.0)
    return multiplied(convolved, chirp(n, sign)[:outputs] * scale, 2)[..., :made, :]


def multiplied(x: Any, factor: np.ndarray, axes: int) -> Any:
    """Multiply by complex constants `factor`, which broadcast with the axes behind that of the parts.

    Args:
        x: items `(..., parts, ...)`; real numbers become complex ones.
        factor: complex.
        axes: how many axes there are from that of the parts on.
    """
    straight = np.stack([factor.real, factor.imag])
    if x.spec.shape[-axes] == 1:
        return multiply(x, _constant(x, straight))
    crossed = np.stack([-factor.imag, factor.imag])
    return add(multiply(x, _constant(x, factor.real)), multiply(flip(x, axis=-axes), _constant(x, crossed)))


def _constant(x: Any, table: np.ndarray) -> Constant:
    return Constant(table, x.dtype)


def _reshaped(x: Any, axes: int, shape: tuple[int, ...]) -> Any:
    """Return `x` with another shape in place of its last axes."""
    item = (*x.spec.shape[: len(x.spec.shape) - axes], *shape)
    return reshape(x, (-1 if x.spec.length is None else x.spec.length, *item) if x.spec.is_stream else item)


def _transposed(x: Any) -> Any:
    axes = range(x.ndim)
    return permute_dims(x, (*axes[:-2], x.ndim - 1, x.ndim - 2))


def _padded(x: Any, n: int) -> Any:
    missing = n - x.spec.shape[-1]
    widths = [(0, 0)] * (len(x.spec.shape) - 1) + [(0, missing)]
    return pad(x, widths) if missing else x
