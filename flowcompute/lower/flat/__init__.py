"""Kernels over a flat sequence of numbers: maps, folds of streams of numbers, stencils, gathers."""

from flowcompute.lower.flat.flat_form import MAP, NUMBERS
from flowcompute.lower.flat.gather import is_together, why_copied
from flowcompute.lower.flat.gather_form import GATHER
from flowcompute.lower.flat.stencil_form import STENCIL

__all__ = ["GATHER", "MAP", "NUMBERS", "STENCIL", "is_together", "why_copied"]
