"""Values of numbers that are known when composed, and questions about dtypes."""

from flowcompute.elements.creation.dtypes import can_cast, conj, finfo, iinfo, imag, isdtype, real, result_type
from flowcompute.elements.creation.filled import (
    empty,
    empty_like,
    eye,
    full,
    full_like,
    linspace,
    ones,
    ones_like,
    zeros,
    zeros_like,
)
from flowcompute.elements.creation.packing import MOST_PACKED, PACK, PACK_ROWS, packed, packed_rows, row_dtype
from flowcompute.elements.creation.parameters import Trainable, is_recomputed, parameter, recompute, stop_gradient
from flowcompute.elements.creation.stream_table import Table, table

__all__ = [
    "MOST_PACKED",
    "PACK",
    "PACK_ROWS",
    "Table",
    "Trainable",
    "can_cast",
    "conj",
    "empty",
    "empty_like",
    "eye",
    "finfo",
    "full",
    "full_like",
    "iinfo",
    "imag",
    "is_recomputed",
    "isdtype",
    "linspace",
    "ones",
    "ones_like",
    "packed",
    "packed_rows",
    "parameter",
    "real",
    "recompute",
    "result_type",
    "row_dtype",
    "stop_gradient",
    "table",
    "zeros",
    "zeros_like",
]
