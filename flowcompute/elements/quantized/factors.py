"""Formats whose numbers are a scale times a small whole number, and both of these as formats of their own."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from flowcompute.elements.quantized.block_formats import BLOCK_FORMATS, BlockFormat
from flowcompute.elements.quantized.decoding import AsFloat, OfFloats, OfWhole, Whole, WholeNumber
from flowcompute.elements.quantized.runs import bounds_of, lanes_of
from flowcompute.imports import dataclass

_SHARED = (32, 16)
"""Neighbouring numbers that may have one scale."""
_LOW_BITS, _BYTE = 127, 255
"""The greatest whole number below the leading bit of a bfloat16's significand, and the greatest byte."""
_HALF_OF_BYTE = 128


@dataclass(frozen=True)
class Factors:
    """A format's numbers as products.

    Attributes:
        scale: the blocks, whose numbers are the scales.
        whole: the blocks, whose numbers are the whole numbers.
        shared: neighbouring numbers of a block that have one scale.
    """

    scale: BlockFormat
    whole: BlockFormat
    shared: int


@cache
def factors_of(block_format: BlockFormat) -> Factors | None:
    """Return a format's numbers as a scale times a byte less a bias; None where they are something else.

    The byte is below 128, or the bias is 128. So bfloat16 holds the whole number exactly.
    """
    match block_format.value:
        case OfFloats("*", scale, AsFloat(OfWhole("-", byte, WholeNumber(bias)) as number)) if _is_small(
            block_format, byte, bias
        ):
            pass
        case _:
            return None
    for shared in _SHARED:
        begins = range(0, block_format.numbers, shared)
        if block_format.numbers % shared == 0 and all(
            len(set(lanes_of(block_format, shared, begin, shared)[scale])) == 1 for begin in begins
        ):
            name = block_format.name
            return Factors(
                replace(block_format, name=f"{name}_scale", value=scale),
                replace(block_format, name=f"{name}_whole", value=AsFloat(number)),
                shared,
            )
    return None


@cache
def formats_by_name() -> dict[str, BlockFormat]:
    """Return the formats of files and those of their factors, by name."""
    formats = dict(BLOCK_FORMATS)
    for factors in filter(None, map(factors_of, BLOCK_FORMATS.values())):
        formats |= {one.name: one for one in (factors.scale, factors.whole)}
    return formats


def _is_small(block_format: BlockFormat, byte: Whole, bias: int) -> bool:
    low, high = bounds_of(block_format)[byte]
    return low >= 0 and bias >= 0 and (high + bias <= _LOW_BITS or (high <= _BYTE and bias == _HALF_OF_BYTE))
