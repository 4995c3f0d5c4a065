"""Kernel IR of narrow integers, four to a word. Rendered by `gpu/render/packed_words.py`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from flowcompute.ir.nodes import OfWords, Var


@dataclass(frozen=True, slots=True)
class Packed(OfWords):
    """Four one-byte integers as a word of 32 bits. The operands are four numbers, or one vector of them."""

    numbers: tuple[Var, ...]


@dataclass(frozen=True, slots=True)
class DotAdd(OfWords):
    """`c` plus the products of the integers in words `a` and `b`, which have these dtypes.

    `native` uses an instruction of NVIDIA's.
    """

    a: Var
    b: Var
    c: Var
    dtypes: tuple[np.dtype, np.dtype]
    native: bool
