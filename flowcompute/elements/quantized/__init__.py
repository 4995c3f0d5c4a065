"""Quantised numbers in blocks: the formats of GGUF, and the operation that decodes them."""

from flowcompute.elements.quantized.block_formats import BLOCK_FORMATS, BlockFormat
from flowcompute.elements.quantized.decoding import (
    AsFloat,
    Byte,
    CodebookEntry,
    Expression,
    Float,
    FloatNumber,
    FromBits,
    OfFloats,
    OfWhole,
    Place,
    Whole,
    WholeChoice,
    WholeNumber,
    in_order,
    operands,
)
from flowcompute.elements.quantized.dequantizing import DEQUANTIZE, Dequantize, dequantize
from flowcompute.elements.quantized.runs import (
    bounds_of,
    exact_products,
    lanes_of,
    moved,
    offset_between,
    trailing_zeros,
)

__all__ = [
    "BLOCK_FORMATS",
    "DEQUANTIZE",
    "AsFloat",
    "BlockFormat",
    "Byte",
    "CodebookEntry",
    "Dequantize",
    "Expression",
    "Float",
    "FloatNumber",
    "FromBits",
    "OfFloats",
    "OfWhole",
    "Place",
    "Whole",
    "WholeChoice",
    "WholeNumber",
    "bounds_of",
    "dequantize",
    "exact_products",
    "in_order",
    "lanes_of",
    "moved",
    "offset_between",
    "operands",
    "trailing_zeros",
]
