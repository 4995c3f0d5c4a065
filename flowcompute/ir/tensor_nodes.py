"""The kernel IR of tensor cores: fragments of matrices, and copies that are under way. Rendered by `gpu/render`.

A **fragment** is a few small matrices that 32 neighbouring work-items, a team, hold together.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from flowcompute.ir.nodes import Argument, Copying, OfFragments, Var


@dataclass(frozen=True, slots=True)
class Fragment(OfFragments):
    """Four 8 x 8 matrices of 16-bit numbers (8 x 4 of 32-bit ones) from local memory, as 4 words of 32 bits.

    Work-item l of a team gives where row l % 8 of matrix l / 8 lies, and gets of each matrix word l % 4
    of row l / 4; with `transposed`, for 16-bit numbers only, of column l / 4. `index` counts numbers of
    `dtype`, whatever the array is declared as.
    """

    array: str
    index: str
    dtype: np.dtype
    transposed: bool = False


@dataclass(frozen=True, slots=True)
class Words(OfFragments):
    """Four words of 32 bits from places of local memory that are counted in such words."""

    array: str
    indices: tuple[str, str, str, str]


@dataclass(frozen=True, slots=True)
class Leading(OfFragments):
    """Words that are float32, rounded to the 11 bits of a significand that tensor cores multiply."""

    operand: Var


@dataclass(frozen=True, slots=True)
class Rest(OfFragments):
    """What is left of such words beside their `leading` parts; infinities leave NaN."""

    operand: Var
    leading: Var


@dataclass(frozen=True, slots=True)
class FragmentMultiply(OfFragments):
    """`c + a * b`: 16 x 16 numbers times 16 x 8 (16 x 8 times 8 x 8 of 32-bit ones), summed in float32.

    Of 32-bit numbers only the sign, the exponent and the first 11 bits of the significand take part.

    Of `a` the matrices are the upper left, lower left, upper right and lower right ones; of `b`,
    transposed, 2 * `part` and the next. Work-item l of a team holds of `c` row l / 4, columns
    2 * (l % 4) and the next, then the same of row l / 4 + 8. In which order a device adds up one
    such step is its own.
    """

    a: Var
    b: Var
    part: int
    c: Var
    dtype: np.dtype


@dataclass(frozen=True, slots=True)
class FragmentOf(OfFragments):
    """Sums of twice 8 columns as the left operand of a multiplication with as much of k, rounded to a half format."""

    low: Var
    high: Var
    dtype: np.dtype


@dataclass(frozen=True, slots=True)
class WordsOf(OfFragments):
    """Sums of 8 columns as the left operand of a multiplication with as much of k, of float32.

    Columns are in the order 0, 2, 4, 6, 1, 3, 5, 7 of k, as the right operand then has to be.
    """

    operand: Var


@dataclass(frozen=True, slots=True)
class Join(OfFragments):
    """Both vectors as one."""

    low: Var
    high: Var


@dataclass(frozen=True, slots=True)
class Across(OfFragments):
    """The float that the work-item of the team has whose number differs in this one bit."""

    operand: Var
    bit: int


@dataclass(frozen=True, slots=True)
class Copy(Copying):
    """Begin to bring `numbers` neighbours of an argument into a local array; zeros unless `exists`.

    `place` counts numbers of the argument's dtype, whatever the array is declared as. It and
    `index` are multiples of `numbers`, which are a power of two and 16 bytes at most.
    """

    array: str
    place: str
    argument: Argument
    index: str
    numbers: int
    exists: str = "1"


@dataclass(frozen=True, slots=True)
class EndCopies(Copying):
    """Copies begun since the last such statement are a group. Groups arrive in order."""


@dataclass(frozen=True, slots=True)
class AwaitCopies(Copying):
    """Wait until at most so many groups of the work-item are under way; a barrier shows them to others."""

    pending: int
