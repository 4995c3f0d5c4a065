"""Kernels over a flat sequence of numbers: maps, folds of streams of numbers, stencils, gathers."""

from flowcompute.lower.flat.flat_form import FlatLowering, is_flat
from flowcompute.lower.flat.gather import is_together, why_copied
from flowcompute.lower.flat.gather_form import lower_together
from flowcompute.lower.flat.stencil_form import lower_stencil

__all__ = ["FlatLowering", "is_flat", "is_together", "lower_stencil", "lower_together", "why_copied"]
