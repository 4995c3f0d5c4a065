"""Quantised numbers in blocks: the formats of GGUF, and the operation that decodes them."""

from flowcompute.elements.quantized.block_formats import BLOCK_FORMATS, BlockFormat
from flowcompute.elements.quantized.decoding import (
    AsFloat,
    Byte,
    Choice,
    Entry,
    Expression,
    Float,
    FloatNumber,
    FromBits,
    OfFloats,
    OfWhole,
    Place,
    Whole,
    WholeNumber,
    in_order,
    operands,
)
from flowcompute.elements.quantized.dequantizing import DEQUANTIZE, Dequantize, dequantize

__all__ = [
    "BLOCK_FORMATS",
    "DEQUANTIZE",
    "AsFloat",
    "BlockFormat",
    "Byte",
    "Choice",
    "Dequantize",
    "Entry",
    "Expression",
    "Float",
    "FloatNumber",
    "FromBits",
    "OfFloats",
    "OfWhole",
    "Place",
    "Whole",
    "WholeNumber",
    "dequantize",
    "in_order",
    "operands",
]
