"""Random numbers from counters: Philox4x32-10, and the functions that make numbers of its words.

Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3" (SC 2011). A block
of four 32-bit words is a function of a 128-bit counter and a 64-bit key, so any block can be
made alone, anywhere. `gpu/render/render_generators.py` says the same in OpenCL C from the same tables. Both use nothing
but integers and + - * / and square roots, rounded correctly and in the same order. So every device gives the same bits.
"""

from __future__ import annotations

import math

import numpy as np

from flowcompute.imports import dataclass
from flowcompute.spec import FLOAT32, FLOAT64

ROUNDS = 10
MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
KEY_STEPS = (0x9E3779B9, 0xBB67AE85)
_WORD = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)

Words = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def philox(counter: Words, key: int) -> Words:
    """Return blocks of Philox4x32-10: four words for each counter.

    Args:
        counter: four arrays of 32-bit words as uint64, the lowest word first.
        key: 64 bits, of which the lower half is the first word.
    """
    a, b, c, d = counter
    first, second = key & 0xFFFFFFFF, key >> 32
    for _ in range(ROUNDS):
        p, q = a * np.uint64(MULTIPLIERS[0]), c * np.uint64(MULTIPLIERS[1])
        a, b = (q >> _HALF) ^ b ^ np.uint64(first), q & _WORD
        c, d = (p >> _HALF) ^ d ^ np.uint64(second), p & _WORD
        first, second = (first + KEY_STEPS[0]) & 0xFFFFFFFF, (second + KEY_STEPS[1]) & 0xFFFFFFFF
    return a, b, c, d


def blocks(first: int, count: int, key: int, tag: int) -> tuple[np.ndarray, np.ndarray]:
    """Return blocks number `first` and on, each as two words of 64 bits, the lower 32-bit word being the first.

    The counter's lower half is the number of the block, its upper half the tag.
    """
    number = np.arange(first, first + count, dtype=np.uint64)
    third = np.full_like(number, tag)
    a, b, c, d = philox((number & _WORD, number >> _HALF, third, np.zeros_like(number)), key)
    return a | (b << _HALF), c | (d << _HALF)


def words(first: int, count: int, bits: int, key: int, tag: int) -> np.ndarray:
    """Return the words of 32 or 64 bits at `count` positions from `first` on."""
    share = 128 // bits
    start = first // share
    low, high = blocks(start, -(-(first + count) // share) - start, key, tag)
    both = np.stack([low, high], axis=1).reshape(-1)
    if bits == 32:
        both = np.stack([both & _WORD, both >> _HALF], axis=1).astype(np.uint32).reshape(-1)
    return both[first - start * share :][:count]


_STEPS_TAG = 4


def step_key(seed: int, number: int) -> np.uint64:
    """Return the key of the random numbers of a step of a training, which begin at position 0 in each step."""
    return np.uint64(words(number, 1, 64, seed, _STEPS_TAG)[0])


@dataclass(frozen=True)
class BoxMuller:
    """The constants of a float format that the Box-Muller transform needs.

    Attributes:
        drop: bits of the first word that are not used.
        kept: bits that are, so that u = (kept bits + 1/2) * 2^-kept.
        fraction: bits of the format's fraction.
        root_half: bits of the float just below the square root of 1/2.
        log: coefficients of the logarithm's series in s^2, s = f / (2 + f).
        sine, cosine: coefficients of their series in x^2 beyond the first term (two terms).
    """

    drop: int
    kept: int
    fraction: int
    root_half: int
    log: tuple[float, ...]
    sine: tuple[float, ...]
    cosine: tuple[float, ...]


# The logarithms are those of fdlibm (Sun Microsystems, 1993), sine and cosine in float32 those of
# Cephes (Moshier, 1992) and in float64 those of fdlibm.
BOX_MULLER: dict[np.dtype, BoxMuller] = {
    FLOAT32: BoxMuller(
        drop=1,
        kept=31,
        fraction=23,
        root_half=0x3F3504F3,
        log=(0.66666662693, 0.40000972152, 0.28498786688, 0.24279078841),
        sine=(-1.6666654611e-1, 8.3321608736e-3, -1.9515295891e-4),
        cosine=(4.166664568298827e-2, -1.388731625493765e-3, 2.443315711809948e-5),
    ),
    FLOAT64: BoxMuller(
        drop=11,
        kept=53,
        fraction=52,
        root_half=0x3FE6A09E667F3BCD,
        log=(
            6.666666666666735130e-01,
            3.999999999940941908e-01,
            2.857142874366239149e-01,
            2.222219843214978396e-01,
            1.818357216161805012e-01,
            1.531383769920937332e-01,
            1.479819860511658591e-01,
        ),
        sine=(
            -1.66666666666666324348e-01,
            8.33333333332248946124e-03,
            -1.98412698298579493134e-04,
            2.75573137070700676789e-06,
            -2.50507602534068634195e-08,
            1.58969099521155010221e-10,
        ),
        cosine=(
            4.16666666666666019037e-02,
            -1.38888888888741095749e-03,
            2.48015872894767294178e-05,
            -2.75573143513906633035e-07,
            2.08757232129817482790e-09,
            -1.13596475577881948265e-11,
        ),
    ),
}


def box_muller(x: np.ndarray, y: np.ndarray, dtype: np.dtype) -> tuple[np.ndarray, np.ndarray]:
    """Make two independent standard normal numbers of two words: Box and Muller (1958).

    The radius is sqrt(-2 ln u) with u = (the upper bits of x + 1/2) / 2^bits, never 0 or 1. The angle is y / 2^32 (or
    2^64) turns. Whole quarters of a turn are split off in integers, so that series need to reach only an eighth of a
    turn to either side. Both numbers are within 5 units in the last place.
    """
    known = BOX_MULLER[dtype]
    signed = np.dtype(f"i{dtype.itemsize}")
    width = 8 * dtype.itemsize
    one = dtype.type
    v = (x >> known.drop).astype(dtype) + one(0.5)
    bits = v.view(signed)
    exponent = (bits - signed.type(known.root_half)) >> known.fraction
    # Near 1 what is missing to 1 is counted, since v has lost its last bits.
    missing = ((~x >> known.drop).astype(dtype) + one(0.5)) * one(2.0**-known.kept)
    f = np.where(exponent == known.kept, -missing, (bits - (exponent << known.fraction)).view(dtype) - one(1))
    s = f / (f + one(2))
    z = s * s
    half = one(0.5) * f * f
    log = f - (half - s * (half + _series(z, known.log) * z))
    minus_log = (known.kept - exponent).astype(dtype) * one(math.log(2)) - log
    radius = np.sqrt(minus_log + minus_log)

    quarter = (y + y.dtype.type(1 << (width - 3))) >> (width - 2)
    rest = (y - (quarter << (width - 2))).view(signed).astype(dtype) * one(2 * math.pi / 2**width)
    square = rest * rest
    sine = rest + rest * square * _series(square, known.sine)
    cosine = one(1) - (one(0.5) * square - square * square * _series(square, known.cosine))
    swap = (quarter & 1) != 0
    first, second = np.where(swap, sine, cosine), np.where(swap, cosine, sine)
    first = np.where(((quarter + 1) & 2) != 0, -first, first)
    second = np.where((quarter & 2) != 0, -second, second)
    return radius * first, radius * second


def _series(x: np.ndarray, coefficients: tuple[float, ...]) -> np.ndarray:
    """Evaluate a polynomial by Horner's scheme, each coefficient rounded to the dtype."""
    total = np.full_like(x, coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        total = x.dtype.type(coefficient) + x * total
    return total
