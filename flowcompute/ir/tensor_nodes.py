"""Kernel IR of tensor cores: fragments of matrices, and asynchronous copies. Rendered by `gpu/render`.

A **fragment** is a few small matrices that a sub-group of 32 neighbouring work-items holds together.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from flowcompute.ir.index_nodes import ConditionLike, IndexLike
from flowcompute.ir.nodes import Argument, Copying, OfFragments, Var


@dataclass(frozen=True, slots=True)
class Fragment(OfFragments):
    """Four 8 x 8 matrices of 16-bit numbers (8 x 4 of 32-bit ones) from local memory, as 4 words of 32 bits.

    Work-item l of a sub-group provides the address of row l % 8 of matrix l / 8. It receives word l % 4 of row l / 4 of
    each matrix; with `transposed`, for 16-bit numbers only, of column l / 4. `index` counts numbers of `dtype`,
    whatever the array is declared as.
    """

    array: str
    index: IndexLike
    dtype: np.dtype
    transposed: bool = False


@dataclass(frozen=True, slots=True)
class Words(OfFragments):
    """Four words of 32 bits from positions in local memory, counted in such words."""

    array: str
    indices: tuple[IndexLike, IndexLike, IndexLike, IndexLike]


@dataclass(frozen=True, slots=True)
class Leading(OfFragments):
    """Float32 words rounded to the 11 bits of a significand that tensor cores multiply."""

    operand: Var


@dataclass(frozen=True, slots=True)
class Rest(OfFragments):
    """The difference between such words and their `leading` parts; NaN for infinities."""

    operand: Var
    leading: Var


@dataclass(frozen=True, slots=True)
class FragmentMultiply(OfFragments):
    """`c + a * b`: 16 x 16 numbers times 16 x 8 (16 x 8 times 8 x 8 of 32-bit ones), summed in float32.

    Only the sign, the exponent and the first 11 bits of the significand of 32-bit numbers are used.

    The matrices of `a` are the upper left, lower left, upper right and lower right ones. Those of `b`, transposed, are
    2 * `part` and the next. Work-item l of a sub-group holds columns 2 * (l % 4) and the next of `c`, in row l / 4,
    then in row l / 4 + 8. The order of additions in one such step depends on the device.
    """

    a: Var
    b: Var
    part: int
    c: Var
    dtype: np.dtype


@dataclass(frozen=True, slots=True)
class FragmentOf(OfFragments):
    """Sums of two blocks of 8 columns as a left operand with as many rows of k, rounded to a half format."""

    low: Var
    high: Var
    dtype: np.dtype


@dataclass(frozen=True, slots=True)
class WordsOf(OfFragments):
    """Sums of 8 columns as a left operand of float32 with as many rows of k.

    The columns are in the order 0, 2, 4, 6, 1, 3, 5, 7 of k, which the right operand must match.
    """

    operand: Var


@dataclass(frozen=True, slots=True)
class Join(OfFragments):
    """Two vectors concatenated."""

    low: Var
    high: Var


@dataclass(frozen=True, slots=True)
class Across(OfFragments):
    """The float of the work-item in the sub-group whose number differs in bit `bit`."""

    operand: Var
    bit: int


@dataclass(frozen=True, slots=True)
class Copy(Copying):
    """Start an asynchronous copy of consecutive numbers of an argument to a local array; zeros unless `exists`.

    `place` counts numbers of the argument's dtype, whatever the array is declared as. It and `index` are multiples of
    `numbers`, a power of two of at most 16 bytes.
    """

    array: str
    place: IndexLike
    argument: Argument
    index: IndexLike
    numbers: int
    exists: ConditionLike = True


@dataclass(frozen=True, slots=True)
class EndCopies(Copying):
    """The end of a group of copies: all that were started since the previous one. Groups complete in order."""


@dataclass(frozen=True, slots=True)
class AwaitCopies(Copying):
    """Wait until at most `pending` groups of the work-item are incomplete. A barrier makes them visible to others."""

    pending: int
