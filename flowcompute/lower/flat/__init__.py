"""Kernels over a flat sequence of numbers: maps, folds of streams of numbers, stencils, gathers, sorts, transposes."""

from flowcompute.lower.flat.flat_form import MAP, NUMBERS
from flowcompute.lower.flat.gather import is_together, why_copied
from flowcompute.lower.flat.gather_form import GATHER
from flowcompute.lower.flat.many_maps import joined_maps
from flowcompute.lower.flat.sort_form import SORTED_ROWS, why_sorted_by_host
from flowcompute.lower.flat.stencil_form import STENCIL
from flowcompute.lower.flat.transpose_form import TRANSPOSE

__all__ = [
    "GATHER",
    "MAP",
    "NUMBERS",
    "SORTED_ROWS",
    "STENCIL",
    "TRANSPOSE",
    "is_together",
    "joined_maps",
    "why_copied",
    "why_sorted_by_host",
]
