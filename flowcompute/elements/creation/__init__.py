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
from flowcompute.elements.creation.packing import MOST_PACKED, PACK, packed
from flowcompute.elements.creation.parameters import Trainable, is_recomputed, parameter, recompute, stop_gradient

__all__ = [
    "MOST_PACKED",
    "PACK",
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
    "parameter",
    "real",
    "recompute",
    "result_type",
    "stop_gradient",
    "zeros",
    "zeros_like",
]
