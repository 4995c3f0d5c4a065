"""Kernel IR of words: narrow integers, four to a word, and the bits of floats. Rendered by `gpu/render`."""

from __future__ import annotations

import numpy as np

from flowcompute.elements.quantized import BlockFormat
from flowcompute.imports import dataclass
from flowcompute.ir.index_nodes import IndexLike
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


@dataclass(frozen=True, slots=True)
class ShiftedBits(OfWords):
    """The bits of a finite float32 at their places in a float64, whose exponent has a larger bias.

    That is the number divided by `BIAS_FACTOR`, exactly; so are denormal numbers, and -0.
    """

    number: Var


BIAS_FACTOR = 2.0**896
"""Power of two by the difference of the biases of float64 and float32, 1023 and 127."""

RUN_NUMBERS = 4
"""Most numbers of a `BlockRun`: as many as there are bytes in a word."""


@dataclass(frozen=True, slots=True)
class BlockRun(OfWords):
    """`lanes` neighbouring numbers of a block that lies in local memory, two or `RUN_NUMBERS`.

    Attributes:
        lanes: how many.
        array: in which blocks of the format follow each other, the first one at a multiple of 4 bytes.
        block: place of the block's first byte in it.
        known: the least bytes that it may be behind a multiple of `multiple`, a power of two.
        multiple: 1, 2 or 4 bytes.
        place: of the first number in the block, without `begin`: a multiple of `lanes` below `span`.
        begin: what is added to it.
        span: of numbers that begin at `begin`.
        blocks: the format.
        native: whether it uses an instruction of NVIDIA's.
        raised: whether scale and bias are one multiply-add, if `has_exact_bias`. Then all zeros are +0, and infinite
            scales make NaN.
    """

    lanes: int
    array: str
    block: IndexLike
    known: int
    multiple: int
    place: IndexLike
    begin: int
    span: int
    blocks: BlockFormat
    native: bool
    raised: bool = False


@dataclass(frozen=True, slots=True)
class HalvesOfRun(OfWords):
    """The whole numbers of a run of `RUN_NUMBERS`, in bfloat16: a word of the first and third, one of the others.

    The run's format is `Factors.whole` of one whose numbers are a scale times a whole number.
    """

    run: BlockRun


@dataclass(frozen=True, slots=True)
class UpperHalves(OfWords):
    """The upper halves of four float32, which are bfloat16: a word of the first and third, one of the others."""

    numbers: Var


@dataclass(frozen=True, slots=True)
class LowerRest(OfWords):
    """Float32 less their upper halves, which is exact; NaN of infinities."""

    numbers: Var
